"""Whether the report finds what a book lacks: a fifth of the pages is hidden, and their questions are asked.

    python -m bench.gaps --books BOOKS --book numpy [--save]

Each fifth of a book's pages is hidden in turn, in an order fixed by a seed. A question is one of a hidden page when all
places that answer it are hidden. Two readings of the measure:

- *their questions*: only the questions of hidden pages are asked. Every group is about something hidden then, so a
  group is counted as false when it mixes the subjects of several hidden pages.
- *all questions*: those of the pages that are still there are asked, too. A group is false when most of its questions
  are answered by pages that are still there.

A hidden page has surfaced when one of its questions is in a group. No question is rated: the report has to find out by
refusals and doubt alone.

A page that the rest of the book makes up for is no gap, and need not surface. Whether it does is judged by people who
read the answers to its questions: `gaps_read.jsonl` has the questions that another page answers, with that page. A
hidden page is made up for when none of its questions is in a group and all of them are answered so. Both shares are
told, that of all hidden pages and that of those which are not made up for.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.keyless.asking import ask, opened
from bench.keyless.sets import QUESTIONS, Question
from bench.results import ROOT, save
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.evaluation.gaps import Gap, find_gaps, reconsidered
from chapterverse.evaluation.statistics import wilson_interval
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion import pipeline
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources import open_source
from chapterverse.services import Services

FOLDS: Final = 5
SEED: Final = 15
PAGES: Final = (".md", ".mdx", ".rst", ".adoc")
READ: Final = Path(__file__).with_name("gaps_read.jsonl")
WORK: Final = ROOT / ".cache" / "gaps"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the pages that answer it, and how the turn ended."""

    text: str
    pages: frozenset[str]  # files; none: the book does not answer it
    turn: AskedQuestion
    cited: tuple[str, ...]  # pages, by their addresses
    answer: str


async def main() -> None:
    """Hide, ask, group, count."""
    options = _options()
    book = json.loads((QUESTIONS / "books.json").read_text("utf-8"))[options.book]
    source, whole = WORK / options.book / "source", WORK / options.book / "whole"
    if not (whole / "index").exists():
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(options.books / options.book, source)
        await _ingest(source / book["ingest"], whole)
    rows = [json.loads(line) for line in _file(options).read_text("utf-8").splitlines()]
    folds = []
    for number, hidden in enumerate(_fifths(source, rows)[: options.folds]):
        shutil.rmtree(source)
        shutil.copytree(options.books / options.book, source)
        for page in hidden:
            (source / page).unlink()
        home = WORK / options.book / f"fold-{number}"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(whole, home, ignore=shutil.ignore_patterns("readers", "*.lock", "postgres"))
        await _ingest(source / book["ingest"], home)
        async with opened(home, None) as services:
            asked = [await _ask(services, row) for row in rows]
            turns = await reconsidered([one.turn for one in asked], services)
            asked = [replace(one, turn=turn) for one, turn in zip(asked, turns, strict=True)]
            folds.append(await _fold(services, asked, hidden, _read(options.book)))
        shutil.rmtree(home)
        print(json.dumps(folds[-1]["told"]), flush=True)
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
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the fifths are hidden, for a quick look")
    parser.add_argument("--dump", type=Path, help="where the groups go, for people who read them")
    parser.add_argument("--save", action="store_true", help="keep the figures in bench/results")
    return parser.parse_args()


def _file(options: argparse.Namespace) -> Path:
    return next(QUESTIONS.glob(f"*_{options.book}_questions.jsonl"))


def _fifths(source: Path, rows: Sequence[dict[str, Any]]) -> list[frozenset[str]]:
    """The pages of the book in five parts. Folders that no question is about stay as they are."""
    folders = {row["file"].split("/")[0] for row in rows if "file" in row}
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
    places = [one for one in (row, *row.get("also", ())) if "place" in one]
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
    return Asked(row["question"], frozenset(place["file"] for place in places), turn, tuple(cited), answer.answer)


async def _fold(
    services: Services, asked: Sequence[Asked], hidden: frozenset[str], read: set[tuple[str, str]]
) -> dict[str, Any]:
    theirs = [one for one in asked if one.pages and one.pages <= hidden]
    there = [one for one in asked if one.pages and not one.pages <= hidden]
    by_text = {one.text: one for one in asked}
    wanted = {page for one in theirs for page in one.pages}
    unlike = {page for one in theirs if not {(one.text, cited) for cited in one.cited} & read for page in one.pages}
    alone = await find_gaps([one.turn for one in theirs], services)
    together = await find_gaps([one.turn for one in (*theirs, *there)], services)
    mixed = [gap for gap in alone if _commonest(gap, by_text) <= len(gap.questions) / 2]
    false = [gap for gap in together if _answered(gap, by_text, hidden) > len(gap.questions) / 2]
    result = {
        "theirs": _counts(alone, mixed, wanted, by_text),
        "all": _counts(together, false, wanted, by_text),
    }
    for counts, gaps in ((result["theirs"], alone), (result["all"], together)):
        made_up_for = wanted - unlike - _surfaced(gaps, by_text)
        counts["lacking"] = len(wanted - made_up_for)
        counts["surfaced_by_refusals"] = len(
            {page for one in theirs if one.turn.status == "refused" for page in one.pages}
        )
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
    return result | {"told": result | statuses, "groups": groups, "missed": answers}


def _read(book: str) -> set[tuple[str, str]]:
    """Questions, and the pages that answer them although another one is the best place."""
    rows = map(json.loads, READ.read_text("utf-8").splitlines())
    return {(row["question"], row["cited"]) for row in rows if row["book"] == book and row["answers"]}


def _surfaced(gaps: Sequence[Gap], asked: dict[str, Asked]) -> set[str]:
    return {page for gap in gaps for one in gap.questions for page in asked[one.question].pages}


def _counts(gaps: Sequence[Gap], false: Sequence[Gap], wanted: set[str], asked: dict[str, Asked]) -> dict[str, int]:
    several = sum(len(gap.questions) > 1 for gap in gaps)
    return {
        "pages": len(wanted),
        "surfaced": len(_surfaced(gaps, asked) & wanted),
        "groups": len(gaps),
        "false": len(false),
        "of_several_questions": several,
    }


def _commonest(gap: Gap, asked: dict[str, Asked]) -> int:
    """How many questions of a group the page has that has most of them."""
    return max(Counter(page for one in gap.questions for page in asked[one.question].pages).values())


def _answered(gap: Gap, asked: dict[str, Asked], hidden: frozenset[str]) -> int:
    return sum(not asked[one.question].pages <= hidden for one in gap.questions)


def _sum(folds: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    counts = {key: sum(fold[name][key] for fold in folds) for key in folds[0][name]}
    return counts | {
        "surfaced_share": _share(counts["surfaced"], counts["pages"]),
        "surfaced_share_of_lacking": _share(counts["surfaced"], counts["lacking"]),
        "false_share": _share(counts["false"], counts["groups"]),
    }


def _share(part: int, whole: int) -> str:
    low, high = wilson_interval(part, whole)
    return f"{part / max(1, whole):.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    asyncio.run(main())
