"""Schemas of OpenAI's chat completions: requests, answers, chunks, errors.

Names and nesting are OpenAI's; `citations` in an answer and `chapterverse` in a request are ours. Other fields that
OpenAI's clients send are accepted and ignored.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool
from pydantic.config import JsonDict

from chapterverse.fields import Query, Selection, Text, TopK
from chapterverse.models import ErrorResponse, Frozen, SearchFilters, SelectedTextCitation, SourceCitation

MODEL: Final = "chapterverse"
DONE: Final = "[DONE]"  # ends a successful stream

Citations = list[SelectedTextCitation | SourceCitation]
FinishReason = Literal["stop", "length"]


def _as_parts(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _absent(value: object) -> bool:
    return value is None


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Lenient(BaseModel):
    """Ignores unknown fields: OpenAI's clients send many parameters that have no effect here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class QuestionPart(Lenient):
    """A part of a question. Only text is supported."""

    type: Literal["text", "input_text"]
    text: Query

    model_config = ConfigDict(str_strip_whitespace=True)


class AnswerPart(Lenient):
    """A part of an earlier answer."""

    type: Literal["text", "output_text"]
    text: Text


MOST_MESSAGES: Final = 1000
MOST_PARTS: Final = 100

_QuestionParts = Annotated[list[QuestionPart], Field(min_length=1, max_length=MOST_PARTS)]
_AnswerParts = Annotated[list[AnswerPart], Field(max_length=MOST_PARTS)]


class UserMessage(Lenient):
    """A question; the last one is answered."""

    role: Literal["user"]
    content: Annotated[_QuestionParts, BeforeValidator(_as_parts, json_schema_input_type=Query | _QuestionParts)]

    @property
    def text(self) -> str:
        """The text of all parts."""
        return "\n".join(part.text for part in self.content)


class AssistantMessage(Lenient):
    """An earlier answer."""

    role: Literal["assistant"]
    content: Annotated[
        _AnswerParts | None, BeforeValidator(_as_parts, json_schema_input_type=Text | _AnswerParts | None)
    ] = None

    @property
    def text(self) -> str:
        """The text of all parts."""
        return "\n".join(part.text for part in self.content or ())


class OtherMessage(Lenient):
    """Ignored: clients cannot change how the book answers, and their tools are not called."""

    role: Literal["system", "developer", "tool", "function"]
    content: Any = None


ChatMessage = Annotated[UserMessage | AssistantMessage | OtherMessage, Field(discriminator="role")]


class StreamOptions(Lenient):
    """Options of a stream."""

    include_usage: StrictBool | None = Field(
        None, description="Adds a last chunk without choices that has the tokens used."
    )


class Wishes(BaseModel):
    """Parameters that OpenAI does not have."""

    filters: SearchFilters | None = None
    top_k: TopK | None = None
    selected_text: Annotated[Selection, Field(min_length=1, pattern=r"\S")] | None = Field(
        None, description="Answer only from this text."
    )

    model_config = ConfigDict(extra="forbid", frozen=True)


WITH_A_QUESTION: JsonDict = {"contains": {"properties": {"role": {"const": "user"}}, "required": ["role"]}}


class CompletionRequest(Lenient):
    """A conversation whose last question is answered. Other parameters of OpenAI are ignored."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES, json_schema_extra=WITH_A_QUESTION)
    model: str = Field(MODEL, min_length=1, max_length=256, description="Returned unchanged; it selects nothing.")
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = Field(None, description="A question has one answer.")
    chapterverse: Wishes | None = None


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Usage(Frozen):
    """Tokens that the language model reported for all calls that wrote the answer; 0 without one."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    judge_tokens: int = Field(
        0, description="Our addition: tokens of the calls that checked the answer, not in the total."
    )


class UrlCitation(Frozen):
    """A source, and where in the text it is cited."""

    start_index: int = Field(description="Start of the footnote's marker, in characters.")
    end_index: int
    title: str
    url: str


class Annotation(Frozen):
    """A citation in OpenAI's schema."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class CompletionMessage(Frozen):
    """The answer: verified text with Markdown footnotes."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = Field(None, description="Always null: a refusal is in `content`.")
    annotations: list[Annotation] = Field(description="Where the text cites a page; none for a selection.")
    citations: Citations = Field(description="The sources, in the order of the footnotes.")


class Choice(Frozen):
    """The only choice."""

    index: Literal[0] = 0
    message: CompletionMessage
    logprobs: None = None
    finish_reason: FinishReason = Field(description="`length`: a limit ended the answer early.")


class Completion(Frozen):
    """An answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(description="Unix time.")
    model: str
    choices: list[Choice]
    usage: Usage


class Delta(Frozen):
    """The part of the message that a chunk adds."""

    role: Literal["assistant"] | None = Field(None, exclude_if=_absent)
    content: str | None = Field(None, exclude_if=_absent)
    annotations: list[Annotation] | None = Field(None, exclude_if=_absent, description="In the chunk that finishes.")
    citations: Citations | None = Field(None, exclude_if=_absent, description="In the chunk that finishes.")


class ChunkChoice(Frozen):
    """A part of the only choice."""

    index: Literal[0] = 0
    delta: Delta
    logprobs: None = None
    finish_reason: FinishReason | None = None


class CompletionChunk(Frozen):
    """A part of an answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = Field(None, exclude_if=_absent)


class ModelCard(Frozen):
    """The book, as a model."""

    id: str = MODEL
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = MODEL
    metadata: dict[str, str] = Field(description="The engines behind it.")


class ModelList(Frozen):
    """The list of models, which has one entry."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Fault(Frozen):
    """What went wrong, in OpenAI's schema."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None = Field(None, description="The field at fault.")
    code: str = Field(description="`invalid_api_key`, `rate_limit_exceeded`, else our own `error_code`.")


class CompletionError(Frozen):
    """The error body of the routes under `/v1`."""

    error: Fault


_CODES: Final = {"unauthorized": "invalid_api_key", "rate_limited": "rate_limit_exceeded"}


def in_openai_words(body: ErrorResponse, status: int) -> CompletionError:
    """Convert an error body to OpenAI's schema."""
    faults = (body.details or {}).get("errors") or [{}]
    return CompletionError(
        error=Fault(
            message=body.message,
            type="rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error",
            param=faults[0].get("field"),
            code=_CODES.get(body.error_code, body.error_code),
        )
    )
