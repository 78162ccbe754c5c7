"""The chat routes over real HTTP with a scripted answerer: wire format, end of streams, disconnects, timeouts."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from chapterverse.api.access import guard, slots
from chapterverse.api.chat.seed_names import RunForm, RunResponse
from chapterverse.api.openapi.examples import EVENTS, RESPONSE
from chapterverse.models import ChatResponse, SourcesEvent
from chapterverse.settings import Settings
from tests.api.test_errors import refused
from tests.scripted import REFUSAL, SENTENCES, Scripted, wait_until, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

SESSION = "0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10"
ANSWER = "".join(SENTENCES)


def events_of(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n\n")
    blocks = [block for block in text[:-2].split("\n\n") if not block.startswith(":")]
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def stream(server: Served, query: str, path: str = "/chat/stream", **fields: Any) -> list[dict[str, Any]]:
    answer = server.http.post(path, json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return events_of(answer.text)


@pytest.mark.parametrize(("path", "kind"), [("/chat", ChatResponse), ("/chat/run", RunResponse)])
def test_answer_has_every_field_of_its_schema(server: Served, path: str, kind: type[ChatResponse]) -> None:
    answer = server.http.post(path, json={"query": " answer ", "session_id": SESSION.upper()})
    assert answer.status_code == 200
    assert "warning" not in answer.headers
    body = kind.model_validate_json(answer.content)
    assert set(answer.json()) == set(kind.model_fields)
    assert body.answer == ANSWER
    assert body.session_id == SESSION
    assert body.sources[0].source_url == "book/ros2/what-is-ros2.md#what-is-ros-2"


def test_refusal_is_returned_with_its_text(server: Served) -> None:
    body = server.http.post("/chat", json={"query": "refuse"}).json()
    assert (body["status"], body["answer"]) == ("refused", REFUSAL)


def test_stream_has_the_same_content_as_the_json_response(server: Served) -> None:
    for path, fields in (("/chat/stream", {}), ("/chat", {"stream": True}), ("/chat/run", {"stream": True})):
        whole = server.http.post(path.removesuffix("/stream"), json={"query": "answer"}).json()
        events = stream(server, "answer", path, **fields)
        assert [event["type"] for event in events] == ["retrieved", *["chunk"] * 3, "sources", "done"]
        assert "".join(event["content"] for event in events if event["type"] == "chunk") == whole["answer"]
        assert events[-2]["sources"] == whole["sources"]
        assert {k: v for k, v in events[-1].items() if k != "type"} == {
            k: v for k, v in whole.items() if k not in ("answer", "sources", "statements", "response", "citations")
        }


def test_stream_headers_and_encoding(server: Served) -> None:
    answer = server.http.post("/chat/stream", json={"query": "answer"})
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    assert "\r" not in answer.text
    assert "🤖" in answer.text


def test_selected_text_has_no_retrieved_event(server: Served) -> None:
    events = stream(server, "answer", mode="selected_text", selected_text=" blanks count ")
    assert events[0]["type"] == "chunk"
    assert events[-1]["mode"] == "selected_text"


def test_aliases_of_request_fields_are_accepted(server: Served, script: Scripted) -> None:
    fields = {"message": "answer", "similarity_threshold": 0.5}
    assert server.http.post("/chat", json=fields).status_code == 200
    assert script.asked[-1].query == "answer"
    assert script.asked[-1].score_threshold == 0.5
    for more in ({"text": " answer "}, {"text": "answer", "module_filter": "ros2", "filters": {"page_title": "A"}}):
        answer = server.http.post("/chat", json=more)
        assert "warning" not in answer.headers
        assert (answer.status_code, script.asked[-1].query) == (200, "answer")
    filters = script.asked[-1].filters
    assert filters and (filters.module, filters.page_title) == (["ros2"], ["A"])


@pytest.mark.parametrize("path", ["/chat", "/chat/run", "/chat/stream"])
def test_unknown_fields_are_ignored_and_named_in_a_warning_header(server: Served, script: Scripted, path: str) -> None:
    asked = {"query": "answer", "temperature": 0.1, "model": "gpt-4o", "text": "other"}
    answer = server.http.post(path, json=asked)
    assert (answer.status_code, script.asked[-1].query) == (200, "answer")
    assert answer.headers["warning"] == '299 chapterverse "ignored fields: temperature, model, text"'


def test_field_names_cannot_inject_headers(server: Served) -> None:
    names = {'a"\r\nX-Evil: 1': 1, "ü": 2, "x" * 5000: 3, **{f"f{number}": 0 for number in range(100)}}
    answer = server.http.post("/chat", json={"query": "answer", **names})
    assert answer.status_code == 200
    assert "x-evil" not in answer.headers
    assert len(answer.headers["warning"]) < 300


def test_metadata_and_user_id_reach_the_answerer(server: Served, script: Scripted) -> None:
    server.http.post("/chat", json={"query": "answer", "user_id": "user123", "metadata": {"tags": ["a"]}})
    assert script.asked[-1].metadata == {"user_id": "user123", "tags": ["a"]}


def test_run_lowers_top_k_to_the_maximum_with_a_warning(server: Served, script: Scripted) -> None:
    answer = server.http.post("/chat/run", json={"text": "answer", "top_k": 100})
    assert script.asked[-1].top_k == 20
    assert answer.headers["warning"] == '299 chapterverse "top_k lowered to 20"'
    refused(server.http.post("/chat/run", json={"text": "answer", "top_k": 101}), 400, "validation_error")
    refused(server.http.post("/chat", json={"text": "answer", "top_k": 21}), 400, "validation_error")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "query"),
        ({"query": " \n "}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": "x", "session_id": "nonsense"}, "session_id"),
        ({"query": "x", "session_id": "0b9f4d3e-6a53-1d0c-9d53-2f1a7f1f3a10"}, "UUID v4"),
        ({"query": "x", "mode": "other"}, "mode"),
        ({"query": "x", "mode": "selected_text"}, "selected_text: is required"),
        ({"query": "x", "mode": "selected_text", "selected_text": "  "}, "selected_text: is required"),
        ({"query": "x", "mode": "selected_text", "selected_text": "y" * 10_001}, "selected_text"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "score_threshold": -0.1}, "score_threshold"),
        ({"query": "x", "filters": {"chapter": "1"}}, "chapter"),
        ({"query": "x", "metadata": {"big": "x" * 5000}}, "metadata"),
        ({"query": "x", "metadata": {"nul": ["\x00"]}}, "metadata"),
        ({"query": "x", "metadata": {"half": "\ud83d"}}, "metadata"),
        ({"query": "x", "metadata": {"half": ["\ud83d"]}}, "metadata"),
        ({"query": "x", "metadata": {"\ud83d": 1}}, "metadata"),
        ({"query": "x", "user_id": "\ud83d"}, "user_id"),
        ({"query": "\ud83d"}, "query: has half of a character"),
        ({"query": "x", "\ud83d": 1}, "half of a character"),
        ({"query": "x", "metadata": {"deep": {"er": 1}}}, "metadata"),
        ({"query": "x", "metadata": {str(number): 1 for number in range(21)}}, "metadata"),
        ({"query": "x", "user_id": "me", "metadata": {str(number): 1 for number in range(20)}}, "metadata"),
        ({"query": "x", "module_filter": "a", "filters": {"module": "b"}}, "module_filter"),
    ],
)
@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_invalid_fields_return_400_and_are_named(server: Served, path: str, body: dict[str, Any], named: str) -> None:
    answer = server.http.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert named in refused(answer, 400, "validation_error")["message"]


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_failure_before_the_first_byte_is_an_http_error(server: Served, path: str) -> None:
    answer = server.http.post(path, json={"query": "prepare fail"})
    body = refused(answer, 503, "retrieval_unavailable")
    assert body["retry_after"] == 2
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize(
    ("query", "code"),
    [("fail agent_unavailable", "agent_unavailable"), ("break", "internal_error"), ("stop short", "internal_error")],
)
def test_failing_stream_ends_in_exactly_one_error(server: Served, script: Scripted, query: str, code: str) -> None:
    events = stream(server, query)
    assert [event["type"] for event in events].count("error") == 1
    assert events[-1]["type"] == "error"
    assert events[-1]["error_code"] == code
    assert "secret" not in events[-1]["message"]
    assert ("report request" in events[-1]["message"]) == (code == "internal_error")
    assert query in script.closed


def test_events_after_done_are_not_sent(server: Served) -> None:
    assert [event["type"] for event in stream(server, "go on")][-1] == "done"


def test_failed_answer_as_json_returns_503(server: Served) -> None:
    refused(server.http.post("/chat", json={"query": "fail agent_unavailable"}), 503, "agent_unavailable")


def test_heartbeats_are_sent_only_while_no_event_comes(server: Served) -> None:
    answer = server.http.post("/chat/stream", json={"query": "pause 0.4"})
    assert answer.text.count(": heartbeat\n\n") >= 2
    assert [event["type"] for event in events_of(answer.text)][-1] == "done"
    busy = server.http.post("/chat/stream", json={"query": "answer"})
    assert ": heartbeat" not in busy.text


def test_events_are_sent_as_they_happen(server: Served) -> None:
    with server.http.stream("POST", "/chat/stream", json={"query": "pause 30"}) as answer:
        first = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert json.loads(first.removeprefix("data: "))["type"] == "retrieved"


@pytest.mark.parametrize("body", [{"query": "pause 31"}, {"query": "pause 32", "stream": True}])
def test_client_disconnect_cancels_the_answer(server: Served, script: Scripted, body: dict[str, Any]) -> None:
    connection = post_raw(server, body)
    wait_until(lambda: body["query"] in script.opened)
    connection.close()
    wait_until(lambda: body["query"] in script.closed, seconds=15)


def test_client_disconnect_before_the_first_byte_cancels_the_preparation(server: Served, script: Scripted) -> None:
    connection = post_raw(server, {"query": "prepare pause 33", "stream": True})
    wait_until(lambda: script.asked[-1].query == "prepare pause 33")
    connection.close()
    wait_until(lambda: "prepare pause 33" in script.closed, seconds=15)
    assert "prepare pause 33" not in script.opened


def test_client_that_does_not_read_does_not_block_others(server: Served) -> None:
    idle = [post_raw(server, {"query": "answer", "stream": True}) for _ in range(20)]
    started = time.perf_counter()
    assert stream(server, "answer")[-1]["type"] == "done"
    assert time.perf_counter() - started < 20
    for connection in idle:
        connection.close()


def test_request_timeout_covers_preparation_and_answer(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "REQUEST_SECONDS", 0.3)
    with serve(Settings.load(), opening=without_engines(), answering=script) as server:
        events = stream(server, "pause 40")
        assert [event["type"] for event in events] == ["retrieved", "error"]
        assert events[-1]["error_code"] == "agent_unavailable"
        refused(server.http.post("/chat", json={"query": "pause 41"}), 503, "agent_unavailable")
        refused(server.http.post("/chat/stream", json={"query": "prepare pause 42"}), 503, "agent_unavailable")
        assert {"pause 40", "pause 41", "prepare pause 42"} <= set(script.closed)


def test_stopping_server_ends_its_streams_with_an_error(script: Scripted) -> None:
    with ThreadPoolExecutor(1) as pool:
        with serve(Settings.load(), opening=without_engines(), answering=script) as server:
            answer = pool.submit(httpx2.post, f"{server.url}/chat/stream", json={"query": "pause 50"}, timeout=20)
            wait_until(lambda: "pause 50" in script.opened)
        events = events_of(answer.result().text)
    assert [event["type"] for event in events] == ["retrieved", "error"]
    assert "stopped" in events[-1]["message"]
    assert "pause 50" in script.closed


def test_at_most_ten_requests_are_prepared_at_once() -> None:
    script = Scripted()
    with serve(Settings.load(), opening=without_engines(), answering=script) as server, ThreadPoolExecutor(20) as pool:
        query = {"query": "prepare pause 0.5"}
        answers = list(pool.map(lambda _: server.http.post("/chat/stream", json=query), range(20)))
    assert all(events_of(answer.text)[-1]["type"] == "done" for answer in answers)
    assert script.most_preparing == 10


def test_answers_that_wait_for_the_model_hold_no_slot() -> None:
    script = Scripted()
    settings = Settings.load(max_concurrent_requests=1)
    with serve(settings, opening=without_engines(), answering=script) as server, ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(server.http.post, "/chat/stream", json={"query": "pause 3"}) for _ in range(20)]
        wait_until(lambda: script.opened.count("pause 3") == 20)
        assert server.http.post("/chat", json={"query": "answer"}).status_code == 200
        assert not any(one.done() for one in waiting)
        assert "chapterverse_running_requests 0.0" in server.http.get("/metrics").text
        assert all(events_of(one.result().text)[-1]["type"] == "done" for one in waiting)
    assert script.most_at_once == 21


def test_too_many_open_answers_return_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots.SlotQueue.__init__, "__defaults__", (200, 25.0, 2))
    script = Scripted()
    with serve(Settings.load(), opening=without_engines(), answering=script) as server, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(server.http.post, "/chat", json={"query": "pause 1"}) for _ in range(2)]
        wait_until(lambda: len(script.opened) == 2)
        answer = server.http.post("/chat", json={"query": "answer"})
        assert answer.headers["retry-after"] == str(refused(answer, 503, "overloaded")["retry_after"])
        assert all(one.result().status_code == 200 for one in waiting)
        assert server.http.post("/chat", json={"query": "answer"}).status_code == 200


def test_real_answer_is_the_same_as_json_stream_and_stored_session(example_server: Served) -> None:
    http = example_server.http
    body = http.post("/chat", json={"query": "What is ROS 2?"}).json()
    assert (body["status"], body["metadata"]["stored"]) == ("answered", True)
    streamed = stream(example_server, "What is ROS 2?")
    assert "".join(event["content"] for event in streamed if event["type"] == "chunk") == body["answer"]
    pages = {page["title"]: page["page_id"] for page in http.get("/pages").json()["pages"]}
    for source in body["sources"]:
        page = http.get(f"/pages/{pages[source['page_title']]}").json()
        assert page["text"][source["quote_start"] : source["quote_end"]] == source["quote"]
    session = f"/sessions/{body['session_id']}"
    assert [message["role"] for message in http.get(session).json()["messages"]] == ["user", "assistant"]
    assert http.delete(session).status_code == 204
    assert http.get(session).status_code == 404


def post_raw(server: Served, body: dict[str, Any]) -> socket.socket:
    """Sends a request on its own connection and does not read the response."""
    host, port = server.url.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    connection = socket.create_connection((host, int(port)))
    sort = "Host: localhost\r\nContent-Type: application/json"
    head = f"POST /chat HTTP/1.1\r\n{sort}\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def test_run_citations_are_grouped_by_page_not_by_title() -> None:
    """Two pages can have the same title."""
    (source,) = SourcesEvent.model_validate(EVENTS[2]).sources
    pages = [("a", "Overview", "http://b/a#x"), ("b", "Overview", "http://b/b"), ("a", "Overview", "http://b/a#y")]
    sources = [
        source.model_copy(update={"page_id": page_id, "page_title": title, "source_url": url})
        for page_id, title, url in pages
    ]
    answer = ChatResponse.model_validate(RESPONSE).model_copy(update={"sources": sources})
    named = RunForm("x", in_words=False).body(answer).model_dump()
    assert [(one["page_title"], one["page_url"]) for one in named["citations"]] == [
        ("Overview", "http://b/a"),
        ("Overview", "http://b/b"),
    ]
