"""A statement: one piece of an answer, the units it names, and its place in the structure of the answer."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Shape = Literal["paragraph", "heading", "item", "row", "code", "excerpt"]
Stopped = Literal["", "max_calls", "length"]


class UnitRef(NamedTuple):
    """The number of a unit, `2.3`. Unit 0 names the whole passage, `2`."""

    passage: int
    unit: int = 0

    def __str__(self) -> str:
        return f"{self.passage}.{self.unit}" if self.unit else str(self.passage)


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence, list item, table row, heading, code block or excerpt of the book.

    `text` is Markdown without unit numbers; for a table row, it has the names of the columns; for code, it is the lines
    between the fences."""

    text: str
    named: tuple[UnitRef, ...] = ()  # as the writer wrote them, whether they were issued or not
    shape: Shape = "paragraph"
    opens: bool = True  # begins a block; False: continues the paragraph or item before it
    depth: int = 0  # number of list items around it, not counting its own
    marker: str = ""  # of a list item: "-", "3."
    level: int = 0  # of a heading
    row: str = ""  # of a table row: as it was written
    head: str = ""  # of a table row: the header with the line below it; of code: its language
    above_code: bool = False  # a code block was written directly below it

    @property
    def leads(self) -> bool:
        """Whether it introduces what follows it and says too little without it."""
        return self.shape == "heading" or (
            self.shape in ("paragraph", "item") and self.text.rstrip("*_ ").endswith((":", "："))
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of writing, with its usage. `stopped` names the limit that ended it."""

    tokens_used: int = 0
    tokens_written: int = 0
    llm_calls: int = 0
    stopped: Stopped = ""
