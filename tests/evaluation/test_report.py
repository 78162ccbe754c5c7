"""Reports: what cases amount to, and that they are kept whole."""

from pathlib import Path

import pytest

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.report import failing, load_report, make_report, save_report, trade_off
from tests.evaluation.cases import answered, citation, failed, question, refused, run, unanswerable

WRONG = (citation("Something else."),)
CASES = [
    answered(question(id="a"), latency_ms=10.0),
    answered(question(id="b"), confidence=0.65, level="low", citations=WRONG, latency_ms=30.0),
    refused(question(id="c"), latency_ms=20.0),
    refused(unanswerable(id="d"), latency_ms=20.0),
    answered(unanswerable(id="e"), confidence=0.65, level="low", latency_ms=20.0),
    failed(question(id="f")),
]


def test_every_measure_comes_with_an_interval_that_holds_it() -> None:
    report = make_report(run(), CASES)
    found = {one.key: one for one in report.estimates}
    assert found["right"].value == pytest.approx(2 / 5)
    assert found["right"].questions == 5
    assert found["false_answer"].value == found["recall_given"].value == 0.5
    assert found["false_refusal"].value == pytest.approx(1 / 3)
    assert found["failed"].value == pytest.approx(1 / 6)
    assert found["p50"].value == 20.0
    assert "followup" not in found  # no question had a history
    for one in report.estimates:
        assert one.low <= one.value <= one.high, one


def test_confidence_is_held_to_its_word() -> None:
    report = make_report(run(), CASES)
    assert [(one.label, one.answers, one.right) for one in report.levels] == [("high", 1, 1.0), ("low", 2, 0.0)]
    assert [(one.label, one.answers) for one in report.reliability] == [("0.6–0.7", 2), ("0.9–1.0", 1)]
    (ece,) = (one for one in report.estimates if one.key == "ece")
    assert ece.value == pytest.approx((0.1 + 2 * 0.65) / 3)


def test_the_trade_off_of_refusals() -> None:
    # answerable: 0.9, 0.65 and a refusal; unanswerable: 0.65 and a refusal
    assert trade_off(CASES) == [
        (0.0, pytest.approx(1 / 3), 0.5),
        (0.65, pytest.approx(1 / 3), 0.5),
        (0.9, pytest.approx(2 / 3), 0.0),
        (1.01, 1.0, 0.0),
    ]
    assert trade_off(CASES[:3]) == []


def test_what_went_wrong() -> None:
    assert [case.question.id for case in failing(CASES)] == ["b", "c", "e", "f"]


def test_a_report_is_kept_whole(tmp_path: Path) -> None:
    report = make_report(run(), CASES)
    data, page = save_report(report, "<p>page</p>", tmp_path / "new" / "folder")
    assert data.name == "eval-abc1234-20261115T120000Z.json"
    assert page.read_text("utf-8") == "<p>page</p>"
    assert load_report(data) == report
    unnamed, _ = save_report(make_report(run(commit=""), CASES), "", tmp_path)
    assert unnamed.name == "eval-20261115T120000Z.json"


def test_a_report_of_failures_alone() -> None:
    report = make_report(run(), [failed()])
    assert [one.key for one in report.estimates] == ["failed"]
    assert report.levels == report.reliability == []


def test_files_that_are_no_report_and_folders_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(ValidationFailed, match="not a report"):
        load_report(tmp_path / "other.json")
    with pytest.raises(ValidationFailed, match="cannot be read"):
        load_report(tmp_path / "missing.json")
    with pytest.raises(ValidationFailed, match="--out"):
        save_report(make_report(run(), CASES), "", tmp_path / "other.json")
