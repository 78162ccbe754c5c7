"""Turns that depend on earlier turns: what is loaded, searched for, sent to the model and stored."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chapterverse.answering import fold, prepare, stream
from chapterverse.conversations.turns import Turn
from chapterverse.errors import ConversationsUnavailable
from chapterverse.models import ChatRequest, SearchFilters
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.writing.prompts import STANDALONE
from tests.answering.asking import ask
from tests.answering.conftest import with_llm
from tests.llm_stub import Fails, LlmStub, Quotes, Replies, Reply, shown
from tests.served import serve

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

# Each question, the word that the search must take from earlier turns, the page that answers it, and words of the
# answer.
TWELVE = (
    ("What is Tern?", "Tern", "How to Read This Book", "Tern exists only in this book"),
    ("How heavy is it?", "Tern", "How to Read This Book", "6 kg"),
    ("And how fast can it drive?", "Tern", "How to Read This Book", "0.5 m/s"),
    ("Which sensors does it have?", "Tern", "How to Read This Book", "lidar"),
    ("What does it carry instead of an arm?", "Tern", "How to Read This Book", "a tray"),
    ("Tell me more", "Tern", "How to Read This Book", ""),
    ("What is Gazebo?", "Gazebo", "Gazebo", "open-source robot simulator"),
    ("Who makes it?", "Gazebo", "Gazebo", "Open Robotics"),
    ("And how do I start it?", "Gazebo", "Gazebo", "gz sim"),
    ("What physics engine does it use?", "Gazebo", "Why Simulate?", "DART"),
    ("How does it talk to ROS 2?", "Gazebo", "Gazebo", "bridge"),
    ("Can you give me an example?", "Gazebo", "Gazebo", "Gazebo"),
)

# Known misses: refused, or answered from the wrong section. The set must not grow.
MISSED_WITHOUT_A_KEY = {
    "What physics engine does it use?",
    "How does it talk to ROS 2?",
    "Can you give me an example?",  # of what the wrong answer before it is about
}


@pytest.mark.parametrize("keyed", [False, True])
async def test_conversation_of_twelve_turns_survives_a_restart(
    example_home: Path, postgres_url: str, llm: LlmStub, keyless: Services, keyed: bool
) -> None:
    settings = Settings.load(
        chapterverse_home=example_home, database_url=postgres_url, **(with_llm(llm) if keyed else {})
    )
    session = str(uuid4())

    def talk(part: tuple[tuple[str, ...], ...]) -> list[dict[str, Any]]:
        with serve(settings) as server:
            bodies = [{"query": query, "session_id": session} for query, *_ in part]
            answers = [server.http.post("/chat", json=body) for body in bodies]
            assert all(answer.status_code == 200 for answer in answers)
            return [answer.json() for answer in answers]

    answers = [*await asyncio.to_thread(talk, TWELVE[:5]), *await asyncio.to_thread(talk, TWELVE[5:])]
    turns = await keyless.conversations.recent(session, 24)
    assert [turn.query for turn in turns] == [query for query, *_ in TWELVE]
    for (query, topic, _, _), answer, turn in zip(TWELVE, answers, turns, strict=True):
        assert topic.lower() in (turn.standalone_query or "").lower(), query
        assert answer["metadata"]["stored"]
        assert answer["status"] == "answered" or (not keyed and query in MISSED_WITHOUT_A_KEY), query
    if not keyed:
        wrong = {
            query
            for (query, _, page, words), answer in zip(TWELVE, answers, strict=True)
            if words not in answer["answer"] or page not in [source["page_title"] for source in answer["sources"]]
        }
        assert wrong == MISSED_WITHOUT_A_KEY
    thread = await keyless.conversations.thread(session)
    assert thread is not None
    assert thread.turn_count == 12
    assert thread.topic_summary is not None and thread.topic_summary.startswith("What is Tern?")
    if keyed:
        answering = [request for request in llm.requests if not rewriting(request)]
        assert len(llm.requests) - len(answering) == 10  # all but the two questions that name their subject
        for (query, topic, page, _), request in zip(TWELVE, answering, strict=True):
            reading = shown(request)
            assert topic in reading.question, query
            assert any(page in passage.breadcrumb.split(" › ") for passage in reading.passages), query
        assert [len(request["messages"]) for request in answering] == [2 + 2 * min(5, turn) for turn in range(12)]


def rewriting(request: dict[str, Any]) -> bool:
    return bool(request["messages"][0]["content"] == STANDALONE)


async def test_follow_up_is_rewritten_by_the_model_before_the_search(asking_llm: Services, llm: LlmStub) -> None:
    session = str(uuid4())
    await ask(asking_llm, "What is Tern?", session_id=session)
    llm.script.extend([Replies('"What is the mass of the robot Tern?"'), Quotes(1)])
    answer = await ask(asking_llm, "And how heavy is it?", session_id=session)
    assert answer.metadata.llm_calls == 2
    (first, turn) = await asking_llm.conversations.recent(session, 10)
    assert turn.standalone_query == turn.searches[0].query == "What is the mass of the robot Tern?"
    assert turn.query == "And how heavy is it?"
    assert first.standalone_query == "What is Tern?"


@pytest.mark.parametrize("reply", [Fails(500), Replies(""), Replies("word " * 200)])
async def test_follow_up_is_rewritten_by_rules_if_the_model_fails(
    asking_llm: Services, llm: LlmStub, reply: Reply
) -> None:
    session = str(uuid4())
    await ask(asking_llm, "What is Tern?", session_id=session)
    llm.script.extend([reply, Quotes(1)])
    answer = await ask(asking_llm, "And how heavy is it?", session_id=session)
    assert answer.status == "answered"
    turn = (await asking_llm.conversations.recent(session, 10))[-1]
    assert turn.standalone_query is not None
    assert "Tern" in turn.standalone_query
    assert turn.standalone_query.startswith("And how heavy is it?")


async def test_model_gets_the_last_ten_messages(asking_llm: Services, llm: LlmStub) -> None:
    session = str(uuid4())
    for number in range(8):
        await ask(asking_llm, f"What is ROS 2, question {number}?", session_id=session)
    roles = [message["role"] for message in llm.requests[-1]["messages"]]
    assert roles == ["system", *["user", "assistant"] * 5, "user"]
    asked = [message["content"] for message in llm.requests[-1]["messages"] if message["role"] == "user"]
    assert asked[:5] == [f"What is ROS 2, question {number}?" for number in range(2, 7)]
    answers = [message["content"] for message in llm.requests[-1]["messages"] if message["role"] == "assistant"]
    assert all(answer and "[1]" not in answer for answer in answers)


@pytest.mark.parametrize(("messages", "seen"), [(0, 0), (4, 2)])
async def test_max_conversation_history_limits_the_messages_sent(
    asking_llm: Services, llm: LlmStub, messages: int, seen: int
) -> None:
    settings = asking_llm.settings.model_copy(update={"max_conversation_history": messages})
    services, session = replace(asking_llm, settings=settings), str(uuid4())
    for _ in range(5):
        await ask(services, "What is ROS 2?", session_id=session)
    assert len(llm.requests[-1]["messages"]) == 2 + 2 * seen
    thread = await asking_llm.conversations.thread(session)
    assert thread is not None and thread.topic_summary == "What is ROS 2?"


async def test_agent_max_turns_limits_the_turns_sent(asking_llm: Services, llm: LlmStub) -> None:
    settings = asking_llm.settings.model_copy(update={"agent_max_turns": 2})
    services, session = replace(asking_llm, settings=settings), str(uuid4())
    for number in range(6):
        await ask(services, f"What is ROS 2, question {number}?", session_id=session)
    asked = [message["content"] for message in llm.requests[-1]["messages"] if message["role"] == "user"]
    assert asked[:-1] == ["What is ROS 2, question 3?", "What is ROS 2, question 4?"]
    thread = await services.conversations.thread(session)
    assert thread is not None
    assert thread.turn_count == 6
    assert thread.topic_summary, "the stored turns and the topic do not depend on what the model gets"


@pytest.mark.parametrize("remembered", [50, 6])
async def test_more_turns_are_loaded_than_are_sent_to_the_model(
    asking_llm: Services, llm: LlmStub, remembered: int
) -> None:
    """Follow-ups, filters and repeated questions need more of a conversation than the model gets."""
    settings = asking_llm.settings.model_copy(update={"agent_max_turns": remembered})
    services, session = replace(asking_llm, settings=settings), str(uuid4())
    for number in range(8):
        await ask(services, f"What is ROS 2, question {number}?", session_id=session)
    prepared = await prepare(ChatRequest(query="What is a topic?", session_id=session), services)
    assert len(prepared.turns) == min(8, remembered)
    await ask(services, "And how does it do that?", session_id=session)
    for request in llm.requests[-2:]:  # one rewrites the question, one answers it
        asked = [message["content"] for message in request["messages"] if message["role"] == "user"]
        assert asked[:-1] == [f"What is ROS 2, question {number}?" for number in range(3, 8)]


async def test_repeated_question_from_many_turns_ago_gets_the_same_answer(keyless: Services) -> None:
    session = str(uuid4())
    first = await ask(keyless, "What is Gazebo?", session_id=session)
    for question in [turn[0] for turn in TWELVE[:6]]:
        await ask(keyless, question, session_id=session)
    prepared = await prepare(ChatRequest(query="what is gazebo?", session_id=session), keyless)
    assert prepared.turns == (), "a repeated question is no follow-up"
    forgetful = replace(keyless, settings=keyless.settings.model_copy(update={"agent_max_turns": 3}))
    prepared = await prepare(ChatRequest(query="what is gazebo?", session_id=session), forgetful)
    assert len(prepared.turns) == 3
    assert (await ask(keyless, "What is Gazebo?", session_id=session)).answer == first.answer


async def test_agent_max_turns_limits_a_history_sent_by_the_client(asking_llm: Services) -> None:
    settings = asking_llm.settings.model_copy(update={"agent_max_turns": 1})
    history = [Turn(session_id="", query=f"question {number}", response="…") for number in range(3)]
    prepared = await prepare(ChatRequest(query="What is ROS 2?"), replace(asking_llm, settings=settings), turns=history)
    assert [turn.query for turn in prepared.turns] == ["question 2"]


async def test_long_history_drops_the_oldest_turns(asking_llm: Services, llm: LlmStub) -> None:
    session = str(uuid4())
    for number in range(7):
        await ask(asking_llm, f"ROS 2 {number} " + "🤖🤖🤖 " * 480, session_id=session)
    await ask(asking_llm, "What is ROS 2?", session_id=session)
    sent = [message["content"] for message in llm.requests[-1]["messages"] if message["role"] == "user"][:-1]
    assert 0 < len(sent) < 5
    assert sent[-1].startswith("ROS 2 6")
    assert sum(len(text.encode()) for text in sent) <= 8000 * 4


async def test_follow_up_is_resolved_before_the_search(keyless: Services) -> None:
    session = str(uuid4())
    first = await ask(keyless, "What does tf2 keep track of?", session_id=session)
    prepared = await prepare(ChatRequest(query="And why?", session_id=session), keyless)
    assert "tf2" in prepared.question
    assert prepared.found is not None
    assert prepared.found.query == prepared.question
    cited = {(source.source_url, source.chunk_index) for source in first.sources}
    assert cited <= {(chunk.source_url, chunk.chunk_index) for chunk in prepared.found.results}


async def test_evidence_of_the_last_answer_stays_a_candidate_for_a_follow_up(keyless: Services) -> None:
    session = str(uuid4())
    await ask(keyless, "What is odometry, and why does its error grow without bound?", session_id=session)
    (turn,) = await keyless.conversations.recent(session, 2)
    assert turn.evidence
    request = ChatRequest(query="And what about the physics engines of Gazebo?", session_id=session, top_k=20)
    prepared = await prepare(request, keyless)
    assert prepared.found is not None
    found = [chunk.chunk_id for chunk in prepared.found.results]
    assert set(turn.evidence) <= set(found)
    assert not set(turn.evidence) & set(found[:1]), "the old evidence does not answer this question"
    within = ChatRequest(query=request.query, session_id=session, filters=SearchFilters(module=["simulation"]))
    narrowed = await prepare(within, keyless)
    assert narrowed.found is not None
    assert {chunk.module for chunk in narrowed.found.results} == {"simulation"}, (
        "old evidence must pass the filter, too"
    )


async def test_standalone_question_adds_no_old_evidence(keyless: Services) -> None:
    session = str(uuid4())
    await ask(keyless, "What does tf2 keep track of?", session_id=session)
    request = ChatRequest(query="Which numbers does Tern's mass have?", session_id=session)
    prepared = await prepare(request, keyless)
    assert prepared.question == request.query
    assert prepared.found is not None
    assert len(prepared.found.results) == 5


async def test_repeated_question_gets_the_same_answer(keyless: Services) -> None:
    session = str(uuid4())
    answers = [(await ask(keyless, "What does tf2 keep track of?", session_id=session)).answer for _ in range(2)]
    assert answers[0] == answers[1]


async def test_repeated_follow_up_is_about_the_question_before_it(keyless: Services) -> None:
    history = [Turn("", query, "…") for query in ("What is a node?", "Tell me more", "What is Gazebo?")]
    prepared = await prepare(ChatRequest(query="tell me more"), keyless, turns=history)
    assert prepared.question == "tell me more (What is Gazebo?)"
    assert len(prepared.turns) == 3


async def test_turn_is_stored_with_all_fields(keyless: Services) -> None:
    session = str(uuid4())
    await ask(keyless, "What does tf2 keep track of?", session_id=session)
    answer = await ask(keyless, "Why?", session_id=session)
    _, turn = await keyless.conversations.recent(session, 4)
    assert (turn.query, turn.response, turn.status) == ("Why?", answer.answer.strip(), answer.status)
    assert turn.standalone_query and "tf2" in turn.standalone_query
    assert list(turn.sources) == [source.model_dump(mode="json") for source in answer.sources]
    assert turn.confidence == pytest.approx(answer.confidence)
    assert turn.chunks_retrieved == answer.metadata.chunks_retrieved
    (search,) = turn.searches
    assert (search.query, search.count) == (turn.standalone_query, answer.metadata.chunks_retrieved)
    assert search.mean_similarity is not None and 0.0 < search.mean_similarity <= 1.0
    assert turn.latency_ms > 0


async def test_concurrent_turns_are_all_stored(asking_llm: Services, llm: LlmStub) -> None:
    session = str(uuid4())
    llm.usual = Replies("Nothing that is known.", pause=0.02)
    questions = [f"What is ROS 2, number {number}?" for number in range(6)]
    await asyncio.gather(*(ask(asking_llm, question, session_id=session) for question in questions))
    turns = await asking_llm.conversations.recent(session, 20)
    assert sorted(turn.query for turn in turns) == questions
    times = [turn.created_at for turn in turns if turn.created_at]
    assert len(times) == 6 and times == sorted(times)
    await ask(asking_llm, "What is ROS 2?", session_id=session)
    thread = await asking_llm.conversations.thread(session)
    assert thread is not None and thread.topic_summary, "a topic is set also if no turn had exactly four before it"


async def test_topic_is_set_once_after_five_turns(asking_llm: Services) -> None:
    session = str(uuid4())
    topics = []
    for question in ("What is ROS 2?", "What is tf2?", "What is a node?", "What is Tern?", "What is a topic?") * 2:
        await ask(asking_llm, question, session_id=session)
        thread = await asking_llm.conversations.thread(session)
        assert thread is not None
        topics.append(thread.topic_summary)
    assert topics[:4] == [None] * 4
    assert topics[4] is not None and topics[4].startswith("What is ROS 2?") and len(topics[4]) <= 200
    assert set(topics[4:]) == {topics[4]}


@pytest.mark.parametrize("failure", [ConversationsUnavailable("no topic today"), TimeoutError("no topic today")])
async def test_turn_is_stored_even_if_its_topic_is_not(
    keyless: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    session = str(uuid4())
    for _ in range(4):
        await ask(keyless, "What is ROS 2?", session_id=session)

    async def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(keyless.conversations, "set_topic", fail)
    answer = await ask(keyless, "What is tf2?", session_id=session)
    assert "no topic today" in caplog.text and "turn was not stored" not in caplog.text
    assert answer.metadata.stored
    assert len(await keyless.conversations.recent(session, 20)) == 5


async def test_session_deleted_while_it_is_answered_stays_deleted(keyless: Services) -> None:
    session = str(uuid4())
    await ask(keyless, "What is Gazebo?", session_id=session)
    prepared = await prepare(ChatRequest(query="Who makes it?", session_id=session), keyless)
    await keyless.conversations.delete(session)
    answer = await fold(stream(prepared, keyless))
    assert not answer.metadata.stored
    assert await keyless.conversations.thread(session) is None


async def test_refusal_is_stored_and_sent_as_history(asking_llm: Services, llm: LlmStub) -> None:
    session = str(uuid4())
    answer = await ask(asking_llm, "Which king built Versailles?", session_id=session)
    (turn,) = await asking_llm.conversations.recent(session, 2)
    assert (turn.response, turn.status, turn.evidence) == (answer.answer, "refused", ())
    await ask(asking_llm, "What is ROS 2?", session_id=session)
    assert shown(llm.requests[-1]).question == "What is ROS 2?"
    assert answer.answer in [message["content"] for message in llm.requests[-1]["messages"]]
