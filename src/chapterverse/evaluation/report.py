"""A run as it is kept: what was asked of which engines, every case, every measure with its interval.

Owns the JSON of a report and its names on disk. Never draws: `page.py` makes it a page, `terminal/` a table.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import numpy as np
from pydantic import ValidationError

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.measures import MEASURES, Measure, right
from chapterverse.evaluation.statistics import (
    bins_of,
    calibration_error,
    calibration_error_interval,
    interval,
    quantile_interval,
    wilson_interval,
)
from chapterverse.models import Frozen

BINS: Final = 10
LEVELS: Final = ("high", "medium", "low")
Kind = Literal["share", "mean", "ms", "count"]


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
    """Answers of like confidence: what was promised, and what was kept."""

    label: str
    answers: int
    confidence: float
    right: float
    low: float
    high: float


class Run(Frozen):
    """What a report is of."""

    made_at: datetime
    commit: str  # of the folder it was run in; empty outside of git
    version: str
    questions: str  # name of the set
    digest: str  # of its contents
    asked: int
    model: str
    embeddings: str
    index: str
    book: str  # what the index says of itself
    concurrency: int
    interrupted: bool = False


class Report(Frozen):
    """A run, its cases and what they amount to."""

    run: Run
    estimates: list[Estimate]
    levels: list[Bin]
    reliability: list[Bin]
    cases: list[Case]


def make_report(run: Run, cases: Sequence[Case]) -> Report:
    """Everything that can be said about the cases."""
    judged = [(case, float(verdict)) for case in cases if case.answered and (verdict := right(case)) is not None]
    placed = bins_of(np.array([case.confidence for case, _ in judged]), BINS)
    estimates = [estimate for measure in MEASURES if (estimate := _estimate(measure, cases))]
    return Report(
        run=run,
        estimates=[*estimates, *_quantiles(cases), *_calibration(judged)],
        levels=[
            _bin(level, chosen) for level in LEVELS if (chosen := [one for one in judged if one[0].level == level])
        ],
        reliability=[
            _bin(f"{number / BINS:.1f}–{(number + 1) / BINS:.1f}", chosen)
            for number in range(BINS)
            if (chosen := [one for one, place in zip(judged, placed, strict=True) if place == number])
        ],
        cases=list(cases),
    )


def trade_off(cases: Sequence[Case]) -> list[tuple[float, float, float]]:
    """(least confidence, false refusals, false answers) if answers of less confidence were refused, too."""
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
    """Those that went wrong: failed, false answers, false refusals, and answers without the evidence."""
    return [case for case in cases if case.status == "failed" or right(case) is False]


def save_report(report: Report, page: str, folder: Path) -> tuple[Path, Path]:
    """Write a report as JSON and as a page, named by commit and time; returns where."""
    name = "-".join(filter(None, ("eval", report.run.commit, f"{report.run.made_at:%Y%m%dT%H%M%SZ}")))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        data, readable = folder / f"{name}.json", folder / f"{name}.html"
        data.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")
        readable.write_text(page, "utf-8")
    except OSError as failure:
        raise ValidationFailed(f"--out {folder}: {failure.strerror}") from None
    return data, readable


def load_report(path: Path) -> Report:
    """A report that was kept."""
    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as failure:
        raise ValidationFailed(f"{path} cannot be read: {failure.strerror}") from None
    except ValidationError:
        raise ValidationFailed(f"{path} is not a report; make one with: chapterverse eval SET --out DIR") from None


def _estimate(measure: Measure, cases: Sequence[Case]) -> Estimate | None:
    values = [value for case in cases if (value := measure.of(case)) is not None]
    if not values:
        return None
    low, high = wilson_interval(round(sum(values)), len(values)) if measure.kind == "share" else interval(values)
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


def _calibration(judged: Sequence[tuple[Case, float]]) -> list[Estimate]:
    if not judged:
        return []
    told = [case.confidence for case, _ in judged]
    kept = [verdict for _, verdict in judged]
    low, high = calibration_error_interval(told, kept, BINS)
    return [
        Estimate(
            key="ece",
            group="Confidence",
            label=f"calibration error (ECE, {BINS} bins)",
            kind="mean",
            value=calibration_error(told, kept, BINS),
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
