"""Write `docs/SCOREBOARD.md`: `make scoreboard`, or `python -m bench.scoreboard`.

Our system and both baselines are asked the questions of every set, the result of `make injection` is read, and the page
is written. Cases are cached by code and book, so that an interrupted run continues. For a quick look, `--most N` and
names of sets limit the questions; then the page is printed and not written.
"""

import argparse
import asyncio
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from bench.results import ROOT, commit, newest, save
from bench.retrieval.sets import DATA
from bench.scoreboard.asking import OURS, SYSTEMS, ask_set, code_digest
from bench.scoreboard.bars import Bar, calibration_bar, own_bars, saved_bars
from bench.scoreboard.figures import calibration
from bench.scoreboard.writing import Asked, Board, page
from bench.sets.__main__ import SETS
from bench.sets.shape import PublicSet, sample
from chapterverse import __version__
from chapterverse.evaluation.questions import set_digest
from chapterverse.evaluation.report import Run, make_report

TARGET: Final = ROOT / "docs" / "SCOREBOARD.md"


async def board(names: Sequence[str], most: int | None = None) -> Board:
    """Ask the questions that are not cached and put everything together."""
    started, load = time.monotonic(), os.getloadavg()[0]
    code = code_digest()
    sets = []
    for name in names:
        began = time.monotonic()
        asked = await _asked(_some(SETS[name](DATA), most), code)
        sets.append(asked)
        print(f"{asked.set.title}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    facts = {
        "commit": f"{commit()}, code {code}",
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, in {(time.monotonic() - started) / 60:.1f} min; "
        "answers of the same code to the same questions are kept from earlier runs",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; load {load:.1f} "
        f"before, {os.getloadavg()[0]:.1f} after",
    }
    planted = newest("injection")
    return Board(facts, sets, _bars(sets, planted[0] if planted else None), planted)


def _some(public: PublicSet, most: int | None) -> PublicSet:
    questions = public.questions if most is None else tuple(sample(public.questions, most, public.name))
    return replace(public, questions=questions)


async def _asked(public: PublicSet, code: str) -> Asked:
    cases = await ask_set(public, code)
    reports = {system: make_report(_run(public, system), cases[system]) for system in SYSTEMS}
    pages = len(public.pages) or sum(1 for path in (public.folder or ROOT).rglob("*.md*"))
    return Asked(public, pages, cases, reports)


def _run(public: PublicSet, system: str) -> Run:
    return Run(
        made_at=datetime.now(UTC),
        commit=commit(),
        version=__version__,
        questions=public.name,
        digest=set_digest(public.questions),
        asked=len(public.questions),
        model=system,
        embeddings="",
        index="",
        book=public.title,
        concurrency=1,
    )


def _bars(sets: Sequence[Asked], planted: Mapping[str, Any] | None) -> list[Bar]:
    return [
        *own_bars({one.set.name: one.reports for one in sets}, SYSTEMS),
        calibration_bar(calibration([case for one in sets for case in one.cases[OURS]])),
        *saved_bars(planted, "injection", "planted text followed"),
    ]


def main() -> None:
    """Ask, write, save."""
    parser = argparse.ArgumentParser(prog="python -m bench.scoreboard")
    parser.add_argument("names", nargs="*", metavar="SET", choices=[*SETS, []])
    parser.add_argument("--most", type=int, metavar="N")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"No data at {DATA}. The scoreboard reads `shared/data` beside the repository's folder.")
    made = asyncio.run(board(options.names or list(SETS), options.most))
    text = page(made)
    if options.names or options.most:
        print(text)
        return
    TARGET.write_text(text, "utf-8")
    estimates = {
        one.set.name: {
            system: [estimate.model_dump() for estimate in report.estimates] for system, report in one.reports.items()
        }
        for one in made.sets
    }
    bars = [{"key": bar.key, "label": bar.label, "target": bar.target, "reached": bar.reached} for bar in made.bars]
    kept = save("scoreboard", {"facts": dict(made.facts), "bars": bars, "sets": estimates})
    print(f"{TARGET.relative_to(ROOT)} and {kept.relative_to(ROOT)}")
    for bar in made.bars:
        print(f"  {bar.reached!s:6} {bar.label}: {bar.ours or '-'} (wanted {bar.target})")


if __name__ == "__main__":
    main()
