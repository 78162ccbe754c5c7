"""The texts of the refusals."""

from hypothesis import given
from hypothesis import strategies as st

from chapterverse.answering.refusals import NOT_FOUND, NOT_IN_BOOK, is_refusal, not_in_selection


def test_refusal_texts() -> None:
    assert NOT_FOUND == "I couldn't find relevant information in the documentation for your question."
    assert NOT_IN_BOOK == "I don't have information about that in the available documentation."
    assert not_in_selection(" How many\n wheels does it have? ") == (
        "The provided selection does not contain information about “How many wheels does it have?”. "
        "Would you like me to search the full documentation?"
    )


def test_question_in_quotes_is_quoted_once() -> None:
    assert "about “What is Tern?”." in not_in_selection('"What is Tern?"')


def test_a_long_question_is_cut_at_a_word() -> None:
    refusal = not_in_selection("What is " + "the very " * 100 + "end?")
    assert "very…”. Would" in refusal
    assert len(refusal) < 250


@given(st.text(max_size=2000))
def test_refusal_for_any_question_is_short_one_line_and_recognised(question: str) -> None:
    refusal = not_in_selection(question)
    assert len(refusal) < 250
    assert "\n" not in refusal
    assert is_refusal(refusal.rpartition(" Would")[0])
