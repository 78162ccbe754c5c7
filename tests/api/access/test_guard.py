"""Access limits over real HTTP: rate limits, API keys, trusted proxies, body size and concurrency."""

import json
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from chapterverse.api.access import slots
from chapterverse.settings import Settings
from tests.api.test_errors import refused
from tests.scripted import Scripted, wait_until, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


@contextmanager
def serving(script: Scripted | None = None, **settings: Any) -> Iterator[Served]:
    with serve(Settings.load(**settings), opening=without_engines(), answering=script or Scripted()) as server:
        yield server


def ask(server: Served, query: str = "answer", path: str = "/chat", **headers: str) -> httpx2.Response:
    return server.http.post(path, json={"query": query}, headers={k.replace("_", "-"): v for k, v in headers.items()})


# ── rate limits ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_requests_over_the_rate_limit_return_429() -> None:
    with serving() as server, ThreadPoolExecutor(8) as pool:
        paths = ["/chat", "/chat/stream", "/chat/run", "/chat", "/chat/stream"] * 14
        answers = list(pool.map(lambda path: ask(server, path=path), paths))
        assert Counter(answer.status_code for answer in answers) == {200: 60, 429: 10}
        late = next(answer for answer in answers if answer.status_code == 429)
        body = refused(late, 429, "rate_limited")
        assert 50 <= body["retry_after"] <= 60
        assert late.headers["retry-after"] == str(body["retry_after"])
        refused(server.http.post("/search", json={"query": "x"}), 429, "rate_limited")
        for path in ("/livez", "/health", "/metrics", "/docs", "/openapi.json"):
            assert server.http.get(path).status_code == 200, path


def test_invalid_bodies_count_and_the_rate_limit_is_checked_before_the_body() -> None:
    with serving(api_rate_limit=2) as server:
        headers = {"content-type": "application/json"}
        assert server.http.post("/chat", content=b"{", headers=headers).status_code == 400
        assert server.http.post("/chat", content=b"{}", headers=headers).status_code == 400
        refused(server.http.post("/chat", content=b"{", headers=headers), 429, "rate_limited")


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_are_required_and_rate_limited_separately() -> None:
    with serving(api_keys="first-key,second-key", api_key_rate_limit=3, api_rate_limit=5) as server:
        assert [ask(server, authorization="Bearer first-key").status_code for _ in range(4)] == [200, 200, 200, 429]
        assert [ask(server, x_api_key="second-key").status_code for _ in range(3)] == [200, 200, 200]
        answer = ask(server, x_api_key="third-key")
        refused(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        refused(ask(server), 401, "unauthorized")
        for path in ("/pages", "/sessions/0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10"):
            refused(server.http.get(path), 401, "unauthorized")
        for path in ("/livez", "/health", "/metrics", "/docs", "/openapi.json"):
            assert server.http.get(path).status_code == 200, path
        refused(ask(server, x_api_key="fourth"), 401, "unauthorized")
        refused(ask(server, x_api_key="fifth"), 429, "rate_limited")  # wrong keys are counted by address
        schema = server.http.get("/openapi.json").json()
        assert set(schema["components"]["securitySchemes"]) == {"Bearer", "X-API-Key"}
        assert schema["paths"]["/chat"]["post"]["security"] == [{"Bearer": []}, {"X-API-Key": []}]
        assert {} in schema["paths"]["/health"]["get"]["security"], (
            "the key is optional: with one, the reply has more details"
        )


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_forwarded_for_of_an_untrusted_client_is_ignored() -> None:
    with serving(api_rate_limit=2) as server:
        statuses = [ask(server, x_forwarded_for=f"198.51.100.{n}").status_code for n in range(3)]
        assert statuses == [200, 200, 429]


def test_clients_behind_a_trusted_proxy_are_counted_separately() -> None:
    with serving(api_rate_limit=2, trusted_proxies="127.0.0.0/8,10.0.0.1") as server:
        assert [ask(server, x_forwarded_for="198.51.100.1").status_code for _ in range(3)] == [200, 200, 429]
        assert ask(server, x_forwarded_for="198.51.100.2").status_code == 200
        spoofed = [ask(server, x_forwarded_for=f"9.9.9.{n}, 198.51.100.2").status_code for n in range(2)]
        assert spoofed == [200, 429]


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bodies_over_64_kib_return_413() -> None:
    with serving() as server:
        fits = json.dumps({"query": "answer", "filters": {"module": ["m" * 600] * 100}})
        assert len(fits) < 64 * 1024
        headers = {"content-type": "application/json"}
        assert server.http.post("/chat", content=fits, headers=headers).status_code == 200
        large = json.dumps({"query": "x" * (64 * 1024)})
        for path in ("/chat", "/chat/stream", "/search"):
            body = refused(server.http.post(path, content=large, headers=headers), 413, "validation_error")
            assert "64 KiB" in body["message"]

        def chunks() -> Iterator[bytes]:
            for _ in range(1000):
                yield b" " * 1024

        refused(server.http.post("/chat", content=chunks(), headers=headers), 413, "validation_error")
        assert ask(server).status_code == 200  # the connection still works


def test_endless_body_returns_413_while_it_is_still_being_sent() -> None:
    with serving() as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            head = b"POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(65):
                connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 413")
            connection.shutdown(socket.SHUT_WR)


# ── concurrency ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_full_queue_returns_503_overloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots.SlotQueue.__init__, "__defaults__", (1, 25.0, 500))
    script = Scripted()
    with serving(script, max_concurrent_requests=1) as server, ThreadPoolExecutor(2) as pool:
        running = pool.submit(ask, server, "prepare pause 1.0", "/chat/stream")
        wait_until(lambda: len(script.asked) == 1)
        waiting = pool.submit(ask, server, "answer")
        wait_until(lambda: "chapterverse_queue_length 1.0" in server.http.get("/metrics").text)
        for path in ("/chat", "/chat/stream", "/search"):
            answer = ask(server, path=path)
            body = refused(answer, 503, "overloaded")
            assert answer.headers["retry-after"] == str(body["retry_after"])
        assert not running.done()
        assert running.result().status_code == waiting.result().status_code == 200
        assert script.opened == ["prepare pause 1.0", "answer"]


def test_invalid_request_is_rejected_while_all_slots_are_taken() -> None:
    script = Scripted()
    with serving(script, max_concurrent_requests=1) as server, ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, server, "prepare pause 1.0")
        wait_until(lambda: len(script.asked) == 1)
        refused(ask(server, ""), 400, "validation_error")
        assert not running.done()


def test_client_that_disconnects_in_the_queue_is_removed_from_it() -> None:
    script = Scripted()
    with serving(script, max_concurrent_requests=1) as server, ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, server, "prepare pause 1.0")
        wait_until(lambda: len(script.asked) == 1)
        with pytest.raises(httpx2.TimeoutException):
            server.http.post("/chat", json={"query": "answer"}, timeout=0.2)
        wait_until(lambda: "chapterverse_queue_length 0.0" in server.http.get("/metrics").text)
        assert running.result().status_code == 200
    assert [request.query for request in script.asked] == ["prepare pause 1.0"]
