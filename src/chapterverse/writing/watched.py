"""A writer that remembers whether its last real answer failed, so that health need not trust a list of models."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

from chapterverse.errors import AgentUnavailable
from chapterverse.writing import Finished, Task, Writer, WriterEvent
from chapterverse.writing.wrapper import WriterWrapper

# A server that is reported as down may get no more questions, and would then never be seen to work again.
FAILURE_COUNTS_SECONDS: Final = 30.0


class WatchedWriter(WriterWrapper):
    """The same writer; its probe fails while its last answer did."""

    def __init__(self, inside: Writer) -> None:
        super().__init__(inside)
        self._failed: tuple[float, AgentUnavailable] | None = None
        self._asking: asyncio.Task[None] | None = None  # the server, whether it is down itself

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
            self._asking = asyncio.create_task(self._ask_server())
            raise

    async def _ask_server(self) -> None:
        """Forget the failure if the server itself is down: its probe says so, and when it is back, that is believed."""
        with suppress(AgentUnavailable):
            await self.probe()

    async def close(self) -> None:
        """Let go of connections and models."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await super().close()

    async def probe(self) -> None:
        """Raise if the model cannot be reached, or if the last answer that was asked for failed."""
        try:
            await self.inside.probe()
        except AgentUnavailable:
            self._failed = None
            raise
        if self._failed and time.monotonic() - self._failed[0] < FAILURE_COUNTS_SECONDS:
            raise AgentUnavailable(f"The last answer failed: {self._failed[1].message}")
