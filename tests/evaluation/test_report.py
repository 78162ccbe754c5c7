"""Reports: estimates from cases, and saving and loading."""

from pathlib import Path

import pytest

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.cases import Case
from chapterverse.evaluation.report import failing, load_report, make_report, save_report, trade_off
from tests.evaluation.cases import answered, citation, failed, passage, question, refused, run, unanswerable

WRONG = (citation("Something else."),)
CASES = [
    answered(question(id="a"), latency_ms=10.0),
    answered(question(id="b"), confidence=0.65, level="low", citations=WRONG, latency_ms=30.0),
    refused(question(id="c"), latency_ms=20.0),
    refused(unanswerable(id="d"), latency_ms=20.0),
    answered(unanswerable(id="e"), confidence=0.65, level="low", latency_ms=20.0),
    failed(question(id="f")),
]


def test_every_estimate_is_inside_its_interval() -> None:
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


def test_report_compares_confidence_with_correctness() -> None:
    report = make_report(run(), CASES)
    assert [(one.label, one.answers, one.right) for one in report.levels] == [("high", 1, 1.0), ("low", 2, 0.0)]
    assert [(one.label, one.answers) for one in report.reliability] == [("0.6–0.7", 2), ("0.9–1.0", 1)]
    (ece,) = (one for one in report.estimates if one.key == "ece")
    assert ece.value == pytest.approx((0.1 + 2 * 0.65) / 3)


def test_trade_off_of_refusals() -> None:
    # answerable: 0.9, 0.65 and a refusal; unanswerable: 0.65 and a refusal
    assert trade_off(CASES) == [
        (0.0, pytest.approx(1 / 3), 0.5),
        (0.65, pytest.approx(1 / 3), 0.5),
        (0.9, pytest.approx(2 / 3), 0.0),
        (1.01, 1.0, 0.0),
    ]
    assert trade_off(CASES[:3]) == []


def test_failing_lists_wrong_and_failed_cases() -> None:
    assert [case.question.id for case in failing(CASES)] == ["b", "c", "e", "f"]


def test_report_can_be_saved_and_loaded(tmp_path: Path) -> None:
    report = make_report(run(), CASES)
    data, page = save_report(report, "<p>page</p>", tmp_path / "new" / "folder")
    assert data.name == "eval-abc1234-20261115T120000Z.json"
    assert page.read_text("utf-8") == "<p>page</p>"
    assert load_report(data) == report
    unnamed, _ = save_report(make_report(run(commit=""), CASES), "", tmp_path)
    assert unnamed.name == "eval-20261115T120000Z.json"


def test_report_with_only_failures() -> None:
    report = make_report(run(), [failed()])
    assert [one.key for one in report.estimates] == ["failed"]
    assert report.levels == report.reliability == []


def test_invalid_report_files_and_folders_are_errors(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(ValidationFailed, match="not a report"):
        load_report(tmp_path / "other.json")
    with pytest.raises(ValidationFailed, match="cannot be read"):
        load_report(tmp_path / "missing.json")
    with pytest.raises(ValidationFailed, match="--out"):
        save_report(make_report(run(), CASES), "", tmp_path / "other.json")


def test_cost_is_reported_only_if_prices_are_given() -> None:
    cases = [answered(question(id="a"), tokens=1000, tokens_written=100), refused(unanswerable(id="b"))]
    (money,) = (one for one in make_report(run(prices=(2.0, 10.0)), cases).estimates if one.key == "money")
    assert money.value == pytest.approx((900 * 2.0 + 100 * 10.0) / 1e6 * 1000 / 2)  # half of the answers cost nothing
    assert not [one for one in make_report(run(), cases).estimates if one.key == "money"]


def test_kinds_are_counted_separately() -> None:
    cases = [
        answered(question(id="a", kind="plain")),
        refused(question(id="b", kind="plain")),
        refused(unanswerable(id="c", kind="trap")),
        answered(question(id="d")),
    ]
    kinds = make_report(run(), cases).kinds
    assert [(one.label, one.questions, one.right) for one in kinds] == [("plain", 2, 0.5), ("trap", 1, 1.0)]


def test_questions_of_one_group_are_resampled_together() -> None:
    def cases(grouped: bool) -> list[Case]:
        asked = [question(id=str(number), group=f"document {number // 10}" if grouped else "") for number in range(100)]
        return [answered(one) if number // 10 % 2 else refused(one) for number, one in enumerate(asked)]

    wide, narrow = (
        next(one for one in make_report(run(), cases(grouped)).estimates if one.key == "recall")
        for grouped in (True, False)
    )
    assert wide.value == narrow.value == 0.5
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_auroc_of_answerable_and_unanswerable() -> None:
    (found,) = (one for one in make_report(run(), CASES).estimates if one.key == "auroc")
    # answerable 0.9, 0.65, refused; unanswerable refused, 0.65: of six pairs 1 + 1, 1 + 1/2, 1/2 + 0
    assert found.value == pytest.approx((2 + 1.5 + 0.5) / 6)


def test_distance_to_a_human_rewrite() -> None:
    other, right_one = passage("ros2/nodes.md", "Nodes", "nodes"), passage()
    asked = {"history": [["What is Tern?", "A robot."]], "rewrite": "How heavy is Tern?"}
    cases = [
        answered(question(id="a", **asked), alone=(other,), passages=(right_one,), rewritten=(right_one,)),
        answered(question(id="b", **asked), alone=(other,), passages=(other,), rewritten=(right_one,)),
    ]
    plain = answered(question(id="c", history=asked["history"]), alone=(other,))  # without a rewrite
    found = [one for one in make_report(run(), [*cases, plain]).estimates if one.group == "Follow-ups"]
    assert [(one.key, one.value, one.questions) for one in found[1:]] == [
        ("followups_0", 0.0, 2),
        ("followups_1", 0.5, 2),
        ("followups_2", 1.0, 2),
        ("closed", 0.5, 2),
    ]
    (alone, ours) = (one for one in make_report(run(), [plain]).estimates if "nDCG@5, " in one.label)
    assert (alone.value, ours.value) == (0.0, 1.0)
    assert not [one for one in make_report(run(), CASES).estimates if one.group == "Follow-ups"]
