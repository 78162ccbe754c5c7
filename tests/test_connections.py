"""Connections to services: what they make of answers, whole, broken and late, from a real server on loopback."""

import asyncio
import gzip
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest

from chapterverse.connections import Transport, fast_transport

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def served(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[int]]]:
    """An address where each connection gets the script, and a count of the connections so far."""
    opened: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        try:
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1/x?y=1", opened


async def taken(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length")), 0)
    return head, await reader.readexactly(length)


def always(*pieces: bytes) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await taken(reader)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()

    return script


def once(answer: bytes) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken(reader)
        writer.write(answer)
        await writer.drain()

    return script


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=Transport(), timeout=30) as client:
        yield client


async def test_a_request_arrives_as_it_was_made_and_a_connection_serves_many(client: httpx2.AsyncClient) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            seen.append(await taken(reader))
            writer.write(HEAD + b"content-length: 2\r\nx-one: 1\r\n\r\nok")

    async with served(script) as (url, opened):
        for _ in range(3):
            answer = await client.post(url, content=b"the body", headers={"Authorization": "Bearer k"})
            assert (answer.status_code, answer.text, answer.headers["x-one"]) == (200, "ok", "1")
    assert len(opened) == 1
    head, body = seen[0]
    assert head.startswith(b"POST /v1/x?y=1 HTTP/1.1\r\n")
    assert b"Authorization: Bearer k\r\n" in head
    assert b"Host: 127.0.0.1" in head
    assert body == b"the body"


async def test_a_stream_is_read_as_it_arrives(client: httpx2.AsyncClient) -> None:
    go_on = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken(reader)
        writer.write(CHUNKED + b"3\r\none\r\n")
        await writer.drain()
        await go_on.wait()
        writer.write(b"3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n")

    async with served(script) as (url, _), client.stream("POST", url) as answer:
        pieces = answer.aiter_bytes()
        assert await anext(pieces) == b"one"
        go_on.set()
        assert b"".join([piece async for piece in pieces]) == b"twothree"


async def test_answers_at_the_same_time_have_connections_of_their_own(client: httpx2.AsyncClient) -> None:
    waiting = asyncio.Barrier(3)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, body = await taken(reader)
        await waiting.wait()
        writer.write(HEAD + b"content-length: 1\r\n\r\n" + body)

    async with served(script) as (url, opened):
        answers = await asyncio.gather(*(client.post(url, content=one) for one in (b"1", b"2", b"3")))
    assert [answer.text for answer in answers] == ["1", "2", "3"]
    assert len(opened) == 3


async def test_what_is_packed_is_unpacked(client: httpx2.AsyncClient) -> None:
    packed = gzip.compress(b"a long answer " * 50)
    head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    async with served(always(head + packed)) as (url, _):
        assert (await client.post(url)).text == "a long answer " * 50


async def test_a_note_that_the_answer_is_on_its_way_is_not_the_answer(client: httpx2.AsyncClient) -> None:
    async with served(
        always(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", HEAD + b"content-length: 2\r\n\r\nok")
    ) as (url, _):
        answer = await client.post(url)
        assert (answer.status_code, answer.text, answer.headers.get("link")) == (200, "ok", None)


async def test_an_answer_may_end_with_its_connection(client: httpx2.AsyncClient) -> None:
    async with served(once(HEAD + b"\r\nall of it")) as (url, opened):
        assert (await client.post(url)).text == "all of it"
        assert (await client.post(url)).text == "all of it"
        assert len(opened) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        HEAD + b"content-length: 10\r\n\r\nhalf",
        CHUNKED + b"3\r\none\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        CHUNKED + b"zz\r\nno number\r\n",
    ],
)
async def test_a_broken_answer_is_told(client: httpx2.AsyncClient, answer: bytes) -> None:
    async with served(once(answer)) as (url, _):
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(url)


async def test_a_connection_that_the_service_closed_is_not_used_again(client: httpx2.AsyncClient) -> None:
    async with served(once(HEAD + b"content-length: 2\r\n\r\nok")) as (url, opened):
        for count in (1, 2, 3):
            assert (await client.post(url)).text == "ok"
            await asyncio.sleep(0)
            assert len(opened) == count
            await _closed_by_the_other_side(client)


async def _closed_by_the_other_side(client: httpx2.AsyncClient) -> None:
    """Wait until our side has noticed."""
    transport = client._transport
    assert isinstance(transport, Transport)
    async with asyncio.timeout(30):
        while any(connection.is_fresh() for idle in transport._idle.values() for connection in idle):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_service_that_speaks_unasked_loses_its_connection(client: httpx2.AsyncClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken(reader)
        writer.write(HEAD + b"content-length: 2\r\n\r\nok")
        await writer.drain()
        writer.write(HEAD + b"content-length: 4\r\n\r\nevil")  # the answer to a question that was not asked
        await writer.drain()
        await reader.read()

    async with served(script) as (url, opened):
        assert (await client.post(url)).text == "ok"
        await _closed_by_the_other_side(client)
        assert (await client.post(url)).text == "ok"
        assert len(opened) == 2


@pytest.mark.parametrize("greeting", [b"SSH-2.0-OpenSSH\r\n", HEAD + b"content-length: 4\r\n\r\nevil"])
async def test_a_service_that_speaks_first_is_none(client: httpx2.AsyncClient, greeting: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await reader.read()

    async with served(script) as (url, _):
        connection = await Transport()._open(("http", "127.0.0.1", httpx2.URL(url).port or 0), 30)
        async with asyncio.timeout(30):
            while connection._lost is None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        connection.begin(b"POST / HTTP/1.1\r\n\r\n", 30, deque())
        with pytest.raises(httpx2.RemoteProtocolError):
            await connection.head()


async def test_close_is_heeded(client: httpx2.AsyncClient) -> None:
    async with served(always(HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\nok")) as (url, opened):
        await client.post(url)
        await client.post(url)
        assert len(opened) == 2


async def test_a_silent_service_is_given_up(client: httpx2.AsyncClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(script) as (url, _):
        with pytest.raises(httpx2.ReadTimeout):
            await client.post(url, timeout=0.05)


async def test_who_leaves_in_the_middle_closes_the_connection(client: httpx2.AsyncClient) -> None:
    left = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken(reader)
        writer.write(CHUNKED + b"3\r\none\r\n")
        await writer.drain()
        try:
            await reader.read()
        finally:
            left.set()

    async with served(script) as (url, _):
        async with client.stream("POST", url) as answer:
            assert await anext(answer.aiter_bytes()) == b"one"
        async with asyncio.timeout(30):
            await left.wait()
        asking = asyncio.create_task(client.post(url))
        left.clear()
        await asyncio.sleep(0.05)
        asking.cancel()
        async with asyncio.timeout(30):
            await left.wait()


async def test_a_fast_service_waits_for_a_slow_reader(client: httpx2.AsyncClient) -> None:
    size = 64 * 1024
    sent = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await taken(reader)
        writer.write(HEAD + b"content-length: %d\r\n\r\n" % (1000 * size))
        for _ in range(1000):
            writer.write(bytes(size))
            await writer.drain()
            sent += size

    async with served(script) as (url, _), client.stream("POST", url) as answer:
        before = -1
        while sent != before:  # until nothing more goes out
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 900 * size
        assert sum([len(piece) async for piece in answer.aiter_bytes()]) == 1000 * size


async def test_nobody_there_is_told(client: httpx2.AsyncClient) -> None:
    async with served(once(b"")) as (url, _):
        pass
    with pytest.raises(httpx2.ConnectError):
        await client.post(url)


async def test_a_header_cannot_become_two() -> None:
    request = httpx2.Request("POST", "http://127.0.0.1:9/", headers=[(b"X-One", b"1\r\nX-Two: 2")])
    with pytest.raises(httpx2.LocalProtocolError):
        await Transport().handle_async_request(request)


async def test_other_schemes_are_refused(client: httpx2.AsyncClient) -> None:
    with pytest.raises(httpx2.UnsupportedProtocol):
        await client.post("ftp://127.0.0.1/")


async def test_tls_is_checked(client: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority, tmp_path / "key.pem")
    async with served(once(HEAD + b"content-length: 2\r\n\r\nok"), tls) as (url, _):
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await client.post(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        async with httpx2.AsyncClient(transport=Transport()) as trusting:
            assert (await trusting.post(url)).text == "ok"


def certificate(folder: Path) -> Path:
    """A certificate of 127.0.0.1 that nobody but this test knows."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    target = folder / "certificate.pem"
    target.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return target


def test_a_proxy_is_left_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(fast_transport(), Transport)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert fast_transport() is None
