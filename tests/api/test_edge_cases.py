"""Tests over real HTTP for every row of the error table (SPEC 2.4) and every edge case of seed 000.

| SPEC 2.4 | test |
|---|---|
| `validation_error` | `test_edge_cases::test_invalid_field_returns_400_with_a_hint` |
| the same, other fields | `chat/test_routes::test_invalid_fields_return_400_and_are_named` |
| `unauthorized` | `access/test_guard::test_keys_are_required_and_rate_limited_separately` |
| `not_found` | `test_errors::test_unknown_route_and_method`, `test_edge_cases::test_unknown_session_or_page` |
| `rate_limited` | `access/test_guard::test_requests_over_the_rate_limit_return_429` |
| `overloaded` | `access/test_guard::test_full_queue_returns_503_overloaded` |
| `retrieval_unavailable`: unreachable, slow | `test_dependencies::test_fault_affects_only_what_needs_the_dependency` |
| `retrieval_unavailable`: collection missing | `test_edge_cases::test_every_interface_reports_a_missing_book` |
| `embedding_failed` | `test_edge_cases::test_failing_embedding_service_returns_503`, `test_dependencies` as above |
| `agent_unavailable` | `test_edge_cases::test_failing_language_model_returns_503`, `test_dependencies` as above |
| `internal_error` | `test_errors::test_a_bug_becomes_an_internal_error_without_a_trace` |
| Postgres is down | `test_edge_cases::test_answer_without_a_database_is_not_stored`, `test_dependencies` as above |
| the body is the same everywhere | `test_errors::refused`, which all of these use |

| seed 000 | test |
|---|---|
| Qdrant unreachable | `test_edge_cases::test_unreachable_qdrant_returns_503_and_selections_still_work` |
| Cohere API failure | `test_edge_cases::test_failing_embedding_service_returns_503` |
| Gemini API failure | `test_edge_cases::test_failing_language_model_returns_503` |
| No relevant chunks found | `test_edge_cases::test_no_passage_found_returns_the_refusal_of_the_seed` |
| Query too long, selected text too long, empty query | `test_edge_cases::test_invalid_field_returns_400_with_a_hint` |
| Malformed JSON request | `test_edge_cases::test_malformed_json_returns_400_with_its_position` |
| Rate limit exceeded | `access/test_guard::test_requests_over_the_rate_limit_return_429` |
"""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chapterverse.settings import Settings
from tests.api.chat.test_routes import events_of
from tests.api.test_errors import refused
from tests.embeddings.stub import KEY, EmbeddingStub, status
from tests.faults.worlds import fill
from tests.llm_stub import Fails, LlmStub, gemini_error, serving_llm
from tests.served import Served, free_port, serve

pytestmark = pytest.mark.slow

ASKING = ("/chat", "/chat/run", "/chat/stream")
QUESTION = {"query": "What is ROS 2?"}
SELECTION = {
    "query": "What is ROS 2 for?",
    "mode": "selected_text",
    "selected_text": "ROS 2 is a set of libraries for building robots.",
}


@contextmanager
def serving(home: Path, **settings: Any) -> Iterator[Served]:
    """A server with this home, without a reachable database unless one is given."""
    lost = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    loaded = Settings.load(**{"chapterverse_home": home, "database_url": lost, "api_rate_limit": 100_000} | settings)
    with serve(loaded) as served:
        yield served


def test_tables_above_name_existing_tests() -> None:
    tests = Path(__file__).parents[1]
    named = re.findall(r"`([\w/]*test_\w+)::(\w+)`", __doc__ or "")
    assert len(named) >= 15
    for module, name in named:
        path = next(path for folder in ("api", "faults") if (path := tests / folder / f"{module}.py").exists())
        assert f"def {name}(" in path.read_text(), f"{module}::{name}"


# ── invalid requests ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ({"query": ""}, "query", "must not be empty; write something"),
        ({"query": " \t\n"}, "query", "must not be empty; write something"),
        ({}, "query", "is required"),
        ({"query": 5}, "query", "must be a text"),
        (QUESTION | {"top_k": 0}, "top_k", "must be 1 or more"),
        (QUESTION | {"top_k": 2.5}, "top_k", "must be a whole number"),
        (QUESTION | {"score_threshold": 1.5}, "score_threshold", "must be 1 or less"),
        (QUESTION | {"mode": "x"}, "mode", "must be 'general' or 'selected_text'"),
        (QUESTION | {"stream": "maybe"}, "stream", "must be true or false"),
        (QUESTION | {"filters": {"module": []}}, "filters.module", "must have 1 or more values"),
        ({"query": "x" * 2001}, "query", "has 2,001 characters; shorten it to 2,000 or fewer"),
        (
            SELECTION | {"selected_text": "x" * 10_001},
            "selected_text",
            "has 10,001 characters; shorten it to 10,000 or fewer",
        ),
        (SELECTION | {"selected_text": ""}, "selected_text", "is required when mode is selected_text"),
        ({"query": "x", "mode": "selected_text"}, "selected_text", "is required when mode is selected_text"),
        (QUESTION | {"filters": {"module": 5}}, "filters.module", "must be a text or a list of texts"),
        (QUESTION | {"filters": [1]}, "filters", "must be a JSON object"),
        (QUESTION | {"metadata": "x"}, "metadata", "must be a JSON object"),
        (QUESTION | {"metadata": {"a": {}}}, "metadata.a", "must be a text of up to 500 characters, a number"),
        (QUESTION | {"score_threshold": []}, "score_threshold", "must be a number"),
        (QUESTION | {"top_k": 1e20}, "top_k", "has too many digits"),
        (
            QUESTION | {"filters": {"chapter": "1"}},
            "filters.chapter",
            "there is no such filter; known are source_url, page_title",
        ),
    ],
)
@pytest.mark.parametrize("path", ASKING)
def test_invalid_field_returns_400_with_a_hint(
    example_server: Served, path: str, body: dict[str, Any], field: str, expected: str
) -> None:
    answer = refused(example_server.http.post(path, json=body), 400, "validation_error")
    (fault,) = answer["details"]["errors"]
    assert fault["field"] == field
    assert expected in fault["problem"]
    assert answer["message"] == f"{field}: {fault['problem']}"


def test_longest_allowed_query_and_selection_are_accepted(example_server: Served) -> None:
    longest = {"query": "what " * 400, "mode": "selected_text", "selected_text": "ROS 2 is free. " * 666}
    assert (len(longest["query"]), len(longest["selected_text"])) == (2000, 9990)
    assert example_server.http.post("/chat", json=longest).status_code == 200


@pytest.mark.parametrize(
    ("content", "position"), [(b'{"query": "x",}', 14), (b'{"query": ', 10), (b"{'query': 'x'}", 1), (b"", 0)]
)
@pytest.mark.parametrize("path", ASKING)
def test_malformed_json_returns_400_with_its_position(
    example_server: Served, path: str, content: bytes, position: int
) -> None:
    answer = example_server.http.post(path, content=content, headers={"content-type": "application/json"})
    body = refused(answer, 400, "validation_error")
    if content:
        assert f"position {position}" in body["message"]
        assert body["details"]["errors"][0]["position"] == position


@pytest.mark.parametrize("path", ASKING)
def test_body_in_another_encoding_is_an_error_with_its_position(example_server: Served, path: str) -> None:
    content = '{"query": "café"}'.encode("latin-1")
    answer = example_server.http.post(path, content=content, headers={"content-type": "application/json"})
    body = refused(answer, 400, "validation_error")
    assert body["message"] == "body: not UTF-8 at position 14; send JSON in UTF-8"
    assert body["details"]["errors"][0]["position"] == 14


@pytest.mark.parametrize("path", ASKING)
def test_a_body_that_is_no_object(example_server: Served, path: str) -> None:
    body = refused(example_server.http.post(path, json=[1]), 400, "validation_error")
    assert body["message"] == "body: must be a JSON object"
    nothing = example_server.http.post(path, headers={"content-type": "application/json"})
    assert refused(nothing, 400, "validation_error")["message"] == "body: must be a JSON object; none was sent"


def test_unknown_version_of_a_book_without_names(example_server: Served) -> None:
    for filters, wanted in (
        ({"version": "7"}, "There is no version 7: the book has no versions; leave it out."),
        ({"book": "guide"}, "There is no book guide here. The book here has no name; leave it out."),
    ):
        answer = example_server.http.post("/search", json={"query": "x", "filters": filters})
        assert refused(answer, 400, "validation_error")["message"] == wanted


def test_an_id_that_is_too_short(example_server: Served) -> None:
    body = refused(example_server.http.get("/pages/nosuch"), 400, "validation_error")
    assert body["message"] == "page_id: must be a page_id of 36 characters, as /pages and /search give it"


def test_unknown_session_or_page(example_server: Served) -> None:
    unknown = str(uuid4())
    for method, path in (("GET", "/sessions/"), ("DELETE", "/sessions/"), ("GET", "/pages/")):
        assert unknown in refused(example_server.http.request(method, path + unknown), 404, "not_found")["message"]


def test_no_passage_found_returns_the_refusal_of_the_seed(example_server: Served) -> None:
    nowhere = QUESTION | {"filters": {"source_url": "book/no-such-page.md"}}
    body = example_server.http.post("/chat", json=nowhere).json()
    assert body["answer"] == "I couldn't find relevant information in the documentation for your question."
    assert (body["status"], body["should_answer"], body["sources"]) == ("refused", False, [])
    assert body["metadata"]["llm_calls"] == 0
    events = events_of(example_server.http.post("/chat/stream", json=nowhere).text)
    assert [event["type"] for event in events] == ["retrieved", "chunk", "sources", "done"]
    assert events[1]["content"] == body["answer"]


# ── failing engines ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_interface_reports_a_missing_book(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for path in (*ASKING, "/search"):
            body = refused(server.http.post(path, json=QUESTION), 503, "retrieval_unavailable")
            assert "chapterverse ingest" in body["message"]
        refused(server.http.get("/pages"), 503, "retrieval_unavailable")
        assert server.http.post("/chat", json=SELECTION).json()["status"] == "answered"


def test_unreachable_qdrant_returns_503_and_selections_still_work(tmp_path: Path) -> None:
    with serving(tmp_path, qdrant_url=f"http://127.0.0.1:{free_port()}") as server:
        for path in ASKING:
            started = time.monotonic()
            body = refused(server.http.post(path, json=QUESTION), 503, "retrieval_unavailable")
            assert time.monotonic() - started < 15
            assert "Qdrant" in body["message"] and "Traceback" not in json.dumps(body)
        assert server.http.post("/chat", json=SELECTION).json()["status"] == "answered"


async def test_failing_embedding_service_returns_503(tmp_path: Path) -> None:
    async with EmbeddingStub() as stub:
        settings = {"embeddings": "cohere", "cohere_api_key": KEY, "cohere_base_url": stub.url}
        await fill(Settings.load(chapterverse_home=tmp_path, **settings))

        def ask() -> None:
            with serving(tmp_path, **settings) as server:
                for fault, tries, expected in (
                    (status(500), 3, "failed (HTTP 500)"),
                    (status(401), 1, "COHERE_API_KEY was refused"),
                    (status(429, "60"), 1, "no more requests"),
                ):
                    stub.reset()
                    stub.play(forever=fault)
                    answer = server.http.post("/chat/stream", json=QUESTION)
                    assert expected in refused(answer, 503, "embedding_failed")["message"]
                    assert len(stub.received) == tries
                    assert answer.headers.get("retry-after") == (fault.retry_after or None)
                stub.play()
                assert server.http.post("/search", json=QUESTION).status_code == 200

        await asyncio.to_thread(ask)


def test_index_of_another_embedding_model_returns_503(example_home: Path) -> None:
    with serving(example_home, cohere_api_key="k", cohere_base_url=f"http://127.0.0.1:{free_port()}") as server:
        body = refused(server.http.post("/chat", json=QUESTION), 503, "retrieval_unavailable")
        assert "chapterverse ingest --reembed" in body["message"]


@pytest.mark.parametrize(
    ("fault", "tries", "expected"),
    [
        (gemini_error(500, "inner words"), 3, "failed (HTTP 500)"),
        (gemini_error(503, "inner words"), 3, "failed (HTTP 503)"),
        (gemini_error(404, "inner words"), 1, "GEMINI_MODEL"),
        (Fails(401), 1, "GEMINI_API_KEY was refused"),
        (Fails(429, headers=(("Retry-After", "60"),)), 1, "no more requests"),
    ],
    ids=["500", "503", "404", "401", "429"],
)
def test_failing_language_model_returns_503(example_home: Path, fault: Fails, tries: int, expected: str) -> None:
    with serving_llm(gemini=True) as llm, _gemini(example_home, llm) as server:
        llm.usual = fault
        body = refused(server.http.post("/chat", json=QUESTION), 503, "agent_unavailable")
        assert expected in body["message"]
        assert "inner words" not in json.dumps(body)
        assert len(llm.requests) == tries
        events = events_of(server.http.post("/chat/stream", json=QUESTION).text)
        assert [event["type"] for event in events] == ["retrieved", "error"]
        assert (events[-1]["error_code"], events[-1]["message"]) == ("agent_unavailable", body["message"])
        assert server.http.post("/search", json=QUESTION).status_code == 200


@contextmanager
def _gemini(home: Path, llm: LlmStub) -> Iterator[Served]:
    with serving(home, gemini_api_key="a-secret", gemini_base_url=llm.url) as server:
        yield server


def test_answer_without_a_database_is_not_stored(example_home: Path) -> None:
    with serving(example_home) as server:
        for body in (QUESTION, QUESTION | {"session_id": str(uuid4())}, SELECTION):
            answer = server.http.post("/chat", json=body).json()
            assert (answer["status"], answer["metadata"]["stored"]) == ("answered", False)
        refused(server.http.get(f"/sessions/{uuid4()}"), 503, "conversations_unavailable")
        server.health(lambda said: said["status"] == "degraded")
