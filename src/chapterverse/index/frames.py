"""The protocol between a server and its index process: JSON values with a length prefix."""

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
    """Wait for the next value. Raise `EOFError` if the other side has closed the pipe."""
    head = stream.read(_LENGTH.size)
    body = stream.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""
    if not body:
        raise EOFError
    return orjson.loads(body)


async def receive(stream: asyncio.StreamReader) -> Any:
    """Wait for the next value. Raise `asyncio.IncompleteReadError` if the other side has closed the pipe."""
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    return orjson.loads(await stream.readexactly(length))


def pack_vector(vector: Iterable[float]) -> str:
    """A vector as base64: as digits it would be four times as long, and slow to parse."""
    return b64encode(array("f", vector).tobytes()).decode("ascii")


def read_vector(packed: str) -> "array[float]":
    """The vector that was packed."""
    return array("f", b64decode(packed))
