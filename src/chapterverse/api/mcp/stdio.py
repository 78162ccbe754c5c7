"""MCP over stdin and stdout, for a client that starts this process itself.

The connection ends with stdin or with Ctrl-C. While it lasts, the SDK sends whatever else would be printed to stdout to
stderr. There are no limits: the client started the process.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.stdio import stdio_server

from chapterverse import answering
from chapterverse.api.mcp.server import book_server
from chapterverse.errors import ChapterverseError
from chapterverse.models import ChatRequest, ChatResponse
from chapterverse.services import Services


@dataclass(frozen=True, slots=True)
class OwnDesk:
    """The one client has all slots."""

    services: Services

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Free at once."""
        return contextlib.nullcontext()

    async def answer(self, question: ChatRequest) -> ChatResponse:
        """The answer to a question."""
        prepared = await answering.prepare(question, self.services)
        async with aclosing(answering.stream(prepared, self.services)) as events:
            return await answering.fold(events)

    def failed(self, failure: ChapterverseError) -> None:
        """Only the client is told; nothing is counted."""


async def serve_stdio(services: Services) -> None:
    """Serve until the client closes stdin."""
    desk = OwnDesk(services)
    server = book_server(lambda _: desk)
    async with stdio_server(stdin=cast(Any, _lines())) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _lines() -> AsyncIterator[str]:
    """The lines of stdin. The SDK's own reader makes Ctrl-C wait for a line that may never come; this thread is left
    behind instead."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        # Not sys.stdin, whose lock the interpreter wants when it ends.
        with os.fdopen(os.dup(0), "rb") as wire, contextlib.suppress(RuntimeError):  # the loop is closed
            for line in wire:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line.decode("utf-8", "replace")
