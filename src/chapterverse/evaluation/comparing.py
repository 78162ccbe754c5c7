"""Compares two runs over the same questions and tests whether the changes are more than noise.

All measures are tested together (Holm), so that a comparison of equal runs finds nothing in 95 of 100 cases, regardless
of the number of measures. A measure that changed for fewer than six questions cannot be significant; it is not tested
and does not weaken the other tests (Tarone). Times are shown but not tested: the load of the machine varies between
runs, not between questions, so two runs are a sample of two.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.measures import MEASURES, Measure, right
from chapterverse.evaluation.questions import earlier_ids
from chapterverse.evaluation.report import Report
from chapterverse.evaluation.statistics import SIGNIFICANT, gain_interval, gain_p, holm, mcnemar_p

Verdict = Literal["better", "worse", "different", "noise", "same", "not tested"]
LEAST_CHANGED: Final = 6  # questions: 2 / 2⁶ is the first probability below 5 %
_OUTCOME: Final = {True: "right", False: "wrong", None: "not judged"}


@dataclass(frozen=True, slots=True)
class Change:
    """A measure in both runs, on the questions where it applies in both."""

    label: str
    kind: str
    before: float
    after: float
    low: float  # of the difference's 95 % interval
    high: float
    p: float | None  # after Holm; None if not tested
    questions: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Turnabout:
    """A question whose outcome differs."""

    id: str
    question: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one run to another."""

    changes: tuple[Change, ...]
    turnabouts: tuple[Turnabout, ...]
    shared: int
    notes: tuple[str, ...]

    @property
    def more_than_noise(self) -> bool:
        """Whether a measure changed significantly."""
        return any(change.verdict in ("better", "worse", "different") for change in self.changes)


def compare(before: Report, after: Report) -> Comparison:
    """Compare the questions of both runs, paired by what they ask."""
    earlier = {case.question.id: case for case in before.cases}
    partners = earlier_ids((case.question for case in after.cases), (case.question for case in before.cases))
    pairs = [(earlier[partners[id_]], case) for case in after.cases if (id_ := case.question.id) in partners]
    if not pairs:
        raise ValidationFailed("These reports share no question; compare runs over the same set.")
    tested = [(measure, values) for measure in MEASURES if (values := _paired(measure, pairs))[0]]
    p_values = _p_values(tested)
    return Comparison(
        changes=tuple(_change(measure, *values, p) for (measure, values), p in zip(tested, p_values, strict=True)),
        turnabouts=tuple(_turnabouts(pairs)),
        shared=len(pairs),
        notes=tuple(_notes(before, after, len(pairs))),
    )


def _paired(measure: Measure, pairs: Sequence[tuple[Case, Case]]) -> tuple[list[float], list[float]]:
    both = [(measure.of(old), measure.of(new)) for old, new in pairs]
    kept = [(old, new) for old, new in both if old is not None and new is not None]
    return [old for old, _ in kept], [new for _, new in kept]


def _p_values(tested: Sequence[tuple[Measure, tuple[list[float], list[float]]]]) -> list[float | None]:
    """Return a p-value for each measure: adjusted by Holm, 1 if too few questions changed, None for times."""
    able = [
        number
        for number, (measure, (old, new)) in enumerate(tested)
        if measure.kind != "ms" and sum(map(operator.ne, old, new)) >= LEAST_CHANGED
    ]
    raised = dict(zip(able, holm([_p(tested[number][0], *tested[number][1]) for number in able]), strict=True))
    return [None if measure.kind == "ms" else raised.get(number, 1.0) for number, (measure, _) in enumerate(tested)]


def _p(measure: Measure, old: Sequence[float], new: Sequence[float]) -> float:
    if measure.kind != "share":
        return gain_p(new, old)
    gained = sum(after > before for before, after in zip(old, new, strict=True))
    lost = sum(after < before for before, after in zip(old, new, strict=True))
    return mcnemar_p(gained, lost)


def _change(measure: Measure, old: Sequence[float], new: Sequence[float], p: float | None) -> Change:
    low, high = gain_interval(new, old)
    before, after = sum(old) / len(old), sum(new) / len(new)
    return Change(measure.label, measure.kind, before, after, low, high, p, len(old), _verdict(measure, old, new, p))


def _verdict(measure: Measure, old: Sequence[float], new: Sequence[float], p: float | None) -> Verdict:
    if list(old) == list(new):
        return "same"
    if p is None:
        return "not tested"
    if p >= SIGNIFICANT:
        return "noise"
    if not measure.better:
        return "different"
    return "better" if (sum(new) > sum(old)) == (measure.better == "higher") else "worse"


def _turnabouts(pairs: Sequence[tuple[Case, Case]]) -> list[Turnabout]:
    found = []
    for old, new in pairs:
        was, became = (f"{case.status}, {_OUTCOME[right(case)]}" for case in (old, new))
        if was != became:
            found.append(Turnabout(new.question.id, new.question.question, was, became))
    return found


def _notes(before: Report, after: Report, shared: int) -> list[str]:
    notes = []
    if before.run.digest != after.run.digest:
        notes.append(f"The sets differ; compared are the {shared} questions that both have.")
    for name in ("model", "embeddings", "index", "book", "version", "concurrency"):
        old, new = getattr(before.run, name), getattr(after.run, name)
        if old != new:
            notes.append(f"{name}: {old} → {new}")
    if before.run.interrupted or after.run.interrupted:
        notes.append("A run was interrupted; its last questions are missing.")
    return notes
