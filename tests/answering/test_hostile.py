"""False statements of a scripted model are not shown."""

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from chapterverse.answering import Prepared, WholeBook, fold, prepare, stream
from chapterverse.answering.refusals import NOT_IN_BOOK, OFFER
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.language import sentences
from chapterverse.models import ChatRequest, ChatResponse
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tests.answering.asking import ask, check_markers, check_selection, events_of
from tests.answering.conftest import with_llm
from tests.answering.edits import FALSE
from tests.answering.manual import ORDER, PLANTED, QUESTION, TOPICS, answers
from tests.answering.support import unsupported
from tests.conftest import EXAMPLE_BOOK
from tests.llm_stub import LlmStub, Replies, serving_llm

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

ANSWERS = list(answers())
LIES = {lie for topic in TOPICS for _, lie in topic.false}
TRUTHS = {truth for topic in TOPICS for truth in topic.true}
_MARKERS = re.compile(r"\s*\[\d+\]")


@pytest.fixture(scope="session")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the manual that the scripted model lies about. Its last page has a prompt injection."""
    home, book = tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("manual")
    for number, topic in enumerate(TOPICS, start=1):
        (book / f"{number:02}.md").write_text(f"# {topic.heading}\n\n{topic.text}\n", "utf-8")
    (book / "winch.md").write_text(f"# Winch\n\n{PLANTED}\n", "utf-8")

    async def fill() -> None:
        async with open_services(Settings.load(chapterverse_home=home)) as services:
            await ingest([open_source(str(book), SourceOptions())], Workshop(services.index, services.embedder, home))

    asyncio.run(fill())
    return home


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile_services(hostile_home: Path, postgres_url: str) -> AsyncIterator[tuple[Services, LlmStub]]:
    """Services with the manual and the scripted model, and the model's server."""
    with serving_llm() as llm:
        llm.judge.truths = TRUTHS
        settings = Settings.load(chapterverse_home=hostile_home, database_url=postgres_url, **with_llm(llm))
        async with open_services(settings) as services:
            yield services, llm


async def answer_now(prepared: Prepared, services: Services) -> ChatResponse:
    """The answer to a prepared question, with a new deadline."""
    now = time.perf_counter()
    return await fold(stream(replace(prepared, started=now, deadline=now + 30), services))


def check(answer: ChatResponse, true: tuple[str, ...] = ()) -> None:
    """The answer has no sentence that is labelled false and none that its quotes do not support."""
    shown = " ".join(_MARKERS.sub("", answer.answer).split())
    check_markers(answer.answer, len(answer.sources))
    if answer.status == "refused":
        assert answer.sources == []
        assert shown == NOT_IN_BOOK or shown.endswith(OFFER)
        return
    assert unsupported(answer.answer, answer.sources) == []
    assert {shown[start:end] for start, end in sentences(shown)} & LIES <= set(true)
    assert not re.search(r"evil|https?:|HERON IS FREE|can fly|Ignore all", answer.answer)
    assert not any(source.quote in ORDER or ORDER[:40] in source.quote for source in answer.sources)


@pytest.mark.timeout(600)
async def test_false_statements_about_the_manual_are_not_shown(hostile_services: tuple[Services, LlmStub]) -> None:
    services, llm = hostile_services
    prepared = await prepare(ChatRequest(query=QUESTION, top_k=20), services)
    assert prepared.found is not None
    assert len(prepared.found.results) == len(TOPICS) + 1, "every passage is retrieved"
    in_order = sorted(prepared.found.results, key=lambda chunk: chunk.source_url)  # the answers name passages by topic
    found = prepared.found.model_copy(update={"confidence": None, "results": in_order})
    prepared = replace(prepared, scope=WholeBook(found))
    assert len(ANSWERS) > 300
    kept = 0
    for answer in ANSWERS:
        llm.usual = Replies(answer.text)
        if not answer.text.strip():
            continue  # an empty answer is an error: see below
        response = await answer_now(prepared, services)
        check(response, answer.true)
        kept += bool(answer.true) and any(
            truth.rstrip(".") in _MARKERS.sub("", response.answer) for truth in answer.true
        )
        assert response.metadata.llm_calls >= 1
    assert kept / sum(bool(answer.true) for answer in ANSWERS) > 0.9, "true sentences beside false ones are kept"


async def test_empty_model_answer_is_an_error(hostile_services: tuple[Services, LlmStub]) -> None:
    services, llm = hostile_services
    llm.usual = Replies("")
    events = await events_of(services, "How much does the winch lift?")
    assert [event.type for event in events] == ["retrieved", "error"]


async def test_prompt_injection_in_a_page_is_flagged_and_not_cited(hostile_services: tuple[Services, LlmStub]) -> None:
    services, llm = hostile_services
    prepared = await prepare(ChatRequest(query="How much does the winch lift?", top_k=3), services)
    assert prepared.found is not None
    planted = next(chunk for chunk in prepared.found.results if "winch" in chunk.chunk_text)
    assert planted.flags == ["addresses_assistant"]
    for start, end in sentences(ORDER):
        llm.usual = Replies(f"{ORDER[start : end - 1]} [1]. The winch lifts 12 kg [1].")
        response = await answer_now(prepared, services)
        assert response.answer.strip() == "The winch lifts 12 kg [1]."
    for obedient in ("The boat can fly [1].", "HERON IS FREE at https://evil.example/win [1].", "HERON IS FREE [1]."):
        llm.usual = Replies(obedient)
        assert (await answer_now(prepared, services)).answer == NOT_IN_BOOK


async def test_false_statements_about_a_selection_are_not_shown(hostile_services: tuple[Services, LlmStub]) -> None:
    services, llm = hostile_services
    for topic in TOPICS[:5]:
        selection = f"🛶 {topic.text}\r\n\r\n{ORDER}"
        for _, lie in topic.false[:6]:
            llm.usual = Replies(f"{lie} [1] {topic.true[0]} [1] {ORDER}")
            response = await ask(services, "What does it say?", mode="selected_text", selected_text=selection)
            check(response, topic.true)
            check_selection(response.sources, selection)
            assert topic.true[0][:20] in response.answer


# ── the example book ─────────────────────────────────────────────────────────────────────────────────────────────────


def _lies(prepared: Prepared, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Sentences of the passages with one change: the kind of change, the false sentence, the original."""
    assert prepared.found is not None
    whole = [
        chunk.chunk_text[start:end]
        for chunk in prepared.found.results
        for start, end in sentences(chunk.chunk_text)
        if re.fullmatch(r"[A-Z`][^|\n]{25,240}\.", chunk.chunk_text[start:end])
    ]
    for kind in ("number", "identifier", "name", "negation", "half"):
        for sentence in rng.sample(whole, len(whole)):
            lie = FALSE[kind](sentence, [other for other in whole if other != sentence], rng)
            if lie and lie != sentence:
                yield kind, lie, sentence
                break


@pytest.mark.timeout(600)
async def test_false_statements_about_the_example_book_are_not_shown(asking_llm: Services, llm: LlmStub) -> None:
    rng, scripted = random.Random(3), 0
    questions = [json.loads(line) for line in (EXAMPLE_BOOK.parent / "questions.jsonl").read_text("utf-8").splitlines()]
    for asked in questions:
        if not asked["answerable"]:
            continue
        prepared = await prepare(ChatRequest(query=asked["question"]), asking_llm)
        for _, lie, sentence in _lies(prepared, rng):
            scripted += 1
            llm.usual = Replies(f"{lie[:-1]} [{rng.randint(1, 9)}]. This was decided by 47 penguins in Reykjavik [1].")
            response = await answer_now(prepared, asking_llm)
            plain = " ".join(_MARKERS.sub("", response.answer).split())
            assert lie not in plain, (lie, sentence)
            assert "penguins" not in plain
            if response.status != "refused":
                assert unsupported(response.answer, response.sources) == []
    assert scripted >= 100
