"""Seed 004, "RAG Agent Construction & Retrieval Integration": Query, RetrievalContext, Citation, AgentResponse."""

from typing import Any

import pytest

from tests.llm_stub import Fails, Says
from tests.seeds.conftest import World
from tests.served import serve

pytestmark = pytest.mark.slow

MODULES = ("intro", "ros2", "simulation", "isaac", "vla")


def test_a_query_and_its_response(world: World) -> None:
    told = world.post("/chat/run", text="What is ROS 2?", top_k=5, module_filter="ros2")
    assert told.keys() >= {
        *("answer", "citations", "query", "retrieval_time_ms", "generation_time_ms", "total_time_ms"),
        *("confidence", "error"),
    }
    assert told["query"] == "What is ROS 2?"
    assert "[1]" in told["answer"]
    assert (told["confidence"], told["error"]) == ("high", None)
    assert 0 < told["retrieval_time_ms"] < told["total_time_ms"]
    assert 0 < told["generation_time_ms"] < told["total_time_ms"]
    for citation in told["citations"]:
        assert citation.keys() == {"page_title", "page_url", "module_name"}
        assert citation["page_title"] and "#" not in citation["page_url"]
        assert citation["module_name"] == "ros2"
    for source in told["sources"]:
        assert source.keys() >= {"page_title", "page_url", "module_name", "chunk_index"}


@pytest.mark.parametrize("module", MODULES)
def test_each_module_of_the_seed(world: World, module: str) -> None:
    told = world.post("/chat/run", text="What is a robot?", module_filter=module)
    assert {source["module_name"] for source in told["sources"]} <= {module}
    searches = world.get(f"/sessions/{told['session_id']}")["messages"][1]["searches"]
    assert searches[0]["filters"] == {"module": [module]}
    assert searches[0]["count"] > 0


def test_a_module_that_is_not_there(world: World) -> None:
    answer = world.server.http.post("/chat/run", json={"text": "What is a robot?", "module_filter": "cooking"})
    assert answer.status_code == 400
    for module in MODULES:
        assert module in answer.json()["message"]


@pytest.mark.parametrize(
    "fields", [{"text": ""}, {"text": " \n"}, {"text": "x", "top_k": 0}, {"text": "x", "top_k": 101}]
)
def test_what_is_refused(world: World, fields: dict[str, Any]) -> None:
    assert world.server.http.post("/chat/run", json=fields).status_code == 400


def test_a_hundred_chunks_may_be_asked_for(world: World) -> None:
    answer = world.server.http.post("/chat/run", json={"text": "What is ROS 2?", "top_k": 100})
    assert answer.status_code == 200
    assert answer.json()["metadata"]["chunks_retrieved"] == 20
    assert "top_k lowered to 20" in answer.headers["warning"]


def test_no_results(world: World) -> None:
    told = world.post("/chat/run", text="What is ROS 2?", filters={"page_title": "No Such Page"})
    assert (told["confidence"], told["citations"], told["status"]) == ("none", [], "refused")


def test_the_retrieval_context(world: World) -> None:
    """`total_found`, `query_time_ms` and `has_relevant_results` of a search, and of the answer that is made from it."""
    found = world.post("/search", query="What is ROS 2?")
    assert found["query"] == "What is ROS 2?"
    assert found["total_results"] == len(found["results"]) == 5
    assert found["latency_ms"] > 0
    assert found["results"][0]["relevance_score"] >= 0.3
    told = world.post("/chat/run", text="What is ROS 2?")
    assert told["metadata"]["chunks_retrieved"] == 5


@pytest.mark.parametrize(("least", "confidence"), [(0.3, "high"), (1.0, "none")])
def test_min_relevance_score(world: World, least: float, confidence: str) -> None:
    """It is `score_threshold`, or `AGENT_SCORE_THRESHOLD` for all questions: below it nothing is relevant."""
    told = world.post("/chat/run", text="What is ROS 2?", score_threshold=least)
    assert told["confidence"] == confidence
    settings = world.settings.model_copy(update={"agent_score_threshold": least})
    with serve(settings) as server:
        told = server.http.post("/chat/run", json={"text": "What is ROS 2?"}).json()
    assert told["confidence"] == confidence


def test_low_confidence(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """State LOW_CONF: the answer is given, with the word `low` and a disclaimer."""
    monkeypatch.setattr("chapterverse.answering.story.model_confidence", lambda *_: 0.3)
    told = world.post("/chat/run", text="What is ROS 2?")
    assert (told["confidence"], told["status"]) == ("low", "answered")
    assert told["disclaimer"] and told["citations"]


def test_not_in_the_book(world: World) -> None:
    world.llm.usual = Says("I don't have information about that in the available documentation.")
    told = world.post("/chat/run", text="Who won the ROS 2 chess cup of 1999?")
    assert (told["confidence"], told["citations"]) == ("none", [])


def test_an_error_of_the_model(world: World) -> None:
    world.llm.usual = Fails(500)
    answer = world.server.http.post("/chat/run", json={"text": "What is ROS 2?"})
    assert (answer.status_code, answer.json()["error_code"]) == (503, "agent_unavailable")


def test_a_number_where_the_question_has_another_name(world: World) -> None:
    assert isinstance(world.post("/chat/run", message="What is ROS 2?")["confidence"], float)
    assert isinstance(world.post("/chat/run", query="What is ROS 2?")["confidence"], float)
