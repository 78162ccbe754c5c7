"""MCP over streamable HTTP without sessions: each POST gets one JSON response, and any worker can serve any call.

`access/guard.py` counts each request and checks its key before it gets here. Tools that search, answer or read take a
slot, as `/chat` and `/search` do. If the client disconnects, the call is cancelled.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from chapterverse.api.access.guard import MAX_BODY, admitted
from chapterverse.api.chat.routes import Asking
from chapterverse.api.chat.streaming import while_present
from chapterverse.api.dependencies import services_of
from chapterverse.api.middleware import note
from chapterverse.errors import ChapterverseError
from chapterverse.models import ChatRequest, ChatResponse
from chapterverse.services import Services

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A call that came over HTTP."""

    request: Request

    @property
    def services(self) -> Services:
        """The services of the running server."""
        return services_of(self.request)

    def slot(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager that waits for a slot of the server and holds it."""
        return admitted(self.request)

    async def answer(self, question: ChatRequest) -> ChatResponse:
        """Answer as `/chat` does, with the same slots, deadline and metrics."""
        async with AsyncExitStack() as held:
            return await Asking(self.request, held).answered(question)

    def failed(self, failure: ChapterverseError) -> None:
        """Record the error in the request log and the metrics."""
        note(self.request.scope, error_code=failure.code)


class Sessions:
    """Loads the MCP SDK at the first request, because importing it takes half a second."""

    def __init__(self) -> None:
        self._opening: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._life: asyncio.Task[None] | None = None

    async def opened(self) -> "StreamableHTTPSessionManager":
        """Return the SDK's session manager. Concurrent first requests wait for the same task to open it."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Close the session manager."""
        for task in (self._opening, self._life):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def _open(self) -> "StreamableHTTPSessionManager":
        sessions = await asyncio.to_thread(_make_sessions)
        running = asyncio.Event()
        self._life = asyncio.create_task(_live(sessions, running))
        await running.wait()
        return sessions


def _make_sessions() -> "StreamableHTTPSessionManager":
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from chapterverse.api.mcp.tools import book_server

    return StreamableHTTPSessionManager(
        book_server(HttpCall), json_response=True, stateless=True, max_request_body_size=MAX_BODY
    )


async def _live(sessions: "StreamableHTTPSessionManager", running: asyncio.Event) -> None:
    """Keep the session manager open. It has its own task, because the task that opens a task group must close it."""
    async with sessions.run():
        running.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def open_mcp(app: Starlette) -> AsyncIterator[None]:
    """Serve `/mcp` of the application."""
    sessions = app.state.mcp = Sessions()
    try:
        yield
    finally:
        await sessions.close()


class McpEndpoint:
    """Passes requests to the SDK."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. If the client disconnects, the call is cancelled."""
        request = Request(scope, receive)
        # Against DNS rebinding: a website sends its origin; other clients send none.
        if (origin := request.headers.get("origin")) and not self._origins & {origin, "*"}:
            raise HTTPException(403, f"Pages of {origin} may not use /mcp; CORS_ORIGINS lists those that may.")
        body = await request.body()
        sessions: Sessions = request.app.state.mcp
        opened = await sessions.opened()
        await while_present(request, opened.handle_request(scope, _once(body), send))


def mcp_route(origins: Sequence[str]) -> Route:
    """The route. FastAPI does not know it; `openapi/description.py` adds it to the OpenAPI description."""
    return Route("/mcp", McpEndpoint(origins), methods=["POST"], include_in_schema=False)


def _once(body: bytes) -> Receive:
    """Return a `receive` that gives a body that was already read, and then waits for ever."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive
