"""Comparisons of runs: equal runs have no significant difference, and real changes are found."""

import numpy as np
import pytest

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.comparing import Comparison, compare
from chapterverse.evaluation.report import Report
from tests.evaluation.cases import answered, citation, question, refused, run


def runs(before: list[bool], after: list[bool]) -> Comparison:
    """Compares two runs over the same questions; True means answered with the evidence."""
    return compare(report(cases(before)), report(cases(after)))


def report(made: list[Case], **fields: object) -> Report:
    return Report(run=run(**fields), estimates=[], levels=[], reliability=[], cases=made)


def cases(right: list[bool]) -> list[Case]:
    wrong = (citation("Something else."),)
    made = []
    for number, well in enumerate(right):
        asked = question(id=f"q{number}")
        made.append(answered(asked) if well else answered(asked, citations=wrong))
    return made


def verdicts(found: Comparison) -> dict[str, str]:
    return {change.label: change.verdict for change in found.changes}


RIGHT = "right: evidence shown, or rightly refused"


def test_run_compared_with_itself_is_the_same() -> None:
    found = runs([True, False, True], [True, False, True])
    assert set(verdicts(found).values()) == {"same"}
    assert not found.turnabouts
    assert not found.notes
    assert not found.more_than_noise


def test_few_changed_questions_are_noise() -> None:
    found = runs([True] * 20 + [False] * 4, [True] * 18 + [False, False] + [True] * 3 + [False])
    assert verdicts(found)[RIGHT] == "noise"
    assert not found.more_than_noise
    assert [turn.id for turn in found.turnabouts] == ["q18", "q19", "q20", "q21", "q22"]
    assert found.turnabouts[0].before == "answered, right"
    assert found.turnabouts[0].after == "answered, wrong"


@pytest.mark.slow
def test_equal_systems_rarely_differ_significantly() -> None:
    chance = np.random.default_rng(7)
    drawn = [(chance.random(40) < 0.8, chance.random(40) < 0.8) for _ in range(60)]
    found = [runs(list(map(bool, before)), list(map(bool, after))) for before, after in drawn]
    assert sum(one.more_than_noise for one in found) <= 6


def test_large_change_is_significant_in_both_directions() -> None:
    well, badly = [True] * 40, [True] * 20 + [False] * 20
    assert verdicts(runs(badly, well))[RIGHT] == "better"
    worse = runs(well, badly)
    assert verdicts(worse)[RIGHT] == "worse"
    (change,) = (one for one in worse.changes if one.label == RIGHT)
    assert (change.before, change.after) == (1.0, 0.5)
    assert change.low < -0.5 < change.high < 0
    assert change.p is not None
    assert change.p < 0.001


def test_five_changed_questions_are_noise_and_nine_are_not() -> None:
    well = [True] * 40
    assert verdicts(runs(well, [True] * 35 + [False] * 5))[RIGHT] == "noise"
    nine = runs(well, [True] * 31 + [False] * 9)
    assert verdicts(nine)[RIGHT] == "worse"
    assert verdicts(nine)["right section first"] == "same"


def test_fewer_false_refusals_are_better() -> None:
    asked = [question(id=f"q{number}") for number in range(30)]
    before = report([refused(one) for one in asked])
    after = report([answered(one) for one in asked])
    assert verdicts(compare(before, after))["false refusals, of answerable"] == "better"


def test_times_are_shown_and_not_tested() -> None:
    before = report([answered(question(id=f"q{number}")) for number in range(30)])
    after = report([answered(question(id=f"q{number}"), latency_ms=500.0) for number in range(30)])
    found = compare(before, after)
    (change,) = (one for one in found.changes if one.kind == "ms")
    assert (change.before, change.after, change.p, change.verdict) == (50.0, 500.0, None, "not tested")
    assert not found.more_than_noise


def test_only_shared_questions_are_compared_and_differences_of_the_runs_are_noted() -> None:
    before = report([answered(question(id="a")), answered(question(id="b"))])
    changed = [answered(question(id="b")), answered(question(id="a", question="Reworded?"))]
    after = report(changed, digest="other", model="another", interrupted=True)
    found = compare(before, after)
    assert found.shared == 1
    assert [note.split()[0] for note in found.notes] == ["The", "model:", "A"]
    with pytest.raises(ValidationFailed, match="share no question"):
        compare(before, report([answered(question(question="Another?"))]))
