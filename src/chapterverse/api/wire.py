"""Uvicorn's HTTP/1.1 protocol with more limits on connections.

- The head of a request: its size, and the time until it is complete.
- Pipelining: how many requests may wait for the response of an earlier one.
- Writing: how long a response waits for a client that does not read it.

Without them a client could fill the memory or hold connections for ever. Bodies are limited in `access/guard.py`.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 32 * 1024  # bytes
HEAD_SECONDS: Final = 10.0
MAX_PIPELINED: Final = 4  # requests that may wait for the current response; browsers do not pipeline
WRITE_SECONDS: Final = 20.0  # for a client to read 48 KiB


class BoundedHttp(HttpToolsProtocol):
    """Refuses a head that is too large with 400. Closes a connection whose head is late, that pipelines too many
    requests, or that does not read its responses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = 0  # bytes received since the last complete head
        self._timer: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None  # limits line breaks, or the rest of a body, after a response
        self._unread: asyncio.TimerHandle | None = None  # closes a connection whose responses are not read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head."""
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._cancel_head_timer()
        self._cancel_reader_timer()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data, unless the head is too large."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._timer is not None:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.send_400_response(_TOO_LARGE)
        elif self._rest is None and self.cycle is not None and self.cycle.response_complete:
            # No request has begun, but uvicorn has stopped to wait for the next one.
            self._rest = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def on_message_begin(self) -> None:
        """Start the timer for the rest of the head."""
        super().on_message_begin()
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        """Handle the request, unless its head is too large or too many requests wait."""
        self._cancel_head_timer()
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD:
            raise ValueError(_TOO_LARGE)  # httptools reports it as a malformed request
        if len(self.pipeline) >= MAX_PIPELINED:
            self.transport.abort()
            raise ValueError("too many requests at once")
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Start the timer for a client that does not read."""
        super().pause_writing()
        self._cancel_reader_timer()
        self._unread = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._cancel_reader_timer()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Send the error, unless the connection is closed already."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _start_head_timer(self) -> None:
        self._cancel_head_timer()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _cancel_reader_timer(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _cancel_head_timer(self) -> None:
        self._head = 0
        for timer in (self._timer, self._rest):
            if timer is not None:
                timer.cancel()
        self._timer = self._rest = None


_TOO_LARGE: Final = f"The head of the request is larger than {MAX_HEAD // 1024} KiB."
