"""Requests to a cluster go to the next node if one is lost, also in the middle of its reply."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from chapterverse.index.server import ClusterTransport, nodes_of

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbook\r\n0\r\n\r\n"


@asynccontextmanager
async def node(reply: bytes, seen: Callable[[], None]) -> AsyncIterator[str]:
    """A node that sends these bytes and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen()
        writer.write(reply)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("sent", [0, 40, len(WHOLE) - 8], ids=["nothing", "half of the head", "half of the body"])
async def test_a_reply_that_is_cut_is_asked_of_the_next_node(sent: int) -> None:
    asked: list[str] = []
    async with (
        node(WHOLE[:sent], lambda: asked.append("lost")) as lost,
        node(WHOLE, lambda: asked.append("sound")) as sound,
        httpx.AsyncClient(transport=ClusterTransport([lost, sound])) as client,
    ):
        answer = await client.get(f"{lost}/collections")
    assert (answer.text, asked) == ("book", ["lost", "sound"])


def test_a_node_without_a_port_has_that_of_qdrant() -> None:
    assert nodes_of("http://a,http://a:, https://b:443/q ,http://[::1]/q") == [
        "http://a:6333",
        "http://a:6333",
        "https://b:443/q",
        "http://[::1]:6333/q",
    ]


async def test_each_node_has_its_own_path() -> None:
    asked: list[str] = []

    class Wire(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            asked.append(str(request.url))
            return httpx.Response(200 if len(asked) > 1 else 503)

    transport = ClusterTransport(["http://proxy:80/one/", "http://proxy:80/two"])
    transport._wire = Wire()  # type: ignore[assignment]
    async with httpx.AsyncClient(transport=transport) as client:
        await client.get("http://proxy:80/one/collections?limit=1")
    assert asked == ["http://proxy/one/collections?limit=1", "http://proxy/two/collections?limit=1"]
