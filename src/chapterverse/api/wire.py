"""HTTP/1.1 as uvicorn reads it, with limits on every connection that uvicorn does not have.

- A request's head: its bytes, and the time it takes to arrive.
- Pipelining: how many requests may wait for the response before them.
- Writing: how long a response may wait for a client that does not read it.

Without them a client could fill the memory, or keep a connection and its request for ever. Bodies are limited in
`access/guard.py`.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 32 * 1024  # bytes
HEAD_SECONDS: Final = 10.0
MAX_PIPELINED: Final = 4  # requests that wait behind the one being answered; browsers send none
WRITE_SECONDS: Final = 20.0  # for a client to read 48 KiB


class BoundedHttp(HttpToolsProtocol):
    """Refuses a head that is too large with 400. Ends a connection whose head is not complete in time, that sends too
    many requests at once, or that does not read its responses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = 0  # bytes that came since the last complete head
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None  # ends a connection whose responses are not read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._rest()
        self._stop_waiting_for_reader()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head has become too large."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._timer is not None:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.send_400_response(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of the head."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """Have the request handled, unless its head came whole and too large."""
        self._rest()
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD:
            raise ValueError(_TOO_LARGE)  # httptools takes it for a malformed request
        if len(self.pipeline) >= MAX_PIPELINED:
            self.transport.abort()
            raise ValueError("too many requests at once")
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Give the client some time to read what it asked for."""
        super().pause_writing()
        self._stop_waiting_for_reader()
        self._unread = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        self._stop_waiting_for_reader()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong, unless the connection is closed already."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _await_head(self) -> None:
        self._rest()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting_for_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _rest(self) -> None:
        self._head = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_TOO_LARGE: Final = f"The head of the request is larger than {MAX_HEAD // 1024} KiB."
