"""Pydantic models of the API: requests, answers, events, errors, health and conversations.

Names are those of the specification. The internal dataclasses are in `book.py`.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import quote as url_quote

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from chapterverse.editions import edition_label
from chapterverse.errors import ChapterverseError
from chapterverse.fields import (
    Comment,
    OneOrMore,
    Prefix,
    Query,
    Score,
    Selection,
    SessionId,
    ThreadMetadata,
    Threshold,
    TopK,
    TurnId,
)

Mode = Literal["general", "selected_text"]
ConfidenceLevel = Literal["high", "medium", "low", "insufficient"]
Status = Literal["answered", "refused", "truncated"]

# Lines of Markdown that say nothing: between the rows of a table, around code, between paragraphs, and "…".
_BETWEEN = re.compile(r"[|:…\s-]*+|\s*+(?:`{3,}+[^`]*+|~{3,}+.*+)")

_QUOTED_LINES: Final = 4  # of a section that comes near to a refused question

Rating = Literal["up", "down"]
Reason = Literal["wrong", "incomplete", "off_topic", "unclear", "outdated", "other"]


class Strict(BaseModel):
    """Base of requests: unknown fields are refused, texts are stripped."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, frozen=True)


class Frozen(BaseModel):
    """Base of answers: immutable."""

    model_config = ConfigDict(frozen=True)


# ── retrieval ────────────────────────────────────────────────────────────────────────────────────────────────────────


class SearchFilters(Strict):
    """Which passages may be used. Each field takes one value or a list; all given fields must match."""

    source_url: OneOrMore | None = Field(None, description="Address of a page, with or without a section's anchor.")
    page_title: OneOrMore | None = None
    section_heading: OneOrMore | None = None
    module: OneOrMore | None = Field(None, description="First folder or path segment of the page.")
    source_url_prefix: Prefix | None = None
    book: OneOrMore | None = Field(None, description="Name of a book, as `/books` lists it; default: all of them.")
    version: OneOrMore | None = Field(
        None, description="Version of a book; default, and `latest`: the latest one of each book."
    )

    def but(self, other: "SearchFilters | None") -> "SearchFilters":
        """These filters, overridden by those that are set in the other."""
        named = {name: value for name, value in other or () if value is not None}
        return self.model_copy(update=named)

    @classmethod
    def of_editions(cls, named: Mapping[str, Any] | None) -> "SearchFilters | None":
        """Only the filters for book and version; None if there are none."""
        editions = {name: value for name, value in (named or {}).items() if name in ("book", "version") and value}
        return cls.model_validate(editions) if editions else None

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: object) -> object:
        """Refuse unknown filters and list the known ones."""
        if isinstance(given, dict) and (unknown := [key for key in given if key not in cls.model_fields]):
            problem = PydanticCustomError(
                "unknown_filter", f"there is no such filter; known are {', '.join(cls.model_fields)}"
            )
            faults = [InitErrorDetails(type=problem, loc=(str(key),), input=given[key]) for key in unknown]
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return given


_THRESHOLD: Final = "Only passages of at least this `relevance_score` are used. Also as `similarity_threshold`."


class RetrievalRequest(Strict):
    """A search of the book."""

    query: Query
    top_k: TopK = 5
    score_threshold: Threshold | None = Field(
        None, validation_alias=AliasChoices("score_threshold", "similarity_threshold"), description=_THRESHOLD
    )
    filters: SearchFilters | None = None


class PassageUnit(Frozen):
    """The smallest part of a text that can be cited; offsets refer to the stored page text."""

    kind: Literal["sentence", "item", "row", "field", "code"]
    start: int
    end: int
    head_start: int = Field(-1, description="Text needed to understand it: table header, lead-in. -1: none.")
    head_end: int = -1


class Place(Frozen):
    """The place of a text in the book."""

    source_url: str = Field(description="With the section's anchor.")
    page_title: str
    section_heading: str
    book: str = Field("", description="Name of its book; empty if it has none.")
    version: str = Field("", description="Version of its book; empty if it has none.")

    @property
    def place(self) -> str:
        """The edition, the page and the section in one line."""
        names = (edition_label(self.book, self.version), self.page_title, self.section_heading)
        return " › ".join(dict.fromkeys(filter(None, names)))


class EditionName(Frozen):
    """One version of one book."""

    book: str
    version: str


class ChunkResult(Place):
    """A passage that was found."""

    chunk_id: str
    chunk_text: str
    page_id: str
    breadcrumb: str
    module: str
    chunk_index: int
    content_hash: str
    similarity_score: Score = Field(description="Cosine.")
    relevance_score: Score = Field(
        0.0, description="The similarity on the scale calibrated for this book, like thresholds."
    )
    rank: int = Field(ge=1)
    char_start: int = Field(description="Offset of the passage in the stored page text, in characters.")
    char_end: int
    flags: list[str] = Field(default_factory=list)
    units: list[PassageUnit] = Field(default_factory=list, description="The units of the passage, in order.")
    lead: str = Field("", description="Text outside of the passage that introduces it, such as a table's header.")


class ConfidenceMetrics(Frozen):
    """How well the passages fit the question: the smallest and the largest `relevance_score`, and the average, in which
    the best passage counts for half."""

    average_similarity: Score
    min_similarity: Score
    max_similarity: Score
    num_chunks: int = Field(ge=0)
    chunk_diversity: Score = Field(description="1 − mean pairwise cosine of the passages.")
    confidence_level: ConfidenceLevel
    should_answer: bool


class SearchResult(Frozen):
    """The result of a search."""

    results: list[ChunkResult]
    total_results: int
    query: str
    latency_ms: float
    confidence: ConfidenceMetrics | None = Field(
        None, description="Null while the index has not been calibrated (`chapterverse calibrate`)."
    )
    editions: list[EditionName] = Field(default_factory=list, description="The editions that were searched.")

    def with_results(self, chunks: Sequence[ChunkResult]) -> Self:
        """The same search with these passages, ranked in this order."""
        ranked = [chunk.model_copy(update={"rank": rank}) for rank, chunk in enumerate(chunks, start=1)]
        return self.model_copy(update={"results": ranked, "total_results": len(ranked)})


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


NO_SELECTION: Final = "is required when mode is selected_text; select some text and send it"
# The same for OpenAPI.
_SELECTION_RULE: JsonDict = {
    "if": {"properties": {"mode": {"const": "selected_text"}}, "required": ["mode"]},
    "then": {"properties": {"selected_text": {"type": "string", "pattern": r"\S"}}, "required": ["selected_text"]},
}


_QUERY_NAMES: Final = ("query", "message", "text")
_QUERY: Final = "The question. Also as `message` or `text`."


class ChatRequest(Strict):
    """A question to the book, or to a selected passage."""

    query: Query = Field(validation_alias=AliasChoices(*_QUERY_NAMES), description=_QUERY)
    session_id: SessionId | None = Field(None, min_length=36, max_length=36)
    mode: Mode = "general"
    selected_text: Selection | None = Field(None, validate_default=True)
    top_k: TopK = 5
    score_threshold: Threshold | None = Field(
        None, validation_alias=AliasChoices("score_threshold", "similarity_threshold"), description=_THRESHOLD
    )
    filters: SearchFilters | None = None
    stream: StrictBool = False
    metadata: ThreadMetadata | None = Field(
        None, description="Stored with the conversation, merged by key; `GET /sessions/{session_id}` returns it."
    )

    # A selection is not stripped, because its offsets count blanks.
    model_config = ConfigDict(
        extra="forbid", frozen=True, str_strip_whitespace=False, json_schema_extra=_SELECTION_RULE
    )

    @model_validator(mode="before")
    @classmethod
    def _strip_query(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {k: v.strip() if k in _QUERY_NAMES and isinstance(v, str) else v for k, v in data.items()}
        return data

    @field_validator("selected_text")
    @classmethod
    def _selection_present(cls, text: str | None, info: ValidationInfo) -> str | None:
        """With a session the selection may be missing: the reader may be accepting the offer to search the whole
        book."""
        known = info.data  # the fields before this one, without those that are invalid
        if known.get("mode") == "selected_text" and not (text or "").strip() and known.get("session_id", "") is None:
            raise ValueError(NO_SELECTION)
        return text

    @property
    def has_selection(self) -> bool:
        """Whether a text was selected."""
        return bool((self.selected_text or "").strip())


class Highlight(Frozen):
    """A range that answers the question. In a source, offsets refer to the stored page text or to the selection."""

    start: int
    end: int


class SourceCitation(Place):
    """The passage behind one or more sentences of an answer."""

    chunk_text: str = Field(max_length=500, description="Cut around the quoted evidence.")
    relevance_score: Score
    chunk_index: int
    breadcrumb: str
    module: str
    rank: int
    quote: str = Field(description="The exact sentences that support the answer.")
    quote_start: int = Field(description="`page_text[quote_start:quote_end] == quote`, in characters.")
    quote_end: int
    page_id: str = Field("", description="For `GET /pages/{page_id}`; empty in selected-text mode.")
    reader_url: str = Field(
        "", description="Path on this server that opens the page at the quote; empty in selected-text mode."
    )
    highlights: list[Highlight] = Field(default_factory=list, description="The units inside of the quote that answer.")

    @property
    def gist(self) -> str:
        """The units of the quote that answer or, if they are not known, the whole quote, on one line."""
        marks = [(mark.start - self.quote_start, mark.end - self.quote_start) for mark in self.highlights]
        text = "".join(
            f"{' … ' if at and self.quote[marks[at - 1][1] : start].strip() else ' '}{self.quote[start:end]}"
            for at, (start, end) in enumerate(marks)
        )
        return " ".join((text or self.quote).split())


class SelectedTextCitation(SourceCitation):
    """Evidence in the selected text: `selected_text[char_start:char_end] == quote`."""

    char_start: int
    char_end: int
    line_start: int | None = None
    line_end: int | None = None


class RetrievedPassage(Place):
    """A passage that was found, for the `retrieved` event."""

    score: Score

    @classmethod
    def of(cls, chunk: ChunkResult) -> Self:
        """The summary of a chunk."""
        return cls(**chunk.model_dump(include=set(Place.model_fields)), score=chunk.relevance_score)


class NearSection(RetrievedPassage):
    """A section that comes near to a refused question."""

    quote: str = Field("", description="The part of it that comes nearest to the question, as Markdown; may be empty.")
    reader_url: str = Field("", description="Path on this server that opens the page at the section.")

    @classmethod
    def of(cls, chunk: ChunkResult) -> Self:
        """The summary of a chunk, with its address on this server."""
        anchor = chunk.source_url.partition("#")[2]
        fragment = f"#{url_quote(f'book-{anchor}', safe='')}" if anchor else ""
        path = f"/read/{url_quote(chunk.page_id, safe='')}{fragment}"
        return super().of(chunk).model_copy(update={"reader_url": path})

    def quoted(self, write: Callable[[str], str] = str) -> str:
        """Return the first lines of the quote as one indented line below the section, empty if there is none. `write`
        escapes it."""
        lines = [line.strip("| ") for line in self.quote.splitlines() if not _BETWEEN.fullmatch(line)]
        text = " · ".join(lines[:_QUOTED_LINES]) + " …" * (len(lines) > _QUOTED_LINES)
        return f"\n  “{write(text)}”" if lines else ""


class AnswerMetadata(Frozen):
    """Times, tokens and calls of an answer."""

    query_time_ms: float
    retrieval_time_ms: float
    generation_time_ms: float
    chunks_retrieved: int
    model: str
    tokens_used: int
    tokens_written: int = Field(0, description="Tokens that the model wrote; the rest are its input.")
    llm_calls: int
    judge_calls: int = Field(0, description="Calls that checked statements; not included in `llm_calls`.")
    judge_tokens: int = Field(0, description="Tokens of these calls; not included in `tokens_used`.")
    sentences_withheld: int = Field(description="Statements that were not proven and were left out.")
    sentences_replaced: int = Field(
        0, description="Statements that were not proven and were replaced by quotes of the book."
    )
    stored: bool = Field(True, description="False if the turn could not be stored.")


class AnswerSummary(Frozen):
    """An answer without its text and sources: the content of the `done` event."""

    mode: Mode
    session_id: str
    turn_id: str | None = Field(None, description="For `POST /feedback`; null if the turn could not be stored.")
    timestamp: datetime
    confidence: Score
    confidence_level: ConfidenceLevel
    should_answer: bool
    disclaimer: str | None = Field(None, description="A note for an answer of low confidence.")
    status: Status
    advice: str | None = Field(None, description="With a refusal: what was searched for, and what the book covers.")
    nearest: list[NearSection] = Field(default_factory=list, description="With a refusal: the nearest sections.")
    editions: list[EditionName] = Field(
        default_factory=list,
        description="The editions that were searched: the latest version of each book, or those named.",
    )
    metadata: AnswerMetadata


StatementKind = Literal["quoted", "supported", "absence", "frame"]


class AnswerStatement(Frozen):
    """A part of the answer, `answer[start:end]`, and how it is proven. `absence`: states that the book does not say
    something, and cites nothing. `frame`: a heading or a lead-in."""

    start: int
    end: int
    kind: StatementKind
    sources: list[int] = Field(default_factory=list, description="Markers, counted from 1.")
    highlights: list[Highlight] = Field(
        default_factory=list, description="In an excerpt: the parts that answer. Offsets refer to the answer."
    )


class ChatResponse(AnswerSummary):
    """A verified answer with its sources, or a refusal."""

    answer: str
    sources: list[SelectedTextCitation | SourceCitation]
    statements: list[AnswerStatement] = Field(default_factory=list, description="In order; empty for a refusal.")


class RetrievedEvent(Frozen):
    """First event of a stream: the passages that were found."""

    type: Literal["retrieved"] = "retrieved"
    passages: list[RetrievedPassage]


class ChunkEvent(Frozen):
    """Verified text."""

    type: Literal["chunk"] = "chunk"
    content: str
    kind: StatementKind | None = Field(None, description="How the text is proven; null for a refusal.")
    cites: list[int] = Field(default_factory=list, description="Markers of the text, counted from 1.")
    highlights: list[Highlight] = Field(
        default_factory=list, description="In an excerpt: the parts that answer. Offsets refer to the content."
    )
    sources: list[SelectedTextCitation | SourceCitation] = Field(
        default_factory=list, description="The sources that are cited for the first time, in marker order."
    )


class SourcesEvent(Frozen):
    """The sources that the text cites, in marker order."""

    type: Literal["sources"] = "sources"
    sources: list[SelectedTextCitation | SourceCitation]


class DoneEvent(AnswerSummary):
    """Last event of a successful stream."""

    type: Literal["done"] = "done"


class ErrorEvent(Frozen):
    """Last event of a stream that failed."""

    type: Literal["error"] = "error"
    error_code: str
    message: str
    retry_after: float | None = Field(None, description="Seconds to wait before the next try.")


Event = RetrievedEvent | ChunkEvent | SourcesEvent | DoneEvent | ErrorEvent


# ── feedback ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class FeedbackRequest(Strict):
    """Feedback on an answer. It replaces earlier feedback on the same turn."""

    turn_id: TurnId = Field(description="As the answer gave it.", examples=["6f1d1c1e-0d9a-4a58-8a52-0a1f6b3f5c77"])
    session_id: SessionId | None = Field(None, description="If given, the turn must belong to this session.")
    rating: Rating
    reason: Reason | None = Field(None, description="What is wrong with the answer; only with `down`.")
    comment: Comment = Field("", description="In the reader's own words.")

    # The rule of `_reason_fits` for OpenAPI.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"rating": {"const": "up"}}, "required": ["rating"]},
            "then": {"properties": {"reason": {"type": "null"}}},
        }
    )

    @model_validator(mode="after")
    def _reason_fits(self) -> Self:
        if self.reason is not None and self.rating == "up":
            raise ValueError("a reason says what is wrong; send it with rating down, or write a comment")
        return self


class Feedback(Frozen):
    """Feedback as it is stored with a turn."""

    rating: Rating
    reason: Reason | None = None
    comment: str = ""
    rated_at: datetime


class FeedbackKept(Feedback):
    """Stored feedback with the ids of its turn and session."""

    turn_id: str
    session_id: str


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────


class SearchSummary(Frozen):
    """A search that was made for an answer."""

    query: str
    count: int = Field(description="Passages found.")
    mean_similarity: Score | None = None
    searched_at: datetime
    filters: dict[str, JsonValue] | None = None
    editions: list[EditionName] = Field(default_factory=list, description="The editions that were searched.")


class Message(Frozen):
    """One side of a turn."""

    role: Literal["user", "assistant"]
    content: str
    timestamp: datetime
    confidence: Score | None = None
    searches: list[SearchSummary] = Field(default_factory=list, description="For an answer: its searches.")
    turn_id: str | None = Field(None, description="For an answer: its id for `POST /feedback`.")
    feedback: Feedback | None = Field(None, description="For an answer: its feedback.")


class ConversationThread(Frozen):
    """A stored session."""

    thread_id: str
    messages: list[Message]
    created_at: datetime
    updated_at: datetime
    topic_summary: Annotated[str, Field(max_length=200)] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    turn_count: int
    archived: bool


# ── health, errors ───────────────────────────────────────────────────────────────────────────────────────────────────


class ServiceStatus(Frozen):
    """The state of one dependency, from a probe."""

    status: Literal["up", "down", "degraded"]
    engine: str
    latency_ms: float | None = None
    message: str | None = None


class HealthResponse(Frozen):
    """The state of all dependencies."""

    status: Literal["healthy", "degraded", "unhealthy"]
    services: dict[str, ServiceStatus]
    timestamp: datetime
    version: str


class ErrorResponse(Frozen):
    """The error body of every route."""

    error_code: str
    message: str
    details: dict[str, Any] | None = None
    retry_after: int | None = Field(None, description="Seconds to wait before the next try.")

    @classmethod
    def of(cls, failure: ChapterverseError) -> Self:
        """The body for one of our errors."""
        wait = math.ceil(failure.retry_after) if failure.retry_after is not None else None
        return cls(error_code=failure.code, message=failure.message, details=failure.details, retry_after=wait)
