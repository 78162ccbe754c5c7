"""Additional names for fields of requests and answers, for clients written for the seeds' designs of this API.

`/chat` and `/chat/stream` accept any field and list the unknown ones in a `Warning` header. `/chat/run` answers with
the names of seeds 003 and 004 in addition to our own.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from chapterverse.api.chat.streaming import data
from chapterverse.errors import ValidationFailed
from chapterverse.fields import MAX_TOP_K, OneOrMore, Score, Text, faults_in, invalid, refuse_non_number
from chapterverse.models import (
    ChatRequest,
    ChatResponse,
    ChunkEvent,
    ConfidenceLevel,
    DoneEvent,
    Event,
    Frozen,
    SearchFilters,
    SelectedTextCitation,
    SourceCitation,
    SourcesEvent,
)

MOST_NAMED: Final = 10  # ignored fields listed in the header
LONGEST_NAME: Final = 40  # characters shown of each
MOST_ASKED_FOR: Final = 100  # the maximum of `top_k` in seed 004

# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class ChatBody(ChatRequest):
    """A question to the book, or to a selected passage. Unknown fields are ignored and listed in the `Warning` header
    of the response."""

    module_filter: OneOrMore | None = Field(None, description="As `filters.module`.")
    user_id: Annotated[Text, Field(max_length=256)] | None = Field(
        None, description="As `metadata.user_id`; it counts as an entry."
    )

    model_config = ConfigDict(extra="allow")

    def question(self) -> ChatRequest:
        """Return the question with the field names of this API."""
        given = {name: getattr(self, name) for name in self.model_fields_set & ChatRequest.model_fields.keys()}
        if self.module_filter:
            if self.filters and self.filters.module:
                raise ValidationFailed("module_filter: filters.module is given, too; send only one of them")
            fields = self.filters.model_dump() if self.filters else {}
            given["filters"] = SearchFilters.model_validate(fields | {"module": self.module_filter})
        if self.user_id is not None:
            given["metadata"] = {"user_id": self.user_id, **(self.metadata or {})}
        try:
            return ChatRequest.model_validate(given)
        except ValidationError as failure:  # `user_id` is one entry of the metadata too many
            raise invalid(faults_in(failure)) from None

    def warning(self) -> str | None:
        """Return the text of the `Warning` header, or None if nothing was ignored."""
        names = [json.dumps(name[:LONGEST_NAME])[1:-1] for name in list(self.model_extra or {})[:MOST_NAMED]]
        return f"ignored fields: {', '.join(names)}" if names else None


class RunBody(ChatBody):
    """As for `/chat`."""

    top_k: Annotated[int, Field(ge=1, le=MOST_ASKED_FOR), BeforeValidator(refuse_non_number)] = Field(
        5, description=f"More than {MAX_TOP_K} is taken as {MAX_TOP_K}."
    )

    def question(self) -> ChatRequest:
        """Return the question with the field names of this API. `top_k` is lowered to its maximum."""
        limited = self.model_copy(update={"top_k": min(self.top_k, MAX_TOP_K)}) if self.top_k > MAX_TOP_K else self
        return super(RunBody, limited).question()

    def warning(self) -> str | None:
        """Return the text of the `Warning` header, or None if nothing was changed or ignored."""
        lowered = f"top_k lowered to {MAX_TOP_K}" if self.top_k > MAX_TOP_K else None
        return "; ".join(filter(None, (lowered, super().warning()))) or None


# ── the names of seeds 003 and 004 ───────────────────────────────────────────────────────────────────────────────────


class SourceNames(Frozen):
    """Additional names of a source's fields."""

    chapter: str = Field(description="As `page_title`.")
    section: str = Field(description="As `section_heading`.")
    url: str = Field(description="As `source_url`.")
    page_url: str = Field(description="The same without the section's anchor.")
    module_name: str = Field(description="As `module`.")
    similarity_score: Score = Field(description="As `relevance_score`.")


class RunSource(SourceCitation, SourceNames):
    """A source with all its names."""


class RunSelectedSource(SelectedTextCitation, SourceNames):
    """A source in the selected text with all its names."""


class RunCitation(Frozen):
    """A page that an answer cites."""

    page_title: str
    page_url: str
    module_name: str


class RunSummary(Frozen):
    """Fields that seeds 003 and 004 add to the end of an answer."""

    query: str = Field(description="The question as it was asked.")
    retrieval_time_ms: float
    generation_time_ms: float
    total_time_ms: float
    error: None = Field(None, description="Always null: an error has its own status and body.")


ConfidenceWord = Literal["high", "low", "none"]
_WORDS: Final[dict[ConfidenceLevel, ConfidenceWord]] = {
    "high": "high",
    "medium": "high",
    "low": "low",
    "insufficient": "none",
}


class RunResponse(ChatResponse, RunSummary):
    """A `ChatResponse` with the additional names of seeds 003 and 004."""

    response: str = Field(description="As `answer`.")
    citations: list[RunCitation] = Field(description="The pages of `sources`, each once.")
    sources: list[RunSelectedSource | RunSource]  # type: ignore[assignment]
    confidence: Score | ConfidenceWord = Field(  # type: ignore[assignment]
        description="A word, as in seed 004, if the question was sent as `text`."
    )


class RunForm:
    """The response format of `/chat/run`."""

    def __init__(self, query: str, *, in_words: bool) -> None:
        self._query = query
        self._in_words = in_words

    def revise(self, event: Event) -> Iterable[Event]:
        """Return the event unchanged."""
        return (event,)

    def body(self, answer: ChatResponse) -> BaseModel:
        """Return the answer with the additional names."""
        citations: dict[str, RunCitation] = {}
        for source in answer.sources:
            cited = RunCitation(page_title=source.page_title, page_url=_page_of(source), module_name=source.module)
            citations.setdefault(source.page_id or cited.page_url, cited)
        return RunResponse.model_validate(
            answer.model_dump(exclude={"sources"})
            | self._summary(answer)
            | {"response": answer.answer, "citations": list(citations.values())}
            | {"sources": [_named(source) for source in answer.sources]}
        )

    def write(self, event: Event) -> bytes:
        """Serialize the event as one message, with the additional names."""
        fields: dict[str, Any] = event.model_dump(mode="json")
        if isinstance(event, ChunkEvent | SourcesEvent):
            fields["sources"] = [_named(source) for source in event.sources]
        elif isinstance(event, DoneEvent):
            fields |= self._summary(event)
        return data(json.dumps(fields, ensure_ascii=False))

    def _summary(self, done: ChatResponse | DoneEvent) -> dict[str, Any]:
        metadata = done.metadata
        summary = RunSummary(
            query=self._query,
            retrieval_time_ms=metadata.retrieval_time_ms,
            generation_time_ms=metadata.generation_time_ms,
            total_time_ms=metadata.query_time_ms,
        )
        word = {"confidence": _WORDS[done.confidence_level]} if self._in_words else {}
        return summary.model_dump() | word


def _named(source: SourceCitation) -> dict[str, Any]:
    names = SourceNames(
        chapter=source.page_title,
        section=source.section_heading,
        url=source.source_url,
        page_url=_page_of(source),
        module_name=source.module,
        similarity_score=source.relevance_score,
    )
    return source.model_dump(mode="json") | names.model_dump()


def _page_of(source: SourceCitation) -> str:
    return source.source_url.partition("#")[0]
