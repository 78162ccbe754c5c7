"""The command `judge-check` against a scripted model."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from chapterverse.cli.checking import NOT_FIT
from chapterverse.errors import AgentUnavailable
from chapterverse.evaluation.judge_check import JudgeReport, check_judge, load_claims
from chapterverse.evidence.judge import JudgeRequest, JudgeUsage, Verdict
from tests.cli.process import chapterverse
from tests.llm_stub import LlmStub, serving_llm

pytestmark = pytest.mark.slow

CLAIMS = load_claims()


@pytest.fixture
def stub() -> Iterator[LlmStub]:
    with serving_llm() as served:
        served.judge.truths = {claim.claim for claim in CLAIMS if claim.supported}
        served.judge.looks = False
        yield served


def settings(stub: LlmStub) -> dict[str, str]:
    return {"JUDGE_MODEL": "scripted", "JUDGE_BASE_URL": stub.url, "JUDGE_API_KEY": "key"}


def test_right_judge_is_fit(stub: LlmStub, tmp_path: Path) -> None:
    ran = chapterverse(tmp_path, "judge-check", **settings(stub))
    assert ran.returncode == 0, ran.stderr
    assert "true claims passed        120 of 120" in ran.stdout
    assert "false claims passed       0 of 120" in ran.stdout
    assert "scripted: fit." in ran.stdout
    assert 0 < len(stub.judge.asked) <= len(CLAIMS) / 4


def test_a_gullible_judge_is_not_fit(stub: LlmStub, tmp_path: Path) -> None:
    stub.judge.mode = "gullible"
    ran = chapterverse(tmp_path, "judge-check", "--json", "--limit", "40", **settings(stub))
    assert ran.returncode == NOT_FIT
    report = json.loads(ran.stdout)
    assert report["verdict"] == "not fit"
    assert report["false_passed"] == report["false_claims"] > 10
    assert (report["true_passed"], report["unanswered"]) == (report["true_claims"], 0)
    assert report["tokens_per_claim"] > 0 and report["seconds_per_claim"] > 0
    assert len(report["wrong"]) == report["false_claims"]


def test_model_that_gives_no_verdicts_is_an_error(stub: LlmStub, tmp_path: Path) -> None:
    stub.judge.mode = "prose"
    ran = chapterverse(tmp_path, "judge-check", "--limit", "8", **settings(stub))
    assert ran.returncode not in (0, NOT_FIT)
    assert "cannot judge" in ran.stderr


async def test_check_ends_with_the_cause_if_the_model_refuses_every_call() -> None:
    class Refusing:
        name, calls = "gpt", 0

        async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
            self.calls += 1
            raise AgentUnavailable("JUDGE_API_KEY was refused.", retryable=False)
            yield

    judge = Refusing()
    with pytest.raises(AgentUnavailable, match=r"^gpt cannot judge: JUDGE_API_KEY was refused"):
        await check_judge(judge, CLAIMS)
    assert judge.calls < 10


async def test_short_rate_limit_of_the_first_calls_does_not_end_the_check() -> None:
    class Limited:
        name, calls = "gpt", 0

        async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
            self.calls += 1
            limited = self.calls <= 5  # all first calls, and the second try of one of them
            await asyncio.sleep(0 if limited else 0.01)
            if limited:
                raise AgentUnavailable("status 429", retryable=True)
            for number in range(len(case.claims)):
                yield Verdict(claim=number + 1, supported=True)

    assert (await check_judge(Limited(), CLAIMS)).unanswered == 4


@pytest.mark.parametrize("given", [{}, {"OPENAI_API_KEY": "key", "JUDGE": "off"}])
def test_missing_judge_is_an_error_with_the_settings(tmp_path: Path, given: dict[str, str]) -> None:
    ran = chapterverse(tmp_path, "judge-check", **given)
    assert ran.returncode != 0
    assert "JUDGE_MODEL" in ran.stderr


def test_shipped_claims_are_balanced_and_unique() -> None:
    assert len(CLAIMS) >= 200
    assert sum(claim.supported for claim in CLAIMS) * 2 == len(CLAIMS)
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.evidence and claim.claim for claim in CLAIMS)


@pytest.mark.parametrize(
    ("true", "false", "verdict"),
    [(95, 3, "fit"), (89, 3, "usable with care"), (95, 8, "usable with care"), (70, 0, "not fit"), (99, 11, "not fit")],
)
def test_verdict_depends_on_true_and_false_claims_passed(true: int, false: int, verdict: str) -> None:
    report = JudgeReport("m", 100, true, 100, false, 0, 0.1, 10.0, {}, [])
    assert report.verdict == verdict
    assert report.advice
