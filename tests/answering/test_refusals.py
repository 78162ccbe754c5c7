"""The refusals, word for word, and what fills them."""

from hypothesis import given
from hypothesis import strategies as st

from chapterverse.answering.refusals import NOT_FOUND, NOT_IN_BOOK, is_refusal, not_in_selection


def test_word_for_word() -> None:
    assert NOT_FOUND == "I couldn't find relevant information in the documentation for your question."
    assert NOT_IN_BOOK == "I don't have information about that in the available documentation."
    assert not_in_selection(" How many\n wheels does it have? ") == (
        "The provided selection does not contain information about “How many wheels does it have?”. "
        "Would you like me to search the full documentation?"
    )


def test_a_question_in_quotes_is_quoted_once() -> None:
    assert "about “What is Tern?”." in not_in_selection('"What is Tern?"')


def test_a_long_question_is_cut_at_a_word() -> None:
    said = not_in_selection("What is " + "the very " * 100 + "end?")
    assert "very…”. Would" in said
    assert len(said) < 250


@given(st.text(max_size=2000))
def test_any_question_gives_a_short_refusal_on_one_line_that_is_known_as_one(question: str) -> None:
    said = not_in_selection(question)
    assert len(said) < 250
    assert "\n" not in said
    assert is_refusal(said.rpartition(" Would")[0])
