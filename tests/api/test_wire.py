"""Limits on request heads on real sockets: size and time."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.api import wire
from chapterverse.api.access import guard
from chapterverse.settings import Settings
from tests.served import Served, serve

pytestmark = pytest.mark.slow


@pytest.fixture
def impatient_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Served]:
    """A server without a book that waits only a quarter of a second for a head or body."""
    monkeypatch.setattr(wire, "HEAD_SECONDS", 0.25)
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.25)
    with serve(
        Settings.load(chapterverse_home=tmp_path, database_url="postgresql://nobody@127.0.0.1:1/none")
    ) as served:
        yield served


def connect(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), timeout=60)


def rest(line: socket.socket) -> bytes:
    """Everything that the server sends until it closes the connection."""
    answer = bytearray()
    try:
        while part := line.recv(65_536):
            answer += part
    except ConnectionResetError:
        pass  # closed while we were sending
    return bytes(answer)


@pytest.mark.parametrize("head", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b"])
def test_connection_is_closed_if_the_head_does_not_arrive(impatient_server: Served, head: bytes) -> None:
    with connect(impatient_server) as line:
        line.sendall(head)
        assert rest(line) == b""


def test_connection_is_closed_if_the_head_of_a_second_request_does_not_arrive(impatient_server: Served) -> None:
    with connect(impatient_server) as line:
        line.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHo")
        assert rest(line).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n"),
        (b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n", b"a part of the body"),
    ],
    ids=["line break", "body"],
)
def test_connection_is_closed_if_no_request_follows_a_response(
    impatient_server: Served, head: bytes, more: bytes
) -> None:
    with connect(impatient_server) as line:
        line.settimeout(20)
        line.sendall(head)
        answer = b""
        while not answer.endswith(b"}"):
            answer += line.recv(65_536)
        line.sendall(more)  # uvicorn stops to wait for the next request, but none begins
        assert rest(line) == b""


def test_body_that_does_not_arrive_returns_408(impatient_server: Served) -> None:
    with connect(impatient_server) as line:
        line.sendall(b"POST /search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 50\r\n\r\n{")
        answer = rest(line)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"error_code":"validation_error"' in answer


def test_head_and_body_timeouts_do_not_limit_the_response(impatient_server: Served) -> None:
    start = time.monotonic()
    answer = impatient_server.http.post("/chat", json={"query": "What is a node?"})
    assert answer.status_code == 503, f"after {time.monotonic() - start:.1f} s"  # there is no book here


@pytest.mark.parametrize("in_pieces", [False, True])
def test_too_large_head_is_refused(example_server: Served, in_pieces: bool) -> None:
    with connect(example_server) as line:
        head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 2 * wire.MAX_HEAD
        try:
            line.sendall(head if in_pieces else head + b"\r\n\r\n")
            answer = rest(line)
        except (ConnectionResetError, BrokenPipeError):
            return  # closed in the middle of it
    assert answer.startswith(b"HTTP/1.1 400") or answer == b""


def test_long_head_within_the_limit_is_accepted(example_server: Served) -> None:
    assert example_server.http.get("/livez", headers={"A": "b" * (wire.MAX_HEAD - 1000)}).status_code == 200
