"""Cuts whole books into passages as the product does, and finds the passages that answer each written question.

    python -m training.section_reader.books BOOKS OUT.jsonl.gz BOOK [BOOK ...]

BOOKS holds the sources that `written/books.json` and `bench/keyless/questions/books.json` name, one folder a book. Nothing is embedded
here. A line is one book: {"set", "role": "train", "dev" or "test", "docs": [{"text", "units", "front"}], "rows": [...]}. `front` is the length of
the headings and the lead-in at the beginning of `text`. A row is a question as the section reader reads it:
{"question", "turn", "searches": [[text, passages taken]], "answering": [docs], "in_doubt": [docs], "units": {doc: units that answer}, "group"}.
A passage in doubt is never called wrong. A follow-up comes after turns that were all answered rightly.
"""

import asyncio
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.keyless.places import quoted
from bench.keyless.sets import QUESTIONS, share
from training.embedder.data import WRITTEN, holders, passages, runs

from chapterverse.answering.followups import in_context, near, together
from chapterverse.book import Chunk
from chapterverse.conversations.turns import Turn

from .data import Row, passage

HOLDS = 0.7  # share of a quote that a passage must contain to answer
REPEATS = 0.4  # share of a quote from which on a passage is not used as a negative
LIKELY, MOST_LIKELY = 0.2, 12  # share of a quote's runs from which a passage is compared with it, and how many are
ALONE, WITH_LAST, AGAIN, NEAR = 12, 5, 3, 8  # passages taken: of a question, and of a follow-up's searches


class Book:
    """The passages of a book without repeated texts."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        texts: dict[str, Chunk] = {}
        for chunk in chunks:
            texts.setdefault(chunk.text, chunk)
        self.chunks = [*texts.values()]
        self._holding = holders([chunk.text for chunk in self.chunks])

    def held(self, quotes: Sequence[str]) -> dict[int, float]:
        """The passages that contain part of a quote, and how much."""
        likely: set[int] = set()
        for wanted in map(runs, quotes):
            counts = Counter(number for run in wanted for number in self._holding.get(run, ()))
            best = sorted(counts, key=lambda number: (-counts[number], number))[:MOST_LIKELY]
            likely |= {number for number in best if counts[number] / len(wanted) >= LIKELY}
        shares = {number: max(share(quote, self.chunks[number].text) for quote in quotes) for number in likely}
        return {number: held for number, held in shares.items() if held >= REPEATS}

    def units(self, number: int, quotes: Sequence[str]) -> list[int]:
        """The units that contain most of the quote, or that mostly consist of words of the quote."""
        chunk = self.chunks[number]
        quote = max(quotes, key=lambda one: share(one, chunk.text))
        texts = [chunk.text[start:end] for start, end in spans(chunk)]
        return [at for at, text in enumerate(texts) if share(quote, text) >= HOLDS or share(text, quote) >= HOLDS]

    def page_of(self, number: int) -> list[int]:
        """All passages of the same page."""
        return [at for at, chunk in enumerate(self.chunks) if chunk.page_id == self.chunks[number].page_id]


def spans(chunk: Chunk) -> list[list[int]]:
    """The units of a passage in its text."""
    return [[unit.start - chunk.start, unit.end - chunk.start] for unit in chunk.units]


def place(chunk: Chunk) -> str:
    """The place of a passage as `answering/reading.py` gives it to the reader: from the page's title on."""
    return chunk.breadcrumb[max(0, chunk.breadcrumb.find(" ".join(chunk.page_title.split()))) :]


def rows_of(name: str, source: Path, book: Book) -> Iterator[Row | None]:
    """The rows of a book; None for a question whose answer is in no passage."""
    for what in ("questions", "words", "broad"):
        for group, asked in _written(name, what, source):
            row = _row(book, asked["question"], asked, [])
            if row and row["answering"] and what == "broad":
                row["in_doubt"] += [at for at in book.page_of(row["answering"][0]) if at not in row["answering"]]
            yield row and row | {"group": group, "kind": "words" if "words" in group else ""}
    for group, dialogue in _written(name, "dialogues", source):
        turns: list[Turn] = []
        for asked in dialogue["turns"]:
            row = _row(book, asked["user"], asked, turns)
            yield row and row | {"group": group}
            turns = [*turns, _turn(asked["user"], book, row)]
    for group, asked in _written(name, "extra", source):
        for part in asked["parts"]:
            row = _row(book, asked["question"], part, [])
            if row:
                beside = book.held([other["quote"] for other in asked["parts"] if other is not part])
                row["in_doubt"] += [at for at in beside if at not in row["answering"]]
            yield row and row | {"group": group}


def _written(name: str, what: str, source: Path) -> Iterator[tuple[str, Any]]:
    for file in (*WRITTEN.glob(f"{name}_{what}.jsonl"), *QUESTIONS.glob(f"*_{name}_{what}.jsonl")):
        for number, line in enumerate(file.read_text("utf-8").splitlines()):
            yield f"{file.stem}{number}", quoted(json.loads(line), source)


def _row(book: Book, question: str, asked: dict[str, Any], turns: Sequence[Turn]) -> Row | None:
    searches = [[question, ALONE]]
    if turns:
        places = [[text, NEAR] for text in near(turns, question)]
        searches = [[together(turns, question), WITH_LAST], [question, AGAIN], *places]
    row: Row = {"question": in_context(question, turns), "turn": bool(turns), "searches": searches}
    row |= {"answering": [], "in_doubt": [], "units": {}}
    quotes = [one["quote"] for one in (asked, *asked.get("also", ())) if one["quote"]]
    if not quotes:
        return row
    held = book.held(quotes)
    best = sorted((number for number in held if held[number] >= HOLDS), key=lambda number: (-held[number], number))
    units = {number: found for number in best if (found := book.units(number, quotes))}
    if not units:
        return None
    return row | {"answering": [*units], "in_doubt": [number for number in held if number not in units], "units": units}


def _turn(question: str, book: Book, row: Row | None) -> Turn:
    """A turn whose answer was the first unit that answers."""
    if not row or not row["answering"]:
        return Turn("", question, "", standalone_query=question)
    first = row["answering"][0]
    chunk = book.chunks[first]
    start, end = spans(chunk)[row["units"][first][0]]
    source = {"breadcrumb": chunk.breadcrumb, "quote": chunk.text[start:end]}
    return Turn("", question, source["quote"], sources=(source,), standalone_query=question)


def main() -> None:
    """Write the named books to one file."""
    books, out, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    trained = json.loads((WRITTEN / "books.json").read_text("utf-8"))
    known = trained | json.loads((QUESTIONS / "books.json").read_text("utf-8"))
    with gzip.open(out, "wt") as file:
        for name in names:
            role = "train" if name in trained else next(QUESTIONS.glob(f"*_{name}_questions.jsonl")).name.split("_")[0]
            book = Book(asyncio.run(passages(books / name / known[name]["ingest"])))
            rows = list(rows_of(name, books / name, book))
            docs = [passage(place(chunk), chunk.lead, chunk.text, spans(chunk)) for chunk in book.chunks]
            placed = [row for row in rows if row]
            made = {"set": name, "role": role, "docs": docs, "rows": placed}
            file.write(json.dumps(made, ensure_ascii=False) + "\n")
            answered = sum(bool(row["answering"]) for row in placed)
            print(name, role, len(docs), "passages,", len(placed), "rows,", answered, "answered,", end=" ")
            print(len(rows) - len(placed), "left out", flush=True)


if __name__ == "__main__":
    main()
