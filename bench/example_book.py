"""Asks the example book's 60 questions through the whole product without a key: `python -m bench.example_book`.

The answer to an answerable question is right if one of its sentences cites the gold sentence. The answer to an
unanswerable question is right if it is a refusal. Prints both shares and every failing case.
"""

import asyncio
import json
import logging
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from chapterverse.answering import fold, prepare, stream
from chapterverse.evaluation.statistics import calibration_error
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.models import ChatRequest, ChatResponse
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services

_ROOT: Final = Path(__file__).parent.parent
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question of the set with its answer."""

    asked: dict[str, Any]
    answer: ChatResponse

    @property
    def answerable(self) -> bool:
        return bool(self.asked["answerable"])

    @property
    def refused(self) -> bool:
        return self.answer.status == "refused"

    @property
    def gold_quoted(self) -> bool:
        """Whether a quote contains the gold sentence, or the gold sentence contains a quote."""
        gold = _words(self.asked["sentence"])
        quotes = (_words(source.quote) for source in self.answer.sources)
        return any(gold in quote or (quote in gold and len(quote) > 20) for quote in quotes)

    @property
    def gold_page(self) -> bool:
        """Whether the gold page is cited."""
        return any(source.source_url.partition("#")[0].endswith(self.asked["page"]) for source in self.answer.sources)

    @property
    def right(self) -> bool:
        return self.gold_quoted if self.answerable else self.refused


async def ask_all(services: Services) -> AsyncIterator[Outcome]:
    """Ask every question of the set, each in its own session."""
    for line in (_ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines():
        asked = json.loads(line)
        prepared = await prepare(ChatRequest(query=asked["question"]), services)
        yield Outcome(asked, await fold(stream(prepared, services)))


def share(outcomes: Sequence[Outcome], trait: str) -> float:
    """The share of outcomes that have a property."""
    return sum(bool(getattr(outcome, trait)) for outcome in outcomes) / len(outcomes)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _show(outcome: Outcome) -> None:
    metadata = outcome.answer.metadata
    print(f"\n{outcome.asked['id']}  {outcome.asked['question']}")
    print(f"     {outcome.answer.confidence_level}, {metadata.llm_calls} calls, {metadata.sentences_withheld} withheld")
    print(f"     said  {outcome.answer.answer.strip()}")
    print(f"     gold  {outcome.asked.get('sentence') or '(refuse)'}")


async def main() -> None:
    """Ask, count and print."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        # Nothing is stored, because no question follows up on another. Do not warn about it each time.
        logging.getLogger("chapterverse").setLevel(logging.ERROR)
        nowhere = "postgresql://nobody@127.0.0.1:1/none"
        async with open_services(Settings.load(chapterverse_home=home, database_url=nowhere)) as services:
            source = open_source(str(_ROOT / "examples" / "book"), SourceOptions())
            await ingest([source], Workshop(services.index, services.embedder, home))
            outcomes = [outcome async for outcome in ask_all(services)]
    answerable = [outcome for outcome in outcomes if outcome.answerable]
    unanswerable = [outcome for outcome in outcomes if not outcome.answerable]
    for outcome in outcomes:
        if not outcome.right or "-v" in sys.argv:
            _show(outcome)
    print(f"\nanswerable    {len(answerable):3}   gold sentence quoted {share(answerable, 'gold_quoted'):6.1%}", end="")
    print(f"   gold page cited {share(answerable, 'gold_page'):6.1%}   refused {share(answerable, 'refused'):6.1%}")
    print(f"unanswerable  {len(unanswerable):3}   refused {share(unanswerable, 'refused'):6.1%}")
    given = [outcome for outcome in outcomes if not outcome.refused]
    sure = [outcome.answer.confidence for outcome in given]
    error = calibration_error(sure, [float(outcome.right) for outcome in given])
    quotes = sum(len(outcome.answer.sources) for outcome in given) / len(given)
    print(f"answers given {len(given):3}   confidence {sum(sure) / len(sure):.2f}   ECE {error:.3f}", end="")
    took = median(outcome.answer.metadata.query_time_ms for outcome in outcomes)
    print(f"   quotes {quotes:.2f}   median {took:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
