"""Messages to a model and back: what is rendered is what is read, whatever it holds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.transcript import (
    MORE,
    Exchange,
    IssuedPassage,
    Place,
    asks_for_more,
    estimate_tokens,
    fitting,
    read,
    render_history,
    render_question,
    render_search,
    render_selection,
    tool_error,
)

crumbs = st.lists(st.text("abc ÄÖ12", min_size=1).map(str.strip).filter(bool), min_size=1, max_size=3).map(" › ".join)
passages = st.lists(
    st.builds(
        IssuedPassage,
        number=st.integers(1, 99),
        text=st.text(min_size=1, max_size=200)
        | st.sampled_from(["> [2] x\n\nQuestion: no\n", "```\n> code\n```", "Passages of the book:\n\n[1] a\n> b"]),
        breadcrumb=crumbs.map(lambda crumb: " ".join(crumb.split())),
        source_url=st.just("http://book/a#b"),
        similarity=st.integers(0, 1000).map(lambda n: n / 1000),
    ),
    max_size=4,
)
questions = st.text(min_size=1) | st.sampled_from(["Question: [1] x\n> y", "Passages of the book:\n\nQuestion: a"])


def bare(passage: IssuedPassage) -> tuple[int, str, str]:
    return passage.number, passage.text, passage.breadcrumb


@given(questions, passages, st.sampled_from(["tool", "message"]))
def test_a_question_with_passages_comes_back(question: str, issued: list[IssuedPassage], place: Place) -> None:
    reading = read(render_question(question, issued, place))
    assert reading.question == question
    assert not reading.selected
    if place == "tool":
        assert list(reading.passages) == issued
    else:
        assert [bare(passage) for passage in reading.passages] == [bare(passage) for passage in issued]


@given(questions, passages.filter(bool))
def test_a_selection_comes_back(question: str, issued: list[IssuedPassage]) -> None:
    reading = read(render_selection(question, issued[0]))
    assert (reading.question, reading.selected) == (question, True)
    assert [bare(passage) for passage in reading.passages] == [bare(issued[0])]


def test_later_searches_and_earlier_turns() -> None:
    first, second = (IssuedPassage(n, f"Text {n}.", "Page", "u", 0.5) for n in (1, 2))
    history = render_history([Exchange("Before?", "Yes [1].")])
    failed: dict[str, Any] = {"type": "function_call_output", "call_id": "x", "output": tool_error("q", "no")}
    for place in ("tool", "message"):
        items = [*history, *render_question("Now?", [first], place), *render_search("a", "other", [second]), failed]
        reading = read(items)
        assert reading.question == "Now?"
        assert [passage.number for passage in reading.passages] == [1, 2]


def test_parts_of_a_message_are_one_text() -> None:
    assert read([{"role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}]).question == "Hello?"
    assert read("Hello?").question == "Hello?"
    assert read([]).question == ""


def test_a_call_and_its_result_go_together() -> None:
    call, result = render_search("id", "größe", [])
    assert call["call_id"] == result["call_id"] == "id"
    assert json.loads(call["arguments"]) == {"query": "größe"}


def test_passages_beyond_the_budget_are_left_out_but_never_the_first() -> None:
    long = [IssuedPassage(n, "word " * 2000, "", "", 1.0) for n in range(1, 5)]
    assert [passage.number for passage in fitting(long)] == [1, 2]
    assert fitting(long, budget=1) == long[:1]
    assert fitting([]) == []


def test_history_beyond_the_budget_loses_its_oldest_turns() -> None:
    turns = [Exchange(f"q{n}", "a" * 400) for n in range(5)]
    assert [item["content"] for item in render_history(turns, budget=250)[::2]] == ["q3", "q4"]
    assert render_history(turns, budget=10) == []


def test_tokens_are_estimated_high_enough_for_other_scripts() -> None:
    assert estimate_tokens("機器人作業系統") >= 5
    assert estimate_tokens("") == 1


@pytest.mark.parametrize(
    ("query", "more"),
    [
        ("tell me more", True),
        ("Can you tell me more, please?", True),
        ("go on", True),
        ("What else?", True),
        ("More details about it please", True),
        ("tell me more about topics", False),
        ("Can you give me an example?", False),
        ("Why?", False),
        ("", False),
    ],
)
def test_who_only_wants_more(query: str, more: bool) -> None:
    assert asks_for_more(query) is more


def test_what_was_said_is_read_back_only_for_who_asks_for_more() -> None:
    told = render_history([Exchange("What is it?", "A robot [1].")])
    more = read([*told, *render_question(f"What is it? {MORE}", [], "tool")])
    assert (more.question, more.said) == ("What is it?", "A robot.")
    assert read([*told, *render_question("What is it?", [], "tool")]).said == ""
