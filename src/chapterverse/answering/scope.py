"""What a question may be answered from: the book, or the reader's selection alone."""

from dataclasses import dataclass

from chapterverse.models import SearchResult
from chapterverse.writing import Reading


@dataclass(frozen=True, slots=True)
class WholeBook:
    """The search results from the book."""

    found: SearchResult
    readings: tuple[Reading, ...] = ()  # of the results, if there is no language model
    missing: tuple[str, ...] = ()  # words of the question that are not in the book
    follow_up: bool = False  # whether the question was read with the turns before it


@dataclass(frozen=True, slots=True)
class Selection:
    """A text that the reader selected. Nothing else is searched."""

    text: str
    readings: tuple[Reading, ...] = ()  # one reading, if there is no language model


Scope = WholeBook | Selection
