"""Groups of questions that the book did not answer, without a language model."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chapterverse.conversations.turns import AskedQuestion
from chapterverse.evaluation.gaps import find_gaps, grouped, reconsidered, trouble_of
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def asked(query: str, minute: int = 0, **fields: Any) -> AskedQuestion:
    known: dict[str, Any] = {"status": "refused", "confidence": 0.0} | fields
    return AskedQuestion(
        "turn",
        known.pop("session_id", "session"),
        query,
        None,
        "general",
        created_at=NOW + timedelta(minutes=minute),
        **known,
    )


def test_questions_are_grouped_when_they_are_nearer_to_each_other_than_to_the_book() -> None:
    alike = np.array(
        [[1.0, 0.8, 0.1, 0.1], [0.8, 1.0, 0.1, 0.1], [0.1, 0.1, 1.0, 0.5], [0.1, 0.1, 0.5, 1.0]], np.float32
    )
    assert sorted(map(sorted, grouped(alike, [0.6, 0.6, 0.6, 0.6]))) == [[0, 1], [2], [3]]
    assert sorted(map(sorted, grouped(alike, [0.4, 0.4, 0.4, 0.4]))) == [[0, 1], [2, 3]]
    assert grouped(np.ones((1, 1), np.float32), [0.5]) == [[0]]


def test_a_chain_of_questions_is_not_one_group() -> None:
    """A and C have nothing in common but B: single linkage would join them."""
    alike = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, 0.65], [0.0, 0.65, 1.0]], np.float32)
    assert sorted(map(sorted, grouped(alike, [0.5, 0.5, 0.5]))) == [[0, 1], [2]]


def test_what_needs_the_authors_attention() -> None:
    well = asked("?", status="answered", confidence=0.9)
    assert trouble_of(well) is None
    assert trouble_of(replace(well, rating="down")) == "rated_down"
    assert trouble_of(asked("?")) == "refused"
    assert trouble_of(replace(well, confidence=0.3)) == "low"
    assert trouble_of(replace(well, confidence=0.3, rating="up")) is None
    assert trouble_of(replace(asked("?"), mode="selected_text")) is None, "says nothing of the book"


@pytest.mark.slow
async def test_an_answer_to_what_the_book_more_likely_does_not_answer_is_in_doubt(example_home: Path) -> None:
    """Its confidence was raised, because it is in the book's own words."""
    football, topic = "Who won the football world cup of 1998?", "What is a topic in ROS 2?"
    turns = [
        asked(football, 0, status="answered", confidence=0.6),
        asked(topic, 1, status="answered", confidence=0.6),
        asked(football, 2, status="answered", confidence=0.61),
        asked(football, 3, status="answered", confidence=0.6, rating="up"),
        asked(football, 4),
        replace(asked(football, 5, status="answered", confidence=0.6), mode="selected_text"),
    ]
    turns = [replace(turn, turn_id=str(number)) for number, turn in enumerate(turns)]
    async with open_engines(Settings.load(chapterverse_home=example_home)) as engines:
        read = await reconsidered(turns, engines)
        gaps = await find_gaps(read[:2], engines)
    assert [trouble_of(turn) for turn in read] == ["low", None, None, None, "refused", None]
    chance = read[0].confidence
    assert chance is not None and 0 < chance < 0.5
    assert [turn.confidence for turn in (read[1], read[2], read[5])] == [0.6, 0.61, 0.6], "they stay as they were"
    assert [(gap.name, gap.troubles) for gap in gaps] == [(football, {"low": 1})]


@pytest.mark.slow
async def test_gaps_of_the_example_book(example_home: Path) -> None:
    turns = [
        asked("How do I deploy ROS 2 nodes to a Kubernetes cluster?", session_id="one"),
        asked("how do i deploy ROS 2 nodes to a kubernetes cluster", 1, session_id="two"),
        asked("Can ROS 2 nodes run in a Kubernetes cluster?", 2),
        asked("Who won the football world cup of 1998?", 3, reason=None),
        asked("Which team won the 1998 football world cup?", 4),
        asked(
            "What is ROS 2?", 5, status="answered", confidence=0.9, rating="down", reason="unclear", comment="Too long."
        ),
        asked("What is a topic?", 6),
        asked("What is a topic?", 7, status="answered", confidence=0.9),
    ]
    async with open_engines(Settings.load(chapterverse_home=example_home)) as engines:
        gaps = await find_gaps(turns, engines)

        async def name(questions: Any) -> str:
            return f"{len(questions)} questions"

        named = await find_gaps(turns, engines, name)
    by_size = [(gap.asked, len(gap.questions)) for gap in gaps]
    assert by_size == [(3, 2), (2, 2), (1, 1)], "a question that is answered now is no gap"
    first = gaps[0]
    assert "Kubernetes" in first.name and first.name in [one.question for one in first.questions]
    assert (first.sessions, first.troubles) == (3, {"refused": 3})
    assert "Kubernetes" in first.missing_words and "ROS" not in first.missing_words
    assert first.nearest and first.nearest[0].source_url.startswith("book/")
    assert first.nearest[0].source_url in first.issue and "Words that the book does not have" in first.issue
    down = gaps[2]
    assert down.troubles == {"rated_down": 1}
    assert (down.questions[0].reasons, down.questions[0].comments) == (["unclear"], ["Too long."])
    assert [gap.name for gap in named] == ["2 questions", "2 questions", "1 questions"]
