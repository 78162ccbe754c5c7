"""Every failure of a Qdrant server, over real HTTP, raises an error of the package."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from chapterverse.errors import (
    ChapterverseError,
    EmbeddingMismatchError,
    IndexMissing,
    IndexTimeout,
    IndexUnavailable,
    RetrievalUnavailable,
)
from chapterverse.index import Index
from chapterverse.index.server import NotOurs
from tests.index.sample import ask

pytestmark = pytest.mark.slow  # the client takes seconds to import


@asynccontextmanager
async def index_on_server(status: int, body: bytes, headers: str = "") -> AsyncIterator[Index]:
    """An index on a server that sends the same response to every request; with status 0 it never responds."""
    from chapterverse.index.server import QdrantIndex

    handlers: set[asyncio.Task[None] | None] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        if status:
            head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
            writer.write(head.encode() + body)
        else:
            await reader.read()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    index = QdrantIndex(url=f"http://127.0.0.1:{port}", collection="book", timeout=0.3)
    async with server:
        yield index
        await index.close()
        await asyncio.gather(*(handler for handler in handlers if handler))


def error_body(error: str) -> bytes:
    return json.dumps({"status": {"error": error}, "time": 0.0}).encode()


CASES = [
    (0, b"", "", IndexTimeout, True),
    (404, error_body("Not found: Collection `book` doesn't exist!"), "", IndexMissing, False),
    (400, error_body("Wrong input: Vector dimension error: expected dim: 8, got 1"), "", EmbeddingMismatchError, False),
    (400, error_body("Wrong input: something else"), "", RetrievalUnavailable, False),
    (401, b"Must provide an API key", "", RetrievalUnavailable, False),
    (403, b"Forbidden", "", RetrievalUnavailable, False),
    (429, error_body("Too many"), "Retry-After: 3\r\n", IndexUnavailable, True),
    (429, b"", "", IndexUnavailable, True),
    (500, error_body("Service internal error"), "", IndexUnavailable, True),
    (502, b"<html>bad gateway</html>", "", IndexUnavailable, True),
    (200, b"<html>a web page</html>", "", RetrievalUnavailable, False),
    (200, b"\xff\xfe\x00\x80", "", RetrievalUnavailable, False),
    (200, b"{}", "", RetrievalUnavailable, False),
    (200, b'{"result": 1}', "", RetrievalUnavailable, False),
    (200, b'{"result": [], "status": "ok", "time": 0.0}', "", NotOurs, False),
    (200, b"", "", RetrievalUnavailable, False),
    (302, b"", "Location: http://127.0.0.1:1/\r\n", RetrievalUnavailable, False),
]


@pytest.mark.parametrize(("status", "body", "headers", "kind", "retryable"), CASES)
async def test_server_response_raises_the_expected_error(
    status: int, body: bytes, headers: str, kind: type[ChapterverseError], retryable: bool
) -> None:
    async with index_on_server(status, body, headers) as index:
        for call in (index.search(ask("x")), index.pages(), index.page("x"), index.manifest(), index.probe()):
            with pytest.raises(RetrievalUnavailable) as caught:
                await call
            assert type(caught.value) is kind
            assert caught.value.retryable is retryable


async def test_writer_raises_the_same_errors() -> None:
    async with index_on_server(500, error_body("Service internal error")) as index:
        with pytest.raises(IndexUnavailable):
            async with index.writer():
                raise AssertionError("a writer without a server")


async def test_refused_connection_raises_index_unavailable() -> None:
    from chapterverse.index.server import QdrantIndex

    index = QdrantIndex(url="http://127.0.0.1:9", collection="book")
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        await index.search(ask("x"))
    await index.close()


async def test_error_message_contains_no_secret() -> None:
    async with index_on_server(403, b"Forbidden: key s3cret") as index:
        with pytest.raises(RetrievalUnavailable, match="QDRANT_API_KEY") as caught:
            await index.probe()
    assert "s3cret" not in caught.value.message
