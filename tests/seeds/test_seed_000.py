"""Seed 000, "RAG Agent API": its scenarios, contracts, edge cases and constraints. docs/SEEDS.md has the table."""

import asyncio
import importlib
import inspect
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chapterverse.conversations import store
from chapterverse.settings import (
    GENERATION_SECONDS,
    REQUEST_SECONDS,
    RETRIEVAL_SECONDS,
    Settings,
)
from chapterverse.writing.messages import HISTORY_TOKENS
from tests.embeddings.stub import KEY, EmbeddingStub
from tests.llm_stub import Fails, Quotes, Replies
from tests.seeds.conftest import World
from tests.served import free_port, serve

pytestmark = pytest.mark.slow

NOT_IN_BOOK = "I don't have information about that in the available documentation."
NOT_FOUND = "I couldn't find relevant information in the documentation for your question."
SELECTION = "Tern is a small robot.\nIt carries a tray instead of an arm."


def events(world: World, path: str = "/chat/stream", **body: Any) -> list[dict[str, Any]]:
    answer = world.server.http.post(path, json=body)
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    blocks = [block for block in answer.text.split("\n\n") if block.startswith("data: ")]
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


# ── user stories ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_chat_returns_answer_sources_and_metadata(world: World) -> None:
    world.llm.usual = Quotes(12)
    reply = world.post("/chat", query="What is ROS 2?")
    assert reply["answer"]
    assert len(reply["sources"]) > 1, "every passage that contributed is cited"
    for source in reply["sources"]:
        assert {"source_url", "page_title", "section_heading", "chunk_text", "relevance_score"} <= source.keys()
        assert len(source["chunk_text"]) <= 500
        assert 0 <= source["relevance_score"] <= 1
        assert source["quote"] in source["chunk_text"] or len(source["quote"]) > 400
    assert reply["mode"] == "general"
    metadata = reply["metadata"]
    assert (
        metadata["query_time_ms"] > 0 and metadata["chunks_retrieved"] == 5 and metadata["model"] == "gemini-2.0-flash"
    )


def test_unsupported_sentence_is_not_in_the_answer(world: World) -> None:
    world.llm.usual = Replies("ROS 2 was written on the moon in 1742 [1.1].")
    reply = world.post("/chat", query="What is ROS 2?")
    assert "moon" not in reply["answer"] and "1742" not in reply["answer"]


def test_question_not_in_the_book_is_refused(world: World) -> None:
    world.llm.usual = Replies(NOT_IN_BOOK)
    for query in ("Which yeast makes the best sourdough bread?", "Who won the ROS 2 chess cup of 1999?"):
        reply = world.post("/chat", query=query)
        assert (reply["answer"], reply["sources"], reply["status"]) == (NOT_IN_BOOK, [], "refused")


def test_selected_text_is_answered_from_the_selection_only(world: World) -> None:
    world.llm.usual = Replies("It carries a tray instead of an arm [1.2].")
    reply = world.post("/chat", query="What does it carry?", mode="selected_text", selected_text=SELECTION)
    (source,) = reply["sources"]
    assert (source["source_url"], source["page_title"], source["relevance_score"]) == (
        "selected_text",
        "User Selection",
        1.0,
    )
    assert SELECTION[source["char_start"] : source["char_end"]] == source["quote"]
    assert (source["line_start"], source["line_end"]) == (1, 2)  # with the sentence that “It” refers to
    assert (reply["mode"], reply["metadata"]["chunks_retrieved"]) == ("selected_text", 0)
    (request,) = world.llm.requests
    assert "tools" not in request, "the model cannot search the index"


def test_question_not_in_the_selection_is_refused(world: World) -> None:
    world.llm.usual = Replies(NOT_IN_BOOK)
    reply = world.post("/chat", query="What is ROS 2?", mode="selected_text", selected_text=SELECTION)
    assert reply["answer"] == (
        "The provided selection does not contain information about “What is ROS 2?”. "
        "Would you like me to search the full documentation?"
    )


@pytest.mark.parametrize("selected", [None, "", "  "])
def test_chat_returns_400_for_empty_selection(world: World, selected: str | None) -> None:
    body = {"query": "What?", "mode": "selected_text", "selected_text": selected}
    answer = world.server.http.post("/chat", json=body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "validation_error")
    assert "selected_text: is required" in answer.json()["message"]


@pytest.mark.parametrize(("path", "more"), [("/chat/stream", {}), ("/chat", {"stream": True})])
def test_stream_has_chunks_then_sources_then_done(world: World, path: str, more: dict[str, Any]) -> None:
    reply = events(world, path, query="What is ROS 2?", **more)
    kinds = [event["type"] for event in reply]
    assert kinds[-2:] == ["sources", "done"] and kinds.count("chunk") > 1
    assert all(event["content"] for event in reply if event["type"] == "chunk")
    assert reply[-2]["sources"][0]["source_url"]
    assert reply[-1]["metadata"]["chunks_retrieved"] == 5


def test_top_k_limits_chunks_retrieved(world: World) -> None:
    assert 5 < world.post("/chat", query="What is ROS 2?", top_k=10)["metadata"]["chunks_retrieved"] <= 10


def test_score_threshold_removes_lower_scores(world: World) -> None:
    query = "How do ROS 2 nodes communicate?"
    scores = [passage["relevance_score"] for passage in world.post("/search", query=query, top_k=20)["results"]]
    middle = sorted(scores)[len(scores) // 2]
    assert min(scores) < middle
    for least in (0.7, middle):
        kept = world.post("/search", query=query, top_k=20, score_threshold=least)["results"]
        found = [passage["relevance_score"] for passage in kept]
        reached = [score for score in scores if score >= least]
        assert found[: len(reached)] == reached  # other passages above it may follow
        assert all(score >= least for score in found)
        reply = events(world, query=query, top_k=20, score_threshold=least)
        assert len(reply[0]["passages"]) == len(kept)
        assert all(passage["score"] >= least for passage in reply[0]["passages"])
        assert reply[-1]["status"] == "answered"


@pytest.mark.parametrize("field", ["source_url", "page_title", "section_heading"])
@pytest.mark.parametrize("several", [False, True])
def test_filters_select_passages_by_field(world: World, field: str, several: bool) -> None:
    value = world.post("/search", query="What is a node?")["results"][1][field]
    reply = events(world, query="What is a node?", filters={field: [value, "elsewhere"] if several else value})
    names = {"source_url": "source_url", "page_title": "page_title", "section_heading": "section_heading"}
    assert {passage[names[field]] for passage in reply[0]["passages"]} == {value}


# ── edge cases ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_chat_without_relevant_chunks_returns_not_found_text(world: World) -> None:
    assert world.post("/chat", query="What is ROS 2?", filters={"page_title": "No Such Page"})["answer"] == NOT_FOUND


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"query": "x" * 2001}, "shorten it to 2,000"),
        ({"query": "x", "mode": "selected_text", "selected_text": "x" * 10_001}, "shorten it to 10,000"),
        ({"query": ""}, "must not be empty"),
        ({"query": " "}, "must not be empty"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": 21}, "top_k"),
        ({"query": "x", "score_threshold": 1.1}, "score_threshold"),
        ({"query": "x", "session_id": "12345678"}, "session_id"),
    ],
)
def test_chat_returns_400_for_invalid_fields(world: World, body: dict[str, Any], message: str) -> None:
    answer = world.server.http.post("/chat", json=body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "validation_error")
    assert answer.json().keys() == {"error_code", "message", "details", "retry_after"}
    assert message in answer.json()["message"]


def test_chat_returns_400_for_malformed_json(world: World) -> None:
    answer = world.server.http.post("/chat", content='{"query": ', headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "position" in answer.json()["message"]


def test_unknown_endpoint_returns_404(world: World) -> None:
    answer = world.server.http.get("/nowhere")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "not_found")


def test_chat_returns_503_if_gemini_fails(world: World) -> None:
    world.llm.usual = Fails(500)
    answer = world.server.http.post("/chat", json={"query": "What is ROS 2?"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, "agent_unavailable")
    assert len(world.llm.requests) == 3, "two retries"


def test_chat_returns_503_if_qdrant_is_unreachable(tmp_path: Path, world: World) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    settings = world.settings.model_copy(update={"qdrant_url": gone, "chapterverse_home": tmp_path})
    with serve(settings) as server:
        answer = server.http.post("/chat", json={"query": "What is ROS 2?"})
        assert (answer.status_code, answer.json()["error_code"]) == (503, "retrieval_unavailable")
        server.service("qdrant", "down")


async def test_health_names_the_services_of_the_seed(world: World) -> None:
    async with EmbeddingStub() as stub:
        given = Settings.load(cohere_api_key=KEY, cohere_base_url=stub.url)
        update = {name: getattr(given, name) for name in ("cohere_api_key", "cohere_base_url")}

        def check() -> dict[str, Any]:
            with serve(world.settings.model_copy(update=update)) as server:
                return server.health(lambda health: health["status"] == "healthy")

        health = await asyncio.to_thread(check)
    assert health.keys() >= {"status", "services", "timestamp"}
    for name in ("qdrant", "cohere", "gemini", "database"):
        assert health["services"][name]["status"] == "up"
        assert health["services"][name].keys() >= {"status", "latency_ms", "message"}


def test_request_over_the_rate_limit_returns_429(world: World) -> None:
    with serve(world.settings.model_copy(update={"api_rate_limit": 2})) as server:
        answers = [server.http.post("/search", json={"query": "node"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    body = answers[-1].json()
    assert body["error_code"] == "rate_limited"
    assert 0 < body["retry_after"] <= 60
    assert answers[-1].headers["retry-after"] == str(body["retry_after"])


# ── storage and conversations ────────────────────────────────────────────────────────────────────────────────────────


def test_turn_is_stored_in_the_database(world: World) -> None:
    session = str(uuid4())
    reply = world.post("/chat", query="What is ROS 2?", session_id=session)
    (row,) = world.rows("SELECT * FROM conversations WHERE session_id = $1", session)
    assert row.keys() >= {
        *("id", "session_id", "query", "response", "sources", "mode", "selected_text", "chunks_retrieved"),
        *("latency_ms", "created_at"),
    }
    assert (row["query"], row["response"], row["mode"]) == ("What is ROS 2?", reply["answer"].strip(), "general")
    assert json.loads(row["sources"])[0]["source_url"] == reply["sources"][0]["source_url"]
    indexes = {row["indexname"] for row in world.rows("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")}
    assert {"idx_conversations_session_id", "idx_conversations_session_created"} <= indexes


def test_model_gets_earlier_turns(world: World) -> None:
    session = str(uuid4())
    first = world.post("/chat", query="What is ROS 2?", session_id=session)
    world.post("/chat", query="Which middleware does ROS 2 use?", session_id=session)
    messages = json.dumps(world.llm.requests[-1]["messages"])
    assert "What is ROS 2?" in messages
    assert first["answer"][:40] in messages


# ── agent, constraints, integration ──────────────────────────────────────────────────────────────────────────────────


def test_agent_request_has_tool_system_prompt_and_key(world: World) -> None:
    world.post("/chat", query="What is ROS 2?")
    (request,) = world.llm.requests
    (tool,) = request["tools"]
    assert tool["function"]["name"] == "search_documentation"
    assert tool["function"]["parameters"]["properties"].keys() == {"query", "top_k", "filters"}
    system = request["messages"][0]["content"]
    assert request["messages"][0]["role"] == "system"
    assert NOT_IN_BOOK in system, "the text of a refusal"
    assert world.llm.headers[-1]["authorization"] == "Bearer AIza-of-the-tests"


def test_default_limits_and_timeouts() -> None:
    assert (REQUEST_SECONDS, RETRIEVAL_SECONDS, GENERATION_SECONDS) == (30, 5, 25)
    assert (store.UNIT_SECONDS, HISTORY_TOKENS) == (5, 8000)
    settings = Settings.load()
    assert (settings.max_concurrent_requests, settings.api_rate_limit) == (10, 60)
    assert (settings.max_conversation_history, settings.conversation_retention_days) == (10, 30)
    assert (settings.qdrant_collection_name, settings.cohere_model) == ("rag_embedding", "embed-english-v3.0")
    assert settings.gemini_base_url == "https://generativelanguage.googleapis.com/v1beta/openai/"


def test_settings_are_read_from_the_environment_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "GEMINI_API_KEY": "AIza",
        "COHERE_API_KEY": "c",
        "QDRANT_URL": "https://xyz.cloud.qdrant.io:6333",
        "QDRANT_API_KEY": "q",
        "QDRANT_COLLECTION_NAME": "rag_embedding",
        "GEMINI_MODEL": "gemini-2.0-flash",
        "GEMINI_BASE_URL": "https://generativelanguage.googleapis.com/v1beta/openai/",
        "DATABASE_URL": "postgresql://user:pass@ep-xxx.neon.tech/dbname",
        "API_RATE_LIMIT": "100",
        "MAX_CONVERSATION_HISTORY": "10",
        "CONVERSATION_RETENTION_DAYS": "30",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    for name, value in given.items():
        read = getattr(settings, name.lower())
        assert str(read.get_secret_value() if hasattr(read, "get_secret_value") else read) == value


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("retrieval", ["retrieve", "retrieve_with_retry", "embed_query"]),
        ("models", ["RetrievalRequest", "SearchResult", "ChunkResult"]),
        (
            "errors",
            [
                *("EmbeddingError", "QdrantConnectionError", "QdrantTimeoutError", "CollectionNotFoundError"),
                "InvalidFilterError",
            ],
        ),
        ("config", ["QDRANT_COLLECTION", "COHERE_MODEL"]),
    ],
)
def test_names_of_the_seed_can_be_imported(module: str, names: list[str]) -> None:
    found = importlib.import_module(f"chapterverse.{module}")
    for name in names:
        assert hasattr(found, name)
    if module == "retrieval":
        assert all(inspect.iscoroutinefunction(getattr(found, name)) for name in names)


def test_openapi_has_the_endpoints_of_the_seed(world: World) -> None:
    assert world.server.http.get("/docs").status_code == 200
    paths = world.get("/openapi.json")["paths"]
    assert {"/chat", "/chat/stream", "/health"} <= paths.keys()
