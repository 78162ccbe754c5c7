import pytest

from chapterverse.grounding import Grounder, Withheld, is_refusal
from chapterverse.refusals import NOT_FOUND, NOT_IN_BOOK, not_in_selection


@pytest.mark.parametrize("text", [NOT_FOUND, NOT_IN_BOOK, not_in_selection("the anchor of v2.1")])
def test_the_refusals_of_the_specification_are_known(text: str) -> None:
    assert is_refusal(text)
    assert is_refusal(f" {text.replace(chr(39), '’')}\n")
    assert not is_refusal(f"{text} But Heron can fly.")


def test_the_words_are_those_of_the_specification() -> None:
    assert NOT_FOUND == "I couldn't find relevant information in the documentation for your question."
    assert NOT_IN_BOOK == "I don't have information about that in the available documentation."
    assert not_in_selection("ROS 2") == (
        "The provided selection does not contain information about ROS 2. Would you like me to search the full "
        "documentation?"
    )


@pytest.mark.parametrize("text", [NOT_FOUND, NOT_IN_BOOK, not_in_selection("the anchor")])
def test_a_refusal_is_a_signal_and_not_an_answer(text: str) -> None:
    grounder = Grounder([])
    results = [*grounder.feed(text), *grounder.finish()]
    assert {result.reason for result in results if isinstance(result, Withheld)} == {"refusal"}
    assert grounder.refused and grounder.shown == grounder.withheld == 0
