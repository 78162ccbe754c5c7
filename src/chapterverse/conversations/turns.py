"""The values of a conversation as they flow inside: a turn, its searches, a session in a list."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chapterverse.models import Feedback, Mode, Rating, Reason, Status


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """One search made for a turn."""

    query: str
    count: int
    mean_similarity: float | None
    searched_at: datetime
    filters: dict[str, Any] | None = None
    editions: tuple[dict[str, str], ...] = ()  # that were searched


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer. `created_at` is set by the database when the turn is stored."""

    session_id: str
    query: str
    response: str
    sources: tuple[dict[str, Any], ...] = ()
    mode: Mode = "general"
    selected_text: str | None = None
    chunks_retrieved: int = 0
    latency_ms: float = 0.0
    confidence: float | None = None
    status: Status = "answered"
    standalone_query: str | None = None
    searches: tuple[SearchRecord, ...] = ()
    evidence: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)  # goes into that of the thread
    created_at: datetime | None = None
    turn_id: str = field(default="", compare=False)  # empty: the database makes one
    feedback: Feedback | None = None


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question as reports count it: what was asked and what came of it, without the answer."""

    turn_id: str
    session_id: str
    query: str
    standalone_query: str | None
    mode: Mode
    status: Status
    confidence: float | None
    created_at: datetime
    rating: Rating | None = None
    reason: Reason | None = None
    comment: str | None = None
    filters: dict[str, Any] | None = None  # of its first search
    editions: tuple[str, ...] = ()  # keys of those that the answer cites; of a refusal, those that were searched


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A thread in the list of threads."""

    thread_id: str
    updated_at: datetime
    turn_count: int
    topic_summary: str | None
    first_question: str | None
