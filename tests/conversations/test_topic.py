from hypothesis import given
from hypothesis import strategies as st

from chapterverse.conversations.topic import MAX_CHARS, topic_of


def test_the_title_is_the_first_question_that_asks_something() -> None:
    questions = ["Hello!", "What is a\n ROS 2 topic?", "and for a service?", "Which QoS for sensors?"]
    assert topic_of(questions) == "What is a ROS 2 topic?"


def test_questions_that_tell_nothing_still_give_a_title() -> None:
    assert topic_of(["yes", "and then?"]) == "and then?"
    assert topic_of([]) == ""


def test_a_long_question_is_cut_at_a_word() -> None:
    topic = topic_of(["calibration of the wheel odometry " * 20])
    assert len(topic) <= MAX_CHARS
    assert topic.endswith(("calibration…", "of…", "the…", "wheel…", "odometry…"))


@given(st.lists(st.text(max_size=400), max_size=8))
def test_a_topic_is_never_too_long(questions: list[str]) -> None:
    assert len(topic_of(questions)) <= MAX_CHARS
