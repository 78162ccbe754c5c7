"""The refusals, word for word, and the topics that fill them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.answering.refusals import NOT_FOUND, NOT_IN_BOOK, not_in_selection, topic_of_question


def test_word_for_word() -> None:
    assert NOT_FOUND == "I couldn't find relevant information in the documentation for your question."
    assert NOT_IN_BOOK == "I don't have information about that in the available documentation."
    assert not_in_selection("wheels") == (
        "The provided selection does not contain information about wheels. "
        "Would you like me to search the full documentation?"
    )


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("What is the battery capacity of Tern?", "the battery capacity of Tern"),
        ("what's ROS 2?", "ROS 2"),
        ("Who was Hans Moravec?", "Hans Moravec"),
        ("Where is the lidar?", "the lidar"),
        ("What does NITROS mean?", "NITROS"),
        ("What is meant by odometry?", "odometry"),
        ("Tell me about Gazebo.", "Gazebo"),
        ("Could you please explain PID control?", "PID control"),
        ("Hi! Please describe the costmap", "the costmap"),
        ("How do I install ROS 2?", "how to install ROS 2"),
        ("How can we keep robots apart?", "how to keep robots apart"),
        ("battery capacity", "battery capacity"),
        ("What about the IMU?", "the IMU"),
        ("How many wheels does Tern have?", "“How many wheels does Tern have?”"),
        ("Is MuJoCo faster than PhysX?", "“Is MuJoCo faster than PhysX?”"),
        ("Why does it fail?", "“Why does it fail?”"),
        ("Tell me why it fails.", "why it fails"),
        ("  What is\n the  speed? ", "the speed"),
        ("???", "that"),
        ("", "that"),
    ],
)
def test_topics(question: str, topic: str) -> None:
    assert topic_of_question(question) == topic


def test_a_long_question_is_cut_at_a_word() -> None:
    topic = topic_of_question("What is " + "the very " * 100 + "end?")
    assert topic.endswith("very…")
    assert len(topic) < 130


@given(st.text(max_size=2000))
def test_any_question_gives_a_short_topic_on_one_line(question: str) -> None:
    topic = topic_of_question(question)
    assert 1 <= len(topic) <= 124
    assert "\n" not in topic
