"""The clients of language models and embedding services use the proxy and the certificates of the environment."""

import asyncio
import datetime
import inspect
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import pytest
from cryptography import x509  # installed with `mcp`
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from chapterverse.embeddings.openai import OpenAIEmbedder
from chapterverse.errors import AgentUnavailable, EmbeddingError
from chapterverse.evidence.chat_model import ChatModel

REPLY = json.dumps({"data": [{"index": 0, "embedding": [1.0, 0.0]}]}).encode()  # also a list of models


async def ask_model(url: str) -> None:
    model = ChatModel("m", url, "key")
    try:
        await model.probe()
    finally:
        await model.close()


async def embed(url: str) -> None:
    embedder = OpenAIEmbedder("key", "m", url, dimension=2)
    try:
        await embedder.embed_query("What is ROS 2?")
    finally:
        await embedder.close()


CLIENTS = pytest.mark.parametrize("call", [ask_model, embed])


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[str]]]:
    """Sends the same reply to every request. Yields its address without a scheme, and the hosts that were asked for."""
    hosts: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        await reader.readexactly(int(fields.get("content-length", "0")))
        hosts.append(fields["host"])
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls) as running:
        yield f"127.0.0.1:{running.sockets[0].getsockname()[1]}", hosts


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that no public authority has signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    unencrypted = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@CLIENTS
async def test_proxy_of_the_environment_is_used(
    call: Callable[[str], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server() as (address, hosts):
        monkeypatch.setenv("HTTP_PROXY", f"http://{address}")
        await call("http://model.invalid/v1")
    assert hosts == ["model.invalid"]


@CLIENTS
async def test_certificates_of_the_environment_are_trusted_and_others_are_not(
    call: Callable[[str], Awaitable[None]], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncached = inspect.unwrap(httpcore2.default_ssl_context)  # `conftest.py` caches it
    monkeypatch.setattr(httpcore2, "default_ssl_context", uncached)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with server(tls) as (address, hosts):
        with pytest.raises((AgentUnavailable, EmbeddingError)):
            await call(f"https://{address}/v1")
        assert hosts == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await call(f"https://{address}/v1")
        assert hosts == [address]
