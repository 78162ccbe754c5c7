"""Suggested questions: made from headings and frequent questions, and tested before they are shown."""

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from chapterverse.answering import fold, prepare, stream
from chapterverse.book import Block, Edition, Page, Section
from chapterverse.conversations.turns import AskedQuestion
from chapterverse.evaluation import suggesting
from chapterverse.evaluation.suggesting import (
    Candidate,
    WordUsage,
    book_candidates,
    explaining,
    make_suggestions,
    popular,
)
from chapterverse.evaluation.suggestion_store import Shelf, StoredSuggestions, keeping_suggestions, refresh, up_to_date
from chapterverse.models import ChatRequest
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tests.conftest import filled
from tests.llm_stub import Fails, serving_llm

PROSE = """You can install the program with a package manager. To install the chart, run one command.
You must use a chart. We use the Helm client here, and with Helm it is quick. To get the chart you need a network.
You can get a chart from anywhere. It is easy to configure the client, and you should configure your cluster first.
A chart is a collection of files that describes resources. Use it in production or in a test.
You can test the chart or test a library. The report of test coverage is quick.
"""


def page(*headings: str, text: str = PROSE) -> Page:
    """A page whose sections all have the same text."""
    sections, blocks, whole = [], [], ""
    for number, heading in enumerate(headings):
        start = len(whole)
        whole += f"## {heading}\n\n"
        blocks.append(Block("heading", start, len(whole) - 2, number))
        blocks.append(Block("paragraph", len(whole), len(whole) + len(text), number))
        whole += f"{text}\n"
        sections.append(Section(heading, 2, f"s{number}", start, len(whole), ()))
    return Page("p", "https://docs.example.com/p", "Page", "m", "s", whole, tuple(sections), tuple(blocks))


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Installing Helm", "How do I install Helm?"),
        ("Install the Program", "How do I install the program?"),
        ("2. Using Charts In Production", "How do I use charts in production?"),
        ("Getting a Library Chart", "How do I get a library chart?"),
        ("Getting and using charts anywhere", "How do I get and use charts anywhere?"),
        ("Configure Your Cluster", "How do I configure my cluster?"),
        ("How to get a library chart", "How do I get a library chart?"),
        ("When to use a library chart?", "When should I use a library chart?"),
        ("Why Is the Network Quick", "Why is the network quick?"),
        ("Is Your Network Quick ?", "Is my network quick?"),
        ("Charts", "What is a chart?"),
        ("Production Network", ""),
        ("Use of charts in production", "What is a chart?"),
        ("Test Coverage", ""),
        ("Where to go next", ""),
        ("Is it free?", ""),
        ("Install it in your cluster", ""),
        ("How to get these from the network", ""),
        ("Why Install?", ""),
        ("Resources", ""),
        ("Notes: everything (old)", ""),
        ("String things", ""),
    ],
)
def test_heading_becomes_a_question(heading: str, question: str) -> None:
    assert [one.question for one in book_candidates([page(heading)])] == ([question] if question else [])


def test_words_are_capitalised_as_in_the_book() -> None:
    usage = WordUsage([page("x")])
    assert usage.as_asked("Helm Client On A Network") == "Helm client On a network"


def test_candidates_alternate_between_modules_without_duplicates() -> None:
    first = page("Using Helm", "Getting Helm")
    second = replace(page("Installing Helm", "Using Helm"), module="other")
    asked = [one.question for one in book_candidates([first, second])]
    assert asked == ["How do I use Helm?", "How do I install Helm?", "How do I get Helm?"]


def test_pages_that_list_changes_or_links_give_no_questions() -> None:
    changes = page("Overview", "Version 1.2", "Version 1.1", "Using Helm")
    assert explaining([page("Using Helm"), changes, None, replace(page("Using Helm"), flags=("x",))]) == [
        page("Using Helm")
    ]


def test_changes_of_a_version_give_no_questions() -> None:
    first, below = page("Using Helm", "Getting Helm").sections
    sections = (first, replace(below, breadcrumb=("Version 1.6.1 (2024-08-30)",)))
    titled = replace(page("Using Helm", "Getting Helm"), sections=sections)
    assert [one.question for one in book_candidates([titled])] == ["How do I use Helm?"]


def turn(session: str, query: str = "Where are the logs?", **fields: object) -> AskedQuestion:
    asked = AskedQuestion("t", session, query, None, "general", "answered", 0.9, datetime(2026, 11, 1, tzinfo=UTC))
    return replace(asked, **fields)  # type: ignore[arg-type]


def test_only_questions_of_several_users_are_popular() -> None:
    three = [turn("a"), turn("b", "where are the  logs"), turn("c")]
    assert [one.question for one in popular(three)] == ["Where are the logs?"]
    assert popular([turn("a"), turn("a"), turn("b")]) == [], "only two users"
    assert popular([*three, turn("d", rating="down")]) == []
    assert popular([*three, turn("d", status="refused")]) == []
    assert popular([*three, turn("d", standalone_query="Where are the logs of the server?")]) == []


def test_shelf_creates_the_home_and_allows_one_maker(tmp_path: Path) -> None:
    shelf, other = Shelf(tmp_path / "home"), Shelf(tmp_path / "home")
    assert shelf.read() is None
    with shelf.alone() as first, other.alone() as second:
        assert (first, second) == (True, False)
    kept = StoredSuggestions(book="g", model="m", made_at=datetime(2026, 11, 1, tzinfo=UTC), suggestions=[])
    Shelf(tmp_path / "another").write(kept)
    assert Shelf(tmp_path / "another").read() == kept


async def test_candidates_are_made_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def candidates(pages: Sequence[Page]) -> list[Candidate]:
        threads.append(threading.get_ident())
        return []

    monkeypatch.setattr(suggesting, "book_candidates", candidates)
    services = SimpleNamespace(index=SimpleNamespace(pages=AsyncMock(return_value=[])))
    assert await suggesting._of_book(services, Edition()) == []  # type: ignore[arg-type]
    assert threads != [threading.get_ident()]


@pytest.mark.slow
async def test_every_suggestion_of_the_example_book_is_answered(example_home: Path) -> None:
    async with open_services(Settings.load(chapterverse_home=example_home)) as services:
        offered = await make_suggestions(services, 8)
        assert len(offered) == 8
        assert len({one.page for one in offered}) >= 6, "suggestions come from many pages"
        for one in offered:
            answer = await fold(stream(await prepare(ChatRequest(query=one.question), services, turns=()), services))
            assert answer.status == "answered" and answer.confidence_level != "low"
            assert any(source.source_url.startswith(one.page) for source in answer.sources)


@pytest.mark.slow
async def test_suggestions_are_stored_and_made_again_when_the_book_changes(tmp_path: Path) -> None:
    book, home = tmp_path / "book", tmp_path / "home"
    book.mkdir()
    (book / "heron.md").write_text("# Heron\n\nHeron is a boat that maps the harbour.\n", "utf-8")
    await asyncio.to_thread(filled, home, book)
    async with open_services(Settings.load(chapterverse_home=home)) as services:
        shelf = Shelf(home)
        assert await up_to_date(shelf, services) is None
        kept = await refresh(shelf, services)
        assert [one.question for one in kept.suggestions] == ["What is Heron?"]
        assert await up_to_date(shelf, services) == kept
    async with open_services(Settings.load(chapterverse_home=home, suggestions=1)) as services:
        assert await up_to_date(shelf, services) is None, "another number is wanted"
    (book / "kestrel.md").write_text("# Kestrel\n\nKestrel is a drone that looks for leaks in roofs.\n", "utf-8")
    await asyncio.to_thread(filled, home, book)
    async with open_services(Settings.load(chapterverse_home=home)) as services:
        assert await up_to_date(Shelf(home), services) is None
        made = await refresh(Shelf(home), services)
    assert {one.question for one in made.suggestions} == {"What is Heron?", "What is Kestrel?"}
    (home / "suggestions.json").write_text(json.dumps({"format": 0}), "utf-8")
    assert Shelf(home).read() is None


@pytest.mark.slow
async def test_failing_model_ends_the_making_of_suggestions(
    example_home: Path,
) -> None:
    with serving_llm() as stub:
        stub.usual = Fails(400)
        settings = Settings.load(
            chapterverse_home=example_home, openai_api_key="sk-stub", openai_base_url=stub.url, embeddings="local"
        )
        async with open_services(settings) as services:
            shelf = Shelf(example_home)
            async with keeping_suggestions(services, lambda: False, every=0.01):
                assert await asyncio.to_thread(stub.wait_asked)
        assert len(stub.requests) <= 3, "the model is not called repeatedly"
        assert shelf.read() is None or shelf.read().model != services.writer.name  # type: ignore[union-attr]
