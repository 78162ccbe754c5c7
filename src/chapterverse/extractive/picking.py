"""The contract of what chooses sentences.

Owns the types. Never scores anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from chapterverse.transcript import IssuedPassage

MOST_SENTENCES: Final = 6  # of an answer


@dataclass(frozen=True, slots=True)
class Pick:
    """A sentence of a passage that belongs to the answer."""

    number: int  # of the passage
    text: str  # word for word; the cells of a table's row joined
    is_code: bool = False  # a fenced block, said after the sentence that introduces it


class SentencePicker(Protocol):
    """Chooses the sentences that answer a question, in the order in which they are to be read."""

    async def pick(
        self, question: str, passages: Sequence[IssuedPassage], *, selected: bool = False, said: str = ""
    ) -> list[Pick]:
        """At most six sentences, none of which was said; none at all when the passages, or the reader's selection, do
        not answer the question."""
        ...
