"""A minimal HTTP client on asyncio streams: it costs little CPU and sees each piece of an answer as it arrives.

One connection to a loopback port, without retries.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_LENGTH = re.compile(r"content-length: (\d+)")
_LARGEST = 2**24

Seen = Callable[[bytes], bool]  # called with each piece of a body; returns False to stop


@dataclass(slots=True)
class Reply:
    """A response. `complete` is False if the connection broke or the caller stopped reading."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False


class Client:
    """One connection, kept open between requests if the server allows it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, value: Any, seen: Seen | None = None) -> Reply:
        """Send a request and read the whole response. Raises `OSError` if nothing listens; a broken response is
        incomplete."""
        reply = Reply()
        try:
            reader = await self._ask(path, json.dumps(value).encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            reply.status = int(head.split(" ", 2)[1])
            await self._read(reader, head, reply, seen)
        except asyncio.IncompleteReadError:
            pass
        except BaseException:
            self.close()
            raise
        if not reply.complete or "connection: close" in head:
            self.close()
        return reply

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _ask(self, path: str, body: bytes) -> asyncio.StreamReader:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_LARGEST)
        lines = (
            f"POST {path} HTTP/1.1",
            f"host: 127.0.0.1:{self._port}",
            "content-type: application/json",
            f"content-length: {len(body)}",
        )
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        return self._reader

    async def _read(self, reader: asyncio.StreamReader, head: str, reply: Reply, seen: Seen | None) -> None:
        if length := _LENGTH.search(head):
            piece = await reader.readexactly(int(length[1]))
            reply.body += piece
            reply.complete = seen is None or seen(piece)
            return
        while size := int(await reader.readuntil(b"\r\n"), 16):
            piece = (await reader.readexactly(size + 2))[:-2]
            reply.body += piece
            if seen is not None and not seen(piece):
                return
        await reader.readexactly(2)
        reply.complete = True


async def ask(port: int, path: str, value: Any, seen: Seen | None = None, seconds: float = 60.0) -> Reply:
    """Send one request on its own connection."""
    client = Client(port)
    try:
        async with asyncio.timeout(seconds):
            return await client.post(path, value, seen)
    finally:
        client.close()
