"""A writer whose probe fails while its last real answer did."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from chapterverse.errors import AgentUnavailable
from chapterverse.health import LastCall
from chapterverse.writing import Finished, Task, Writer, WriterEvent
from chapterverse.writing.wrapper import WriterWrapper


class WatchedWriter(WriterWrapper):
    """The same writer, with a probe that knows how its last answer went."""

    def __init__(self, inside: Writer) -> None:
        super().__init__(inside)
        self._last = LastCall(inside.probe)

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """The same statements. Their end, or the failure, is noted."""
        try:
            async with aclosing(self.inside.write(task)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        self._last.worked()
                    yield event
        except AgentUnavailable as failure:
            self._last.failed(f"The last answer failed: {failure.message}")
            raise

    async def probe(self) -> None:
        """Raise if the model cannot be reached, or if the last answer that was asked for failed."""
        await self._last.probe()

    async def close(self) -> None:
        """Let go of connections and models."""
        await self._last.close()
        await super().close()
