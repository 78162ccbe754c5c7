"""OpenAI's Responses API: the same answers as `/v1/chat/completions`, in its schemas.

Nothing is stored: the client sends the conversation as `input`. Instructions, tools and the parameters of a model are
ignored.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal
from uuid import uuid4

from fastapi import APIRouter, Body, Response
from pydantic import BaseModel, BeforeValidator, Field, JsonValue, StrictBool

from chapterverse.api.chat.routes import AskingOf
from chapterverse.api.errors import responses
from chapterverse.api.openai.completions import Footnotes, read
from chapterverse.api.openai.schemas import (
    MODEL,
    MOST_MESSAGES,
    WITH_A_QUESTION,
    ChatMessage,
    Citations,
    CompletionRequest,
    Fault,
    Lenient,
    Wishes,
    in_openai_words,
)
from chapterverse.errors import error_named
from chapterverse.fields import Query
from chapterverse.models import (
    AnswerMetadata,
    ChatResponse,
    ChunkEvent,
    DoneEvent,
    ErrorEvent,
    ErrorResponse,
    Event,
    Frozen,
    SourceCitation,
    SourcesEvent,
)

router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])

_Items = Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES, json_schema_extra=WITH_A_QUESTION)]


def _as_messages(given: object) -> object:
    """Convert a text to a list of one question. Items that are not messages, such as a tool's result, are dropped."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, list):
        return [item for item in given if not isinstance(item, dict) or "role" in item]
    return given


def _refuse_previous(given: object) -> None:
    if given is not None:
        raise ValueError("responses are not stored; send the conversation as input instead")


class ResponseRequest(Lenient):
    """A question, or a conversation whose last question is answered. Other parameters of OpenAI are ignored."""

    input: Annotated[_Items, BeforeValidator(_as_messages, json_schema_input_type=Query | _Items)]
    model: str = Field(MODEL, min_length=1, max_length=256, description="Returned unchanged; it selects nothing.")
    stream: StrictBool | None = None
    previous_response_id: Annotated[None, BeforeValidator(_refuse_previous)] = Field(
        None, description="Must be null: nothing is stored; send the whole conversation."
    )
    chapterverse: Wishes | None = None

    def conversation(self) -> CompletionRequest:
        """Return the request as a chat completion."""
        return CompletionRequest(messages=self.input, model=self.model, chapterverse=self.chapterverse)


class TextAnnotation(Frozen):
    """A source, and where in the text it is cited."""

    type: Literal["url_citation"] = "url_citation"
    start_index: int
    end_index: int
    title: str
    url: str


class OutputText(Frozen):
    """Verified text with Markdown footnotes."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[TextAnnotation] = Field(default_factory=list)
    citations: Citations = Field(
        default_factory=list, description="Our addition: the sources, in the order of the footnotes."
    )
    logprobs: list[JsonValue] = Field(default_factory=list)


class OutputMessage(Frozen):
    """The answer."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]


class ResponseUsage(Frozen):
    """Tokens that the language model reported; 0 without one."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    judge_tokens: int = Field(
        0, description="Our addition: tokens of the calls that checked the answer, not in the total."
    )


class IncompleteDetails(Frozen):
    """Why an answer is incomplete."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class BookResponse(Frozen):
    """An answer, as OpenAI's Responses API gives it."""

    id: str
    object: Literal["response"] = "response"
    created_at: int = Field(description="Unix time.")
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    model: str
    output: list[OutputMessage]
    usage: ResponseUsage | None = None
    error: dict[str, str] | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    parallel_tool_calls: bool = False
    previous_response_id: None = None
    store: Literal[False] = False
    tool_choice: Literal["none"] = "none"
    tools: list[JsonValue] = Field(default_factory=list)


_EXAMPLES: Final[dict[str, Any]] = {
    "plain": {"summary": "A question", "value": {"model": MODEL, "input": "What is ROS 2?"}},
    "streaming": {"summary": "In events", "value": {"model": MODEL, "input": "What is ROS 2?", "stream": True}},
}
_EVENTS: Final[dict[str, Any]] = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "event": {"type": "string"},
                "data": {"type": "string", "contentMediaType": "application/json"},
            },
            "description": "OpenAI's events: `response.created`, `response.output_item.added`, "
            "`response.content_part.added`, `response.output_text.delta`, `response.output_text.annotation.added`, "
            "`response.output_text.done`, `response.content_part.done`, `response.output_item.done`, and at the end "
            "`response.completed`, `response.incomplete` or `error`.",
        }
    }
}


@router.post(
    "/responses",
    response_model=BookResponse,
    responses={200: {"content": _EVENTS}, **responses(400, 401, 413, 429, 503, openai=True)},
)
async def respond(wanted: Annotated[ResponseRequest, Body(openapi_examples=_EXAMPLES)], asking: AskingOf) -> Response:
    """Answer the last question of a conversation from the book, with footnotes, `annotations` and `citations`."""
    question, history = read(wanted.conversation())
    form = ResponseForm(wanted.model, str(asking.request.base_url))
    response = replace(asking, form=form, history=history)
    return await (response.stream(question) if wanted.stream else response.answer(question))


class ResponseForm(Footnotes):
    """The format of a response: whole or as events."""

    def __init__(self, model: str, site: str) -> None:
        super().__init__(site)
        self._common: dict[str, Any] = {"id": f"resp_{uuid4().hex}", "created_at": int(time.time()), "model": model}
        self._message = f"msg_{uuid4().hex}"
        self._events = 0
        self._text_so_far = ""
        self._sources: Sequence[SourceCitation] = ()

    def body(self, answer: ChatResponse) -> BaseModel:
        """Return the whole response."""
        return self._response(answer.answer, answer.sources, answer.status == "truncated", answer.metadata)

    def write(self, event: Event) -> bytes:
        """Return the events of the Responses API for one event of an answer."""
        match event:
            case ChunkEvent():
                self._text_so_far += event.content
                return self._begin() + self._event("output_text.delta", **self._part, delta=event.content, logprobs=[])
            case SourcesEvent():
                self._sources = event.sources
                return self._begin()
            case DoneEvent():
                return self._begin() + self._end(event)
            case ErrorEvent():
                status = error_named(event.error_code, event.message).status
                body = ErrorResponse(error_code=event.error_code, message=event.message)
                fault: Fault = in_openai_words(body, status).error
                return self._event("error", code=fault.code, message=fault.message, param=None)
            case _:  # the API has no such event
                return self._begin()

    @property
    def _part(self) -> dict[str, Any]:
        return {"item_id": self._message, "output_index": 0, "content_index": 0}

    def _begin(self) -> bytes:
        if self._events:
            return b""
        begun = BookResponse(**self._common, status="in_progress", output=[]).model_dump(mode="json")
        message = OutputMessage(id=self._message, status="in_progress", content=[]).model_dump(mode="json")
        part = OutputText(text="").model_dump(mode="json")
        return (
            self._event("created", response=begun)
            + self._event("in_progress", response=begun)
            + self._event("output_item.added", output_index=0, item=message)
            + self._event("content_part.added", **self._part, part=part)
        )

    def _end(self, done: DoneEvent) -> bytes:
        response = self._response(self._text_so_far, self._sources, done.status == "truncated", done.metadata)
        message = response.output[0]
        part = message.content[0]
        annotated = b"".join(
            self._event(
                "output_text.annotation.added",
                **self._part,
                annotation_index=number,
                annotation=annotation.model_dump(),
            )
            for number, annotation in enumerate(part.annotations)
        )
        return (
            annotated
            + self._event("output_text.done", **self._part, text=part.text, logprobs=[])
            + self._event("content_part.done", **self._part, part=part.model_dump(mode="json"))
            + self._event("output_item.done", output_index=0, item=message.model_dump(mode="json"))
            + self._event(response.status, response=response.model_dump(mode="json"))
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        name = kind if kind == "error" else f"response.{kind}"
        fields_sent = {"type": name, "sequence_number": self._events, **fields}
        self._events += 1
        return f"event: {name}\ndata: {json.dumps(fields_sent, ensure_ascii=False)}\n\n".encode()

    def _response(
        self, text: str, sources: Sequence[SourceCitation], truncated: bool, metadata: AnswerMetadata
    ) -> BookResponse:
        annotations = [TextAnnotation(**citation.model_dump()) for citation in self.annotations(sources)]
        status: Literal["incomplete", "completed"] = "incomplete" if truncated else "completed"
        content = [OutputText(text=text, annotations=annotations, citations=list(sources))]
        return BookResponse(
            **self._common,
            status=status,
            output=[OutputMessage(id=self._message, status=status, content=content)],
            usage=ResponseUsage(
                input_tokens=metadata.tokens_used - metadata.tokens_written,
                output_tokens=metadata.tokens_written,
                total_tokens=metadata.tokens_used,
                judge_tokens=metadata.judge_tokens,
            ),
            incomplete_details=IncompleteDetails() if truncated else None,
        )
