"""Verdicts on questions that were or are refused, compared with the baseline."""

import pytest

from chapterverse.evaluation.book_check import Verdict, _ending, outcome_of
from chapterverse.evaluation.cases import Case
from tests.evaluation.cases import answered, citation, question, refused, unanswerable


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (refused(question()), answered(), "fixed"),
        (refused(question()), answered(citations=(citation("Tern has a tray."),)), "same"),
        (answered(), refused(question()), "broken"),
        (refused(), answered(unanswerable()), "broken"),
        (answered(unanswerable()), refused(), "fixed"),
    ],
)
def test_verdict_for_refused_questions(before: Case, now: Case, verdict: Verdict) -> None:
    assert _ending(now, outcome_of(before)) == verdict
