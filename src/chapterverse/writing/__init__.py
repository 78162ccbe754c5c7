"""Writers turn a question and passages into statements that name the units they are based on.

Only `writing.agent` imports the Agents SDK, and it is loaded only when a language model is configured.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from chapterverse.conversations.turns import Turn
from chapterverse.evidence.citations import Proven
from chapterverse.evidence.passages import Evidence, IssuedPassage
from chapterverse.evidence.statement import Finished, Statement, Stopped
from chapterverse.models import RetrievalRequest

__all__ = ["Finished", "Reading", "Search", "Statement", "Stopped", "Task", "Writer", "WriterEvent"]

Search = Callable[[RetrievalRequest], Awaitable[Sequence[IssuedPassage]]]


@dataclass(frozen=True, slots=True)
class Reading:
    """The section reader's scores for a passage."""

    answers: float  # logit that the passage answers the question
    score: float  # ranks the passages: `answers`, less a cost for a passage that the search found less similar
    units: Mapping[int, float] = field(default_factory=dict)  # logit of each unit, by its start
    shown_before: frozenset[int] = frozenset()  # starts of the units that the last answer highlighted


@dataclass(frozen=True, slots=True)
class Task:
    """A question and the passages it may be answered from. Without `search`, the only one is the reader's selection."""

    question: str
    evidence: Evidence  # the issued passages; grows when the writer searches
    passages: Sequence[IssuedPassage]  # found for the question, best first
    refusal: str  # the sentence to write if the passages do not answer the question
    seconds: float  # limit for all of the writing
    history: tuple[Turn, ...] = ()
    search: Search | None = None
    readings: tuple[Reading, ...] = ()  # of the passages, if the writer needs them


WriterEvent = Statement | Proven | Finished


class Writer(Protocol):
    """Turns a task into statements. A `Proven` is shown without further checks; a `Statement` must be proven first.

    A writer without a language model inherits `rewrite` and `ask`."""

    @property
    def name(self) -> str:
        """The model's name, as shown in `metadata.model`."""

    @property
    def engine(self) -> str:
        """A short description of the model for people."""

    @property
    def needs_readings(self) -> bool:
        """Whether the section reader must read the passages before they are passed to the writer."""

    def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """Yield the statements in reading order, then `Finished`. Closing the generator cancels the work.

        Raises `AgentUnavailable` if the writer cannot be used, possibly after the first statements."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> tuple[str, Finished]:
        """Return a follow-up as a standalone question, empty if there is none, and the usage."""
        return "", Finished()

    async def ask(self, instructions: str, text: str) -> str:
        """Return one line that follows the instructions; empty if there is none."""
        return ""

    async def probe(self) -> None:
        """Raise `AgentUnavailable` if the writer cannot be used now. Costs no paid tokens."""

    async def close(self) -> None:
        """Close its connections."""
