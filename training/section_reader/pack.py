"""Turns rows into token arrays here, so that the GPU machine does not spend its time on tokenizing.

    python -m training.section_reader.pack ROWS.jsonl.gz TOKENIZER.json OUT.npz

A passage that several questions share is kept once. Arrays: `tokens` and `unit_of` (all passages one after another),
`starts`, `questions` and `question_starts`; `rows` is JSON: [question number, passage numbers, gold, gold units, ignored,
group, set].
"""

import gzip
import json
import sys

import numpy as np
from tokenizers import Tokenizer

QUESTION_TOKENS = 96
PASSAGE_TOKENS = 380


def main() -> None:
    source, tokenizer_file, out = sys.argv[1:4]
    tokenizer = Tokenizer.from_file(tokenizer_file)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokens: list[int] = []
    unit_of: list[int] = []
    starts, known = [0], {}
    questions: list[int] = []
    question_starts, rows = [0], []

    def passage_number(one: dict) -> int:  # type: ignore[type-arg]
        key = one["text"]
        if key not in known:
            known[key] = len(known)
            encoding = tokenizer.encode(key, add_special_tokens=False)
            at, units = 0, one["units"]
            for token, (left, _) in zip(encoding.ids[:PASSAGE_TOKENS], encoding.offsets, strict=False):
                while at < len(units) and units[at][1] <= left:
                    at += 1
                tokens.append(token)
                unit_of.append(at if at < len(units) and units[at][0] <= left else -1)
            starts.append(len(tokens))
        return known[key]

    for line in gzip.open(source, "rt"):
        row = json.loads(line)
        questions += tokenizer.encode(row["question"], add_special_tokens=False).ids[:QUESTION_TOKENS]
        question_starts.append(len(questions))
        numbers = [passage_number(one) for one in row["passages"]]
        gold = [row["gold"], row["gold_units"], row["ignore"], row["group"], row["set"]]
        rows.append([len(question_starts) - 2, numbers, *gold])
    np.savez_compressed(
        out,
        tokens=np.array(tokens, np.uint16),
        unit_of=np.array(unit_of, np.int16),
        starts=np.array(starts, np.int32),
        questions=np.array(questions, np.uint16),
        question_starts=np.array(question_starts, np.int32),
        rows=np.frombuffer(json.dumps(rows).encode(), np.uint8),
    )
    print(len(rows), "rows,", len(known), "passages,", len(tokens), "tokens")


if __name__ == "__main__":
    main()
