"""Seed 003, "RAG Agent API" data model: ChatRequest, ChatResponse, ConversationThread, retrieval and confidence."""

import json
import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from chapterverse.settings import Settings
from tests.llm_stub import Replies
from tests.seeds.conftest import World
from tests.served import serve

pytestmark = pytest.mark.slow

EXAMPLE = {
    "message": "How do ROS 2 nodes communicate?",
    "session_id": "550e8400-e29b-41d4-a716-446655440000",
    "stream": False,
    "top_k": 5,
    "similarity_threshold": 0.7,
}
SOURCE = {"chunk_text": str, "similarity_score": float, "chapter": str, "section": str, "url": str, "chunk_index": int}


def test_example_request_returns_the_example_response(world: World) -> None:
    answer = world.server.http.post("/chat/run", json=EXAMPLE)
    assert answer.status_code == 200
    assert "warning" not in answer.headers
    reply = answer.json()
    assert reply["response"] == reply["answer"] != ""
    assert reply["sources"], "the threshold 0.7 of the seed must leave some sources"
    for source in reply["sources"]:
        for name, kind in SOURCE.items():
            assert isinstance(source[name], kind), name
        assert len(source["chunk_text"]) <= 500
        assert 0.7 <= source["similarity_score"] <= 1
        assert (source["chapter"], source["section"]) == (source["page_title"], source["section_heading"])
    assert 0 <= reply["confidence"] <= 1
    assert reply["confidence_level"] in ("high", "medium", "low", "insufficient")
    assert reply["should_answer"] is True
    assert reply["session_id"] == EXAMPLE["session_id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", reply["timestamp"])
    assert isinstance(reply["sources"], list)


def test_session_id_and_top_k_have_defaults(world: World) -> None:
    reply = world.post("/chat/run", message="What is URDF?")
    assert UUID(reply["session_id"]).version == 4
    assert reply["metadata"]["chunks_retrieved"] == 5


@pytest.mark.parametrize(
    "fields",
    [
        {"message": ""},
        {"message": "   "},
        {"message": "x", "session_id": "not-a-uuid"},
        {"message": "x", "top_k": 0},
        {"message": "x", "similarity_threshold": 1.5},
        {"message": "x", "similarity_threshold": -0.5},
    ],
)
def test_chat_run_returns_400_for_invalid_fields(world: World, fields: dict[str, Any]) -> None:
    assert world.server.http.post("/chat/run", json=fields).status_code == 400


@pytest.mark.parametrize("path", ["/chat/stream", "/chat/run"])
def test_stream_ends_with_sources_and_done(world: World, path: str) -> None:
    answer = world.server.http.post(path, json=EXAMPLE | {"stream": True, "session_id": None})
    events = [json.loads(block[6:]) for block in answer.text.split("\n\n") if block.startswith("data: ")]
    assert [event["type"] for event in events][-2:] == ["sources", "done"]
    if path == "/chat/run":
        assert events[-2]["sources"][0].keys() >= SOURCE.keys()
        assert events[-1]["query"] == EXAMPLE["message"]


def test_refusal_has_no_confidence_and_no_sources(world: World) -> None:
    world.llm.usual = Replies("I don't have information about that in the available documentation.")
    reply = world.post("/chat/run", message="Which yeast makes the best sourdough bread?")
    assert (reply["should_answer"], reply["confidence_level"], reply["confidence"]) == (False, "insufficient", 0.0)
    assert reply["sources"] == []


# ── ConversationThread ───────────────────────────────────────────────────────────────────────────────────────────────


def test_thread_has_messages_and_metadata(world: World) -> None:
    session = str(uuid4())
    world.post("/chat/run", message="What is URDF?", session_id=session, user_id="user123")
    world.post(
        "/chat/run",
        message="What does tf2 keep track of?",
        session_id=session,
        metadata={"tags": ["ros2", "urdf", "robotics"]},
    )
    thread = world.get(f"/sessions/{session}")
    assert thread.keys() >= {"thread_id", "messages", "created_at", "updated_at", "topic_summary", "metadata"}
    assert thread["metadata"] == {"user_id": "user123", "tags": ["ros2", "urdf", "robotics"]}
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant"] * 2
    times = [message["timestamp"] for message in thread["messages"]]
    assert times == sorted(times)
    assert [message["confidence"] is None for message in thread["messages"]] == [True, False] * 2
    assert thread["created_at"] <= thread["updated_at"]
    stored = world.rows("SELECT metadata FROM conversation_threads WHERE thread_id = $1", session)
    assert json.loads(stored[0]["metadata"])["user_id"] == "user123"


def test_thread_has_topic_summary_after_five_turns(world: World) -> None:
    session = str(uuid4())
    for number in range(5):
        assert (number == 0) or world.get(f"/sessions/{session}")["topic_summary"] is None
        world.post("/chat/run", message="What is ROS 2?" if number == 0 else "What is a topic?", session_id=session)
    summary = world.get(f"/sessions/{session}")["topic_summary"]
    assert "ROS 2" in summary
    assert len(summary) <= 200


def test_deleted_thread_returns_404(world: World) -> None:
    session = world.post("/chat/run", message="What is URDF?")["session_id"]
    assert world.server.http.delete(f"/sessions/{session}").status_code == 204
    assert world.server.http.get(f"/sessions/{session}").status_code == 404
    assert world.server.http.delete(f"/sessions/{session}").status_code == 404


def test_threads_table_has_columns_and_indexes(world: World) -> None:
    columns = {
        row["column_name"]: row["data_type"]
        for row in world.rows(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'conversation_threads'"
        )
    }
    assert columns["thread_id"] == "uuid"
    assert columns["created_at"] == columns["updated_at"] == "timestamp with time zone"
    assert (columns["topic_summary"], columns["metadata"]) == ("text", "jsonb")
    indexes = {row["indexname"] for row in world.rows("SELECT indexname FROM pg_indexes")}
    assert {"idx_threads_updated", "idx_threads_created"} <= indexes


# ── RetrievalResult and ConfidenceMetrics ────────────────────────────────────────────────────────────────────────────


def test_search_returns_results_and_confidence_metrics(world: World) -> None:
    found = world.post("/search", query=EXAMPLE["message"], similarity_threshold=0.7)
    assert found["total_results"] == len(found["results"]) > 0
    hashes = [passage["content_hash"] for passage in found["results"]]
    assert len(hashes) == len(set(hashes))
    assert all(len(one) == 64 for one in hashes)
    metrics = found["confidence"]
    assert metrics["min_similarity"] <= metrics["average_similarity"] <= metrics["max_similarity"]
    assert metrics["min_similarity"] >= 0.7
    assert metrics["num_chunks"] == found["total_results"]
    assert 0 <= metrics["chunk_diversity"] <= 1
    rules = ((0.85, 5, "high"), (0.75, 3, "medium"), (0.60, 2, "low"))
    expected = next(
        (
            level
            for least, count, level in rules
            if metrics["average_similarity"] >= least and metrics["num_chunks"] >= count
        ),
        "insufficient",
    )
    assert (metrics["confidence_level"], metrics["should_answer"]) == (expected, expected != "insufficient")


@pytest.mark.parametrize(("query", "enough"), [("What is ROS 2?", True), ("Which yeast makes the best bread?", False)])
def test_average_similarity_decides_sufficient_context(world: World, query: str, enough: bool) -> None:
    """`average_score` is `average_similarity`; `has_sufficient_context` is the requirement of level `medium`."""
    found = world.post("/search", query=query, top_k=10)
    metrics = found["confidence"]
    assert metrics["average_similarity"] <= metrics["max_similarity"]
    sufficient = metrics["average_similarity"] >= 0.75 and metrics["num_chunks"] >= 3
    assert sufficient is enough
    assert (metrics["confidence_level"] in ("high", "medium")) is sufficient


def test_hallucination_is_prevented_in_three_layers(world: World) -> None:
    """The prompt forbids it, unsupported sentences are withheld, and questions off the topic do not reach the model."""
    world.llm.usual = Replies("The moon is made of 77 kg of green cheese [1.1].")
    reply = world.post("/chat/run", message="What is ROS 2?")
    assert "only" in world.llm.requests[0]["messages"][0]["content"].lower()
    assert "cheese" not in reply["response"]
    assert reply["metadata"]["sentences_withheld"] + reply["metadata"]["sentences_replaced"] == 1
    world.llm.requests.clear()
    off = world.post("/chat/run", message="Which yeast makes the best sourdough bread?")
    assert (off["should_answer"], off["confidence_level"]) == (False, "insufficient")
    assert world.llm.requests == []


def test_search_without_relevant_passages_is_insufficient(world: World) -> None:
    metrics = world.post("/search", query="Which yeast makes the best sourdough bread?")["confidence"]
    assert (metrics["confidence_level"], metrics["should_answer"]) == ("insufficient", False)


def test_api_key_has_its_own_rate_limit(world: World) -> None:
    assert Settings.load().api_key_rate_limit == 100
    keyed = Settings.load(api_keys="secret-key").api_keys
    with serve(world.settings.model_copy(update={"api_keys": keyed, "api_key_rate_limit": 2})) as server:
        assert server.http.post("/search", json={"query": "node"}).status_code == 401
        headers = {"X-API-Key": "secret-key"}
        answers = [server.http.post("/search", json={"query": "node"}, headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
