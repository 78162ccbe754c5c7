"""MCP over streamable HTTP: one POST, one answer as JSON, no session between them, so any worker may serve any call.

Each request is counted and its key checked before it comes here (`api.limits`), and each tool call takes a slot as
`/chat` and `/search` do. If the client disconnects, the call is cancelled.
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
from chapterverse.api.middleware import note
from chapterverse.api.services import services_of
from chapterverse.errors import ChapterverseError
from chapterverse.models import ChatRequest, ChatResponse
from chapterverse.services import Services

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


@dataclass(frozen=True, slots=True)
class SharedDesk:
    """Serves one HTTP request among many."""

    request: Request

    @property
    def services(self) -> Services:
        """Those of the running server."""
        return services_of(self.request)

    def slot(self) -> AbstractAsyncContextManager[object]:
        """In turn with all other clients."""
        return admitted(self.request)

    async def answer(self, question: ChatRequest) -> ChatResponse:
        """The answer as `/chat` gives it, with its slot, its deadline and its measures."""
        async with AsyncExitStack() as held:
            return await Asking(self.request, held).answered(question)

    def failed(self, failure: ChapterverseError) -> None:
        """Log and count it like any other error."""
        note(self.request.scope, error_code=failure.code)


class Sessions:
    """The part that needs the MCP SDK. It is imported and opened with the first request: it takes half a second."""

    def __init__(self) -> None:
        self._opening: asyncio.Task[StreamableHTTPSessionManager] | None = None
        self._life: asyncio.Task[None] | None = None

    async def opened(self) -> "StreamableHTTPSessionManager":
        """The SDK, ready to handle a request; all who come first wait for the same opening."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Let go of it."""
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

    from chapterverse.api.mcp.server import book_server

    return StreamableHTTPSessionManager(
        book_server(SharedDesk), json_response=True, stateless=True, max_request_body_size=MAX_BODY
    )


async def _live(sessions: "StreamableHTTPSessionManager", running: asyncio.Event) -> None:
    """Keep it open in a task of its own: what it starts must end in the task that started it."""
    async with sessions.run():
        running.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def open_mcp(app: Starlette) -> AsyncIterator[None]:
    """Serve `/mcp` of the application meanwhile."""
    sessions = app.state.mcp = Sessions()
    try:
        yield
    finally:
        await sessions.close()


class McpEndpoint:
    """Hands a request to the SDK."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless its client goes away before."""
        request = Request(scope, receive)
        # A page that had its own name point to this machine sends its own origin; other clients send none.
        if (origin := request.headers.get("origin")) and not self._origins & {origin, "*"}:
            raise HTTPException(403, f"Pages of {origin} may not use /mcp; CORS_ORIGINS lists those that may.")
        body = await request.body()
        sessions: Sessions = request.app.state.mcp
        opened = await sessions.opened()
        await while_present(request, opened.handle_request(scope, _once(body), send))


def mcp_route(origins: Sequence[str]) -> Route:
    """The route. FastAPI does not know it; `api.description` adds it to the OpenAPI description."""
    return Route("/mcp", McpEndpoint(origins), methods=["POST"], include_in_schema=False)


def _once(body: bytes) -> Receive:
    """A body that was read already; after it nothing comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive
