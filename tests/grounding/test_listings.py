from chapterverse.grounding import Passage
from chapterverse.grounding.listings import find_code, find_head, find_row, language_of

TEXT = (
    "Run it:\n\n```python\nfor x in y:\n    stop(x)\n    go(x)\n```\n\n"
    "| a | b |\n|---|---|\n| `one` | 1 |\n| two | 2 |\n"
)
ISSUED = [Passage(3, TEXT)]


def test_code_is_found_up_to_white_space_and_given_as_the_book_has_it() -> None:
    found = find_code("```py\nfor  x in y:\n  stop(x)\n```", ISSUED)
    assert found is not None and found.quote == "for x in y:\n    stop(x)"


def test_code_that_differs_in_one_sign_is_not_found() -> None:
    assert find_code("```py\nfor x in z:\n    stop(x)\n```", ISSUED) is None
    assert find_code("```py\nfor x in y:\n    go(x)\n```", ISSUED) is None, "a line was left out"
    assert find_code("```\n\n```", ISSUED) is None


def test_barred_code_is_not_found() -> None:
    assert find_code("```\ngo(x)\n```", [Passage(1, TEXT, "", ((0, len(TEXT)),))]) is None


def test_a_row_counts_only_under_the_head_of_its_table() -> None:
    head = find_head("|a|b|", ISSUED)
    assert head is not None
    row = find_row("| one | 1 |", head)
    assert row is not None and row.quote == "| `one` | 1 |"
    assert find_row("| one | 2 |", head) is None
    assert find_head("| one | 1 |", ISSUED) is None, "a row is no head"


def test_the_language_is_kept() -> None:
    assert language_of("```python title=x\n```") == "python"
    assert language_of("~~~\n~~~") == ""
