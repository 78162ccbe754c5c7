"""Measures whether questions about a book pass the check before the model, and questions about other books do not.

Each book is calibrated from its own text only. It is then asked its own questions, questions about the other books, and
the built-in unrelated questions. Prints the share that passes, and each decision about the example book.

    python -m bench.calibration
"""

import asyncio
import gzip
import json
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.memory import MemoryIndex, Vectors
from bench.retrieval.sets import DATA, DataMissing, clapnq, doc2dial
from bench.retrieval.vectors import VectorCache
from chapterverse import calibration
from chapterverse.book import Chunk, Page
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.ingestion.chunking import cut
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Format, NothingToRead, Unreadable
from chapterverse.ingestion.readers import read
from chapterverse.models import ConfidenceMetrics

_ROOT: Final = Path(__file__).resolve().parents[1]
_CACHE: Final = _ROOT / ".cache" / "bench" / "vectors.sqlite"
_FORMATS: Final[Mapping[str, Format]] = {".rst": "rst", ".md": "markdown", ".mdx": "mdx"}
_TOP_K: Final = 5
_MOST: Final = 200  # maximum number of questions of one set


@dataclass(frozen=True, slots=True)
class Book:
    """An ingested book with its calibration."""

    index: MemoryIndex
    line: calibration.Calibration
    seconds: float  # duration of the calibration

    def ask(self, text: str, vector: Vectors) -> ConfidenceMetrics:
        """Decide whether one question passes."""
        hits = self.index.search(text, vector, _TOP_K)
        return calibration.assess([similarity for _, similarity in hits], None, self.line, _TOP_K)


def _pages(files: Iterable[tuple[str, bytes]]) -> list[Page]:
    pages: list[Page] = []
    for name, data in files:
        if kind := _FORMATS.get(Path(name).suffix):
            document = Document(url=name, path=name, source="bench", format=kind, data=data, anchors="github")
            try:
                pages += [compose(document, draft) for draft in read(document)]
            except (NothingToRead, Unreadable):  # redirects and includes
                continue
    return pages


def _archive(path: Path) -> Iterable[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            if content := archive.extractfile(member):
                yield member.name, content.read()


def _lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["question"] for line in file]


def books() -> dict[str, tuple[list[Page], list[str]]]:
    """Pages and questions of each book."""
    if not DATA.is_dir():
        raise DataMissing(f"No data at {DATA}.")
    folder, corpora = _ROOT / "examples" / "book", DATA / "corpora"
    example = [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.rglob("*.md*"))]
    with gzip.open(DATA / "doc2dial" / "turns_a.jsonl.gz", "rt", encoding="utf-8") as file:
        openings = [turn["question"] for turn in map(json.loads, file) if not turn["history"]]
    found = {
        "example": (_pages(example), [row["question"] for row in example_questions() if row["answerable"]]),
        "physical": (
            _pages(_archive(corpora / "physical_ai_book" / "docs.tar.gz")),
            _lines(corpora / "physical_ai_book" / "quiz_dev.jsonl"),
        ),
        "ray": (
            _pages(_archive(corpora / "ray_docs" / "ray_docs.tar.gz")),
            _lines(corpora / "ray_docs" / "questions_dev.jsonl"),
        ),
        "rust": (
            _pages(_archive(corpora / "rust_book" / "rust_book.tar.gz")),
            _lines(corpora / "rust_book" / "quiz_dev.jsonl"),
        ),
        "doc2dial": (_documents(doc2dial(DATA).documents), openings),
        "clapnq": (_documents(clapnq(DATA).documents), list(clapnq(DATA).sets[1].questions.values())),
    }
    return {name: (pages, questions[:_MOST]) for name, (pages, questions) in found.items()}


def _documents(documents: Mapping[str, tuple[Page, ...]]) -> list[Page]:
    return [page for pages in documents.values() for page in pages]


def example_questions() -> list[dict[str, Any]]:
    """The example book's own questions."""
    text = (_ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


async def _book(pages: Sequence[Page], vectors: VectorCache, budget: int) -> Book:
    chunks = [chunk for page in pages for chunk in cut(page, count_tokens, budget)]
    index = MemoryIndex(chunks, await vectors.passages([chunk.passage for chunk in chunks]))

    async def rows() -> AsyncIterator[tuple[Chunk, Vectors]]:
        for chunk, vector in zip(index.chunks, index.vectors, strict=True):
            yield chunk, vector

    started = time.monotonic()
    return Book(index, await calibration.calibrate(vectors.query, rows()), time.monotonic() - started)


async def bench() -> None:
    """Print the table of pass rates: one row per book, one column per question set."""
    embedder = LocalEmbedder()
    found = books()
    unrelated = Path(calibration.__file__).with_name("calibration_questions.txt").read_text("utf-8").splitlines()
    sets = {name: questions for name, (_, questions) in found.items()} | {"unrelated": unrelated}
    head = "".join(f"{f'{name} ({len(questions)})':>16}" for name, questions in sets.items())
    print(f"{'share answered':<16}{head}{'chunks':>9}{'line':>17}{'high/medium/low of its own':>30}")
    try:
        with VectorCache(_CACHE, embedder) as vectors:
            for name, (pages, _) in found.items():
                book = await _book(pages, vectors, embedder.window)
                asked = {
                    key: [book.ask(text, await vectors.query(text)) for text in texts] for key, texts in sets.items()
                }
                shares = "".join(f"{_share(one):16.3f}" for one in asked.values())
                line = f"{book.line.answered:.3f} to {book.line.usual:.3f}"
                levels = "/".join(f"{_share(asked[name], level):.2f}" for level in ("high", "medium", "low"))
                print(f"{name:<16}{shares}{len(book.index.chunks):9}{line:>17}{levels:>30}", flush=True)
                if name == "example":
                    await _one_by_one(book, vectors)
    finally:
        await embedder.close()


def _share(asked: Sequence[ConfidenceMetrics], level: str | None = None) -> float:
    hits = sum(one.should_answer if level is None else one.confidence_level == level for one in asked)
    return hits / len(asked)


async def _one_by_one(book: Book, vectors: VectorCache) -> None:
    """Print to stderr the example book's answerable questions that are refused, and the others that are not."""
    for row in example_questions():
        text = row["question"]
        decided = book.ask(text, await vectors.query(text))
        if decided.should_answer != row["answerable"]:
            verdict = "let through" if decided.should_answer else "REFUSED"
            print(f"  {row['id']} {verdict} at {decided.average_similarity:.2f}: {text}", file=sys.stderr)


if __name__ == "__main__":
    try:
        asyncio.run(bench())
    except DataMissing as missing:
        sys.exit(str(missing))
