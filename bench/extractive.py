"""The extractive model alone: does it say the right sentence, and does it refuse when the passage does not?

Three sets: the example book's questions through the product's own search, and the parts of SQuAD 2.0 and CLAPNQ that
no training has seen, with one passage each, as in selected-text mode. SQuAD's unanswerable questions also by cause.
Nothing checks what was picked, so this measures the picker and not the product.

    python -m bench.extractive [book] [squad] [clapnq]
"""

import asyncio
import gzip
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from bench.sets.clapnq import detokenised
from bench.sets.shape import kept_apart
from chapterverse.config import Settings
from chapterverse.embeddings import Vectors
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.extractive import Reader, ReaderPicker
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.models import RetrievalRequest
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.trained import CrossEncoder
from chapterverse.transcript import IssuedPassage
from chapterverse.wiring import open_services

ROOT: Final = Path(__file__).parent.parent
DATA: Final = ROOT.parent / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Case:
    """A question, what it may be answered from, and texts of which the answer must hold one; none: not answerable."""

    question: str
    passages: tuple[IssuedPassage, ...]
    gold: tuple[str, ...]
    cause: str = ""  # why it is not answerable, where people said so


class Remembering(LocalEmbedder):
    """Embeds each text once, because the sets ask many questions of one passage."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Vectors] = {}

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors, remembered ones where there are."""
        new = [text for text in texts if text not in self._known]
        if new:
            self._known.update(zip(new, await super().embed_passages(new), strict=True))
        return np.stack([self._known[text] for text in texts])


async def book() -> AsyncIterator[Case]:
    """The example book, ingested for the purpose."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        async with open_services(Settings.load(chapterverse_home=home)) as services:
            source = open_source(str(ROOT / "examples" / "book"), SourceOptions())
            await ingest([source], Workshop(services.index, services.embedder, home))
            for line in (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines():
                asked = json.loads(line)
                request = RetrievalRequest(query=asked["question"])
                found = (await retrieve_with_retry(request, services.embedder, services.index)).results
                passages = tuple(
                    IssuedPassage(c.rank, c.chunk_text, c.breadcrumb, c.source_url, c.similarity_score) for c in found
                )
                yield Case(asked["question"], passages, (asked["sentence"],) if asked["answerable"] else ())


async def squad() -> AsyncIterator[Case]:
    """SQuAD 2.0; most of its unanswerable questions were written to look answerable."""
    with gzip.open(DATA / "squad2" / "dev_a.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in articles:
        if not kept_apart("squad", article["title"]):
            continue
        for paragraph in article["paragraphs"]:
            passage = IssuedPassage(1, paragraph["context"], article["title"].replace("_", " "), "", 1.0)
            for asked in paragraph["qas"]:
                gold = () if asked["is_impossible"] else tuple({answer["text"] for answer in asked["answers"]})
                yield Case(asked["question"], (passage,), gold, asked.get("unanswerable_cause", "?"))


async def clapnq() -> AsyncIterator[Case]:
    """CLAPNQ; an answer must hold one of the sentences that the annotators chose."""
    with gzip.open(DATA / "clapnq" / "dev_a.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            asked = json.loads(line)
            if not kept_apart("clapnq", asked["id"]):
                continue
            passages = tuple(
                IssuedPassage(number, detokenised(passage["text"]), passage["title"], "", 1.0)
                for number, passage in enumerate(asked["passages"], start=1)
            )
            yield Case(asked["question"], passages, tuple(_chosen(asked)))


def _chosen(asked: dict[str, Any]) -> Iterator[str]:
    if asked["answerable"]:
        for answer in asked["answers"]:
            yield from answer.get("selected_sentences", [])


def holds(said: str, gold: str) -> bool:
    """Whether the words of one text are among those of the other, one after another; of long ones the beginning."""
    wanted, words = _plain(gold), _plain(said)
    return wanted.strip() != "" and wanted[:80] in words


def _plain(text: str) -> str:
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


async def measure(name: str, cases: AsyncIterator[Case]) -> None:
    """Print one line of the table."""
    picker = ReaderPicker(Remembering(), Reader(CrossEncoder("reader")))
    answerable = right = missed = unanswerable = refused = sentences = 0
    by_cause: dict[str, list[bool]] = {}
    seconds: list[float] = []
    async for case in cases:
        started = time.perf_counter()
        picks = await picker.pick(case.question, case.passages, selected=name != "book")
        seconds.append(time.perf_counter() - started)
        if case.gold:
            answerable += 1
            missed += not picks
            sentences += len(picks)
            right += any(holds(" ".join(pick.text for pick in picks), gold) for gold in case.gold)
        else:
            unanswerable += 1
            refused += not picks
            by_cause.setdefault(case.cause, []).append(not picks)
    print(
        f"{name:8} {answerable:10} {right / answerable:6.1%} {missed / answerable:8.1%} "
        f"{sentences / max(1, answerable - missed):10.2f} {unanswerable:13} {refused / unanswerable:8.1%} "
        f"{median(seconds) * 1000:6.0f}"
    )
    if len(by_cause) > 1:
        print("  refused by cause: " + ", ".join(f"{c} {sum(v) / len(v):.2f} ({len(v)})" for c, v in by_cause.items()))


SETS: Final[dict[str, Callable[[], AsyncIterator[Case]]]] = {"book": book, "squad": squad, "clapnq": clapnq}


async def main(names: Sequence[str]) -> None:
    """All sets, or those named."""
    print("set      answerable  right  refused  sentences  unanswerable  refused     ms")
    for name in names or SETS:
        await measure(name, SETS[name]())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
