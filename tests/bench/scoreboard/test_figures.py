"""Figures that the scoreboard computes itself, on cases with obvious values."""

import pytest
from bench.scoreboard.bars import Bar, calibration_bar, own_bars, saved_bars, verdict
from bench.scoreboard.figures import Figure, both_ways, calibration, coverage, false_answers_at, figure, of_row

from chapterverse.evaluation.report import make_report
from tests.evaluation.cases import answered, citation, question, refused, run, unanswerable

WRONG = (citation("Something else."),)


def test_figures_are_formatted() -> None:
    assert str(Figure(0.912, 0.85, 0.96, 40)) == "91.2 % (85.0–96.0)"
    assert str(Figure(0.0783, None, None, 9, "mean")) == "0.078"
    assert str(Figure(1234.5, 1000.0, 2000.0, 9, "ms")) == "1,234 ms (1,000–2,000)"
    assert str(Figure(3.25, None, None, 9, "count")) == "3.2"
    assert str(Figure(0.3, 0.2, 0.5).turned()) == "70.0 % (50.0–80.0)"
    assert of_row({"value": 0.5, "low": None, "high": None, "n": 3}).kind == "share"
    assert of_row({"value": 17, "n": 3}).kind == "count"


def test_baseline_gets_the_threshold_with_the_same_share_of_false_refusals() -> None:
    scores = [
        ("a", 5.0, True),
        ("b", 3.0, True),
        ("c", 2.0, True),
        ("d", 1.0, True),
        ("u", 2.5, False),
        ("v", 0.5, False),
    ]
    cases = [answered(question(id=i) if ok else unanswerable(id=i), confidence=s) for i, s, ok in scores]
    assert false_answers_at(cases, 0.0) == Figure(0.5, n=2)  # with threshold 1.0 only v is refused
    assert false_answers_at(cases, 0.5) == Figure(0.0, n=2)  # with threshold 3.0 both are refused
    assert false_answers_at(cases[:4], 0.0) is None


def test_coverage_curve() -> None:
    cases = [
        answered(question(id="a"), confidence=0.9),
        answered(question(id="b"), confidence=0.2, citations=WRONG),
        refused(question(id="c")),
        refused(unanswerable(id="d")),
    ]
    first, last = coverage(cases, steps=2)
    assert first == pytest.approx((0.2, 2 / 3, 0.5))
    assert last == pytest.approx((0.9, 1 / 3, 1.0))
    assert coverage([refused()]) == []


def test_curve_of_right_answers_and_refusals() -> None:
    cases = [
        answered(question(id="a"), confidence=0.9),
        answered(question(id="b"), confidence=0.5),
        refused(question(id="c")),
        answered(unanswerable(id="d"), confidence=0.6),
        refused(unanswerable(id="e")),
    ]
    first, last = both_ways(cases, steps=2)
    assert first == pytest.approx((0.0, 2 / 3, 0.5))
    assert last == pytest.approx((0.7, 1 / 3, 1.0))


def test_calibration_over_several_sets() -> None:
    cases = [answered(question(id="a"), confidence=0.9), answered(unanswerable(id="b"), confidence=0.9)]
    found = calibration(cases)
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert calibration([refused()]) is None


def test_bars_are_reached_or_missed_by_the_measured_figures() -> None:
    right = make_report(run(), [answered(question(id="a")), refused(unanswerable(id="b"))])
    wrong = make_report(run(), [refused(question(id="a")), answered(unanswerable(id="b"))])
    bars = own_bars({"example": {"ours": right, "bm25": wrong}}, ("ours", "llm", "bm25", "dense"))
    assert [(bar.key, bar.reached) for bar in bars] == [("example-answers", True), ("example-refusals", True)]
    others = bars[1].others
    assert others[0] is others[2] is None  # not run
    assert others[1] == figure(wrong, "false_answer").turned()  # type: ignore[union-attr]
    (missed, _) = own_bars({"example": {"ours": wrong}}, ("ours",))
    assert missed.reached is False
    assert calibration_bar(Figure(0.081, kind="mean")).reached is False
    assert calibration_bar(None).reached is None


def test_bars_of_other_benches_are_read() -> None:
    rows = [
        {"key": "f", "label": " followed", "value": 0.01, "n": 9, "bar": 0.0, "reached": False},
        {"key": "g", "label": "F1", "value": 0.7, "n": 9, "bar": 0.65, "reached": True},
        {"key": "h", "label": "just a figure", "value": 0.7, "n": 9, "bar": None, "reached": None},
        {"key": "i", "label": "in words", "value": 0.0, "n": 9, "bar": "0", "reached": True},
    ]
    bars = saved_bars({"figures": rows}, "other", "what it would be")
    assert [(bar.label, bar.target, bar.reached) for bar in bars] == [
        ("followed", "≤ 0 %", False),
        ("F1", "≥ 65 %", True),
        ("in words", "0", True),
    ]
    assert verdict(rows[2]) == ""
    assert saved_bars(None, "other", "what it would be") == [Bar("other", "what it would be", "", None, None)]
