"""Which questions depend on what was said before, and what is searched for then."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.followups import LIMIT, standalone


@dataclass(frozen=True, slots=True)
class Said:
    question: str
    answer: str = ""


TOPICS = Said(
    "How do topics work in ROS 2?",
    "A topic is a named channel. Publishers send messages to a topic, and every subscriber of the topic receives them "
    "[1]. Quality of service settings say how messages are delivered [2].",
)
ACTIONS = Said(
    "How do I cancel the goal of an action server in rclpy?",
    "1. Pass a `cancel_callback` to the action server [1].\n"
    "2. Return `CancelResponse.ACCEPT` from it [1].\n"
    "3. Check `is_cancel_requested` in the loop [2].",
)
OFFER = Said(
    "What does the passage say about battery charging?",
    "The provided selection does not contain information about battery charging. "
    "Would you like me to search the full documentation?",
)


@pytest.mark.parametrize(
    "question",
    [
        "What is Gazebo?",
        "What is a point?",
        "What are worker nodes?",
        "Who is Hans Moravec?",
        "How heavy is Tern?",
        "What is odometry, and why does its error grow without bound?",
        "path vs trajectory",
        "costmap value 254",
        "predecessor of Isaac Lab",
        "unity component used for links of an imported URDF",
        "durability setting so that late subscribers get the map",
        "How many parameters does the small Whisper model have?",
        "Is it possible to run Isaac Sim without an RTX card?",
        "How long does it take to train OpenVLA?",
        "Why does a robot seem to explode right after it has been spawned?",
        "My node freezes when I call a service synchronously from a callback. Why?",
        "Which node turns the URDF and the joint angles into transforms?",
        "How do I make sure that a launch file finds its parameter file?",
        "And how do I install the Gazebo bridge for Jazzy on Ubuntu with apt packages?",
        "Thanks! What is the default physics step of Unity?",
        "How do bees make honey?",
    ],
)
def test_a_question_that_stands_alone_is_left_as_it_is(question: str) -> None:
    found = standalone(question, [TOPICS])
    assert (found.question, found.is_followup, found.why) == (question, False, "")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("tell me more", "asks for more"),
        ("Why?", "asks for more"),
        ("how does it work?", "asks for more"),
        ("Can you explain that in more detail?", "asks for more"),
        ("yes", "accepts"),
        ("Yes, please!", "accepts"),
        ("ok", "accepts"),
    ],
)
def test_who_asks_for_more_gets_the_previous_question(question: str, why: str) -> None:
    found = standalone(question, [TOPICS])
    assert (found.question, found.is_followup, found.why) == (TOPICS.question, True, why)


@pytest.mark.parametrize("question", ["yes", "Yes please", "sure, search the documentation", "please do", "go ahead"])
def test_accepting_the_offer_to_search_asks_the_same_again(question: str) -> None:
    found = standalone(question, [TOPICS, OFFER])
    assert found.question.startswith(OFFER.question)
    assert found.why == "accepts"


def test_an_example_is_asked_for_by_name() -> None:
    assert standalone("give me an example", [TOPICS]).question == f"{TOPICS.question} example"


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("what about its limits?", "goes on"),
        ("and for a service?", "goes on"),
        ("How about actions?", "goes on"),
        ("so how many subscribers?", "goes on"),
        ("how do I install it?", "has a pronoun"),
        ("Can they lose messages?", "has a pronoun"),
        ("What does this cost in latency?", "has a pronoun"),
        ("best effort delivery", "is a fragment"),
        ("limits?", "is a fragment"),
        ("What are the advantages?", "is short"),
        ("How many publishers?", "is short"),
        ("How do I name the channel?", "is short"),
        ("How long do the messages wait unread?", "names what was said"),
        ("No, for a service", "replies"),
        ("I see. And for parameters?", "goes on"),
        ("I only get half of what was sent", "tells"),
    ],
)
def test_a_follow_up_keeps_its_words_and_gains_the_topic(question: str, why: str) -> None:
    found = standalone(question, [TOPICS])
    assert (found.is_followup, found.why) == (True, why)
    assert found.question.startswith(question)
    assert "topic" in found.question[len(question) :].lower()


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("the second one", "Return `CancelResponse.ACCEPT` from it."),
        ("Tell me more about the first step", "Pass a `cancel_callback` to the action server."),
        ("what about the last?", "Check `is_cancel_requested` in the loop."),
    ],
)
def test_a_part_of_the_answer_can_be_pointed_at(question: str, part: str) -> None:
    found = standalone(question, [TOPICS, ACTIONS])
    assert found.question == f"{ACTIONS.question} {part}"


def test_a_part_that_is_not_there_is_not_made_up() -> None:
    found = standalone("the fifth one", [ACTIONS])
    assert found.why != "points at a part"
    assert "cancel" in found.question


def test_a_name_that_only_the_answer_gave_is_known() -> None:
    history = [
        Said(
            "Who created the scene format that Isaac Sim uses?",
            "OpenUSD was created by Pixar. Pixar made it for films, and Pixar still maintains it.",
        )
    ]
    assert "Pixar" in standalone("When did they publish it?", history).question


def test_without_a_history_nothing_is_a_follow_up() -> None:
    assert not standalone("and its limits?", []).is_followup


def test_a_new_topic_comes_before_the_old_one() -> None:
    history = [TOPICS, Said("What is the real-time factor of Gazebo?", "Simulated time over wall-clock time [1].")]
    found = standalone("How can I raise it?", history).question
    assert found.startswith("How can I raise it? (real-time factor Gazebo")


def test_a_long_conversation_keeps_its_topic() -> None:
    said = [Said("What is AMCL?", "AMCL finds the robot in a known map with a particle filter [1].")]
    for question in (
        "how does it work?",
        "why?",
        "What are the requirements?",
        "and without a laser?",
        "tell me more",
        "how do I start it?",
        "yes",
        "What about its parameters?",
        "Which one is the most important?",
        "Can it fail?",
        "give an example",
    ):
        found = standalone(question, said)
        assert found.is_followup, question
        assert "AMCL" in found.question, question
        said.append(Said(question, "AMCL draws particles and weighs them by the laser scan [1]."))
    assert len(said) == 12


def test_names_from_the_answer_do_not_take_its_citation_markers() -> None:
    assert "[" not in standalone("What about its limits?", [TOPICS]).question


texts = st.text(max_size=300)
histories = st.lists(st.builds(Said, texts, texts), max_size=14)


@given(question=texts.filter(str.strip), history=histories)
def test_what_is_searched_for_is_never_empty_never_long_and_always_the_same(question: str, history: list[Said]) -> None:
    found = standalone(question, history)
    assert found == standalone(question, history)
    if found.is_followup:
        assert found.question.strip()
        assert len(found.question.split()) <= LIMIT
        assert found.why
    else:
        assert found.question == question


@pytest.mark.parametrize("question", ["Who makes it?", "When did it appear?", "Where is it used?"])
def test_who_asks_something_of_its_own_keeps_the_words_of_asking(question: str) -> None:
    history = [Said("What is Isaac Sim?", "Isaac Sim is a robot simulator.")]
    found = standalone(question, history)
    assert found.is_followup
    assert found.question.startswith(question)
    assert "Isaac" in found.question
