"""Writes the scoreboard as a Markdown page.

Everything that differs between runs is passed in; nothing is measured here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.scoreboard.asking import MEANING, OURS, WORDS, Cases
from bench.scoreboard.bars import Bar, verdict
from bench.scoreboard.figures import Figure, both_ways, calibration, coverage, false_answers_at, figure, of_row
from bench.sets.shape import PublicSet
from chapterverse.evaluation.report import Report

_INTRODUCTION: Final = Path(__file__).with_name("introduction.md")
COLUMNS: Final = {
    OURS: "ours, keyless",
    WORDS: "A: BM25, first sentences",
    MEANING: "B: dense, whole passage",
}
_MEASURES: Final = (
    "page_hit", "hit_1", "hit", "ndcg", "recall", "recall_given", "precision", "place", "quoted", "false_answer",
    "false_refusal", "auroc", "f1", "contained", "followup", "followups_0", "followups_1", "followups_2",
    "closed", "ece", "p50", "p95", "tokens", "calls", "withheld", "failed",
)  # fmt: skip
_OURS_ALONE: Final = ("ece", "tokens", "calls", "withheld")


@dataclass(frozen=True, slots=True)
class Asked:
    """A set with its results."""

    set: PublicSet
    pages: int
    cases: Cases
    reports: Mapping[str, Report]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the page shows."""

    facts: Mapping[str, str]
    sets: Sequence[Asked]
    bars: Sequence[Bar]
    planted: tuple[dict[str, Any], str] | None  # the result of the bench of planted text, and its commit


def page(board: Board) -> str:
    """The whole page."""
    parts = [
        *_head(board),
        *_bars(board.bars),
        *_missed(board),
        *_refusals(board.sets),
        *_confidence(board.sets),
        *(line for one in board.sets for line in _set(one)),
        *_planted(board.planted),
    ]
    return "\n".join(parts) + "\n"


def _head(board: Board) -> Iterator[str]:
    yield "# Scoreboard"
    yield ""
    yield "Written by `make scoreboard`; do not edit."
    yield ""
    yield from _table(("", ""), list(board.facts.items()))
    yield _INTRODUCTION.read_text("utf-8")


def _bars(bars: Sequence[Bar]) -> Iterator[str]:
    yield "## Bars"
    yield ""
    rows = [
        (
            _mark(bar),
            bar.label,
            bar.target,
            _cell(bar.ours),
            *(_cell(one) for one in (*bar.others, None, None)[:2]),
        )
        for bar in bars
    ]
    yield from _table(("", "bar", "target", *COLUMNS.values()), rows)


def _missed(board: Board) -> Iterator[str]:
    missed = [bar for bar in board.bars if bar.reached is False]
    if not missed:
        return
    yield "## Missed"
    yield ""
    by_name = {one.set.name: one for one in board.sets}
    for bar in missed:
        yield f"**{bar.label}**: {bar.ours}, wanted {bar.target}."
        yield ""
        asked = by_name.get(bar.key.split("-")[0])
        if asked is not None:
            yield from _curve(asked, bar)


def _curve(asked: Asked, bar: Bar) -> Iterator[str]:
    if bar.key.endswith("quotes"):
        rows = [(f"{least:.2f}", _share(kept), _share(right)) for least, kept, right in coverage(asked.cases[OURS])]
        yield from _table(("least confidence", "answerable answered", "evidence quoted, of those"), rows)
    elif points := both_ways(asked.cases[OURS]):
        rows = [(f"{least:.2f}", _share(right), _share(refused)) for least, right, refused in points]
        yield from _table(("least confidence", "answered with the evidence", "unanswerable refused"), rows)


def _refusals(sets: Sequence[Asked]) -> Iterator[str]:
    yield "## Refusals both ways"
    yield ""
    yield "False answers: of the questions that the text does not answer. A and B: theirs, with as many false refusals"
    yield "as ours. AUROC: how often a system is surer of an answerable question than of an unanswerable one."
    yield ""
    rows = []
    for one in sets:
        refused = figure(one.reports[OURS], "false_refusal")
        others = [false_answers_at(one.cases[name], refused.value) if refused else None for name in (WORDS, MEANING)]
        scores = [figure(one.reports[name], "auroc") for name in (OURS, WORDS, MEANING)]
        answered = figure(one.reports[OURS], "false_answer")
        if answered:
            rows.append((one.set.title, _cell(answered), _cell(refused), *map(_cell, others), *map(_cell, scores)))
    heads = ("set", "false answers", "false refusals", "A", "B", "AUROC ours", "AUROC A", "AUROC B")
    yield from _table(heads, rows)
    for one in sets:
        if one.reports[OURS].kinds and figure(one.reports[OURS], "false_answer"):
            yield f"{one.set.title}, right by kind:"
            yield ""
            kinds = one.reports[OURS].kinds
            yield from _table(
                ("kind", "questions", "right"),
                [(kind.label, str(kind.questions), str(Figure(kind.right, kind.low, kind.high))) for kind in kinds],
            )


def _confidence(sets: Sequence[Asked]) -> Iterator[str]:
    yield "## Is the confidence kept?"
    yield ""
    yield "Share of right answers at each level, false answers counted as wrong; ECE in ten bins. That of few"
    yield "answers lies high even when the confidence is honest."
    yield ""
    rows = []
    for one in sets:
        levels = {level.label: level for level in one.reports[OURS].levels}
        cells = [
            f"{100 * levels[name].right:.0f} % of {levels[name].answers}" if name in levels else ""
            for name in ("high", "medium", "low")
        ]
        rows.append((one.set.title, *cells, _cell(calibration(one.cases[OURS]))))
    pooled = calibration([case for one in sets for case in one.cases[OURS]])
    yield from _table(("set", "high", "medium", "low", "ECE"), [*rows, ("all together", "", "", "", _cell(pooled))])
    yield from _reliability(sets)


def _reliability(sets: Sequence[Asked]) -> Iterator[str]:
    bins: dict[str, list[tuple[float, float, int]]] = {}
    for one in sets:
        for each in one.reports[OURS].reliability:
            bins.setdefault(each.label, []).append((each.confidence, each.right, each.answers))
    rows = []
    for label, parts in sorted(bins.items()):
        total = sum(count for _, _, count in parts)
        shown, right = (sum(part[place] * part[2] for part in parts) / total for place in (0, 1))
        rows.append((label, f"{shown:.2f}", f"{right:.2f}", str(total)))
    yield from _table(("confidence", "shown", "right", "answers"), rows)


def _set(one: Asked) -> Iterator[str]:
    unanswerable = sum(not question.answerable for question in one.set.questions)
    yield f"## {one.set.title}"
    yield ""
    yield f"{len(one.set.questions)} questions, {unanswerable} unanswerable; {one.pages} pages. {one.set.note}."
    yield ""
    labels = {estimate.key: estimate.label for report in one.reports.values() for estimate in report.estimates}
    shown = [name for name in COLUMNS if name in one.reports]
    rows = []
    for key in _MEASURES:
        cells = [figure(one.reports[name], key) if name == OURS or key not in _OURS_ALONE else None for name in shown]
        if any(cells):
            rows.append((labels[key], str(max(cell.n for cell in cells if cell)), *map(_cell, cells)))
    yield from _table(("measure", "n", *(COLUMNS[name] for name in shown)), rows)


def _planted(saved: tuple[dict[str, Any], str] | None) -> Iterator[str]:
    yield "## Planted text"
    yield ""
    if saved is None:
        yield "Not run: `make injection`."
        yield ""
        return
    result, commit = saved
    yield f"`make injection` at commit {commit}: orders and false statements in pages and selections."
    yield ""
    rows = [(row["label"], str(row.get("n") or ""), str(of_row(row)), verdict(row)) for row in result["figures"]]
    yield from _table(("figure", "n", "value", "bar"), rows)


def _mark(bar: Bar) -> str:
    return {True: "reached", False: "**missed**", None: "not run"}[bar.reached]


def _cell(value: Figure | None) -> str:
    return "" if value is None else str(value)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        cells = [cell.replace("|", "\\|") for cell in row]
        yield f"| {' | '.join(cells)} |"
    yield ""
