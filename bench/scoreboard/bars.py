"""The bars of this project: the values that its figures must reach, next to those of the baselines.

`board` computes the figures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.scoreboard.figures import Figure, figure, of_row
from chapterverse.evaluation.report import Report

Columns = Mapping[str, Report]  # of one set, by system


@dataclass(frozen=True, slots=True)
class Bar:
    """A value to reach, and the figures of our system and of the others."""

    key: str
    label: str
    target: str
    reached: bool | None  # None: not measured
    ours: Figure | None
    others: tuple[Figure | None, ...] = ()  # A, B


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    label: str
    of: str  # the set
    least: float | None = None
    most: float | None = None
    take: Callable[[Report], Figure | None] = lambda report: None

    @property
    def target(self) -> str:
        kind = "≥" if self.least is not None else "≤"
        return f"{kind} {100 * (self.least if self.least is not None else self.most or 0):g} %"

    def bar(self, columns: Columns, systems: Sequence[str]) -> Bar:
        found = [self.take(columns[system]) if system in columns else None for system in systems]
        ours = found[0]
        return Bar(self.key, self.label, self.target, self._reached(ours), ours, tuple(found[1:]))

    def _reached(self, ours: Figure | None) -> bool | None:
        if ours is None:
            return None
        return ours.value >= self.least if self.least is not None else ours.value <= (self.most or 0)


def _estimate(key: str) -> Callable[[Report], Figure | None]:
    return lambda report: figure(report, key)


def _refused(report: Report) -> Figure | None:
    answered = figure(report, "false_answer")
    return answered.turned() if answered else None


_LINES: Final = (
    _Line("example-answers", "example book: answered with the evidence", "example", 0.95, take=_estimate("recall")),
    _Line("example-refusals", "example book: unanswerable refused", "example", 0.95, take=_refused),
    _Line("squad-answers", "SQuAD 2.0, selected text: gold answer inside the quotes", "squad", 0.80,
          take=_estimate("recall")),
    _Line("squad-refusals", "SQuAD 2.0, selected text: unanswerable refused, same threshold", "squad", 0.75,
          take=_refused),
    _Line("doc2dial-quotes", "Doc2Dial: quotes hold the gold span, of answers given", "doc2dial", 0.85,
          take=_estimate("recall_given")),
    _Line("clapnq-quotes", "CLAPNQ: quotes hold a gold sentence, of answers given", "clapnq", 0.85,
          take=_estimate("recall_given")),
)  # fmt: skip


def own_bars(reports: Mapping[str, Columns], systems: Sequence[str]) -> list[Bar]:
    """Return the bars that are measured on the sets."""
    return [line.bar(reports[line.of], systems) for line in _LINES if line.of in reports]


def calibration_bar(ours: Figure | None) -> Bar:
    """Return the bar for the confidence, over all sets."""
    reached = None if ours is None else ours.value <= 0.08
    return Bar("ece", "confidence: calibration error (ECE) over all sets", "≤ 0.080", reached, ours, ())


def verdict(row: Mapping[str, Any]) -> str:
    """Return the bar of a saved figure, in words."""
    bar = row.get("bar")
    if not isinstance(bar, int | float):
        return str(bar or "")
    below = (row["value"] <= bar) == bool(row.get("reached"))
    return f"{'≤' if below else '≥'} {100 * bar:g} %"


def saved_bars(result: Mapping[str, Any] | None, bench: str, expected: str) -> list[Bar]:
    """Return the bars that another bench saved with its figures, or a bar without a result if it was not run."""
    rows = [row for row in (result or {}).get("figures", ()) if row.get("bar") is not None]
    if not rows:
        return [Bar(bench, expected, "", None, None)]
    return [
        Bar(f"{bench}-{row.get('key', number)}", row["label"].strip(), verdict(row), row.get("reached"), of_row(row))
        for number, row in enumerate(rows)
    ]
