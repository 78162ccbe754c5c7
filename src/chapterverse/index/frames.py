"""The language between a server and its index process: JSON values behind their length."""

import asyncio
import struct
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, BinaryIO

import orjson

_LENGTH = struct.Struct(">I")  # bytes that follow, big-endian


def pack(value: Any) -> bytes:
    """A value as a frame; numpy arrays become lists."""
    body = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    return _LENGTH.pack(len(body)) + body


def read(stream: BinaryIO) -> Any:
    """The next value, waiting for it; `EOFError` when the other side is gone."""
    head = stream.read(_LENGTH.size)
    body = stream.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""
    if not body:
        raise EOFError
    return orjson.loads(body)


async def receive(stream: asyncio.StreamReader) -> Any:
    """The next value; `asyncio.IncompleteReadError` when the other side is gone."""
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    return orjson.loads(await stream.readexactly(length))


def pack_vector(vector: Iterable[float]) -> str:
    """A vector as part of a value: as digits it would be four times as long, and slow to read."""
    return b64encode(array("f", vector).tobytes()).decode("ascii")


def read_vector(packed: str) -> "array[float]":
    """The vector that was packed."""
    return array("f", b64decode(packed))
