"""Checks that run before the routes: API keys, rate limits and the size of a body.

The order is key, rate, size. These ASGI wrappers refuse a request before its body is read, so that a refusal is cheap.
The routes themselves limit how many requests run at once (`admitted`), so that only valid requests take a slot.

| routes | key, when `API_KEYS` is set | counted |
|---|---|---|
| `/chat…`, `/search`, `/v1…`, `/mcp` | yes | yes: they cost an embedding or a model call |
| `/feedback` | yes | yes: it writes to the database |
| `/llms-full.txt` | yes | yes: it reads the whole book |
| `/books`, `/pages…`, `/images…`, `/llms.txt` | yes | no: each is one cheap read, and the reader page makes many |
| `/sessions…`, `/suggestions` | yes | no, likewise |
| all others | no | no: probes, metrics, descriptions, the page itself |
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.api.access.clients import Client, Clients
from chapterverse.api.access.rates import RateLimits
from chapterverse.api.access.slots import Slot, SlotQueue
from chapterverse.api.errors import error_response, path_of
from chapterverse.api.middleware import note, started_at
from chapterverse.errors import AgentUnavailable, ChapterverseError, Unauthorized
from chapterverse.settings import REQUEST_SECONDS, Settings
from chapterverse.telemetry import pseudonym

MAX_BODY: Final = 64 * 1024  # bytes
BODY_SECONDS: Final = 10.0  # time limit for receiving the whole body

_COUNTED: Final = ("/chat", "/search", "/v1", "/mcp", "/feedback", "/llms-full.txt")
_KEYED: Final = (*_COUNTED, "/books", "/pages", "/images", "/llms.txt", "/sessions", "/suggestions")


class BodyLimit:
    """Refuses bodies over 64 KiB, as announced by `Content-Length` or as received, and bodies that take too long to
    arrive."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on. Reading its body raises an error when the body is too large or late."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        announced = int(length) if length.isdecimal() else 0
        received = 0
        complete = False  # after the body, `receive` waits for the disconnect, without a time limit
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS

        async def receive_counted() -> Message:
            nonlocal received, complete
            message: Message = {}
            if announced <= MAX_BODY:
                try:
                    async with asyncio.timeout_at(None if complete else deadline):
                        message = await receive()
                except TimeoutError as late:
                    raise HTTPException(
                        408, f"The body did not arrive within {BODY_SECONDS:.0f} s. Send it again."
                    ) from late
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if max(announced, received) > MAX_BODY:
                raise HTTPException(413, f"The body is larger than {MAX_BODY // 1024} KiB. Send a smaller one.")
            return message

        await self._app(scope, receive_counted, send)


class Guard:
    """Checks the API key and counts the request, where the route requires it."""

    def __init__(self, app: ASGIApp, settings: Settings, rates: RateLimits) -> None:
        self._app = app
        self._settings = settings
        self._rates = rates
        self._clients = Clients(settings.trusted_proxies, (key.get_secret_value() for key in settings.api_keys))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its client in the scope, or refuse it."""
        if scope["type"] != "http" or scope["method"] == "OPTIONS":
            await self._app(scope, receive, send)
            return
        try:
            client = await self._admit(scope)
        except ChapterverseError as failure:
            note(scope, error_code=failure.code)
            headers = {"WWW-Authenticate": "Bearer"} if isinstance(failure, Unauthorized) else {}
            await error_response(failure, scope, headers)(scope, receive, send)
            return
        scope["chapterverse.client"] = client
        note(scope, client=pseudonym(client.name))
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> Client:
        path = path_of(scope)
        address = self._clients.by_address(scope)
        if (route := _under(path, _KEYED)) is None:
            if path == "/health" and self._clients.sends_key(scope):
                with suppress(Unauthorized):
                    scope["chapterverse.keyed"] = await self._keyed(scope, address) is not None
            return address
        scope["chapterverse.route"] = route  # for the log of a request that reaches no route
        note(scope, client=pseudonym(address.name))
        client = await self._keyed(scope, address) or address
        if _under(path, _COUNTED):
            allowed = self._settings.api_key_rate_limit if client.keyed else self._settings.api_rate_limit
            await self._rates.take(client.name, allowed)
        return client

    async def _keyed(self, scope: Scope, address: Client) -> Client | None:
        """Return the client by its key. Requests with a wrong key are rate-limited, so that keys cannot be guessed."""
        try:
            return self._clients.by_key(scope)
        except Unauthorized:
            await self._rates.take(f"guess-{address.name}", self._settings.api_rate_limit)
            raise


def needs_key(path: str) -> bool:
    """Whether a route needs a key if keys are configured."""
    return _under(path, _KEYED) is not None


def has_key(request: Request) -> bool:
    """Whether the caller of a route that needs no key sent a valid one."""
    return bool(request.scope.get("chapterverse.keyed"))


def deadline_of(request: Request) -> float:
    """Return the event-loop time at which the request must be finished."""
    return started_at(request.scope) + REQUEST_SECONDS


@asynccontextmanager
async def admitted(request: Request) -> AsyncIterator[Slot]:
    """Wait for a slot and hold it. The number of slots limits how many requests run at once."""
    gate: SlotQueue = request.app.state.gate
    client: Client = request.scope["chapterverse.client"]
    async with gate.slot(client.name) as slot:
        yield slot


def open_answer(request: Request) -> AbstractAsyncContextManager[None]:
    """Count the request as an open answer. The number of open answers is limited separately."""
    gate: SlotQueue = request.app.state.gate
    return gate.answer()


@asynccontextmanager
async def in_time(request: Request) -> AsyncIterator[None]:
    """Raise `AgentUnavailable` when the request's time is up."""
    try:
        async with asyncio.timeout_at(deadline_of(request)):
            yield
    except TimeoutError:
        raise AgentUnavailable(f"The answer took longer than {REQUEST_SECONDS:g} seconds. Ask again.") from None


def _under(path: str, routes: tuple[str, ...]) -> str | None:
    return next((route for route in routes if path == route or path.startswith(route + "/")), None)
