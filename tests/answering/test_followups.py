"""What a question takes over from the conversation."""

import pytest

from chapterverse.answering.followups import accepts, asks_for_more, earlier_questions, in_context, leans
from chapterverse.turns import Turn


def turn(query: str, standalone: str | None = None) -> Turn:
    return Turn(session_id="", query=query, response="", standalone_query=standalone)


@pytest.mark.parametrize("query", ["yes", "Yes, please!", "sure", "ok go ahead", "please do", "Yeah, search it"])
def test_who_takes_up_an_offer(query: str) -> None:
    assert accepts(query)


@pytest.mark.parametrize("query", ["yesterday's news?", "Is that so?", "no", "What is Gazebo?", ""])
def test_who_does_not(query: str) -> None:
    assert not accepts(query)


@pytest.mark.parametrize("query", ["more", "tell me more", "go on", "Can you explain more, please?", "what else?"])
def test_who_asks_for_more(query: str) -> None:
    assert asks_for_more(query)


def test_a_question_of_its_own_does_not_ask_for_more() -> None:
    assert not asks_for_more("How do I add more nodes to a launch file?")


@pytest.mark.parametrize("query", ["why?", "and its default?", "what about services", "How do I undo that?", "example"])
def test_questions_that_lean_on_the_ones_before(query: str) -> None:
    assert leans(query)


@pytest.mark.parametrize(
    "query", ["How heavy is the robot Tern?", "Which node turns the URDF into transforms for the robot?"]
)
def test_questions_that_stand_alone(query: str) -> None:
    assert not leans(query)


def test_the_reader_sees_the_last_two_questions_and_the_new_one() -> None:
    turns = [turn("What is a topic?"), turn("And a service?"), turn("Which is faster?")]
    earlier = earlier_questions(turns)
    assert in_context(earlier, "why?") == "And a service? / Which is faster? / why?"
    assert in_context([], "why?") == "why?"


def test_a_turn_that_took_up_an_offer_counts_as_what_it_asked() -> None:
    assert earlier_questions([turn("yes", "What is a topic?")]) == ["What is a topic?"]
