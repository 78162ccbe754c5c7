"""What a question takes over from the conversation."""

from dataclasses import replace

import pytest

from chapterverse.answering.followups import accepts, earlier_questions, in_context, leans, near, together
from chapterverse.conversations.turns import Turn


def turn(query: str, standalone: str | None = None) -> Turn:
    return Turn(session_id="", query=query, response="", standalone_query=standalone)


@pytest.mark.parametrize(
    "query",
    [
        "yes",
        "Yes, please!",
        "sure",
        "ok go ahead",
        "please do",
        "Yeah, search it",
        "of course",
        "Absolutely.",
        "y",
        "OK",
        "yes please search the whole book",
        "YES DO IT",
        "Sure, why not?",
        "yes, thank you",
        "Search the documentation",
    ],
)
def test_replies_that_accept_an_offer(query: str) -> None:
    assert accepts(query)


@pytest.mark.parametrize(
    "query",
    [
        "yesterday's news?",
        "Is that so?",
        "no",
        "What is Gazebo?",
        "",
        "please tell me about gazebo",
        "ok what is a node",
        "Sure, how heavy is Tern",
        "yes, and what is that?",
        "ok no",
        "Yes, the port?",
        "please don't",
        "search for nodes",
    ],
)
def test_other_replies_do_not_accept_an_offer(query: str) -> None:
    assert not accepts(query)


@pytest.mark.parametrize(
    "query",
    ["why?", "tell me more", "go on", "and its default?", "what about services", "How do I undo that?", "example"],
)
def test_questions_that_lean_on_the_ones_before(query: str) -> None:
    assert leans(query)


@pytest.mark.parametrize(
    "query", ["How heavy is the robot Tern?", "Which node turns the URDF into transforms for the robot?"]
)
def test_questions_that_stand_alone(query: str) -> None:
    assert not leans(query)


def test_the_reader_sees_the_last_two_questions() -> None:
    turns = [turn("What is a topic?"), turn("And a service?"), turn("Which is faster?")]
    assert earlier_questions(turns) == ["And a service?", "Which is faster?"]


def test_a_follow_up_is_searched_for_with_the_question_before_it() -> None:
    assert together([turn("And a service?", "What is a service?")], "why?") == "why? (What is a service?)"
    assert len(together([turn("x" * 1990)], "why? " * 20)) <= 2000


def test_a_turn_that_took_up_an_offer_counts_as_what_it_asked() -> None:
    assert earlier_questions([turn("yes", "What is a topic?")]) == ["What is a topic?"]


def test_a_follow_up_is_searched_for_near_the_last_answer() -> None:
    answered = replace(turn("What is a topic?"), sources=({"breadcrumb": "Basics › Topics"},))
    assert near([answered], "why?") == ["why? (Basics › Topics)"]
    assert near([turn("What is a topic?")], "why?") == []


def test_the_reader_sees_what_was_asked_and_told_before() -> None:
    source = {
        "breadcrumb": "Basics › Topics",
        "quote": "Nodes talk. A topic carries\nmessages.",
        "quote_start": 100,
        "highlights": [{"start": 112, "end": 137}],
    }
    asked = [turn("What is a node?"), replace(turn("And a topic?"), sources=(source,))]
    read = in_context("why?", asked)
    assert read == "why? / And a topic? / What is a node? / Basics › Topics: A topic carries messages."
    assert in_context("What is a topic?", []) == "What is a topic?"
