"""Writers: a question and passages go in, statements with the units they rest on come out.

The Agents SDK is imported by `writing.agent` alone, when a language model is configured.
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
    """What the section reader says of a passage."""

    answers: float  # logit that the passage answers the question
    score: float  # decides the order: the same, less what the search and the kind of page say against it
    units: Mapping[int, float] = field(default_factory=dict)  # logit of each unit, by its start
    shown_before: frozenset[int] = frozenset()  # starts of the units that the last answer marked


@dataclass(frozen=True, slots=True)
class Task:
    """A question and what it may be answered from. Without `search` the only passage is the reader's selection."""

    question: str
    evidence: Evidence  # what was issued; grows when the writer searches
    passages: Sequence[IssuedPassage]  # found for the question, best first
    refusal: str  # the sentence for what the passages do not answer
    seconds: float  # for all of the writing
    history: tuple[Turn, ...] = ()
    search: Search | None = None
    readings: tuple[Reading, ...] = ()  # of the passages, for a writer that needs them


WriterEvent = Statement | Proven | Finished


class Writer(Protocol):
    """Turns a task into statements. What it yields as `Proven` is shown as it is; a `Statement` must be proven.

    A writer without words of its own inherits `rewrite` and `ask`."""

    @property
    def name(self) -> str:
        """The model, as `metadata.model` names it."""

    @property
    def engine(self) -> str:
        """The model in a few words for people."""

    @property
    def needs_readings(self) -> bool:
        """Whether the section reader reads the passages before it writes."""

    def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """The statements in reading order, then `Finished`. Closing the generator cancels the work.

        Raises `AgentUnavailable` when the writer cannot be used; what was yielded before stays yielded."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> tuple[str, Finished]:
        """A follow-up as a question that stands alone, empty if there is none, and what that took."""
        return "", Finished()

    async def ask(self, instructions: str, text: str) -> str:
        """One line in its own words; empty if it cannot say."""
        return ""

    async def probe(self) -> None:
        """Raise `AgentUnavailable` if it cannot be used now. Costs no paid tokens."""

    async def close(self) -> None:
        """Close its connections."""
