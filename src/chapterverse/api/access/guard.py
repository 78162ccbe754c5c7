"""What stands before the routes: API keys, how often a client may ask, and the size of a body.

The order is key, rate, size. These ASGI wrappers refuse before a body is read, so a refused request costs nothing. The
routes limit how many requests run at once (`admitted`), because only a valid request takes a slot.

| routes | key, when `API_KEYS` is set | counted |
|---|---|---|
| `/chat…`, `/search`, `/v1…`, `/mcp` | yes | yes: they cost an embedding or a model call |
| `/feedback` | yes | yes: nobody shall fill the database with opinions |
| `/llms-full.txt` | yes | yes: it reads the whole book |
| `/books`, `/pages…`, `/images…`, `/llms.txt` | yes | no: one cheap read each, and a reader's page makes many |
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
BODY_SECONDS: Final = 10.0  # for the whole body to come

_COUNTED: Final = ("/chat", "/search", "/v1", "/mcp", "/feedback", "/llms-full.txt")
_KEYED: Final = (*_COUNTED, "/books", "/pages", "/images", "/llms.txt", "/sessions", "/suggestions")


class BodyLimit:
    """Refuses bodies over 64 KiB, by their announced length or as soon as more has come, and those that do not come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a body that ends in an error where it becomes too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        announced = int(length) if length.isdecimal() else 0
        received = 0
        complete = False  # from then on one waits for the client to go away, as long as that takes
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
                        408, f"The body did not come within {BODY_SECONDS:.0f} s. Send it again."
                    ) from late
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if max(announced, received) > MAX_BODY:
                raise HTTPException(413, f"The body is larger than {MAX_BODY // 1024} KiB. Send a smaller one.")
            return message

        await self._app(scope, receive_counted, send)


class Guard:
    """Asks for the key and counts the request, where its route needs it."""

    def __init__(self, app: ASGIApp, settings: Settings, rates: RateLimits) -> None:
        self._app = app
        self._settings = settings
        self._rates = rates
        self._clients = Clients(settings.trusted_proxies, (key.get_secret_value() for key in settings.api_keys))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its client's name, or refuse it."""
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
        """The client by its key; a wrong key is counted, so that keys cannot be guessed."""
        try:
            return self._clients.by_key(scope)
        except Unauthorized:
            await self._rates.take(f"guess-{address.name}", self._settings.api_rate_limit)
            raise


def needs_key(path: str) -> bool:
    """Whether a route needs a key, when keys are configured."""
    return _under(path, _KEYED) is not None


def has_key(request: Request) -> bool:
    """Whether the caller of a route that needs no key sent a valid one."""
    return bool(request.scope.get("chapterverse.keyed"))


def deadline_of(request: Request) -> float:
    """When the request must be over, in the time of the event loop."""
    return started_at(request.scope) + REQUEST_SECONDS


@asynccontextmanager
async def admitted(request: Request) -> AsyncIterator[Slot]:
    """Hold one of the slots for requests that work at once, waiting for it in turn."""
    gate: SlotQueue = request.app.state.gate
    client: Client = request.scope["chapterverse.client"]
    async with gate.slot(client.name) as slot:
        yield slot


def open_answer(request: Request) -> AbstractAsyncContextManager[None]:
    """Be one of the answers that may be under way at once."""
    gate: SlotQueue = request.app.state.gate
    return gate.answer()


@asynccontextmanager
async def in_time(request: Request) -> AsyncIterator[None]:
    """End what runs inside with the request's time."""
    try:
        async with asyncio.timeout_at(deadline_of(request)):
            yield
    except TimeoutError:
        raise AgentUnavailable(f"The answer took longer than {REQUEST_SECONDS:g} seconds. Ask again.") from None


def _under(path: str, routes: tuple[str, ...]) -> str | None:
    return next((route for route in routes if path == route or path.startswith(route + "/")), None)
