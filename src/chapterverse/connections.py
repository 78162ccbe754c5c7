"""HTTP/1.1 connections to the services that are asked for every question: the language model and the embeddings.

Owns the sockets and what is kept of them. The client's own transport reads each chunk of a streamed answer in Python,
which took an eighth of all the time of an answer; here httptools does it. Redirects, decoding, limits in time and all
else stay the client's. Never retries, and never sees what is said.
"""

import asyncio
import ssl
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from typing import Final, cast
from urllib.request import getproxies

import httptools
import httpx2

_MOST_IDLE: Final = 32  # connections to one host that wait for the next question
_IDLE_SECONDS: Final = 30.0
_MOST_UNREAD: Final = 256 * 1024  # bytes that arrived and nobody took, before the sender has to wait
_NO_HEADER: Final = (b"\r", b"\n", b"\0")

Origin = tuple[str, str, int]


def fast_transport() -> httpx2.AsyncBaseTransport | None:
    """What to hand to a client; None where a proxy is configured, which the client's own transport knows."""
    return None if getproxies() else Transport()


class Transport(httpx2.AsyncBaseTransport):
    """Sends requests and keeps connections for the next ones. Belongs to one event loop."""

    def __init__(self) -> None:
        self._idle: dict[Origin, deque[_Connection]] = defaultdict(deque)
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response as soon as its head is there; its body is read as it arrives."""
        message = _rendered(request) + await request.aread()
        waits = request.extensions.get("timeout", {})
        connection = self._kept(_origin(request)) or await self._open(_origin(request), waits.get("connect"))
        connection.begin(message, waits.get("read"), self._idle[_origin(request)])
        try:
            status, headers = await connection.head()
        except BaseException:
            connection.close()
            raise
        return httpx2.Response(status, headers=headers, stream=_Body(connection), request=request)

    async def aclose(self) -> None:
        """Close what is not in use."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def _kept(self, origin: Origin) -> "_Connection | None":
        idle = self._idle[origin]
        while idle:
            connection = idle.pop()  # the one used last: the others may grow old
            if connection.is_fresh():
                return connection
            connection.close()
        return None

    async def _open(self, origin: Origin, seconds: float | None) -> "_Connection":
        scheme, host, port = origin
        if scheme == "https" and self._tls is None:
            self._tls = httpx2.create_ssl_context()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    _Connection, host, port, ssl=self._tls if scheme == "https" else None
                )
        except TimeoutError as late:
            raise httpx2.ConnectTimeout(f"{host} did not answer") from late
        except OSError as failure:
            raise httpx2.ConnectError(str(failure)) from failure
        return connection


class _Connection(asyncio.Protocol):
    """One socket. It carries one request at a time and goes back to the idle ones when all was read."""

    def __init__(self) -> None:
        self._lost: Exception | None = None
        self._news = asyncio.Event()
        self._idle: deque[_Connection] = deque()
        self._idle_since = 0.0
        self._seconds: float | None = None
        self._expect()
        self._complete = True  # nothing was asked yet

    def begin(self, message: bytes, seconds: float | None, idle: "deque[_Connection]") -> None:
        """Send a request. A connection that breaks before the answer is over says so when it is read."""
        self._seconds, self._idle = seconds, idle
        self._expect()
        self._transport.write(message)

    def _expect(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._status = 0
        self._unread: list[bytes] = []
        self._waiting = 0  # bytes of the unread
        self._complete = self._keeps = False

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers, once they have arrived."""
        while not self._status:
            await self._arrival()
        return self._status, self._headers

    async def body(self) -> AsyncIterator[bytes]:
        """What arrives, until the end; all that arrived together in one piece."""
        while True:
            if self._unread:
                piece = b"".join(self._unread)
                self._unread.clear()
                self._waiting = 0
                self._transport.resume_reading()
                yield piece
            elif self._complete:
                return
            else:
                await self._arrival()

    def leave(self) -> None:
        """Go back to the idle ones, if nothing of this answer is to come."""
        if self._complete and self._keeps and self._lost is None and len(self._idle) < _MOST_IDLE:
            self._idle_since = time.monotonic()
            self._idle.append(self)
        else:
            self.close()

    def is_fresh(self) -> bool:
        """Whether it can carry another request."""
        return self._lost is None and time.monotonic() - self._idle_since < _IDLE_SECONDS

    def close(self) -> None:
        """Break the connection."""
        self._transport.abort()

    async def _arrival(self) -> None:
        self._news.clear()
        if self._lost is not None:
            raise self._lost
        try:
            async with asyncio.timeout(self._seconds):
                await self._news.wait()
        except TimeoutError as late:
            raise httpx2.ReadTimeout("nothing arrived in time") from late

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as fault:
            self._lost = httpx2.RemoteProtocolError(f"the service does not speak HTTP: {fault}")
        if self._lost is not None:
            self.close()
        self._news.set()
        if self._waiting > _MOST_UNREAD:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._complete and self._status and exc is None and self._lost is None and self._ends_with_connection():
            self._complete = True
        kind = httpx2.ReadError if exc else httpx2.RemoteProtocolError
        self._lost = self._lost or kind(str(exc) if exc else "the service broke off")
        self._news.set()

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._complete:
            self._lost = httpx2.RemoteProtocolError("the service spoke without being asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._complete:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._complete:
            return
        if status >= 200:
            self._status = status
        else:
            self._headers.clear()  # of a note that the answer is on its way

    def on_body(self, piece: bytes) -> None:
        if not self._complete:
            self._unread.append(piece)
            self._waiting += len(piece)

    def on_message_complete(self) -> None:
        if self._status:
            self._complete, self._keeps = True, self._parser.should_keep_alive()

    def _ends_with_connection(self) -> bool:
        return not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self._headers)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._left = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._connection.body()

    async def aclose(self) -> None:
        if not self._left:
            self._left = True
            self._connection.leave()


def _origin(request: httpx2.Request) -> Origin:
    url = request.url
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def _rendered(request: httpx2.Request) -> bytes:
    """The head of a request."""
    if request.url.scheme not in ("http", "https"):
        raise httpx2.UnsupportedProtocol(f"{request.url.scheme} is not http")
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if any(bad in value or bad in name for bad in _NO_HEADER):
            raise httpx2.LocalProtocolError("a header holds a line's end")
        lines.append(b"%s: %s" % (name, value))
    return b"\r\n".join([*lines, b"", b""])
