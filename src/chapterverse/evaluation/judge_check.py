"""Measures whether a model is fit to judge, with true and false claims about the example book."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from chapterverse.errors import AgentUnavailable
from chapterverse.evidence.judge import Judge, JudgeRequest, JudgeUsage

CLAIMS: Final = Path(__file__).with_name("judge_claims.jsonl")
TOGETHER: Final = 4  # claims in one call, about as many as an answer has statements
AT_ONCE: Final = 4  # concurrent calls
# The limits for "fit" and for "usable with care".
FIT: Final = (0.90, 0.05)  # minimum share of true claims passed, maximum share of false claims passed
USABLE: Final = (0.75, 0.10)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about the example book, its evidence, and whether the evidence supports it."""

    id: str
    page: str
    section: str
    claim: str
    evidence: tuple[str, ...]
    supported: bool
    kind: str


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The result for a model."""

    model: str
    true_claims: int
    true_passed: int
    false_claims: int
    false_passed: int
    unanswered: int
    seconds_per_claim: float  # of one call, divided by its claims
    tokens_per_claim: float
    false_passed_by_kind: dict[str, int]
    wrong: list[str]  # ids of the claims judged wrongly

    @property
    def verdict(self) -> str:
        """Whether the model is fit to judge."""
        if self._reaches(FIT):
            return "fit"
        return "usable with care" if self._reaches(USABLE) else "not fit"

    @property
    def advice(self) -> str:
        """The meaning of the verdict for answers, in words."""
        match self.verdict:
            case "fit":
                return "It can judge: nearly all true statements are shown, and hardly any false one."
            case "usable with care":
                return "It loses some true statements and passes some false ones. A larger JUDGE_MODEL is better."
        return "Name a larger JUDGE_MODEL, or set JUDGE=off: then only the book's own words are shown."

    def to_dict(self) -> dict[str, Any]:
        """The report as a dictionary."""
        return asdict(self) | {"verdict": self.verdict, "advice": self.advice}

    def _reaches(self, bar: tuple[float, float]) -> bool:
        least, most = bar
        return self.true_passed >= least * self.true_claims and self.false_passed <= most * self.false_claims


def load_claims() -> list[Claim]:
    """Load the claims that are part of the package."""
    rows = (json.loads(line) for line in CLAIMS.read_text("utf-8").splitlines() if line.strip())
    return [
        Claim(**{name: row[name] for name in Claim.__slots__ if name != "evidence"}, evidence=tuple(row["evidence"]))
        for row in rows
    ]


async def check_judge(judge: Judge, claims: Sequence[Claim]) -> JudgeReport:
    """Ask about all claims, with concurrent calls. If a call fails, its claims count as unanswered. If the first calls
    all fail, no more are made, and their cause is raised."""
    usage, turns = JudgeUsage(), asyncio.Semaphore(AT_ONCE)
    verdicts: dict[str, bool] = {}
    failures: list[AgentUnavailable] = []  # of batches that have ended
    seconds = 0.0

    async def ask(batch: Sequence[Claim]) -> None:
        nonlocal seconds
        async with turns:
            if len(failures) >= AT_ONCE and not verdicts:
                return
            started = time.perf_counter()
            found, failure = await _asked(judge, batch, usage)
            verdicts.update(found)
            failures.extend([failure] if failure else [])
            seconds += time.perf_counter() - started

    await asyncio.gather(*(ask(batch) for batch in _batches(claims)))
    if claims and not verdicts:
        cause = failures[-1].message if failures else "It gave no verdict that can be read."
        raise AgentUnavailable(f"{judge.name} cannot judge: {cause}")
    passed = {claim.id for claim in claims if verdicts.get(claim.id)}
    false = [claim for claim in claims if not claim.supported]
    slips = [claim.kind for claim in false if claim.id in passed]
    return JudgeReport(
        model=judge.name,
        true_claims=len(claims) - len(false),
        true_passed=len(passed) - len(slips),
        false_claims=len(false),
        false_passed=len(slips),
        unanswered=len(claims) - len(verdicts),
        seconds_per_claim=round(seconds / max(1, len(claims)), 3),
        tokens_per_claim=round(usage.tokens / max(1, len(claims)), 1),
        false_passed_by_kind={kind: slips.count(kind) for kind in sorted(set(slips))},
        wrong=[claim.id for claim in claims if (claim.id in passed) != claim.supported],
    )


async def _asked(
    judge: Judge, batch: Sequence[Claim], usage: JudgeUsage
) -> tuple[dict[str, bool], AgentUnavailable | None]:
    """Return the verdicts by claim, and why the last try failed."""
    evidence = [line for number, claim in enumerate(batch, start=1) for line in _lines(number, claim)]
    case = JudgeRequest(evidence, [claim.claim for claim in batch])
    found: dict[str, bool] = {}
    failure: AgentUnavailable | None = None
    for _ in range(2):
        try:
            async with aclosing(judge.verdicts(case, usage)) as verdicts:
                async for verdict in verdicts:
                    found[batch[verdict.claim - 1].id] = verdict.supported
            return found, None
        except AgentUnavailable as error:
            failure = error
            if not error.retryable:
                break
    return found, failure


def _lines(number: int, claim: Claim) -> Iterator[str]:
    yield f"Passage {number}: {claim.page} › {claim.section}"
    for at, unit in enumerate(claim.evidence, start=1):
        yield f"[{number}.{at}] {' '.join(unit.split())}"


def _batches(claims: Sequence[Claim]) -> Iterator[Sequence[Claim]]:
    for at in range(0, len(claims), TOGETHER):
        yield claims[at : at + TOGETHER]
