"""Collects rows for the section reader that are not about whole books.

    python -m training.section_reader.data SHARED_DATA OUT.jsonl.gz

SHARED_DATA holds strong_questions, strong_claims, squad2, wice, attributionbench and ragtruth_qa. A row is one question with the passages
of its group:
{"question", "turn", "passages": [{"text", "units": [[start, end], ...], "front"}], "gold": index or -1, "gold_units": [...],
 "ignore": [indices of passages that repeat the answer], "set", "role": "train", or "squad" and "selected" for those kept apart}
"""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.keyless.sets import QUESTIONS, SQUAD_TEST, short_texts

from chapterverse.answering.followups import in_context
from chapterverse.conversations.turns import Turn
from chapterverse.units import blocks_of_text, cut_units

WRITTEN = Path(__file__).parent / "written"
EVERY = 2  # of the questions about the test articles

Row = dict[str, Any]


def passage(where: str, lead: str, text: str, units: list[list[int]]) -> Row:
    """A passage as the product gives it to the reader. Its units are shifted by what precedes the text."""
    front = "".join(f"{part}\n" for part in (where, lead) if part)
    moved = [[start + len(front), end + len(front)] for start, end in units]
    return {"text": front + text, "units": moved, "front": len(front)}


def _plain_passage(text: str) -> Row:
    return passage("", "", text, [[unit.start, unit.end] for unit in cut_units(text, blocks_of_text(text))])


def strong(folder: Path) -> Iterator[Row]:
    """strong_questions and the turns of its dialogues, whose quotes are stretches of a passage's text."""
    groups: dict[str, Any] = {}
    for line in gzip.open(folder / "strong_claims/passages.jsonl.gz", "rt"):
        group = json.loads(line)
        groups[group["gid"]] = group
    asked: dict[str, list[Any]] = defaultdict(list)
    for line in gzip.open(folder / "strong_questions/questions.jsonl.gz", "rt"):
        row = json.loads(line)
        asked[row["gid"]].append((row["question"], row["passage"], row["quote"]))
    for line in gzip.open(folder / "strong_questions/dialogues.jsonl.gz", "rt"):
        row = json.loads(line)
        turns: list[Turn] = []
        for turn in row["turns"]:
            for question in dict.fromkeys((turn["standalone"], in_context(turn["user"], turns))):
                asked[row["gid"]].append((question, turn["passage"], turn["quote"]))
            where = groups[row["gid"]]["passages"][turn["passage"] - 1]["where"] if turn["passage"] else ""
            source = {"breadcrumb": where, "quote": turn["quote"]}
            turns.append(Turn("", turn["user"], turn["quote"], sources=(source,) if where else ()))
    for gid, questions in asked.items():
        passages, places = [], []
        for one in groups[gid]["passages"]:
            text, where = one["text"], one["where"]
            units = [[unit.start, unit.end] for unit in cut_units(text, blocks_of_text(text))]
            places.append((text, units))
            passages.append(passage("" if text.startswith(where) else where, "", text, units))
        for question, number, quote in questions:
            gold_units: list[int] = []
            if number:
                text, units = places[number - 1]
                at = text.find(quote)
                gold_units = [n for n, (start, end) in enumerate(units) if start < at + len(quote) and at < end]
                if at < 0 or not gold_units:
                    continue
            yield _row(question, passages, number - 1, gold_units, groups[gid]["book"], "train")


def squad(folder: Path) -> Iterator[Row]:
    """SQuAD 2.0: a question with its paragraph and the next three, and those of the articles kept apart with their paragraph alone."""
    kept = 0
    for article in json.load(gzip.open(folder / "squad2/dev_a.json.gz"))["data"]:
        apart = article["title"] in SQUAD_TEST
        made = [_plain_passage(paragraph["context"]) for paragraph in article["paragraphs"]]
        for at, paragraph in enumerate(article["paragraphs"]):
            others = [] if apart else [made[(at + step) % len(made)] for step in (1, 2, 3)]
            for asked in paragraph["qas"]:
                kept += apart
                if apart and kept % EVERY:
                    continue
                gold: list[int] = []
                if asked["answers"]:
                    start = asked["answers"][0]["answer_start"]
                    gold = [n for n, (left, right) in enumerate(made[at]["units"]) if left <= start < right]
                role = "squad" if apart else "train"
                yield _row(asked["question"], [made[at], *others], 0 if asked["answers"] else -1, gold, "squad", role)


def texts_of(folder: Path) -> dict[str, str]:
    """Short texts by name: of the sets of `short_texts`, of SQuAD 2.0 and of strong_claims."""
    texts = dict(short_texts(folder))
    for article in json.load(gzip.open(folder / "squad2/dev_a.json.gz"))["data"]:
        if article["title"] not in SQUAD_TEST:
            texts |= {f"squad-{article['title']}-{at}": one["context"] for at, one in enumerate(article["paragraphs"])}
    for line in gzip.open(folder / "strong_claims/passages.jsonl.gz", "rt"):
        group = json.loads(line)
        texts |= {f"claims-{group['gid']}-{at}": one["text"] for at, one in enumerate(group["passages"])}
    return texts


def selected(folder: Path) -> Iterator[Row]:
    """Questions about short texts, written by a language model: half of them only seem answered. Some are about one
    sentence of a text alone (`within`)."""
    texts = texts_of(folder)
    for file, role in ((WRITTEN / "selected.jsonl", "train"), (QUESTIONS / "dev_selected.jsonl", "selected")):
        for line in file.read_text("utf-8").splitlines():
            asked = json.loads(line)
            first, last = asked.get("within", (0, None))
            one = _plain_passage(texts[asked["id"]][first:last])
            gold: list[int] = []
            if place := asked.get("place"):
                start, end = place[0] - first, place[1] - first
                gold = [n for n, (left, right) in enumerate(one["units"]) if left < end and start < right]
            yield _row(asked["question"], [one], 0 if gold else -1, gold, "selected", role)


def _row(question: str, passages: list[Row], gold: int, units: list[int], name: str, role: str) -> Row:
    ignore = []
    if gold >= 0:
        spans = passages[gold]["units"]
        said = [_plain(passages[gold]["text"][spans[n][0] : spans[n][1]]) for n in units]
        for at, other in enumerate(passages):
            text = _plain(other["text"])
            if at != gold and said and all(one in text for one in said):
                ignore.append(at)
    return {
        "question": question,
        "turn": " / " in question,
        "passages": passages,
        "gold": gold,
        "gold_units": units,
        "ignore": ignore,
        "set": name,
        "role": role,
    }


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def main() -> None:
    """Collect all rows."""
    shared, out = map(Path, sys.argv[1:3])
    count: Counter[tuple[str, str]] = Counter()
    with gzip.open(out, "wt") as file:
        for rows in (strong(shared), squad(shared), selected(shared)):
            for row in rows:
                count[row["set"], row["role"]] += 1
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(dict(count), count.total())


if __name__ == "__main__":
    main()
