"""Makes training rows from questions written over whole books: each with the passages that the product itself finds for it.

    python -m training.section_reader.whole_books BOOKS HOMES OUT [BOOK ...]

The questions are in `written/`; where the book answers is named by file and characters (no place: it does not). BOOKS holds the
sources that `written/books.json` names, one folder a book; HOMES holds the ingested books, which are made if they are missing. A
follow-up gets the passages of the searches that the product makes after the turns before, as if each of them had been answered
rightly.
"""

import asyncio
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from bench.keyless.asking import opened
from bench.keyless.places import quoted
from bench.keyless.sets import share

from chapterverse.answering.followups import in_context
from chapterverse.answering.reading import candidates
from chapterverse.conversations.turns import Turn
from chapterverse.evidence.passages import units_in
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.models import ChunkResult, RetrievalRequest
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.services import Services

from .data import Row, passage

WRITTEN = Path(__file__).parent / "written"
HOLDS = 0.7  # share of a quote that a passage has to hold to answer
REPEATS = 0.4  # share of a quote from which a passage is not called wrong either
MOST = 12  # passages of a row
FOREIGN = 60  # questions about other books, which nothing answers


async def rows_of(book: str, source: Path, services: Services) -> AsyncIterator[Row]:
    """The rows of one book."""
    for what in ("questions", "broad"):
        for number, asked in _written(book, what, source):
            row, _ = await _row(asked["question"], asked, [], services, broad=what == "broad")
            if row:
                yield row | {"group": f"{book}-{what}{number}", "set": book}
    for number, dialogue in _written(book, "dialogues", source):
        turns: list[Turn] = []
        for asked in dialogue["turns"]:
            row, answer = await _row(asked["user"], asked, turns, services)
            if row:
                yield row | {"group": f"{book}-d{number}", "set": book}
            turns = [*turns, _turn(asked["user"], answer)]
    for number, asked in _written(book, "extra", source):
        for part in asked["parts"]:
            beside = [other["quote"] for other in asked["parts"] if other is not part]
            row, _ = await _row(asked["question"], part, [], services, beside)
            if row:
                yield row | {"group": f"{book}-extra{number}", "set": book}
    others = _of_others(book)
    for number, asked in random.Random(book).sample(others, min(FOREIGN, len(others))):
        row, _ = await _row(asked["question"], {"quote": ""}, [], services)
        assert row is not None  # nothing has to be found
        yield row | {"group": f"{book}-f{number}", "set": book}


def _written(book: str, what: str, source: Path) -> list[tuple[int, Any]]:
    file = WRITTEN / f"{book}_{what}.jsonl"
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [(number, quoted(json.loads(line), source)) for number, line in enumerate(lines)]


def _of_others(book: str) -> list[tuple[int, Any]]:
    files = [file for file in sorted(WRITTEN.glob("*_questions.jsonl")) if file.name != f"{book}_questions.jsonl"]
    return [(number, json.loads(line)) for file in files for number, line in enumerate(file.read_text().splitlines())]


async def _row(
    question: str,
    asked: dict[str, Any],
    turns: Sequence[Turn],
    services: Services,
    beside: Sequence[str] = (),
    *,
    broad: bool = False,
) -> tuple[Row | None, dict[str, Any]]:
    """A row, or None if the answer was not found in the book as it was read; and the source that the answer would have.
    What answers another part of the question, beside this one, is not called wrong; nor is the rest of the page that
    answers a broad question."""
    found = await candidates(question, turns, RetrievalRequest(query=question[:MAX_QUERY_CHARS], top_k=MOST), services)
    chunks = found.results[:MOST]
    quotes = [one["quote"] for one in (asked, *asked.get("also", ())) if one["quote"]]
    row: Row = {"question": in_context(question, turns), "gold": -1, "gold_units": [], "ignore": []}
    how = "follow-up" if turns else "question"
    if not quotes:
        row["how"] = f"{how} without answer"
        return row | {"passages": [_passage(chunk) for chunk in chunks]}, {}
    held = [max(share(quote, chunk.chunk_text) for quote in quotes) for chunk in chunks]
    row["how"] = f"{how} found" if max(held, default=0.0) >= HOLDS else f"{how} not found"
    if max(held, default=0.0) < HOLDS:
        wanted = RetrievalRequest(query=" ".join(quotes[0].split())[:MAX_QUERY_CHARS], top_k=20)
        more = (await retrieve_with_retry(wanted, services.embedder, services.index)).results
        answering = [chunk for chunk in more if share(quotes[0], chunk.chunk_text) >= HOLDS][:1]
        if not answering:
            return None, {}
        chunks = [*chunks[: MOST - 1], *answering]
        held = [max(share(quote, chunk.chunk_text) for quote in quotes) for chunk in chunks]
    gold = max(range(len(chunks)), key=lambda at: (held[at] >= HOLDS, -at))
    units = _holding(chunks[gold], quotes)
    if not units:
        return None, {}
    first = units_in(chunks[gold])[units[0]]
    source = {
        "source_url": chunks[gold].source_url,
        "page_id": chunks[gold].page_id,
        "breadcrumb": chunks[gold].breadcrumb,
        "quote": _text(chunks[gold], first),
        "quote_start": first.start,
        "highlights": [{"start": first.start, "end": first.end}],
    }
    ignored = [
        at
        for at, chunk in enumerate(chunks)
        if at != gold
        and (
            held[at] >= REPEATS
            or any(share(quote, chunk.chunk_text) >= REPEATS for quote in beside)
            or (broad and chunk.page_id == chunks[gold].page_id)
        )
    ]
    made = {"passages": [_passage(chunk) for chunk in chunks], "gold": gold, "gold_units": units, "ignore": ignored}
    return row | made, source


def _holding(chunk: ChunkResult, quotes: Sequence[str]) -> list[int]:
    """The units that hold a good part of the quote, or most of whose words are the quote's."""
    quote = max(quotes, key=lambda one: share(one, chunk.chunk_text))
    texts = [_text(chunk, unit) for unit in units_in(chunk)]
    return [at for at, text in enumerate(texts) if share(quote, text) >= HOLDS or share(text, quote) >= HOLDS]


def _text(chunk: ChunkResult, unit: Any) -> str:
    return chunk.chunk_text[unit.start - chunk.char_start : unit.end - chunk.char_start]


def _passage(chunk: ChunkResult) -> Row:
    spans = [[unit.start - chunk.char_start, unit.end - chunk.char_start] for unit in units_in(chunk)]
    return passage(chunk.breadcrumb, chunk.lead, chunk.chunk_text, spans)


def _turn(question: str, source: dict[str, Any]) -> Turn:
    return Turn("", question, source.get("quote", ""), sources=(source,) if source else (), standalone_query=question)


async def main() -> None:
    """The books named, or all: OUT/BOOK.jsonl.gz."""
    books, homes, out = map(Path, sys.argv[1:4])
    known = json.loads((WRITTEN / "books.json").read_text("utf-8"))
    for book in sys.argv[4:] or known:
        counts: Counter[str] = Counter()
        with gzip.open(out / f"{book}.jsonl.gz", "wt") as file:
            async with opened(homes / book, books / book / known[book]["ingest"]) as services:
                async for row in rows_of(book, books / book, services):
                    counts[row.pop("how")] += 1
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(book, dict(counts), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
