"""Prometheus metrics over real HTTP, read with the parser of the Prometheus client."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chapterverse.errors import InternalError
from chapterverse.health import Dependency
from chapterverse.settings import Settings
from tests.scripted import Scripted, wait_until, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow


async def up() -> None:
    pass


async def down() -> None:
    raise InternalError("gone")


@pytest.fixture(scope="module")
def script() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def server(script: Scripted) -> Iterator[Served]:
    dependencies = (
        Dependency("llm", "script", "", up, vital=True),
        Dependency("database", "none", "", down, vital=False),
    )
    with serve(Settings.load(), opening=without_engines(dependencies=dependencies), answering=script) as served:
        yield served


def sample(server: Served, name: str, **labels: str) -> float:
    answer = server.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for family in text_string_to_metric_families(answer.text):
        for one in family.samples:
            if one.name == f"chapterverse_{name}" and labels.items() <= one.labels.items():
                return float(one.value)
    return 0.0


def test_answers_sentences_tokens_and_errors_are_counted(server: Served) -> None:
    server.http.post("/chat", json={"query": "answer"})
    server.http.post("/chat/stream", json={"query": "refuse"})
    server.http.post("/chat/stream", json={"query": "fail agent_unavailable"})
    server.http.post("/chat", json={"query": ""})
    assert sample(server, "answers_total", status="answered", confidence_level="high", mode="general") == 1
    assert sample(server, "answers_total", status="refused") == 1
    assert sample(server, "sentences_total", outcome="shown") == 3 + 1 + 1
    assert sample(server, "tokens_total", model="gemini-3.8-flash") == 2 * 1460
    assert sample(server, "llm_calls_total") == 2
    assert sample(server, "requests_total", route="/chat", method="POST", status="200") == 1
    assert sample(server, "requests_total", route="/chat", status="400") == 1
    assert sample(server, "requests_total", route="/chat/stream", status="200") == 2
    assert sample(server, "errors_total", error_code="agent_unavailable") == 1
    assert sample(server, "errors_total", error_code="validation_error") == 1
    assert sample(server, "request_seconds_count", route="/chat") == 2
    assert sample(server, "first_event_seconds_count") == 3


def test_routes_are_counted_by_template(server: Served) -> None:
    for path in (f"/sessions/{uuid4().hex}", "/sessions/x", "/nowhere/1", "/nowhere/2"):
        server.http.get(path)
    assert sample(server, "requests_total", route="/sessions/{session_id}", status="400") == 2
    assert sample(server, "requests_total", route="unmatched", status="404") == 2


def test_open_stream_is_counted_and_holds_no_slot(server: Served, script: Scripted) -> None:
    with server.http.stream("POST", "/chat/stream", json={"query": "pause 30"}) as answer:
        lines = answer.iter_lines()  # keep a reference: a deleted iterator closes the response
        next(lines)
        assert sample(server, "active_streams") == 1
        assert sample(server, "running_requests") == 0, "a stream that waits holds no slot"
    wait_until(lambda: "pause 30" in script.closed)
    wait_until(lambda: sample(server, "active_streams") == 0 and sample(server, "running_requests") == 0)


def test_dependency_up_shows_the_state_of_each_dependency(server: Served) -> None:
    assert sample(server, "dependency_up", dependency="llm", engine="script") == 1
    assert sample(server, "dependency_up", dependency="database") == 0
    assert 'chapterverse_dependency_up{dependency="database",engine="none"} 0.0' in server.http.get("/metrics").text


def test_rate_limited_requests_are_counted(script: Scripted) -> None:
    with serve(Settings.load(api_rate_limit=1), opening=without_engines(), answering=script) as server:
        for _ in range(3):
            server.http.post("/chat", json={"query": "answer"})
        assert sample(server, "errors_total", error_code="rate_limited") == 2
        assert sample(server, "requests_total", route="/chat", status="429") == 2
