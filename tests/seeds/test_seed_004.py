"""Seed 004, "RAG Agent Construction & Retrieval Integration": Query, RetrievalContext, Citation, AgentResponse."""

from typing import Any

import pytest

from tests.llm_stub import Fails, Replies
from tests.seeds.conftest import World
from tests.served import serve

pytestmark = pytest.mark.slow

MODULES = ("intro", "ros2", "simulation", "isaac", "vla")


def test_query_returns_answer_citations_and_times(world: World) -> None:
    reply = world.post("/chat/run", text="What is ROS 2?", top_k=5, module_filter="ros2")
    assert reply.keys() >= {
        *("answer", "citations", "query", "retrieval_time_ms", "generation_time_ms", "total_time_ms"),
        *("confidence", "error"),
    }
    assert reply["query"] == "What is ROS 2?"
    assert "[1]" in reply["answer"]
    assert (reply["confidence"], reply["error"]) == ("high", None)
    assert 0 < reply["retrieval_time_ms"] < reply["total_time_ms"]
    assert 0 < reply["generation_time_ms"] < reply["total_time_ms"]
    for citation in reply["citations"]:
        assert citation.keys() == {"page_title", "page_url", "module_name"}
        assert citation["page_title"] and "#" not in citation["page_url"]
        assert citation["module_name"] == "ros2"
    for source in reply["sources"]:
        assert source.keys() >= {"page_title", "page_url", "module_name", "chunk_index"}


@pytest.mark.parametrize("module", MODULES)
def test_module_filter_selects_each_module_of_the_seed(world: World, module: str) -> None:
    reply = world.post("/chat/run", text="What is a robot?", module_filter=module)
    assert {source["module_name"] for source in reply["sources"]} <= {module}
    searches = world.get(f"/sessions/{reply['session_id']}")["messages"][1]["searches"]
    assert searches[0]["filters"] == {"module": [module]}
    assert searches[0]["count"] > 0


def test_unknown_module_returns_400_with_the_known_modules(world: World) -> None:
    answer = world.server.http.post("/chat/run", json={"text": "What is a robot?", "module_filter": "cooking"})
    assert answer.status_code == 400
    for module in MODULES:
        assert module in answer.json()["message"]


@pytest.mark.parametrize(
    "fields", [{"text": ""}, {"text": " \n"}, {"text": "x", "top_k": 0}, {"text": "x", "top_k": 101}]
)
def test_chat_run_returns_400_for_invalid_fields(world: World, fields: dict[str, Any]) -> None:
    assert world.server.http.post("/chat/run", json=fields).status_code == 400


def test_top_k_of_100_is_lowered_to_20_with_a_warning(world: World) -> None:
    answer = world.server.http.post("/chat/run", json={"text": "What is ROS 2?", "top_k": 100})
    assert answer.status_code == 200
    assert answer.json()["metadata"]["chunks_retrieved"] == 20
    assert "top_k lowered to 20" in answer.headers["warning"]


def test_answer_without_results_has_confidence_none(world: World) -> None:
    reply = world.post("/chat/run", text="What is ROS 2?", filters={"page_title": "No Such Page"})
    assert (reply["confidence"], reply["citations"], reply["status"]) == ("none", [], "refused")


def test_search_and_answer_report_retrieval_context(world: World) -> None:
    """`total_found`, `query_time_ms` and `has_relevant_results` of a search and of its answer."""
    found = world.post("/search", query="What is ROS 2?")
    assert found["query"] == "What is ROS 2?"
    assert found["total_results"] == len(found["results"]) == 5
    assert found["latency_ms"] > 0
    assert found["results"][0]["relevance_score"] >= 0.3
    reply = world.post("/chat/run", text="What is ROS 2?")
    assert reply["metadata"]["chunks_retrieved"] == 5


@pytest.mark.parametrize(("least", "confidence"), [(0.3, "high"), (1.0, "none")])
def test_score_threshold_decides_confidence(world: World, least: float, confidence: str) -> None:
    """`min_relevance_score` is `score_threshold`, or `AGENT_SCORE_THRESHOLD` for all questions."""
    reply = world.post("/chat/run", text="What is ROS 2?", score_threshold=least)
    assert reply["confidence"] == confidence
    settings = world.settings.model_copy(update={"agent_score_threshold": least})
    with serve(settings) as server:
        reply = server.http.post("/chat/run", json={"text": "What is ROS 2?"}).json()
    assert reply["confidence"] == confidence


def test_low_confidence_answer_has_a_disclaimer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """State LOW_CONF: the answer has the confidence `low` and a disclaimer."""
    monkeypatch.setattr("chapterverse.answering.confidence.model_confidence", lambda *_: 0.3)
    reply = world.post("/chat/run", text="What is ROS 2?")
    assert (reply["confidence"], reply["status"]) == ("low", "answered")
    assert reply["disclaimer"] and reply["citations"]


def test_question_not_in_the_book_has_confidence_none(world: World) -> None:
    world.llm.usual = Replies("I don't have information about that in the available documentation.")
    reply = world.post("/chat/run", text="Who won the ROS 2 chess cup of 1999?")
    assert (reply["confidence"], reply["citations"]) == ("none", [])


def test_chat_run_returns_503_if_the_model_fails(world: World) -> None:
    world.llm.usual = Fails(500)
    answer = world.server.http.post("/chat/run", json={"text": "What is ROS 2?"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, "agent_unavailable")


def test_confidence_is_a_number_if_the_question_is_not_in_text(world: World) -> None:
    assert isinstance(world.post("/chat/run", message="What is ROS 2?")["confidence"], float)
    assert isinstance(world.post("/chat/run", query="What is ROS 2?")["confidence"], float)
