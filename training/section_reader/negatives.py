"""Adds passages that share words with a question and do not answer it, found by BM25 in the whole book.

    python -m training.section_reader.negatives ROWS.jsonl.gz CHUNKS_FOLDER OUT.jsonl.gz

CHUNKS_FOLDER holds chunks_BOOK.pkl, lists of (breadcrumb, lead, text, units) as the product cut the book. Only questions
with a known answer get such passages: of the others nobody has looked whether the rest of the book answers them.
"""

import gzip
import json
import math
import pickle
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from training.section_reader.data import passage

ADDED = 4
_WORD = re.compile(r"[a-z0-9_]{2,}")


class Book:
    """BM25 over the chunks of one book."""

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks
        counts = [Counter(_WORD.findall(f"{where} {lead} {text}".lower())) for where, lead, text, _ in chunks]
        self._lengths = [sum(count.values()) for count in counts]
        self._mean = sum(self._lengths) / len(chunks)
        self._found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, count in enumerate(counts):
            for word, times in count.items():
                self._found[word].append((at, times))

    def nearest(self, question: str, most: int) -> list[int]:
        scores: Counter[int] = Counter()
        total = len(self.chunks)
        for word in set(_WORD.findall(question.lower())):
            places = self._found.get(word, ())
            if len(places) > total * 0.3:
                continue
            weight = math.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5))
            for at, times in places:
                scores[at] += weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * self._lengths[at] / self._mean))
        return [at for at, _ in scores.most_common(most)]


def main() -> None:
    source, folder, out = map(Path, sys.argv[1:4])
    books: dict[str, Book | None] = {}
    added = 0
    with gzip.open(source, "rt") as rows, gzip.open(out, "wt") as file:
        for line in rows:
            row = json.loads(line)
            name = row["set"]
            if name not in books:
                chunks = folder / f"chunks_{name}.pkl"
                books[name] = Book(pickle.loads(chunks.read_bytes())) if chunks.exists() else None
            book = books[name]
            if book and row["gold"] >= 0:
                row["passages"] += _hard(row, book)
                added += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print("rows with passages added:", added)


def _hard(row: dict[str, Any], book: Book) -> list[dict[str, Any]]:
    known = {_plain(one["text"])[-200:] for one in row["passages"]}
    gold = row["passages"][row["gold"]]
    said = [_plain(gold["text"][start:end]) for n, (start, end) in enumerate(gold["units"]) if n in row["gold_units"]]
    made = []
    for at in book.nearest(row["question"], 12):
        where, lead, text, units = book.chunks[at]
        if _plain(text)[-200:] in known or any(one in _plain(text) for one in said):
            continue
        made.append(passage(where, lead, text, [list(unit) for unit in units]))
        if len(made) == ADDED:
            break
    return made


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


if __name__ == "__main__":
    main()
