"""Checks that `check` names exactly the questions of a deleted paragraph: `python -m bench.deleted_paragraphs`.

Deletes each paragraph of the example book that answers a question of its set, one at a time. The questions of a
paragraph are those that were answered from it. Prints the questions that were named in excess or missed, those that
are refused although the book still says what answered them (they are not named), then the counts. The section reader's
scores are cached by question and passage, since nearly all of them are the same every time.
"""

import argparse
import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chapterverse.evaluation.book_check import Outcome, Verdict, compare_case
from chapterverse.evaluation.measures import contains
from chapterverse.evaluation.questions import Question, load_questions
from chapterverse.evaluation.runner import ask
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.trained import Passage, Read, SectionReader
from chapterverse.wiring import open_services

_ROOT: Final = Path(__file__).parent.parent
_FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def remember_readings() -> None:
    """Make this process cache the section reader's scores."""
    read, known = SectionReader._read, dict[tuple[str, Passage], Read]()

    def read_once(self: SectionReader, question: str, passage: Passage) -> Read:
        if (question, passage) not in known:
            known[question, passage] = read(self, question, passage)
        return known[question, passage]

    SectionReader._read = read_once  # type: ignore[method-assign]


async def main() -> None:
    """Delete, ask, compare and restore."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="delete only every n-th paragraph")
    options = parser.parse_args()
    remember_readings()
    asked = load_questions(_ROOT / "examples" / "questions.jsonl")
    questions = [one for one in asked if one.answerable]  # a question that should be refused belongs to no paragraph
    with tempfile.TemporaryDirectory() as folder:
        book, home = Path(folder) / "book", Path(folder) / "home"
        shutil.copytree(_ROOT / "examples" / "book", book)
        async with open_services(Settings.load(chapterverse_home=home)) as services:
            await _ingest(book, services)
            before = {one.id: await _outcome(one, services) for one in asked}
            paragraphs = [found for found in _paragraphs(book) if _answered_from(found[1], before)]
            exact = too_many = too_few = unsure = 0
            for path, paragraph in paragraphs[:: options.every]:
                text = path.read_text("utf-8")
                path.write_text(text.replace(paragraph, ""), "utf-8")
                await _ingest(book, services)
                expected = _answered_from(paragraph, before) & {one.id for one in questions}
                verdicts = {one.id: await _verdict(one, before[one.id], services) for one in questions}
                named = {id_ for id_, verdict in verdicts.items() if verdict in ("broken", "contradictory", "changed")}
                refused = sorted(id_ for id_, verdict in verdicts.items() if verdict == "unsure")
                path.write_text(text, "utf-8")
                exact += named == expected
                too_many, too_few = too_many + len(named - expected), too_few + len(expected - named)
                unsure += len(refused)
                if refused:
                    print(path.name, {"unsure": refused}, paragraph[:60], flush=True)
                if named != expected:
                    print(path.name, {"named": sorted(named), "expected": sorted(expected)}, paragraph[:60], flush=True)
    counts = {"paragraphs": len(paragraphs[:: options.every]), "exact": exact}
    print(json.dumps(counts | {"named_too_much": too_many, "not_named": too_few, "unsure": unsure}))


async def _ingest(book: Path, services: Services) -> None:
    workshop = Workshop(services.index, services.embedder, services.settings.chapterverse_home)
    await ingest([open_source(str(book), SourceOptions())], workshop)


async def _outcome(question: Question, services: Services) -> Outcome:
    return (await compare_case(await ask(question, services), None, services)).now


async def _verdict(question: Question, before: Outcome, services: Services) -> Verdict:
    return (await compare_case(await ask(question, services), before, services)).verdict


def _paragraphs(book: Path) -> Iterator[tuple[Path, str]]:
    """Yield the paragraphs, lists and tables of the book, as written in the source."""
    for path in sorted(book.rglob("*.md*")):
        text = _FENCED.sub("", path.read_text("utf-8"))
        yield from ((path, part) for part in re.split(r"\n{2,}", text) if part.strip())


def _answered_from(paragraph: str, outcomes: dict[str, Outcome]) -> set[str]:
    return {
        id_
        for id_, outcome in outcomes.items()
        if any(contains(paragraph, one.text) for one in outcome.evidence if outcome.answered)
    }


if __name__ == "__main__":
    asyncio.run(main())
