from hypothesis import given
from hypothesis import strategies as st

from chapterverse.conversations.topic import MAX_CHARS, topic_of


def test_topic_is_the_first_meaningful_question() -> None:
    questions = ["Hello!", "What is a\n ROS 2 topic?", "and for a service?", "Which QoS for sensors?"]
    assert topic_of(questions) == "What is a ROS 2 topic?"


def test_topic_without_meaningful_questions() -> None:
    assert topic_of(["yes", "and then?"]) == "and then?"
    assert topic_of([]) == ""


def test_long_topic_is_cut_at_a_word() -> None:
    topic = topic_of(["calibration of the wheel odometry " * 20])
    assert len(topic) <= MAX_CHARS
    assert topic.endswith(("calibration…", "of…", "the…", "wheel…", "odometry…"))


@given(st.lists(st.text(max_size=400), max_size=8))
def test_topic_is_never_longer_than_max_chars(questions: list[str]) -> None:
    assert len(topic_of(questions)) <= MAX_CHARS
