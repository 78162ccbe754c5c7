"""CORS and security headers, and HEAD, over real HTTP."""

from typing import Any

import pytest

from chapterverse.api import llms_txt
from chapterverse.settings import Settings
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

ORIGIN = {"Origin": "https://docs.example.com"}
PREFLIGHT = ORIGIN | {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,x-api-key",
}


def test_configured_origin_gets_cors_headers_on_success_and_errors() -> None:
    settings = Settings.load(cors_origins="https://docs.example.com", api_keys="key", api_rate_limit=1)
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        for _ in range(3):  # a preflight needs no key and is not counted
            allowed = server.http.options("/chat/stream", headers=PREFLIGHT)
            assert allowed.status_code == 200
            assert allowed.headers["access-control-allow-origin"] == ORIGIN["Origin"]
        answers = [
            server.http.post("/chat", json={"query": "answer"}, headers=ORIGIN | {"X-API-Key": "key"}),
            server.http.post("/chat", json={"query": "answer"}, headers=ORIGIN),
            server.http.post("/chat", json={"query": "answer"}, headers=ORIGIN),
            server.http.get("/readyz", headers=ORIGIN),
        ]
        assert [answer.status_code for answer in answers] == [200, 401, 429, 500]
        for answer in answers:  # a page must be able to read the error
            assert answer.headers["access-control-allow-origin"] == ORIGIN["Origin"]
            assert "retry-after" in answer.headers["access-control-expose-headers"].lower()
            assert answer.headers["x-request-id"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
        other = server.http.options("/chat/stream", headers=PREFLIGHT | {"Origin": "https://evil.example.com"})
        assert "access-control-allow-origin" not in other.headers


# What the JavaScript client of OpenAI sends from a browser.
OPENAI = (
    "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,"
    "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout"
)


@pytest.mark.parametrize("origins", ["https://docs.example.com,https://other.example.com", "*"])
def test_preflight_allows_the_headers_of_the_openai_client_and_the_widget(origins: str) -> None:
    with serve(Settings.load(cors_origins=origins), opening=without_engines(), answering=Scripted()) as server:
        for path, headers in (("/v1/chat/completions", OPENAI), ("/chat/stream", "content-type")):
            asked = PREFLIGHT | {"Access-Control-Request-Headers": headers}
            allowed = server.http.options(path, headers=asked)
            assert allowed.status_code == 200
            assert set(headers.split(",")) <= set(allowed.headers["access-control-allow-headers"].lower().split(","))
            assert "access-control-allow-credentials" not in allowed.headers, "the server uses no cookies"
            assert "DELETE" in allowed.headers["access-control-allow-methods"]
        stream = server.http.post("/chat/stream", json={"query": "answer"}, headers=ORIGIN)
        assert stream.headers["access-control-allow-origin"] == ("*" if origins == "*" else ORIGIN["Origin"])
        assert stream.headers["content-type"].startswith("text/event-stream")
        exposed = stream.headers["access-control-expose-headers"].lower().replace(" ", "").split(",")
        assert {"retry-after", "x-request-id"} <= set(exposed)


def test_no_cors_headers_by_default() -> None:
    with serve(Settings.load(), opening=without_engines(), answering=Scripted()) as server:
        assert "access-control-allow-origin" not in server.http.get("/livez", headers=ORIGIN).headers
        assert server.http.options("/chat", headers=PREFLIGHT).status_code == 405


@pytest.mark.parametrize("path", ["/", "/read/abc", "/pages", "/pages/nosuch", "/livez", "/llms.txt", "/widget.js"])
def test_head_has_the_headers_of_get_and_no_body(example_server: Served, path: str) -> None:
    get, head = (example_server.http.request(method, path) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert get.content
    changing = {"x-request-id", "date"}
    assert {name: head.headers[name] for name in head.headers if name not in changing} == {
        name: get.headers[name] for name in get.headers if name not in changing
    }


def test_head_produces_no_stream_and_is_refused_where_get_is(
    example_server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llms_txt, "_all_pages", _fail)
    whole = example_server.http.head("/llms-full.txt")
    assert (whole.status_code, whole.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    for path, allowed in (("/chat/stream", "POST"), ("/mcp", "POST")):
        refused = example_server.http.head(path)
        assert (refused.status_code, refused.content) == (405, b"")
        assert refused.headers["allow"] == allowed
    assert example_server.http.put("/livez").headers["allow"] == "GET, HEAD"
    counted = example_server.http.get("/metrics").text
    assert 'method="HEAD",route="/llms-full.txt",status="200"' in counted


async def _fail(*_: Any) -> Any:
    raise AssertionError("the stream was started")
    yield
