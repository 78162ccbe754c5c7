"""Plain text: paragraphs, the headings people type, and what is no heading."""

import pytest

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Unreadable
from chapterverse.ingestion.readers import plain


def read(text: str | bytes, path: str = "notes/01_my-notes.txt") -> Draft:
    data = text.encode() if isinstance(text, str) else text
    (draft,) = plain.read(Document("https://book.example/notes.txt", path, "book", "text", data))
    return draft


def said(text: str) -> list[tuple[str, str, int]]:
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


def test_a_small_book() -> None:
    assert read(BOOK).title == "The Robot Book"
    assert said(BOOK) == [
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


@pytest.mark.parametrize(
    "line",
    ["STOP!", "USA", "Chapter one of my life was long.", "1. FIRST", "A B", "2024", "Part of it", "NOTE: " + "X" * 90],
)
def test_what_is_no_heading(line: str) -> None:
    kinds = [part.kind for part in read(f"A sentence.\n\n{line}\n\nMore.").parts]
    assert ("heading" in kinds) == (line == "USA")


def test_a_title_underlined() -> None:
    draft = read("Robots\n======\n\nText.")
    assert draft.title == "Robots"
    assert [(part.kind, part.text) for part in draft.parts] == [("heading", "Robots"), ("paragraph", "Text.")]


def test_without_a_title_the_file_gives_it() -> None:
    assert read("Just one sentence.\n\nAnd another.").title == "01 my notes"
    assert said("Just one line") == [("paragraph", "Just one line", 0)]


def test_nothing_in_it() -> None:
    with pytest.raises(NothingToRead, match="empty"):
        read(" \n\t\n\u200b")
    with pytest.raises(Unreadable, match="binary"):
        read(bytes(range(32)) * 8)
