"""Seed 002, "RAG Agent": messages, conversations, retrieval context, agent response and configuration."""

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chapterverse.settings import Settings
from tests.cli.process import chapterverse
from tests.llm_stub import Quotes
from tests.seeds.conftest import World
from tests.served import serve

pytestmark = pytest.mark.slow


def test_thread_has_messages_with_role_content_and_timestamp(world: World) -> None:
    session = str(uuid4())
    world.post("/chat", query="What is ROS 2?", session_id=session)
    thread = world.get(f"/sessions/{session}")
    assert (thread["thread_id"], len(thread["messages"])) == (session, 2)
    for message, role in zip(thread["messages"], ("user", "assistant"), strict=True):
        assert message["role"] == role
        assert message["content"]
        assert datetime.fromisoformat(message["timestamp"]).tzinfo is not None
    assert datetime.fromisoformat(thread["created_at"])
    sent = world.llm.requests[-1]["messages"]
    assert sent[0]["role"] == "system"
    assert [message["role"] for message in sent[1:]] == ["user", "assistant", "tool"]
    assert sent[2]["tool_calls"][0]["id"] == sent[3]["tool_call_id"]


def test_chat_returns_400_for_empty_query(world: World) -> None:
    assert world.server.http.post("/chat", json={"query": ""}).status_code == 400


@pytest.mark.parametrize("path", ["/chat", "/search"])
def test_source_url_prefix_filters_results(world: World, path: str) -> None:
    reply = world.post(path, query="What is a robot?", filters={"source_url_prefix": "book/simulation/"})
    found = reply["sources"] if path == "/chat" else reply["results"]
    assert found
    assert all(one["source_url"].startswith("book/simulation/") for one in found)


def test_chat_response_has_answer_sources_and_metadata(world: World) -> None:
    world.llm.usual = Quotes(2)
    reply = world.post("/chat", query="What is ROS 2?")
    metadata = reply["metadata"]
    assert reply["answer"] and reply["sources"]
    assert metadata["tokens_used"] > 0 and metadata["model"] and metadata["chunks_retrieved"] == 5
    assert datetime.fromisoformat(reply["timestamp"])


def test_cli_ask_prints_sources_below_the_answer(example_home: Path, postgres_url: str) -> None:
    shown = chapterverse(example_home, "ask", "What is ROS 2?", DATABASE_URL=postgres_url)
    answer, _, footer = shown.stdout.partition("\n\n[1]")
    assert "[1]" in answer
    assert "book/ros2/what-is-ros2.md" in footer


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({}, "agent_top_k", 5),
        ({}, "agent_max_turns", 50),
        ({"AGENT_TOP_K": "7"}, "agent_top_k", 7),
        ({"AGENT_SCORE_THRESHOLD": "0.0"}, "agent_score_threshold", 0.0),
        ({"AGENT_SCORE_THRESHOLD": "0.25"}, "agent_score_threshold", 0.25),
        ({"AGENT_MAX_TURNS": "20"}, "agent_max_turns", 20),
        ({"OPENAI_MODEL": "gpt-4o-mini"}, "openai_model", "gpt-4o-mini"),
    ],
)
def test_configuration_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], field: str, value: Any
) -> None:
    for name, text in given.items():
        monkeypatch.setenv(name, text)
    assert getattr(Settings.load(), field) == value


def test_top_k_and_score_threshold_settings_are_applied(world: World) -> None:
    with serve(world.settings.model_copy(update={"agent_top_k": 7})) as server:
        reply = server.http.post("/chat", json={"query": "What is ROS 2?"}).json()
        assert reply["metadata"]["chunks_retrieved"] == 7
    best = max(found["relevance_score"] for found in world.post("/search", query="How heavy is Tern?")["results"])
    with serve(world.settings.model_copy(update={"agent_score_threshold": min(1.0, best + 0.01)})) as server:
        reply = server.http.post("/chat", json={"query": "How heavy is Tern?"}).json()
        assert reply["metadata"]["chunks_retrieved"] == 0
