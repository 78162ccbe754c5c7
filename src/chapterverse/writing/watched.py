"""A writer that remembers whether its last real answer failed, so that health need not trust a list of models."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from chapterverse.errors import AgentUnavailable
from chapterverse.writing.wrapper import WriterWrapper
from chapterverse.writing.writer import Finished, Task, Writer, WriterEvent

# A server that is reported as down may get no more questions, and would then never be seen to work again.
FAILURE_COUNTS_SECONDS: Final = 30.0


class WatchedWriter(WriterWrapper):
    """The same writer; its probe fails while its last answer did."""

    def __init__(self, inside: Writer) -> None:
        super().__init__(inside)
        self._failed: tuple[float, AgentUnavailable] | None = None

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """The same statements. Their end, or the failure, is noted."""
        try:
            async with aclosing(self.inside.write(task)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        self._failed = None
                    yield event
        except AgentUnavailable as failure:
            self._failed = time.monotonic(), failure
            raise

    async def probe(self) -> None:
        """Raise if the model cannot be reached, or if the last answer that was asked for failed."""
        try:
            await self.inside.probe()
        except AgentUnavailable:
            self._failed = None  # the server itself is down; when it is back, it is taken at its word again
            raise
        if self._failed and time.monotonic() - self._failed[0] < FAILURE_COUNTS_SECONDS:
            raise AgentUnavailable(f"The last answer failed: {self._failed[1].message}")
