"""Judges for tests, in process: right, gullible and failing."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import dataclass, field

from chapterverse.errors import AgentUnavailable
from chapterverse.evidence.judge import JudgeRequest, JudgeUsage, Verdict


def plain(text: str) -> str:
    """The words of a text."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


@dataclass
class ScriptedJudge:
    """Supports the claims for which `supports` is true, in one reply."""

    supports: Callable[[str], bool]
    units: tuple[str, ...] = ()
    seconds: float = 0.0
    name: str = "scripted"
    cases: list[JudgeRequest] = field(default_factory=list)

    async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        self.cases.append(case)
        usage.calls += 1
        usage.tokens += len(case.message()) // 4
        await asyncio.sleep(self.seconds)
        for number, claim in enumerate(case.claims, start=1):
            yield Verdict(number, self.supports(claim), self.units)

    async def close(self) -> None:
        pass


def right(truths: Collection[str]) -> ScriptedJudge:
    """A judge that supports exactly these claims, with whatever code stands below them."""
    known = {plain(truth) for truth in truths}
    return ScriptedJudge(lambda claim: plain(claim.partition("```")[0]) in known)


def gullible() -> ScriptedJudge:
    """A judge that supports every claim."""
    return ScriptedJudge(lambda claim: True)


@dataclass
class FailingJudge:
    """A judge whose calls fail."""

    name: str = "failing"
    calls: int = 0
    retryable: bool = True

    async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        self.calls += 1
        usage.calls += 1
        raise AgentUnavailable("it is down", retryable=self.retryable)
        yield

    async def close(self) -> None:
        pass
