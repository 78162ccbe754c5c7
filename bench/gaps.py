"""Measures whether the report finds what a book lacks: a fifth of the pages is hidden, and their questions are asked.

    python -m bench.gaps --books BOOKS --book numpy [--save]

Each fifth of a book's pages is hidden in turn, in an order fixed by a seed. The questions are all those written about
the book that can be understood alone: single questions, and turns of dialogues. A question belongs to the hidden pages
if all places that answer it are hidden. There are two measurements:

- *their questions*: only the questions of hidden pages are asked. Every group is then about something hidden, so a
  group counts as false if it mixes the subjects of several hidden pages.
- *all questions*: the questions of the remaining pages are asked, too. A group is false if most of its questions are
  answered by pages that are still there.

A hidden page is found if one of its questions is in a group, and found for sure if that group is one that the report
calls sure. Being sure takes several questions, so pages are also counted by their number of questions. No answer is
rated: the report has only refusals and low confidence to go by.

If the rest of the book answers the questions of a hidden page, its absence is no gap and it need not be found. People
who read the answers decided this: `gaps_read.jsonl` has the questions that another page answers, with that page. A
hidden page counts as made up for if none of its questions is in a group and other pages answer all of them. Two shares
are reported: of all hidden pages, and of those that are not made up for.

The section reader's scores are cached by question and passage, because most passages are the same whatever is hidden.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.deleted_paragraphs import remember_readings
from bench.keyless.asking import ask, opened
from bench.keyless.sets import QUESTIONS, Question
from bench.results import ROOT, save
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.evaluation.gaps import Gap, find_gaps, find_troubled
from chapterverse.evaluation.statistics import wilson_interval
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion import pipeline
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources import open_source
from chapterverse.services import Services

FOLDS: Final = 5
SEED: Final = 15
OFTEN: Final = 6  # a page with at least this many questions counts as asked about often
PAGES: Final = (".md", ".mdx", ".rst", ".adoc")
READ: Final = Path(__file__).with_name("gaps_read.jsonl")
WORK: Final = ROOT / ".cache" / "gaps"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the pages that answer it, and the outcome of the turn."""

    text: str
    pages: frozenset[str]  # files; none if the book does not answer it
    turn: AskedQuestion
    cited: tuple[str, ...]  # addresses of pages
    answer: str


async def main() -> None:
    """Hide, ask, group and count."""
    options = _options()
    remember_readings()
    ingested = json.loads((options.questions / "books.json").read_text("utf-8"))[options.book]["ingest"]
    source, whole = WORK / options.book / "source", WORK / options.book / "whole"
    if not (whole / "index").exists():
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(options.books / options.book, source)
        await _ingest(source / ingested, whole)
    rows = _rows(options.questions, options.book)
    folds = []
    for number, hidden in enumerate(_fifths(options.books / options.book, rows)[: options.folds]):
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(options.books / options.book, source)
        for page in hidden:
            (source / page).unlink()
        home = WORK / options.book / f"fold-{number}"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(whole, home, ignore=shutil.ignore_patterns("readers", "*.lock", "postgres"))
        await _ingest(source / ingested, home)
        async with opened(home, None) as services:
            asked = [await _ask(services, row) for row in rows]
            folds.append(await _fold(services, asked, hidden, _read(options.book)))
        shutil.rmtree(home)
        print(json.dumps(folds[-1]["shown"]), flush=True)
    result = {"book": options.book, "their_questions": _sum(folds, "theirs"), "all_questions": _sum(folds, "all")}
    print(json.dumps(result, indent=1))
    if options.dump:
        options.dump.write_text(json.dumps(folds, indent=1, ensure_ascii=False), "utf-8")
    if options.save:
        print(save(f"gaps-{options.book}", result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--books", type=Path, default=Path(os.environ.get("KEYLESS_BOOKS", ".")), help="folder of the books"
    )
    parser.add_argument("--book", default="numpy")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="folder of the questions")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the fifths are hidden, for a quick look")
    parser.add_argument("--dump", type=Path, help="where the groups go, for people who read them")
    parser.add_argument("--save", action="store_true", help="keep the figures in bench/results")
    return parser.parse_args()


def _rows(questions: Path, book: str) -> list[dict[str, Any]]:
    """Return the questions that can be understood alone and that the book answers, without repetitions, with their
    places."""
    files = sorted(questions.glob(f"*{book}_questions.jsonl")) + sorted(questions.glob(f"{book}_extra.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    for file in sorted(questions.glob(f"*{book}_dialogues.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            first, *others = json.loads(line)["turns"]
            alone = [first, *(turn for turn in others if "standalone" in turn)]
            rows += [turn | {"question": turn.get("standalone") or turn["user"]} for turn in alone]
    known = {row["question"]: row | {"places": _places(row)} for row in rows}
    return [row for row in known.values() if row["places"]]


def _places(row: dict[str, Any]) -> list[str]:
    """The files that answer a question."""
    return sorted({one["file"] for one in (row, *row.get("also", ()), *row.get("parts", ())) if "place" in one})


def _fifths(source: Path, rows: Sequence[dict[str, Any]]) -> list[frozenset[str]]:
    """Divide the pages of the book into five parts. Folders that no question is about are left out, so they are never
    hidden."""
    folders = {place.split("/")[0] for row in rows for place in row["places"]}
    files = (file.relative_to(source) for file in sorted(source.rglob("*")) if file.suffix in PAGES)
    pages = [str(file) for file in files if file.parts[0] in folders]
    random.Random(SEED).shuffle(pages)
    return [frozenset(pages[start::FOLDS]) for start in range(FOLDS)]


async def _ingest(pages: Path, home: Path) -> None:
    index, embedder = EdgeIndex(home / "index"), LocalEmbedder()
    try:
        await pipeline.ingest([open_source(str(pages), SourceOptions())], pipeline.Workshop(index, embedder, home))
    finally:
        await index.close()
        await embedder.close()


async def _ask(services: Services, row: dict[str, Any]) -> Asked:
    answer = (await ask(services, Question("", row["question"], row["kind"], ()))).response
    turn = AskedQuestion(
        turn_id=row["question"],
        session_id=answer.session_id,
        query=row["question"],
        standalone_query=None,
        mode="general",
        status=answer.status,
        confidence=answer.confidence,
        created_at=datetime.now(UTC),
    )
    cited = dict.fromkeys(source.source_url.partition("#")[0] for source in answer.sources)
    return Asked(row["question"], frozenset(row["places"]), turn, tuple(cited), answer.answer)


async def _fold(
    services: Services, asked: Sequence[Asked], hidden: frozenset[str], read: set[tuple[str, str]]
) -> dict[str, Any]:
    theirs = [one for one in asked if one.pages and one.pages <= hidden]
    there = [one for one in asked if one.pages and not one.pages <= hidden]
    by_text = {one.text: one for one in asked}
    wanted = {page for one in theirs for page in one.pages}
    unlike = {page for one in theirs if not {(one.text, cited) for cited in one.cited} & read for page in one.pages}
    troubled = await find_troubled([one.turn for one in (*theirs, *there)], services)
    hidden_texts = {one.text for one in theirs}
    alone = await find_gaps([one for one in troubled if one.text in hidden_texts], services)
    together = await find_gaps(troubled, services)
    result = {}
    mixed = [gap for gap in alone if _commonest(gap, by_text) <= len(gap.questions) / 2]
    false = [gap for gap in together if _answered(gap, by_text, hidden) > len(gap.questions) / 2]
    for name, gaps, wrong in (("theirs", alone, mixed), ("all", together, false)):
        counts = _counts(gaps, wrong, _questions_of(theirs), by_text)
        made_up_for = wanted - unlike - _surfaced(gaps, by_text)
        result[name] = counts | {"lacking": len(wanted - made_up_for)}
    statuses = {
        name: Counter(one.turn.status for one in group) for name, group in (("hidden", theirs), ("there", there))
    }
    groups = [[question.question for question in gap.questions] for gap in alone]
    missed = wanted - _surfaced(alone, by_text)
    answers = [
        {"question": one.text, "pages": sorted(one.pages), "cited": one.cited, "answer": one.answer}
        for one in theirs
        if one.pages & missed
    ]
    return result | {"shown": result | statuses, "groups": groups, "missed": answers}


def _read(book: str) -> set[tuple[str, str]]:
    """Load pairs of a question and a page that answers it, although another page is the best place for the answer."""
    rows = map(json.loads, READ.read_text("utf-8").splitlines())
    return {(row["question"], row["cited"]) for row in rows if row["book"] == book and row["answers"]}


def _surfaced(gaps: Sequence[Gap], asked: dict[str, Asked]) -> set[str]:
    return {page for gap in gaps for one in gap.questions for page in asked[one.question].pages}


def _questions_of(asked: Sequence[Asked]) -> Counter[str]:
    """The number of questions about each page."""
    return Counter(page for one in asked for page in one.pages)


def _counts(gaps: Sequence[Gap], false: Sequence[Gap], wanted: Counter[str], asked: dict[str, Asked]) -> dict[str, int]:
    sure = [gap for gap in gaps if gap.sure]
    surfaced, surely = (_surfaced(some, asked) for some in (gaps, sure))
    often = {page for page, questions in wanted.items() if questions >= OFTEN}
    return {
        "pages": len(wanted),
        "surfaced": len(surfaced & set(wanted)),
        "surfaced_for_sure": len(surely & set(wanted)),
        "pages_asked_often": len(often),
        "surfaced_asked_often": len(surfaced & often),
        "surfaced_for_sure_asked_often": len(surely & often),
        "groups": len(gaps),
        "false": len(false),
        "sure_groups": len(sure),
        "false_sure": sum(gap.sure for gap in false),
    }


def _commonest(gap: Gap, asked: dict[str, Asked]) -> int:
    """Return the largest number of questions in a group that are about the same page."""
    return max(Counter(page for one in gap.questions for page in asked[one.question].pages).values())


def _answered(gap: Gap, asked: dict[str, Asked], hidden: frozenset[str]) -> int:
    return sum(not asked[one.question].pages <= hidden for one in gap.questions)


def _sum(folds: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    counts = {key: sum(fold[name][key] for fold in folds) for key in folds[0][name]}
    shares = {
        "surfaced": ("surfaced", "pages"),
        "surfaced_of_lacking": ("surfaced", "lacking"),
        "surfaced_asked_often": ("surfaced_asked_often", "pages_asked_often"),
        "surfaced_for_sure_asked_often": ("surfaced_for_sure_asked_often", "pages_asked_often"),
        "false": ("false", "groups"),
        "false_sure": ("false_sure", "sure_groups"),
    }
    return counts | {f"{name}_share": _share(*(counts[one] for one in of)) for name, of in shares.items()}


def _share(part: int, whole: int) -> str:
    if not whole:
        return "none"
    low, high = wilson_interval(part, whole)
    return f"{part / whole:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    asyncio.run(main())
