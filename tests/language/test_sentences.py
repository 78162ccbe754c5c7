"""Splitting text into sentences."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.language import sentences


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "whole",
    [
        "Use a client library, e.g. rclpy, i.e. the Python one, vs. the C++ one.",
        "See Fig. 3, Eq. (2), Sec. 4.1 and Ch. IV for No. 5.",
        "Dr. Ada Lovelace met Prof. Lee and Mr. Babbage in St. Louis.",
        "J. R. R. Tolkien and C. Shannon wrote it.",
        "Version 1.2.3 needs Python 3.11 and costs $4.50.",
        "Edit package.xml and setup.py in src/my.pkg first",
        "Run `ros2 run a. B` or ``x`. Y`` now.",
        "Wait... it moves.",
        "A. The method rounds to two places.",
        "Go up with cd .. and stay in . Then look.",
        "It works (see below.) and so on.",
        '"Really?" he asked.',
        "Smith et al. (2020) said so.",
        "It takes approx. five minutes.",
        "The U.S. Army and the U.N. Charter.",
        "Use lists, maps, etc. for that.",
        "A paragraph that is\nwrapped over\nthree lines.",
        "It was released in version\n3 and later.",
    ],
)
def test_one_sentence_is_not_split(whole: str) -> None:
    assert cut(whole) == [whole]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("What?! Yes… No.", ["What?!", "Yes…", "No."]),
        ("It is written in C. The rest is not.", ["It is written in C.", "The rest is not."]),
        ("So do I. We agree.", ["So do I.", "We agree."]),
        ("It takes 30 ms. The next. Ms. Lee waits.", ["It takes 30 ms.", "The next.", "Ms. Lee waits."]),
        ("It drives at 1.2 m/s. Heron stops.", ["It drives at 1.2 m/s.", "Heron stops."]),
        ("Is it? No. It is not.", ["Is it?", "No.", "It is not."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("(It was late.) We left.", ["(It was late.)", "We left."]),
        ("Use ROS 2. rclpy is its library.", ["Use ROS 2.", "rclpy is its library."]),
        ("Edit setup.py. Then run `main.py`. Done.", ["Edit setup.py.", "Then run `main.py`.", "Done."]),
        ("Lists, etc. Maps too.", ["Lists, etc.", "Maps too."]),
        ("A fact.[1] Another [2]. A third. [3][4] End.", ["A fact.[1]", "Another [2].", "A third. [3][4]", "End."]),
        ("Open `a. Then close. It ends.", ["Open `a.", "Then close.", "It ends."]),
        ("机器人会走。它也会跑！为什么？", ["机器人会走。", "它也会跑！", "为什么？"]),
        ("It came with version\n3. That was late", ["It came with version\n3.", "That was late"]),
        ("In the U.S. The law differs.", ["In the U.S.", "The law differs."]),
    ],
)
def test_text_is_split_at_sentence_ends(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_headings_items_and_table_rows_are_separate() -> None:
    text = "# 1. Start. Here\nText:\n- One. Uno\n  goes on\n- Two\n1. First\n2. Second\n| a. B | c |\nEnd\n\nnew"
    assert cut(text) == [
        "# 1. Start. Here",
        "Text:",
        "- One.",
        "Uno\n  goes on",
        "- Two",
        "1. First",
        "2. Second",
        "| a. B | c |",
        "End",
        "new",
    ]


def test_each_line_of_fenced_code_is_separate() -> None:
    assert cut("Do:\n\n```py\nx = 1. # One. Two.\n\n- y\n```\nDone. Well.") == [
        "Do:",
        "```py",
        "x = 1. # One. Two.",
        "- y",
        "```",
        "Done.",
        "Well.",
    ]


pieces = st.sampled_from(
    [
        "a",
        "B",
        ".",
        "!",
        "?",
        "…",
        " ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "`",
        "```\n",
        "|",
        "# ",
        ")",
        '"',
        "[1]",
        "e.g.",
        "。",
        "\t",
    ]
)


@given(st.one_of(st.text(), st.lists(pieces, max_size=60).map("".join)))
def test_spans_are_ordered_disjoint_and_complete(text: str) -> None:
    spans = sentences(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(not text[start].isspace() and not text[end - 1].isspace() for start, end in spans)
    assert "".join("".join(cut(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("unit", [".", ".)", "`", "` `` ", "\n \n", "a. ", "[1] ", "- a\n", "1. ", "“. "])
def test_time_is_linear(unit: str) -> None:
    began = time.process_time()
    sentences(unit * (200_000 // len(unit)))
    assert time.process_time() - began < 3  # seconds; a quadratic scan takes minutes
