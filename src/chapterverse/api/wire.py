"""HTTP/1.1 as uvicorn reads it, with a bound on a request's head: on its bytes, and on the time it takes to come.

Owns these two bounds, which httptools has not; without them a client could fill the memory with a header that never
ends, or hold connections open with one that never comes. Bodies are bounded in `limits.py`.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 32 * 1024  # bytes
HEAD_SECONDS: Final = 10.0


class BoundedHttp(HttpToolsProtocol):
    """Refuses a head that is too large with 400, and closes a connection whose head is not complete in time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = 0  # bytes that came since the last complete head
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._rest()
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
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._rest()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _rest(self) -> None:
        self._head = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_TOO_LARGE: Final = f"The head of the request is larger than {MAX_HEAD // 1024} KiB."
