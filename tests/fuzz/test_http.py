"""Random requests to every route of a real server: each response is a documented one, and the server stays healthy.

Schemathesis (`test_schemathesis.py`) starts from the API description. These tests send what the description does not
cover: invalid JSON, JSON of the wrong shape, unusual paths and headers, and aborted connections. The seed is fixed.
"""

import json
import socket
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.served import Served

pytestmark = [
    pytest.mark.slow,
    # The server, a thread of this process, draws random numbers while Hypothesis draws an example.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

ASKING = ("/chat", "/chat/run", "/chat/stream", "/search", "/v1/chat/completions", "/mcp")
READING = ("/sessions/", "/pages/", "/assets/", "/v1/models/", "/")
EXPECTED = {200, 202, 307, 400, 401, 404, 405, 406, 413, 415, 421, 429, 503}
LOOSE = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
FIELDS = (
    *("query", "question", "mode", "selected_text", "session_id", "filters", "top_k", "stream", "model", "messages"),
    *("jsonrpc", "id", "method", "params", "user_id", "limit", "min_similarity"),
)
SOUND = {
    "query": "What is a node?",
    "model": "chapterverse",
    "messages": [{"role": "user", "content": "What is a node?"}],
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "ask_book", "arguments": {"question": "What is a node?"}},
}


def check(answer: httpx2.Response) -> None:
    """The status is expected, and a 503 has an expected error code."""
    assert answer.status_code in EXPECTED, f"{answer.status_code}: {answer.text[:300]}"
    assert "Traceback" not in answer.text
    if answer.status_code == 503:
        assert answer.json()["error_code"] in ("overloaded", "conversations_unavailable"), answer.text


@LOOSE
@given(st.sampled_from(ASKING), st.dictionaries(st.sampled_from(FIELDS), values, max_size=6), st.booleans())
def test_json_of_the_wrong_shape_gets_an_expected_response(
    example_server: Served, path: str, fields: dict[str, object], whole: bool
) -> None:
    body = json.dumps({**(SOUND if whole else {}), **fields})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    check(example_server.http.post(path, content=body.encode("utf-8", "surrogatepass"), headers=headers))


@LOOSE
@given(st.sampled_from(ASKING), st.binary(max_size=300))
@example("/chat", b"[" * 60_000)
@example("/chat", b'{"query":' * 6_000)
@example("/mcp", b'{"a":' * 10_000 + b"1" + b"}" * 10_000)
@example("/v1/chat/completions", b'{"messages":' + b"[" * 50_000)
@example("/search", b'{"query": "a", "top_k": 1' + b"0" * 50_000 + b"}")
@example("/search", b'{"query": "\\ud800"}')
@example("/chat", b'{"query": "\\u0000"}')
@example("/chat/stream", b'{"query": "a", "query": ["b"]}')
@example("/chat", b"x" * 65_537)
def test_invalid_bodies_get_an_expected_response(example_server: Served, path: str, body: bytes) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    check(example_server.http.post(path, content=body, headers=headers))


@LOOSE
@given(
    st.sampled_from(READING),
    st.text(max_size=40),
    st.sampled_from(("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE")),
)
@example("/assets/", "../settings.py", "GET")
@example("/assets/", "..%2f..%2fsettings.py", "GET")
@example("/assets/", "%2e%2e/%2e%2e/%2e%2e/etc/passwd", "GET")
@example("/pages/", "....//....//etc/passwd", "GET")
@example("/sessions/", "' OR 1=1 --", "GET")
@example("/sessions/", "00000000-0000-0000-0000-000000000000", "DELETE")
def test_random_paths_get_an_expected_response(example_server: Served, start: str, rest: str, method: str) -> None:
    address = urlsplit(example_server.url)
    path = start.encode() + b"".join(
        bytes([byte]) if 0x21 <= byte < 0x7F else b"%%%02X" % byte for byte in rest.encode("utf-8", "replace")
    )
    request = b"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % (
        method.encode(),
        path,
    )
    answer = exchange(address.port or 0, request)
    status = int(answer.split(b" ", 2)[1])
    assert status in EXPECTED | {204, 304}, answer[:300]
    assert b"root:" not in answer and b"Settings" not in answer


@LOOSE
@given(st.binary(min_size=1, max_size=200))
@example(b"POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n")
@example(b"POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n")
@example(b"POST /chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n")
@example(b"POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
@example(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: " + b"b" * 70_000 + b"\r\n\r\n")
@example(b"GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
def test_invalid_http_gets_a_4xx_or_no_response(example_server: Served, data: bytes) -> None:
    answer = exchange(urlsplit(example_server.url).port or 0, data, leave=True)
    assert not answer or 400 <= int(answer.split(b" ", 2)[1]) < 500, answer[:300]


def test_server_still_answers_after_the_tests_above(example_server: Served) -> None:
    answer = example_server.http.post("/chat", json={"query": "What is a node?"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "answered"


def exchange(port: int, data: bytes, leave: bool = False) -> bytes:
    """Sends these bytes and returns the response. `leave` closes the sending side."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        answer = bytearray()
        try:
            wire.sendall(data)
            if leave:
                wire.shutdown(socket.SHUT_WR)
            while part := wire.recv(65_536):
                answer += part
        except (ConnectionResetError, BrokenPipeError):
            pass  # refused while sending, which is allowed
        return bytes(answer)
