"""The same answers through HTTP (JSON and events) and the command line, with and without a language model."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chapterverse.answering.refusals import NOT_IN_BOOK, not_in_selection
from chapterverse.models import ChatResponse
from chapterverse.settings import Settings
from tests.answering.conftest import with_llm
from tests.answering.manual import ORDER, TOPICS
from tests.answering.support import unsupported
from tests.answering.test_hostile import ANSWERS, hostile_home  # noqa: F401 - a fixture
from tests.api.chat.test_routes import events_of
from tests.cli.process import chapterverse
from tests.llm_stub import Fails, Hangs, LlmStub, Quotes, Replies, serving_llm
from tests.served import Served, serve

pytestmark = pytest.mark.slow

SELECTION = "🤖 Kestrel is a drone.\r\nThe winch of the Kestrel lifts 12 kg.\r\nIt is painted red."
FOUR: dict[str, dict[str, Any]] = {
    "answer": {"query": "What is ROS 2?"},
    "off topic": {"query": "Which king built Versailles?"},
    "selection": {
        "query": "How much does the winch of the Kestrel lift?",
        "mode": "selected_text",
        "selected_text": SELECTION,
    },
    "not in the selection": {"query": "Tell me about penguins", "mode": "selected_text", "selected_text": SELECTION},
}


@pytest.fixture(scope="module")
def stub() -> Iterator[LlmStub]:
    with serving_llm() as served:
        yield served


@pytest.fixture(autouse=True)
def reset_stub(stub: LlmStub) -> None:
    stub.usual = Quotes()
    stub.script.clear()


@pytest.fixture(scope="module")
def llm_server(example_home: Path, postgres_url: str, stub: LlmStub) -> Iterator[Served]:
    """A server with the example book and the scripted language model."""
    with serve(settings_for(example_home, postgres_url, stub)) as served:
        yield served


@pytest.fixture(scope="module")
def hostile_server(hostile_home: Path, postgres_url: str, stub: LlmStub) -> Iterator[Served]:  # noqa: F811 - a fixture
    """A server with the manual that the scripted model lies about."""
    with serve(settings_for(hostile_home, postgres_url, stub)) as served:
        yield served


def settings_for(home: Path, database: str, stub: LlmStub, **more: Any) -> Settings:
    given = with_llm(stub) | more
    return Settings.load(chapterverse_home=home, database_url=database, api_rate_limit=100_000, **given)


def both(server: Served, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of `/chat`, after checking that the stream has the same content."""
    whole: dict[str, Any] = server.http.post("/chat", json=body).json()
    events = events_of(server.http.post("/chat/stream", json=body).text)
    assert "".join(event["content"] for event in events if event["type"] == "chunk") == whole["answer"]
    assert events[-2]["sources"] == whole["sources"]
    assert (events[-1]["type"], events[-1]["status"]) == ("done", whole["status"])
    assert (events[0]["type"] == "retrieved") == (body.get("mode") != "selected_text")
    return whole


@pytest.mark.parametrize("keyed", [False, True])
def test_answers_and_refusals_for_book_and_selection(
    example_server: Served, llm_server: Served, stub: LlmStub, keyed: bool
) -> None:
    server = llm_server if keyed else example_server
    answer = both(server, FOUR["answer"])
    assert (answer["status"], answer["sources"] != []) == ("answered", True)
    for source in answer["sources"]:
        page = server.http.get(f"/pages/{source['page_id']}").json()
        assert page["text"][source["quote_start"] : source["quote_end"]] == source["quote"]
    assert both(server, FOUR["off topic"])["answer"] == NOT_IN_BOOK
    stub.usual = Replies("The winch of the Kestrel lifts 12 kg [1].")
    selected = both(server, FOUR["selection"])
    assert "lifts 12 kg" in selected["answer"]
    source = next(source for source in selected["sources"] if "12 kg" in source["quote"])
    assert SELECTION[source["char_start"] : source["char_end"]] == source["quote"]
    assert source["line_start"] == 2
    stub.usual = Replies("Penguins live in the south [1].")
    assert both(server, FOUR["not in the selection"])["answer"] == not_in_selection(
        FOUR["not in the selection"]["query"]
    )


# ── a model that fails ───────────────────────────────────────────────────────────────────────────────────────────────


def test_failing_model_returns_503_until_an_event_was_sent(llm_server: Served, stub: LlmStub) -> None:
    stub.usual = Fails(401)  # not retried
    for body in (FOUR["answer"], FOUR["selection"]):
        answer = llm_server.http.post("/chat", json=body)
        assert (answer.status_code, answer.json()["error_code"]) == (503, "agent_unavailable")
        assert "secret" not in answer.text
    events = events_of(llm_server.http.post("/chat/stream", json=FOUR["answer"]).text)
    assert [event["type"] for event in events] == ["retrieved", "error"]
    assert events[-1]["error_code"] == "agent_unavailable"
    plain = llm_server.http.post("/chat/stream", json=FOUR["selection"])
    assert (plain.status_code, plain.json()["error_code"]) == (503, "agent_unavailable")


def test_retry_after_of_the_model_is_passed_on(llm_server: Served, stub: LlmStub) -> None:
    stub.usual = Fails(429, headers=(("Retry-After", "120"),))
    answer = llm_server.http.post("/chat", json=FOUR["answer"])
    assert (answer.status_code, answer.headers["retry-after"], answer.json()["retry_after"]) == (503, "120", 120)
    events = events_of(llm_server.http.post("/chat/stream", json=FOUR["answer"]).text)
    assert events[-1]["retry_after"] == 120


@pytest.mark.parametrize(("name", "judge"), [("answer", "auto"), ("selection", "auto"), ("answer", "off")])
def test_client_disconnect_cancels_the_model_call(example_home: Path, postgres_url: str, name: str, judge: str) -> None:
    with serving_llm() as own, serve(settings_for(example_home, postgres_url, own, judge=judge)) as server:
        own.usual = Hangs(after="The winch of the Kestrel lifts 12 kg [1]. And it ")
        with server.http.stream("POST", "/chat/stream", json=FOUR[name]) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            assert own.wait_asked()
        assert own.wait_disconnect()


# ── a model that lies ────────────────────────────────────────────────────────────────────────────────────────────────


def test_false_statements_are_not_shown_over_http(hostile_server: Served, stub: LlmStub) -> None:
    body = {"query": "How long is the hull of Heron, and what does it weigh?", "top_k": 20}
    asked = len(stub.requests)
    chosen = ANSWERS[:-18:40] + ANSWERS[-16:-2]  # a sample, and all strange answers except the endless ones
    for answer in chosen:
        stub.usual = Replies(answer.text)
        answer_shown = both(hostile_server, body)
        check_shown(ChatResponse.model_validate(answer_shown))
    assert len(stub.requests) - asked >= 2 * len(chosen)


def test_false_statements_are_not_shown_by_ask(hostile_home: Path, postgres_url: str, stub: LlmStub) -> None:  # noqa: F811
    environment = {"DATABASE_URL": postgres_url, "OPENAI_API_KEY": "key", "OPENAI_MODEL": "stub"}
    topic = TOPICS[0]
    lies = " ".join(f"{lie[:-1]} [1]." for _, lie in topic.false)
    stub.usual = Replies(f"{lies} {topic.true[0]} [1] {ORDER}")
    question = "How long is the hull of Heron, and what does it weigh?"
    for options in ((), ("--json",)):
        ran = chapterverse(hostile_home, "ask", question, *options, **environment, OPENAI_BASE_URL=stub.url)
        assert ran.returncode == 0, ran.stderr
        shown = " ".join(re.sub(r"\s*\[\d+\]", "", json.loads(ran.stdout)["answer"] if options else ran.stdout).split())
        assert topic.true[0].rstrip(".") in shown
        assert [lie for _, lie in topic.false if lie in shown] == []
        assert "evil" not in shown


def check_shown(answer: ChatResponse) -> None:
    if answer.status == "refused":
        assert answer.answer == NOT_IN_BOOK
    else:
        assert unsupported(answer.answer, answer.sources) == []
    assert not re.search(r"evil|HERON IS FREE|can fly|<script|!\[", answer.answer)
