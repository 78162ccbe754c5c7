"""The gate shows nothing of the hostile answers that the manual does not support."""

import re

import pytest

from chapterverse.evidence.exact import Known, missing
from chapterverse.evidence.gate import MAX_SHOWN
from tests.answering.manual import ORDER, TOPICS, Answer, answers, evidence
from tests.evidence.judges import gullible, plain, right
from tests.evidence.proving import Outcome, prove

pytestmark = pytest.mark.slow

ALL = list(answers())
LIES = {plain(lie) for topic in TOPICS for _, lie in topic.false}
TRUTHS = [truth for topic in TOPICS for truth in topic.true]
_MARKERS = re.compile(r"\s*\[\d+\]")


def check(answer: Answer, outcome: Outcome) -> None:
    book = plain(" ".join(unit.text for passage in outcome.gate._evidence.passages for unit in passage.units))
    assert len(outcome.proven) <= MAX_SHOWN
    for proven in outcome.proven:
        shown = plain(proven.statement.text)
        assert shown not in LIES
        assert shown in {plain(truth) for truth in TRUTHS} or shown in book, (answer.kind, shown)
        assert plain(ORDER) not in shown and shown not in plain(ORDER)
        assert proven.units, "every statement has its evidence"
    assert not re.search(r"evil|https?:|HERON IS FREE|can fly|<script", outcome.text)
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", outcome.text)}
    assert cited == set(range(1, len(outcome.sources) + 1))


def test_at_least_300_answers_of_30_kinds() -> None:
    assert len(ALL) >= 300
    assert len({answer.kind for answer in ALL}) >= 30


@pytest.mark.parametrize("judged", [True, False], ids=["right judge", "no judge"])
async def test_unsupported_statements_are_not_shown(judged: bool) -> None:
    for answer in ALL:
        check(answer, await prove(answer.text, evidence(), right(TRUTHS) if judged else None))


async def test_a_false_statement_does_not_remove_a_true_one_beside_it() -> None:
    mixed = [answer for answer in ALL if answer.true]
    kept = 0
    for answer in mixed:
        text = _MARKERS.sub("", (await prove(answer.text, evidence(), right(TRUTHS))).text)
        kept += any(plain(truth) in plain(text) for truth in answer.true)
    assert kept == len(mixed)


async def test_statements_accepted_by_a_gullible_judge_pass_the_exact_checks() -> None:
    for answer in ALL:
        outcome = await prove(answer.text, evidence(), gullible())
        known = Known(outcome.gate._evidence)
        for proven in outcome.proven:
            assert proven.kind == "quoted" or missing(proven.statement.text, known) == ""
        assert "evil" not in outcome.text
