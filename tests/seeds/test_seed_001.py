"""Seed 001, "RAG Agent with OpenAI SDK": configuration, the retrieval tool, conversation state, the tool's response."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from tests.cli.process import chapterverse
from tests.llm_stub import Calls, LlmStub, Quotes, Replies, serving_llm
from tests.seeds.conftest import World
from tests.served import serve

pytestmark = pytest.mark.slow

TURNS = (
    "What is ROS 2?",
    "Tell me more",
    "What does Tern carry instead of an arm?",
    "What is odometry?",
    "Why does its error grow?",
    "What does tf2 keep track of?",
    "How do nodes find each other without a master?",
    "What is a topic?",
    "And a service?",
    "What is Gazebo?",
    "What is a URDF file?",
)


def tool_results(llm: LlmStub) -> list[dict[str, Any]]:
    """The results of the tool in the last request to the model."""
    messages = llm.requests[-1]["messages"]
    return [json.loads(message["content"]) for message in messages if message["role"] == "tool"]


# ── AgentConfiguration ───────────────────────────────────────────────────────────────────────────────────────────────


def test_configuration_is_sent_to_the_model(world: World, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("You are a helpful assistant that answers questions about a book. Refuse with: {refusal}")
    with serving_llm() as llm:
        settings = Settings.load(
            chapterverse_home=world.settings.chapterverse_home,
            database_url=world.database_url,
            openai_api_key="sk-of-the-tests",
            openai_model="gpt-3.5-turbo",
            openai_base_url=llm.url,
            agent_temperature=0.25,
            agent_max_tokens=77,
            agent_prompt=prompt,
        )
        with serve(settings) as server:
            reply = server.http.post("/chat", json={"query": "What is ROS 2?"}).json()
        assert reply["metadata"]["model"] == "gpt-3.5-turbo"
        (request,) = llm.requests
        assert (request["model"], request["temperature"], request["max_tokens"]) == ("gpt-3.5-turbo", 0.25, 77)
        assert request["messages"][0]["content"].startswith("You are a helpful assistant")
        assert llm.headers[-1]["authorization"] == "Bearer sk-of-the-tests"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_temperatures_of_the_seed_are_accepted(temperature: float) -> None:
    assert Settings.load(agent_temperature=temperature).agent_temperature == temperature


def test_configuration_has_defaults_and_rejects_invalid_values() -> None:
    settings = Settings.load()
    assert (settings.agent_temperature, settings.agent_max_tokens) == (0.0, None)
    for field, value in (
        ("agent_temperature", 2.1),
        ("agent_temperature", -0.1),
        ("agent_max_tokens", 0),
        ("agent_prompt", "/no/such/file"),
    ):
        with pytest.raises(ConfigurationError, match=field.upper()):
            Settings.load(**{field: value})


# ── RetrievalTool and ToolResponse ───────────────────────────────────────────────────────────────────────────────────


def test_tool_response_has_ranked_results(world: World) -> None:
    world.llm.script.append(Calls({"query": "What are the prerequisites?", "top_k": 2}))
    world.post("/chat", query="What is ROS 2?")
    found = world.post("/search", query="What is ROS 2?")["results"]
    first, second = tool_results(world.llm)
    for result, chunk in zip(first["results"], found, strict=True):
        names = ("page_title", "section_heading", "source_url")
        assert [result[name] for name in names] == [chunk[name] for name in names]
    assert (second["query"], second["total_results"]) == ("What are the prerequisites?", 2)
    for response in (first, second):
        assert response.keys() == {"results", "total_results", "query"}
        assert response["total_results"] == len(response["results"])
        for rank, result in enumerate(response["results"], start=1):
            assert result["chunk_text"] and result["page_title"] and result["source_url"]
            assert result["section_heading"] is None or isinstance(result["section_heading"], str)
            assert 0 <= result["similarity_score"] <= 1
            assert result["rank"] == rank
    properties = world.llm.requests[0]["tools"][0]["function"]["parameters"]
    assert properties["required"] == ["query"]


@pytest.mark.parametrize(
    ("arguments", "query"),
    [({"query": ""}, ""), ({"query": "x", "top_k": 0}, "x"), ({"query": "x", "top_k": 21}, "x"), ("{", ""), ("[]", "")],
)
def test_invalid_tool_call_returns_an_error_to_the_model(world: World, arguments: Any, query: str) -> None:
    world.llm.script.append(Calls(arguments))
    assert world.post("/chat", query="What is ROS 2?")["status"] == "answered"
    last = tool_results(world.llm)[-1]
    assert last.keys() == {"error", "query"}
    assert last["error"] and last["query"] == query


def test_question_not_in_the_book_is_refused(world: World) -> None:
    world.llm.usual = Replies("I don't have information about that in the book content")
    reply = world.post("/chat", query="Which yeast makes the best sourdough bread?")
    assert (reply["status"], reply["sources"]) == ("refused", [])


# ── ConversationState ────────────────────────────────────────────────────────────────────────────────────────────────


def test_thread_keeps_more_than_ten_turns_with_their_searches(world: World) -> None:
    session = str(uuid4())
    for question in TURNS:
        if question in ("Tell me more", "Why does its error grow?", "And a service?"):
            world.llm.script.append(
                Replies("What is odometry, and why does its error grow?")
            )  # the rewritten, standalone question
        world.post("/chat", query=question, session_id=session)
    thread = world.get(f"/sessions/{session}")
    assert UUID(thread["thread_id"]) == UUID(session)
    assert thread["turn_count"] == len(TURNS) > 10
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant"] * len(TURNS)
    assert [message["content"] for message in thread["messages"][::2]] == list(TURNS)
    assert thread["created_at"] <= thread["messages"][-1]["timestamp"]
    for answer in thread["messages"][1::2]:
        (search,) = answer["searches"]
        assert search["query"] and search["count"] >= 5 and 0 < search["mean_similarity"] <= 1
        assert search["searched_at"]


def test_thread_has_every_search_of_a_turn(world: World) -> None:
    world.llm.script.append(Calls({"query": "middleware", "top_k": 3}))
    reply = world.post("/chat", query="What is ROS 2?", filters={"module": "ros2"})
    searches = world.get(f"/sessions/{reply['session_id']}")["messages"][1]["searches"]
    assert [(search["query"], search["count"]) for search in searches] == [("What is ROS 2?", 5), ("middleware", 3)]
    assert all(search["filters"] == {"module": ["ros2"]} for search in searches)


def test_model_gets_at_most_agent_max_turns_turns(world: World) -> None:
    session = str(uuid4())
    with serve(world.settings.model_copy(update={"agent_max_turns": 2})) as server:
        for question in ("What is Gazebo?", "What is a topic?", "What is odometry?", "What is ROS 2?"):
            server.http.post("/chat", json={"query": question, "session_id": session})
    asked = [message["content"] for message in world.llm.requests[-1]["messages"] if message["role"] == "user"]
    assert asked == ["What is a topic?", "What is odometry?", "What is ROS 2?"]


def test_cli_chat_and_sessions_show_searches(world: World, example_home: Path) -> None:
    environment = {"DATABASE_URL": world.database_url}
    session = str(uuid4())
    fed = "What is ROS 2?\nWhat does Tern carry instead of an arm?\n/searches\n"
    shown = chapterverse(example_home, "chat", "--session", session, fed=fed, **environment)
    assert shown.returncode == 0, shown.stderr
    assert "for “What is ROS 2?”: 5 passages, mean similarity 0." in " ".join(shown.stdout.split())
    listed = chapterverse(example_home, "sessions", "show", session, "--searches", **environment).stdout
    assert listed.count("searched at") == 2
    plain = chapterverse(example_home, "sessions", "show", session, **environment).stdout
    assert "searched at" not in plain
    thread = json.loads(chapterverse(example_home, "sessions", "show", session, "--json", **environment).stdout)
    assert [len(message["searches"]) for message in thread["messages"]] == [0, 1, 0, 1]


def test_source_has_page_title_and_section_heading(world: World) -> None:
    world.llm.usual = Quotes(2)
    for source in world.post("/chat", query="What is ROS 2?")["sources"]:
        assert source["page_title"] and source["section_heading"] and source["breadcrumb"]
        assert source["chunk_index"] >= 0 and source["rank"] >= 1
