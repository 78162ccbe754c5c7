"""A TCP proxy before a dependency that simulates faults of a network or server.

pass      forwards everything
slow      delays every answer
hang      accepts connections and bytes, and never answers
refuse    does not listen
cut       accepts a connection and closes it at the first byte
garbage   answers with invalid bytes
lie       answers everything with the same valid message of the right protocol, which does not fit the request
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Literal, Self

Mode = Literal["pass", "slow", "hang", "refuse", "cut", "garbage", "lie"]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

SLOW_SECONDS = 0.2  # before each piece of an answer
_LIE = b'{"result": {"answer": [42]}, "status": "ok", "object": "list", "data": {}}'
HTTP_LIE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_LIE), _LIE)
REDIS_LIE = b"+OK\r\n"
POSTGRES_LIE = b"R\x00\x00\x00\x08\x00\x00\x00\x00" + b"Z\x00\x00\x00\x05I"  # authentication ok; ready for a query
_GARBAGE = b"\xff\x00 no protocol of this world \r\n\r\n" * 8


class Proxy:
    """Listens on its own loopback port and forwards to the target of `connect`."""

    def __init__(self, connect: Callable[[], Awaitable[Streams]], lie: bytes = HTTP_LIE) -> None:
        self._connect = connect
        self._lie = lie
        self._mode: Mode = "pass"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.accepted = 0  # connections, ever

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.become("refuse")

    async def become(self, mode: Mode) -> None:
        """Changes the mode of all connections. Those that cannot continue are closed."""
        if mode == "refuse" and self._server:
            self._server.close()
            self._server = None
        self._mode = mode
        if mode not in ("hang", "slow"):
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if mode != "refuse" and self._server is None:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.accepted += 1
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._handle(reader, writer)
        finally:
            writer.transport.abort()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "hang":
            await asyncio.Event().wait()
        if self._mode == "lie":
            while await reader.read(65536):
                writer.write(self._lie)
                await writer.drain()
        if self._mode in ("cut", "garbage"):
            await reader.read(1)
            if self._mode == "garbage":
                writer.write(_GARBAGE)
                await writer.drain()
                await reader.read()  # until the client disconnects
        if self._mode not in ("pass", "slow"):
            return
        there, back = await self._connect()
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer, answers=True))
        finally:
            back.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False) -> None:
        while data := await reader.read(65536):
            if self._mode == "hang":
                await asyncio.Event().wait()
            if self._mode == "slow" and answers:
                await asyncio.sleep(SLOW_SECONDS)
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def to_port(port: int) -> Callable[[], Awaitable[Streams]]:
    """Forwards to a loopback port."""
    return lambda: asyncio.open_connection("127.0.0.1", port)


def to_socket(path: str) -> Callable[[], Awaitable[Streams]]:
    """Forwards to a unix socket."""
    return lambda: asyncio.open_unix_connection(path)
