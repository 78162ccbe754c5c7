"""Collects the data that the embedder is trained and measured on: passages of whole books, and questions with the
passages that answer.

    python -m training.embedder.data BOOKS OUT.jsonl.gz BOOK [BOOK ...]

BOOKS contains the sources that `section_reader/written/books.json` and `bench/keyless/questions/books.json` name, one
folder per book. A line is one book: {"set", "role": "train" or "eval", "docs": [passage], "queries": [[question,
[answering], [in doubt]]]}. A passage answers if it contains 70 % of the three-word runs of the quote. From 40 % on it
is in doubt and never used as a negative.
"""

import asyncio
import gzip
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.keyless.places import quoted
from bench.keyless.sets import QUESTIONS, without_markup

from chapterverse.book import Chunk
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion import pipeline
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources import open_source
from chapterverse.testing import HashEmbedder

WRITTEN = Path(__file__).parents[1] / "section_reader" / "written"
ANSWERS, IN_DOUBT = 0.7, 0.4  # share of a quote's three-word runs


async def passages(source: Path) -> list[Chunk]:
    """The passages of a book as the product cuts them. Nothing is embedded."""
    with tempfile.TemporaryDirectory() as home:
        index = EdgeIndex(Path(home, "index"), timeout=60)
        try:
            await pipeline.ingest(
                [open_source(str(source), SourceOptions())], pipeline.Workshop(index, HashEmbedder(), Path(home))
            )
            async with index.writer() as writer:
                return [chunk async for chunk, _ in writer.vectors()]
        finally:
            await index.close()


def runs(text: str) -> set[tuple[str, ...]]:
    """Runs of three words. A shorter text is one run."""
    words = re.findall(r"\w+", without_markup(text).lower())
    size = min(3, len(words))
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)} if words else set()


def holders(texts: list[str]) -> dict[tuple[str, ...], list[int]]:
    """For each run, the numbers of the texts that contain it."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        for run in runs(text):
            found[run].append(number)
    return found


def asked(book: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Questions about a book that can be understood alone, each with the quotes that answer it."""
    files = [*WRITTEN.glob(f"{book}_*.jsonl"), *QUESTIONS.glob(f"*_{book}_*.jsonl")]
    for line in (line for file in sorted(files) for line in file.read_text("utf-8").splitlines()):
        row = quoted(json.loads(line), folder)
        if "parts" in row:
            yield row["question"], [part["quote"] for part in row["parts"] if part["quote"]]
        for turn in row.get("turns", [row] if "parts" not in row else []):
            question = turn.get("standalone") or turn.get("user") or turn["question"]
            yield question, [one["quote"] for one in (turn, *turn.get("also", ())) if one["quote"]]


def placed(questions: Iterable[tuple[str, list[str]]], texts: list[str]) -> Iterator[list[Any]]:
    """The questions with the numbers of the passages that answer. Questions whose answer is in no passage are left
    out."""
    holding = holders(texts)
    for question, quotes in questions:
        shares: dict[int, float] = defaultdict(float)
        for wanted in filter(None, map(runs, quotes)):
            held = Counter(number for run in wanted for number in holding.get(run, ()))
            for number, count in held.items():
                shares[number] = max(shares[number], count / len(wanted))
        answering = sorted(number for number, share in shares.items() if share >= ANSWERS)
        if answering or not quotes:
            in_doubt = sorted(number for number, share in shares.items() if IN_DOUBT <= share < ANSWERS)
            yield [question, answering, in_doubt]


def main() -> None:
    """Write the named books to one file."""
    books, out, names = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    trained = json.loads((WRITTEN / "books.json").read_text("utf-8"))
    known = trained | json.loads((QUESTIONS / "books.json").read_text("utf-8"))
    with gzip.open(out, "wt") as file:
        for name in names:
            chunks = asyncio.run(passages(books / name / known[name]["ingest"]))
            queries = list(placed(asked(name, books / name), [chunk.text for chunk in chunks]))
            held_out = name not in trained
            row = {"set": name, "role": "eval" if held_out else "train", "docs": [chunk.passage for chunk in chunks]}
            file.write(json.dumps(row | {"queries": queries}) + "\n")
            print(name, row["role"], len(chunks), "passages,", len(queries), "questions", flush=True)


if __name__ == "__main__":
    main()
