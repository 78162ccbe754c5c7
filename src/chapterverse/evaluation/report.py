"""The report of a run: its engines, all cases, and all measures with their intervals."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
from pydantic import Field

from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.files import load_model, save_model, save_text
from chapterverse.evaluation.measures import DEPTH, MEASURES, Measure, found_well, right
from chapterverse.evaluation.statistics import (
    Rows,
    Values,
    auroc,
    bins_of,
    calibration_error,
    calibration_error_interval,
    closed_distance,
    interval,
    quantile_interval,
    share_interval,
    statistic_interval,
    wilson_interval,
)
from chapterverse.models import ConfidenceLevel, Frozen

BINS: Final = 10
LEVELS: Final = tuple(level for level in get_args(ConfidenceLevel) if level != "insufficient")  # of answers
Kind = Literal["share", "mean", "ms", "count", "money"]


class Estimate(Frozen):
    """A measure over all questions that it applies to, with its 95 % interval."""

    key: str
    group: str
    label: str
    kind: Kind
    value: float
    low: float
    high: float
    questions: int


class Bin(Frozen):
    """Answers of similar confidence: their mean confidence, and the share that is right."""

    label: str
    answers: int
    confidence: float
    right: float
    low: float
    high: float


class Sort(Frozen):
    """Questions of one kind: the share that is right."""

    label: str
    questions: int
    right: float
    low: float
    high: float


class Run(Frozen):
    """The circumstances of a run."""

    made_at: datetime
    commit: str  # of the working folder; empty outside of git
    version: str
    questions: str  # name of the set
    digest: str  # of its contents
    asked: int
    model: str
    embeddings: str
    index: str
    book: str  # size of the index
    concurrency: int
    prices: tuple[float, float] | None = None  # of a million tokens read and written, in any currency
    interrupted: bool = False


class Report(Frozen):
    """A run, its cases and its measures."""

    run: Run
    estimates: list[Estimate]
    levels: list[Bin]
    reliability: list[Bin]
    kinds: list[Sort] = Field(default_factory=list)
    cases: list[Case]


def make_report(run: Run, cases: Sequence[Case]) -> Report:
    """Compute the report for the cases."""
    judged = [(case, float(verdict)) for case in cases if case.answered and (verdict := right(case)) is not None]
    placed = bins_of(np.array([case.confidence for case, _ in judged]), BINS)
    measured = [estimate for measure in MEASURES if (estimate := _estimate(measure, cases))]
    derived = [*_followups(cases), *_quantiles(cases), *_money(run, cases), *_refusals(cases), *_calibration(judged)]
    order = list(dict.fromkeys((*(measure.group for measure in MEASURES), "Confidence")))
    return Report(
        run=run,
        estimates=sorted([*measured, *derived], key=lambda one: order.index(one.group)),
        levels=[
            _bin(level, chosen) for level in LEVELS if (chosen := [item for item in judged if item[0].level == level])
        ],
        reliability=[
            _bin(f"{number / BINS:.1f}–{(number + 1) / BINS:.1f}", chosen)
            for number in range(BINS)
            if (chosen := [one for one, place in zip(judged, placed, strict=True) if place == number])
        ],
        kinds=_kinds(cases),
        cases=list(cases),
    )


def trade_off(cases: Sequence[Case]) -> list[tuple[float, float, float]]:
    """Return (least confidence, false refusals, false answers) for each limit below which answers could be refused."""
    kept = [case for case in cases if case.status != "failed"]
    answerable = [case.confidence if case.answered else -1.0 for case in kept if case.question.answerable]
    unanswerable = [case.confidence if case.answered else -1.0 for case in kept if not case.question.answerable]
    if not answerable or not unanswerable:
        return []
    return [
        (
            least,
            sum(value < least for value in answerable) / len(answerable),
            sum(value >= least for value in unanswerable) / len(unanswerable),
        )
        for least in sorted({0.0, 1.01, *(value for value in (*answerable, *unanswerable) if value >= 0)})
    ]


def failing(cases: Sequence[Case]) -> list[Case]:
    """Return the cases that went wrong: failures, false answers, false refusals, and answers without the evidence."""
    return [case for case in cases if case.status == "failed" or right(case) is False]


def save_report(report: Report, page: str, folder: Path) -> tuple[Path, Path]:
    """Write a report as JSON and as a page, named by commit and time. Returns their paths."""
    name = "-".join(filter(None, ("eval", report.run.commit, f"{report.run.made_at:%Y%m%dT%H%M%SZ}")))
    return save_model(report, folder / f"{name}.json", "--out"), save_text(page, folder / f"{name}.html", "--out")


def load_report(path: Path) -> Report:
    """Read a report."""
    return load_model(Report, path, "a report; make one with: chapterverse eval SET --out DIR")


def groups_of(cases: Sequence[Case]) -> list[str]:
    """Return the group of each case; empty if every question is its own group."""
    named = [case.question.group or f"question {case.question.id}" for case in cases]
    return named if len(set(named)) < len(named) else []


def _estimate(measure: Measure, cases: Sequence[Case]) -> Estimate | None:
    measured = [(case, value) for case in cases if (value := measure.of(case)) is not None]
    if not measured:
        return None
    values, groups = [value for _, value in measured], groups_of([case for case, _ in measured])
    low, high = share_interval(values, groups) if measure.kind == "share" else interval(values, groups)
    return Estimate(
        key=measure.key,
        group=measure.group,
        label=measure.label,
        kind=measure.kind,
        value=sum(values) / len(values),
        low=low,
        high=high,
        questions=len(values),
    )


def _kinds(cases: Sequence[Case]) -> list[Sort]:
    found = []
    for kind in sorted({case.question.kind for case in cases} - {""}):
        judged = [(case, float(ok)) for case in cases if case.question.kind == kind and (ok := right(case)) is not None]
        if judged:
            kept = [value for _, value in judged]
            low, high = share_interval(kept, groups_of([case for case, _ in judged]))
            found.append(Sort(label=kind, questions=len(kept), right=sum(kept) / len(kept), low=low, high=high))
    return found


def _followups(cases: Sequence[Case]) -> list[Estimate]:
    """Measure how well follow-ups find passages with their own words, as they were searched, and as a person rewrote
    them. All three use the same questions: those with a rewrite, if there are any."""
    tried = [case for case in cases if case.alone and found_well(case, case.passages) is not None]
    kept = [case for case in tried if case.rewritten] or tried
    if not kept:
        return []
    groups = groups_of(kept)
    ways = {"last turn alone": [case.alone for case in kept], "as searched": [case.passages for case in kept]}
    if kept[0].rewritten:
        ways["as a person rewrote it"] = [case.rewritten for case in kept]
    scores = [
        np.array([found_well(case, found) for case, found in zip(kept, way, strict=True)], np.float64)
        for way in ways.values()
    ]
    estimates = [
        Estimate(
            key=f"followups_{number}",
            group="Follow-ups",
            label=f"nDCG@{DEPTH}, {name}",
            kind="mean",
            value=float(values.mean()),
            low=low,
            high=high,
            questions=len(kept),
        )
        for number, (name, values) in enumerate(zip(ways, scores, strict=True))
        for low, high in [interval(values.tolist(), groups)]
    ]
    return [*estimates, *_distance(scores, groups)]


def _distance(scores: Sequence[Values], groups: Sequence[str]) -> list[Estimate]:
    """Estimate how much of the improvement by a person's rewrite the actual search reaches, as a share."""
    if len(scores) < 3 or not scores[2].mean() > scores[0].mean():
        return []
    alone, ours, best = scores

    def closed(rows: Rows) -> float:
        return closed_distance(alone[rows], ours[rows], best[rows])

    low, high = statistic_interval(closed, len(ours), groups)
    return [
        Estimate(
            key="closed",
            group="Follow-ups",
            label="share of the distance to the rewrite that is closed",
            kind="share",
            value=closed(np.arange(len(ours))),
            low=low,
            high=high,
            questions=len(ours),
        )
    ]


def _refusals(cases: Sequence[Case]) -> list[Estimate]:
    kept = [case for case in cases if case.status != "failed"]
    confidences = np.array([case.confidence if case.answered else -1.0 for case in kept])
    wanted = np.array([case.question.answerable for case in kept], np.bool_)
    if not wanted.any() or wanted.all():
        return []
    low, high = statistic_interval(lambda rows: auroc(confidences[rows], wanted[rows]), len(kept), groups_of(kept))
    return [
        Estimate(
            key="auroc",
            group="Refusals",
            label="separation of answerable and unanswerable (AUROC)",
            kind="mean",
            value=auroc(confidences, wanted),
            low=low,
            high=high,
            questions=len(kept),
        )
    ]


def _quantiles(cases: Sequence[Case]) -> list[Estimate]:
    times = [case.latency_ms for case in cases if case.status != "failed"]
    return [
        Estimate(
            key=key,
            group="Cost",
            label=label,
            kind="ms",
            value=float(np.quantile(times, share)),
            low=low,
            high=high,
            questions=len(times),
        )
        for key, label, share in (("p50", "time, p50", 0.50), ("p95", "time, p95", 0.95))
        if times
        for low, high in [quantile_interval(times, share)]
    ]


def _money(run: Run, cases: Sequence[Case]) -> list[Estimate]:
    """Estimate the cost, if prices were given."""
    kept = [case for case in cases if case.status != "failed"]
    if run.prices is None or not kept:
        return []
    read, written = run.prices
    # The cost of a thousand answers, because that of one is too small a number. Prices are for a million tokens.
    spent = [(read * (case.tokens - case.tokens_written) + written * case.tokens_written) / 1000 for case in kept]
    low, high = interval(spent, groups_of(kept))
    return [
        Estimate(
            key="money",
            group="Cost",
            label="money for 1,000 answers, at the prices given",
            kind="money",
            value=sum(spent) / len(spent),
            low=low,
            high=high,
            questions=len(spent),
        )
    ]


def _calibration(judged: Sequence[tuple[Case, float]]) -> list[Estimate]:
    if not judged:
        return []
    confidences = [case.confidence for case, _ in judged]
    kept = [verdict for _, verdict in judged]
    low, high = calibration_error_interval(confidences, kept, BINS, groups_of([case for case, _ in judged]))
    return [
        Estimate(
            key="ece",
            group="Confidence",
            label=f"calibration error (ECE, {BINS} bins)",
            kind="mean",
            value=calibration_error(confidences, kept, BINS),
            low=low,
            high=high,
            questions=len(judged),
        )
    ]


def _bin(label: str, judged: Sequence[tuple[Case, float]]) -> Bin:
    kept = sum(verdict for _, verdict in judged)
    low, high = wilson_interval(round(kept), len(judged))
    return Bin(
        label=label,
        answers=len(judged),
        confidence=sum(case.confidence for case, _ in judged) / len(judged),
        right=kept / len(judged),
        low=low,
        high=high,
    )
