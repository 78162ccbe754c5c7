"""Every error has the same kind of body, with the right code, over real HTTP."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.settings import Settings
from tests.served import Served, serve

pytestmark = pytest.mark.slow


def refused(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body: dict[str, Any] = answer.json()
    assert set(body) == {"error_code", "message", "details", "retry_after"}
    assert body["error_code"] == code
    assert body["message"]
    return body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "   "}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": "a\x00b"}, "NUL"),
        ({"query": 7}, "query"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": 21}, "top_k"),
        ({"query": "x", "score_threshold": 1.1}, "score_threshold"),
        ({"query": "x", "filters": {"author": "me"}}, "author"),
        ({"query": "x", "filters": {"module": []}}, "module"),
        ({"query": "x", "filters": {"module": {"a": 1}}}, "module"),
        ({"query": "x", "surprise": 1}, "surprise"),
        ([1, 2], "body"),
    ],
)
def test_invalid_field_returns_400_and_is_named(example_server: Served, body: Any, expected: str) -> None:
    message = refused(example_server.http.post("/search", json=body), 400, "validation_error")["message"]
    assert expected in message


@pytest.mark.parametrize("body", [b'{"query": "x",}', b"{", b"", b"\xff\xfe", b"[" * 60_000])
def test_malformed_json_returns_400(example_server: Served, body: bytes) -> None:
    answer = example_server.http.post("/search", content=body, headers={"content-type": "application/json"})
    refused(answer, 400, "validation_error")


def test_malformed_json_message_has_the_position(example_server: Served) -> None:
    answer = example_server.http.post(
        "/search", content=b'{"query": "x", oops}', headers={"content-type": "application/json"}
    )
    assert "position 15" in refused(answer, 400, "validation_error")["message"]


def test_unknown_route_and_method(example_server: Served) -> None:
    refused(example_server.http.get("/nowhere"), 404, "not_found")
    answer = example_server.http.get("/search")
    refused(answer, 405, "validation_error")
    assert answer.headers["allow"] == "POST"
    refused(example_server.http.post("/docs"), 405, "validation_error")


def test_request_id_is_kept_if_valid_and_generated_otherwise(example_server: Served) -> None:
    assert example_server.http.get("/livez", headers={"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert len(example_server.http.get("/livez").headers["x-request-id"]) == 32
    strange = example_server.http.get("/livez", headers={"X-Request-ID": "<script>"}).headers["x-request-id"]
    assert len(strange) == 32


def test_without_a_book_search_and_readiness_return_503(tmp_path: Path) -> None:
    with serve(Settings.load(chapterverse_home=tmp_path)) as server:
        body = refused(server.http.post("/search", json={"query": "x"}), 503, "retrieval_unavailable")
        assert "chapterverse ingest" in body["message"]
        refused(server.http.get("/readyz"), 503, "retrieval_unavailable")
        assert server.http.get("/livez").status_code == 200
        health = server.service("embeddings", "up")
        assert health["status"] == "unhealthy"
        assert health["services"]["qdrant"]["status"] == "down"


def test_a_bug_becomes_an_internal_error_without_a_trace(example_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(LocalEmbedder, "embed_query", broken)
    with serve(Settings.load(chapterverse_home=example_home)) as server:
        answer = server.http.post("/search", json={"query": "x"}, headers={"X-Request-ID": "abc"})
        body = refused(answer, 500, "internal_error")
        assert "secret" not in answer.text
        assert body["details"] == {"request_id": "abc"}


def test_openapi_has_every_route_and_no_422(example_server: Served) -> None:
    schema = example_server.http.get("/openapi.json").json()
    assert {"/search", "/pages", "/pages/{page_id}", "/health", "/livez", "/readyz"} <= set(schema["paths"])
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            assert operation["summary"] and operation["description"], path
            assert "422" not in operation["responses"]
            assert "500" in operation["responses"]
    assert example_server.http.get("/docs").status_code == 200


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
def test_missing_json_content_type_returns_400_and_names_the_header(
    example_server: Served, headers: dict[str, str]
) -> None:
    answer = example_server.http.post("/search", content=b'{"query": "nodes"}', headers=headers)
    assert answer.status_code == 400
    sent = headers.get("content-type", "none")
    wanted = f"body: JSON needs the header 'Content-Type: application/json'; {sent} was sent"
    assert answer.json()["message"] == wanted
