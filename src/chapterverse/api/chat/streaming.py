"""Server-Sent Events: one `data:` line for each event, and comments as heartbeats.

We use our own response class, because `sse-starlette` replaces uvicorn's signal handler when imported, ends streams at
shutdown without a last event, and costs three times as much per event. A plain `StreamingResponse` has no heartbeat,
and does not close a generator that is suspended at a `yield` when the client disconnects.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chapterverse.errors import AgentUnavailable, ChapterverseError, InternalError
from chapterverse.models import DoneEvent, ErrorEvent, Event

HEARTBEAT_SECONDS: Final = 15.0  # proxies close silent connections after 30 to 60
LAST_EVENT_SECONDS: Final = 1.0  # for sending the last event when the server stops
READING_SECONDS: Final = 2.0  # after the deadline, for the client to read the end

T = TypeVar("T")


def data(content: str) -> bytes:
    """Format one message of a stream."""
    return f"data: {content}\n\n".encode()


class EventStream(Response):
    """Sends events as they come. The generator is always closed before `__call__` returns."""

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[Event, None],
        write: Callable[[Event], bytes],
        deadline: float,
        heartbeat: float = HEARTBEAT_SECONDS,
        first: Event | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._events = events
        self._first = first  # already read, to find out whether there is an answer
        self._write = write
        self._deadline = deadline  # in the time of the event loop
        self._heartbeat = heartbeat
        self._silent = True
        self._ended = False  # whether the last event was sent
        self._sending = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events, unless the client disconnects or the server stops first."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send_all(send))
        others = [asyncio.create_task(disconnected(receive)), asyncio.create_task(self._beat(send))]
        timeout = self._deadline + READING_SECONDS - asyncio.get_running_loop().time()
        try:
            await asyncio.wait({sending, *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the server stops
            await end(sending)
            await self._send_error(send, InternalError("The server is being stopped. Ask again in a moment."))
            raise
        finally:
            late = not sending.done() and not others[0].done()  # neither finished nor disconnected
            await end(sending, *others)
            await self._events.aclose()
        if late:
            await self._send_error(send, AgentUnavailable("The answer took too long. Ask again."))
        if not sending.cancelled():
            sending.result()

    async def _send_all(self, send: Send) -> None:
        if self._first is not None:
            await self._send_event(send, self._first)
        async for event in self._events:
            await self._send_event(send, event)

    async def _send_event(self, send: Send, event: Event) -> None:
        last = isinstance(event, DoneEvent | ErrorEvent)
        await self._send(send, self._write(event), last=last)
        self._ended = last  # set only after `_send`, which waits for a slow client

    async def _send_error(self, send: Send, reason: ChapterverseError) -> None:
        """Send an `error` as the last event, because the server stops or the answer took too long."""
        if not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_EVENT_SECONDS):
                    event = ErrorEvent(error_code=reason.code, message=reason.message)
                    await self._send(send, self._write(event), last=True)

    async def _beat(self, send: Send) -> None:
        while True:
            self._silent = True
            await asyncio.sleep(self._heartbeat)
            if self._silent:
                await self._send(send, b": heartbeat\n\n")

    async def _send(self, send: Send, body: bytes, last: bool = False) -> None:
        async with self._sending:
            self._silent = False
            await send({"type": "http.response.body", "body": body, "more_body": not last})


async def while_present(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await the work. If the client disconnects first, the work is cancelled."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(disconnected(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not working.done():
            await end(working)
        await end(leaving)
    if working.cancelled():
        raise ClientDisconnect
    return working.result()


async def disconnected(receive: Receive) -> None:
    """Return when the client has closed the connection. Call it after the request was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel the tasks and wait until they have cleaned up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
