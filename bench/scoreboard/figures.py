"""Computes figures from cases: numbers with intervals, curves, and the effect of thresholds.

Only figures that the harness's own report does not have. Pure functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.measures import right
from chapterverse.evaluation.report import BINS, Estimate, Report, groups_of
from chapterverse.evaluation.statistics import calibration_error, calibration_error_interval


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its interval."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    kind: str = "share"

    def __str__(self) -> str:
        between = f" ({self._told(self.low)}–{self._told(self.high)})" if None not in (self.low, self.high) else ""
        unit = " %" if self.kind == "share" else " ms" if self.kind == "ms" else ""
        return f"{self._told(self.value)}{unit}{between}"

    def _told(self, value: float | None) -> str:
        if value is None:
            return ""
        if self.kind == "share":
            return f"{100 * value:.1f}"
        return f"{value:.3f}" if self.kind == "mean" else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"

    def turned(self) -> "Figure":
        """The complement: the share refused, from the share answered."""
        low, high = self.low, self.high
        if low is None or high is None:
            return Figure(1 - self.value, None, None, self.n)
        return Figure(1 - self.value, 1 - high, 1 - low, self.n)


def figure(report: Report, key: str) -> Figure | None:
    """An estimate of a report, if the report has it."""
    found = next((one for one in report.estimates if one.key == key), None)
    return _of_estimate(found) if found else None


def _of_estimate(one: Estimate) -> Figure:
    return Figure(one.value, one.low, one.high, one.questions, one.kind)


def of_row(row: Mapping[str, Any]) -> Figure:
    """A figure that another bench saved. Values between 0 and 1 are shares; others are counts or times."""
    kind = row.get("kind") or ("share" if 0 <= row["value"] <= 1 else "count")
    return Figure(row["value"], row.get("low"), row.get("high"), row.get("n") or 0, kind)


def judged(cases: Sequence[Case]) -> list[tuple[Case, float]]:
    """The answers that were given and can be judged."""
    return [(case, float(ok)) for case in cases if case.answered and (ok := right(case)) is not None]


def calibration(cases: Sequence[Case]) -> Figure | None:
    """The ECE over the answers of several sets together."""
    kept = judged(cases)
    if not kept:
        return None
    confidences, ok = [case.confidence for case, _ in kept], [verdict for _, verdict in kept]
    low, high = calibration_error_interval(confidences, ok, BINS, groups_of([case for case, _ in kept]))
    return Figure(calibration_error(confidences, ok, BINS), low, high, len(kept), "mean")


def false_answers_at(cases: Sequence[Case], false_refusals: float) -> Figure | None:
    """Return the share of false answers of a system at the threshold that gives it, on these questions, the same share
    of false refusals as another system. No threshold that was fitted elsewhere can be better."""
    answerable = sorted(case.confidence for case in cases if case.question.answerable)
    others = [case.confidence for case in cases if not case.question.answerable]
    if not answerable or not others:
        return None
    place = min(round(false_refusals * len(answerable)), len(answerable) - 1)
    least = answerable[place]
    return Figure(sum(score >= least for score in others) / len(others), n=len(others))


def coverage(cases: Sequence[Case], steps: int = 6) -> list[tuple[float, float, float]]:
    """Return points of (least confidence, share of answerable questions still answered, share of those with the
    evidence quoted)."""
    answerable = [case for case in cases if case.question.answerable and case.status != "failed"]
    kept = sorted(judged(answerable), key=lambda one: one[0].confidence)
    found = []
    for step in range(steps) if kept else ():
        rest = kept[round(step * len(kept) / steps) :]
        share = sum(ok for _, ok in rest) / len(rest)
        found.append((rest[0][0].confidence, len(rest) / len(answerable), share))
    return found


def both_ways(cases: Sequence[Case], steps: int = 8) -> list[tuple[float, float, float]]:
    """Return points of (least confidence, share of answerable questions answered with the evidence, share of
    unanswerable ones refused), as the threshold rises."""
    kept = [case for case in cases if case.status != "failed"]
    good = [case.confidence for case in kept if case.question.answerable and right(case)]
    total = sum(case.question.answerable for case in kept)
    bad = [case.confidence if case.answered else -1.0 for case in kept if not case.question.answerable]
    if not good or not bad:
        return []
    least = [0.0, *np.quantile(good, [step / steps for step in range(1, steps)])]
    return [
        (float(one), sum(value >= one for value in good) / total, sum(value < one for value in bad) / len(bad))
        for one in dict.fromkeys(least)
    ]
