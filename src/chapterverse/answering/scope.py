"""What a question may be answered from: the book, or the reader's selection alone."""

from dataclasses import dataclass

from chapterverse.models import SearchResult
from chapterverse.writing import Reading


@dataclass(frozen=True, slots=True)
class Book:
    """The book, as far as the search found it."""

    found: SearchResult
    readings: tuple[Reading, ...] = ()  # of what was found, where there is no language model
    missing: tuple[str, ...] = ()  # words of the question that stand nowhere in the book
    follow_up: bool = False  # whether the question was read with the turns before it


@dataclass(frozen=True, slots=True)
class Selection:
    """A text that the reader selected. Nothing is searched for."""

    text: str
    readings: tuple[Reading, ...] = ()  # one, where there is no language model


Scope = Book | Selection
