"""What the agent is given and what it tells: values alone.

Owns the types. Never runs anything.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chapterverse.errors import AgentUnavailable
from chapterverse.models import SearchFilters
from chapterverse.transcript import Exchange, IssuedPassage, Place

if TYPE_CHECKING:
    from agents import Model, ModelSettings

Search = Callable[[str, int, SearchFilters | None], Awaitable[tuple[IssuedPassage, ...]]]
Stopped = Literal["", "max_turns", "length"]


@dataclass(frozen=True, slots=True)
class Task:
    """A question and what it may be answered from.

    Without `search` the only passage is the reader's selection, and the model gets no tool."""

    question: str
    passages: tuple[IssuedPassage, ...]
    history: tuple[Exchange, ...]
    search: Search | None


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """A model that can be asked, and how it wants to be asked."""

    name: str
    engine: str  # a few words for people
    model: "Model"
    passages_in: Place
    settings: "ModelSettings"
    explain: Callable[[Exception], AgentUnavailable]  # what a vendor's error means for us
    probe: Callable[[], Awaitable[None]]  # raises AgentUnavailable if it cannot be used now; costs no paid tokens
    close: Callable[[], Awaitable[None]]
    writes: bool = True  # sentences of its own, so that it can put a question into other words


@dataclass(frozen=True, slots=True)
class Wrote:
    """The model wrote a piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Searched:
    """The model searched again; these passages may now be cited too."""

    query: str
    passages: tuple[IssuedPassage, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over. `stopped` says which limit ended it before the model did."""

    tokens_used: int
    llm_calls: int
    stopped: Stopped
    tokens_written: int = 0  # of those used, what the model said; the rest it read


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The question that stands alone, empty if the model gave none, and what asking for it took."""

    question: str
    tokens_used: int = 0
    llm_calls: int = 1
    tokens_written: int = 0
