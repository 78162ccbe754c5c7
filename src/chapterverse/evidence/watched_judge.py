"""A judge whose probe fails while its last real call did."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from chapterverse.evidence.judge import Case, JudgeFailed, JudgeUsage, ModelJudge, Verdict
from chapterverse.health import LastCall


class WatchedJudge:
    """The same judge, with a probe that knows how its last call went."""

    def __init__(self, inside: ModelJudge) -> None:
        self._inside = inside
        self._last = LastCall(inside.probe)

    @property
    def name(self) -> str:
        """The model, for people."""
        return self._inside.name

    async def verdicts(self, case: Case, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        """The same verdicts. The first of them, or the failure, is noted; a reply without any is a failure."""
        answered = False
        try:
            async with aclosing(self._inside.verdicts(case, usage)) as verdicts:
                async for verdict in verdicts:
                    answered = True
                    self._last.worked()
                    yield verdict
            if not answered:
                self._last.failed("The last check of an answer failed: the judge gave no verdict that can be read.")
        except JudgeFailed as failure:
            self._last.failed(f"The last check of an answer failed: {failure}.")
            raise

    async def probe(self) -> None:
        """Raise if the judge cannot be reached, or if its last call failed."""
        await self._last.probe()

    async def close(self) -> None:
        """Let go of connections."""
        await self._last.close()
        await self._inside.close()
