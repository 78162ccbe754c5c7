"""How a question uses the conversation before it."""

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
def test_dependent_questions_are_recognised(query: str) -> None:
    assert leans(query)


@pytest.mark.parametrize(
    "query", ["How heavy is the robot Tern?", "Which node turns the URDF into transforms for the robot?"]
)
def test_standalone_questions_are_recognised(query: str) -> None:
    assert not leans(query)


def test_earlier_questions_are_the_last_two() -> None:
    turns = [turn("What is a topic?"), turn("And a service?"), turn("Which is faster?")]
    assert earlier_questions(turns) == ["And a service?", "Which is faster?"]


def test_search_query_of_a_follow_up_includes_the_question_before_it() -> None:
    assert together([turn("And a service?", "What is a service?")], "why?") == "why? (What is a service?)"
    assert len(together([turn("x" * 1990)], "why? " * 20)) <= 2000


def test_long_question_is_never_cut() -> None:
    question = " ".join(["line"] * 70) + " Which option turns it off?"
    assert together([turn("What is a service?")], question) == question


def test_turn_that_accepted_an_offer_counts_as_the_offered_question() -> None:
    assert earlier_questions([turn("yes", "What is a topic?")]) == ["What is a topic?"]


def test_follow_up_is_also_searched_with_the_section_of_the_last_answer() -> None:
    answered = replace(turn("What is a topic?"), sources=({"breadcrumb": "Basics › Topics"},))
    assert near([answered], "why?") == ["why? (Basics › Topics)"]
    assert near([turn("What is a topic?")], "why?") == []


def test_in_context_has_earlier_questions_and_the_last_highlight() -> None:
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
