"""Dataclasses of conversations: a turn, its searches, a session in a list."""

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
    editions: tuple[dict[str, str], ...] = ()  # the editions that were searched


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
    metadata: dict[str, Any] = field(default_factory=dict)  # is merged into that of the thread
    created_at: datetime | None = None
    turn_id: str = field(default="", compare=False)  # empty: one is made when it is stored
    feedback: Feedback | None = None


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and its outcome, for reports, without the answer."""

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
    editions: tuple[
        str, ...
    ] = ()  # keys of the editions that the answer cites; for a refusal, of those that were searched


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A thread in the list of threads."""

    thread_id: str
    updated_at: datetime
    turn_count: int
    topic_summary: str | None
    first_question: str | None
