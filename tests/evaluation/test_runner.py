"""Asking a set, with real engines, the example book and a scripted model over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from chapterverse.evaluation.measures import right
from chapterverse.evaluation.questions import Question
from chapterverse.evaluation.runner import ask, ask_all
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tests.llm_stub import Fails, Hangs, LlmStub, Quotes, serving_llm

pytestmark = pytest.mark.slow

NODE = "A node is a participant in the ROS 2 graph that does one job."


@pytest.fixture
def stub() -> Iterator[LlmStub]:
    with serving_llm() as stub:
        yield stub


@pytest.fixture
async def services(example_home: Path, stub: LlmStub) -> AsyncIterator[Services]:
    settings = Settings.load(
        chapterverse_home=example_home,
        openai_api_key="sk-stub",
        openai_base_url=stub.url,
        embeddings="local",
        database_url="postgresql://nobody@127.0.0.1:1/none",  # storing would fail
    )
    async with open_services(settings) as opened:
        yield opened


def about(text: str, number: int = 1) -> Question:
    return Question(id=f"q{number}", question=text)


async def test_case_has_passages_citations_and_latency(services: Services, stub: LlmStub) -> None:
    stub.usual = Quotes(1)
    case = await ask(Question(id="q", question="What is a node?", page="ros2/nodes-and-topics.md"), services)
    assert case.status == "answered"
    assert case.citations
    assert case.citations[0].quote in "".join(passage.text for passage in case.passages)
    assert len(case.passages) == 5
    assert case.latency_ms > 0
    assert case.calls == 1
    assert case.searched == "What is a node?"


async def test_filters_apply(services: Services) -> None:
    asked = Question.model_validate({"id": "q", "question": "What is a node?", "filters": {"module": "vla"}})
    assert {"vla" in passage.source_url for passage in (await ask(asked, services)).passages} == {True}


async def test_history_is_sent_to_the_model(services: Services, stub: LlmStub) -> None:
    history = (("What is a node?", NODE),)
    case = await ask(Question(id="q", question="What can it publish?", history=history), services)
    assert "node" in case.searched.lower()
    assert NODE in str(stub.requests[-1]["messages"])


async def test_selection_is_answered_from_alone(services: Services, stub: LlmStub) -> None:
    stub.usual = Quotes(1)
    text = "Tern has a mass of 6 kg and two driven wheels."
    case = await ask(Question(id="q", question="What mass?", selection=text, sentence=text), services)
    assert case.passages == ()
    assert [citation.quote for citation in case.citations] == [text]
    assert right(case) is True


async def test_failed_question_is_a_case_and_the_run_continues(services: Services, stub: LlmStub) -> None:
    stub.script.append(Fails(400))
    cases = [case async for case in ask_all([about("What is a node?", 1), about("What is a topic?", 2)], services)]
    assert [case.status for case in cases] == ["failed", "answered"]
    assert cases[0].error.startswith("agent_unavailable: ")
    assert "secret" not in cases[0].error


async def test_concurrency_is_limited_and_closing_cancels_the_questions(services: Services, stub: LlmStub) -> None:
    stub.usual = Hangs()
    asked = ask_all([about("What is a node?", number) for number in range(6)], services, 2)
    first = asyncio.ensure_future(anext(asked))
    assert await asyncio.to_thread(stub.wait_asked, times=2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asked.aclose()
    assert await asyncio.to_thread(stub.wait_disconnect)
    assert len(stub.requests) == 2
