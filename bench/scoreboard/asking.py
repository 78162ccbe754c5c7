"""Asks every set with every system, once for each state of the product's code.

Cases are cached in `.cache/bench/scoreboard`: an interrupted run continues, and after a complete one nothing is asked
again. The key is a digest of the product, the baselines and the book.
"""

import asyncio
import hashlib
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from bench.results import ROOT
from bench.retrieval.vectors import VectorCache
from bench.scoreboard.baselines import Baselines
from bench.sets.shape import PublicSet, write
from chapterverse.embeddings import Embedder, EmbedderWrapper, Vectors
from chapterverse.errors import RetrievalUnavailable
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.questions import Question
from chapterverse.evaluation.runner import ask
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tools import pages

OURS, WORDS, MEANING = "ours", "bm25", "dense"
SYSTEMS: Final = (OURS, WORDS, MEANING)
CACHE: Final = ROOT / ".cache" / "bench"
_TOLD_EVERY: Final = 50  # questions between two progress messages
_TRIES: Final = 3  # retries on a busy machine

Cases = dict[str, list[Case]]  # by system, in the order of the set


class KeptVectors(EmbedderWrapper):
    """The product's embedder. Passages are embedded once and cached for the next run."""

    def __init__(self, embedder: Embedder, vectors: VectorCache) -> None:
        super().__init__(embedder)
        self._vectors = vectors

    async def embed_query(self, text: str) -> Vectors:
        """Embed a question of the calibration."""
        return await self._vectors.query(text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed the passages that are new, and return all."""
        return await self._vectors.passages(texts)


def code_digest() -> str:
    """A digest of the code that answers questions."""
    return pages.code_digest(pages.SCOREBOARD)


async def ask_set(asked: PublicSet, code: str) -> Cases:
    """Return all cases of a set. Those that are not cached are asked now."""
    folder = CACHE / "scoreboard" / code
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{asked.name}-{_book_digest(asked)}.jsonl"
    kept = _kept(target, asked.questions)
    missing = [question for question in asked.questions if question.id not in kept]
    if missing:
        with target.open("a", encoding="utf-8") as file:
            async for cases in _asked(asked, missing):
                kept[cases[0].question.id] = cases
                file.write("\t".join(case.model_dump_json() for case in cases) + "\n")
                file.flush()
    return {system: [kept[question.id][place] for question in asked.questions] for place, system in enumerate(SYSTEMS)}


def _book_digest(asked: PublicSet) -> str:
    if asked.folder:
        paths = sorted(path for path in asked.folder.rglob("*") if path.is_file())
        texts = [path.read_bytes() for path in paths]
    else:
        texts = [f"{page.name}\0{page.title}\0{page.text}\0{sorted(page.headings)}".encode() for page in asked.pages]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def _kept(path: Path, questions: Sequence[Question]) -> dict[str, list[Case]]:
    if not path.is_file():
        return {}
    known = {question.id: question for question in questions}
    kept: dict[str, list[Case]] = {}
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n"):  # otherwise the run was interrupted here
            cases = [Case.model_validate_json(part) for part in line.split("\t")]
            if cases[0].question == known.get(cases[0].question.id):
                kept[cases[0].question.id] = cases
    return kept


async def _asked(asked: PublicSet, missing: Sequence[Question]) -> AsyncIterator[list[Case]]:
    logging.getLogger("chapterverse").setLevel(logging.ERROR)  # nothing is stored; do not warn each time
    source = CACHE / "sets" / asked.name
    write(asked, source)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.load(
            chapterverse_home=Path(folder), database_url="postgresql://nobody@127.0.0.1:1/none", embeddings="local"
        )
        async with open_services(settings) as services:
            with VectorCache(CACHE / "vectors.sqlite", services.embedder) as vectors:
                workshop = Workshop(services.index, KeptVectors(services.embedder, vectors), Path(folder))
                await ingest([open_source(str(source / "book"), SourceOptions())], workshop)
                await _loaded(services)
                baselines = await Baselines.over(services, vectors)
            for number, question in enumerate(missing, 1):
                yield await _each(question, services, baselines)
                if not number % _TOLD_EVERY:
                    print(f"  {asked.name}: {number} of {len(missing)} questions", file=sys.stderr, flush=True)


async def _loaded(services: Services) -> None:
    """Wait for an engine that is slow on a busy machine. Times are not measured here."""
    for left in range(_TRIES, -1, -1):
        try:
            await services.index.pages()
            return
        except RetrievalUnavailable:
            if not left:
                raise
            await asyncio.sleep(2)


async def _each(question: Question, services: Services, baselines: Baselines) -> list[Case]:
    """Ask our system and both baselines, in the order of `SYSTEMS`."""
    ours = await ask(question, services)
    for _ in range(_TRIES):
        if ours.status != "failed":
            break
        ours = await ask(question, services)
    standing = ours.searched or question.question
    return [ours, await baselines.by_words(question, standing), await baselines.by_meaning(question, standing)]
