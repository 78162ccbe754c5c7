"""Plain text: paragraphs, lists and typed headings."""

import time

import pytest

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Unreadable
from chapterverse.ingestion.readers import plain


def read(text: str | bytes, path: str = "notes/01_my-notes.txt") -> Draft:
    data = text.encode() if isinstance(text, str) else text
    (draft,) = plain.read(Document("https://book.example/notes.txt", path, "book", "text", data))
    return draft


def parts_of(text: str) -> list[tuple[str, str, int]]:
    return [(part.kind, part.text, part.level) for part in read(text).parts]


BOOK = """The Robot Book

An intro that is
wrapped.

CHAPTER I. WALKING

It walks.

Balance
-------
It stands. The first line
follows at once.

KEEPING STILL

    for leg in legs:
        leg.stop()

* one
  goes on
* two

3. three
4. four
"""


def test_headings_paragraphs_code_and_lists_are_recognised() -> None:
    assert read(BOOK).title == "The Robot Book"
    assert parts_of(BOOK) == [
        ("paragraph", "An intro that is wrapped.", 0),
        ("heading", "CHAPTER I. WALKING", 2),
        ("paragraph", "It walks.", 0),
        ("heading", "Balance", 2),
        ("paragraph", "It stands. The first line follows at once.", 0),
        ("heading", "KEEPING STILL", 3),
        ("code", "for leg in legs:\n    leg.stop()", 0),
        ("list", "- one goes on\n- two", 0),
        ("list", "3. three\n4. four", 0),
    ]


def test_list_after_a_colon_is_a_list_and_separators_are_left_out() -> None:
    text = "Text.\n\nYou need these\nthings:\n  1. a rope\n     of hemp\n  2. a lamp\n\n     * * * * *\n\n"
    text += "In\n1984. It ended.\n\n    steps:\n      - walk\n"
    assert parts_of(text) == [
        ("paragraph", "Text.", 0),
        ("paragraph", "You need these things:", 0),
        ("list", "1. a rope of hemp\n2. a lamp", 0),
        ("paragraph", "In 1984. It ended.", 0),
        ("code", "steps:\n  - walk", 0),
    ]


@pytest.mark.parametrize(
    "line",
    ["STOP!", "USA", "Chapter one of my life was long.", "1. FIRST", "A B", "2024", "Part of it", "NOTE: " + "X" * 90],
)
def test_lines_that_are_no_headings(line: str) -> None:
    kinds = [part.kind for part in read(f"A sentence.\n\n{line}\n\nMore.").parts]
    assert ("heading" in kinds) == (line == "USA")


def test_underlined_first_line_is_the_title() -> None:
    draft = read("Robots\n======\n\nText.")
    assert draft.title == "Robots"
    assert [(part.kind, part.text) for part in draft.parts] == [("heading", "Robots"), ("paragraph", "Text.")]


def test_heading_may_have_a_line_above_and_below() -> None:
    assert parts_of("======\nRobots\n======\n\nText.\n\n----\nLegs\n----\nThey walk.") == [
        ("heading", "Robots", 1),
        ("paragraph", "Text.", 0),
        ("heading", "Legs", 2),
        ("paragraph", "They walk.", 0),
    ]


def test_title_is_the_file_name_if_there_is_none() -> None:
    assert read("Just one sentence.\n\nAnd another.").title == "01 my notes"
    assert parts_of("Just one line") == [("paragraph", "Just one line", 0)]


def test_empty_file_has_nothing_to_read_and_binary_is_unreadable() -> None:
    with pytest.raises(NothingToRead, match="empty"):
        read(" \n\t\n\u200b")
    with pytest.raises(Unreadable, match="binary"):
        read(bytes(range(32)) * 8)


def test_code_continues_after_a_blank_line() -> None:
    text = "Intro.\n\n    def f():\n        x = 1\n\n        return x\n\nText.\n\n    CHAPTER I\n\n    Walking."
    assert parts_of(text) == [
        ("paragraph", "Intro.", 0),
        ("code", "def f():\n    x = 1\n\n    return x", 0),
        ("paragraph", "Text.", 0),
        ("heading", "CHAPTER I", 2),
        ("code", "Walking.", 0),
    ]


def test_steps_keep_their_numbers_around_bullets() -> None:
    text = "Guide\n\nSteps:\n1. Install\n   - on Linux\n   - on Mac\n2. Configure\n   now\n5. Run\n"
    assert [part[1] for part in parts_of(text)] == [
        "Steps:",
        "1. Install\n  - on Linux\n  - on Mac\n2. Configure now",
        "5. Run",
    ]


def test_steps_and_code_at_the_same_indent_are_apart() -> None:
    text = "Title\n\nProse.\n\n    1. First do this\n\n    $ make\n\n    $ make install\n\n    2. Then that\n"
    assert [(part.kind, part.text) for part in read(text).parts][1:] == [
        ("list", "1. First do this"),
        ("code", "$ make\n\n$ make install"),
        ("list", "2. Then that"),
    ]


def test_lists_with_other_digits() -> None:
    assert read("Title\n\n١. a\n٢. b\n٣. c\n").parts[-1].text == "1. a\n2. b\n3. c"


def test_much_code_takes_linear_time() -> None:
    started = time.monotonic()
    assert read("Title\n\n" + "    a\n    b\n\n" * 50_000)
    assert time.monotonic() - started < 5
