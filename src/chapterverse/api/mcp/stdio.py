"""MCP over stdin and stdout, for a client that starts this process.

The server ends when stdin is closed or on Ctrl-C. While it runs, the SDK redirects other output from stdout to stderr.
There are no limits, because the process has only one client.
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
from chapterverse.api.mcp.tools import book_server
from chapterverse.errors import ChapterverseError
from chapterverse.models import ChatRequest, ChatResponse
from chapterverse.services import Services


@dataclass(frozen=True, slots=True)
class StdioCall:
    """A call over stdio. There are no limits."""

    services: Services

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that does nothing."""
        return contextlib.nullcontext()

    async def answer(self, question: ChatRequest) -> ChatResponse:
        """Answer a question."""
        prepared = await answering.prepare(question, self.services)
        async with aclosing(answering.stream(prepared, self.services)) as events:
            return await answering.fold(events)

    def failed(self, failure: ChapterverseError) -> None:
        """Do nothing: calls over stdio are not logged or counted."""


async def serve_stdio(services: Services) -> None:
    """Serve until the client closes stdin."""
    call = StdioCall(services)
    server = book_server(lambda _: call)
    async with stdio_server(stdin=cast(Any, _lines())) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _lines() -> AsyncIterator[str]:
    """Yield the lines of stdin. They are read in a daemon thread, which is abandoned at exit. With the SDK's own
    reader, Ctrl-C would wait for another line of input."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        # Not sys.stdin: the interpreter needs its lock when it exits.
        with os.fdopen(os.dup(0), "rb") as wire, contextlib.suppress(RuntimeError):  # the loop is closed
            for line in wire:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line.decode("utf-8", "replace")
