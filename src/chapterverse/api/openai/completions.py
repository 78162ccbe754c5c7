"""Routes for clients of OpenAI's chat completions: the book as a model.

The conversation that the client sends becomes a question with earlier turns. The events of an answer become a
completion, with markers as Markdown footnotes and sources as `citations`. The database is not used. Limits, deadlines
and streams are those of `chat`.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final
from uuid import uuid4

from fastapi import APIRouter, Body, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from chapterverse.answering.refusals import OFFER, SELECTION_READ
from chapterverse.api.chat.routes import AskingOf
from chapterverse.api.chat.streaming import data
from chapterverse.api.dependencies import ServicesOf
from chapterverse.api.errors import responses
from chapterverse.api.inert import (
    Inert,
    advice_of,
    inert_line,
    link_to,
    marked,
    unescaped,
    written_with_places,
)
from chapterverse.api.openai.schemas import (
    DONE,
    Annotation,
    ChatMessage,
    Choice,
    ChunkChoice,
    Completion,
    CompletionChunk,
    CompletionMessage,
    CompletionRequest,
    Delta,
    FinishReason,
    ModelCard,
    ModelList,
    UrlCitation,
    Usage,
    UserMessage,
    in_openai_words,
)
from chapterverse.api.openapi.examples import COMPLETION, COMPLETION_STREAM, CONVERSATIONS
from chapterverse.conversations.turns import Turn
from chapterverse.errors import ValidationFailed, error_named
from chapterverse.models import (
    AnswerMetadata,
    ChatRequest,
    ChatResponse,
    ChunkEvent,
    DoneEvent,
    ErrorEvent,
    ErrorResponse,
    Event,
    NearSection,
    SourceCitation,
    SourcesEvent,
    Status,
)

MOST_EARLIER: Final = 100  # messages before the question that are read
MOST_ANSWER: Final = 20_000  # characters of an earlier answer that are read

router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])

SELECTION: Final = "selected_text"  # the `source_url` of a citation of the selected text

_FOOTNOTE = "[^{}]"
_NOTE = re.compile(r"\[\^(\d{1,4})\]")
# The beginning of the notes under an answer, or of the advice after a refusal.
_NOTES = re.compile(rf"\[\^\d{{1,4}}\]: |Searched for “|{re.escape(SELECTION_READ)}")


@router.post(
    "/chat/completions",
    response_model=Completion,
    responses={200: {"content": COMPLETION | COMPLETION_STREAM}, **responses(400, 401, 413, 429, 503, openai=True)},
)
async def complete(
    wanted: Annotated[CompletionRequest, Body(openapi_examples=CONVERSATIONS)], asking: AskingOf
) -> Response:
    """Answer the last question of a conversation from the book, with Markdown footnotes and `citations`.

    The client keeps the conversation and sends the earlier questions and answers. System messages and the parameters of
    a model, such as `temperature`, are ignored. A refusal is an ordinary answer. With `stream: true` the answer comes
    in chunks, ended by `data: [DONE]`, or by `data: {"error": …}` after a failure.
    """
    question, history = read(wanted)
    completion = replace(asking, form=Footnoted(wanted, str(asking.request.base_url)), history=history)
    return await (completion.stream(question) if wanted.stream else completion.answer(question))


@router.get("/models", responses=responses(401, 429, openai=True))
async def models(services: ServicesOf) -> ModelList:
    """List the only model: the book."""
    engines = {"language_model": services.writer.name, "embeddings": services.embedder.fingerprint.model}
    return ModelList(data=[ModelCard(metadata=engines)])


def read(wanted: CompletionRequest) -> tuple[ChatRequest, list[Turn]]:
    """Return the last question of a conversation and the turns before it."""
    asked = [number for number, message in enumerate(wanted.messages) if isinstance(message, UserMessage)]
    if not asked:
        raise ValidationFailed("messages: must contain one with the role user; the last of them is the question")
    last = wanted.messages[asked[-1]]
    assert isinstance(last, UserMessage)
    extras = wanted.chapterverse.model_dump(exclude_none=True) if wanted.chapterverse else {}
    mode = "selected_text" if "selected_text" in extras else "general"
    try:
        question = ChatRequest.model_validate({"query": last.text, "mode": mode, **extras})
    except ValidationError as failure:  # the parts together are too long
        raise RequestValidationError(failure.errors()) from None
    return question, list(_turns(wanted.messages[: asked[-1]][-MOST_EARLIER:]))


def _turn(question: str, answer: str) -> Turn:
    """Make a turn from a question and an answer that the client sent. The text of the answer is the only sign that it
    offered to search the whole book."""
    if OFFER in answer:
        return Turn(session_id="", query=question, response=answer, mode="selected_text", status="refused")
    return Turn(session_id="", query=question, response=answer)


def _turns(messages: Sequence[ChatMessage]) -> Iterator[Turn]:
    """Yield each question with its answer. A question without an answer, as after an error, is skipped."""
    question = ""
    for message in messages:
        if isinstance(message, UserMessage):
            question = message.text
        elif message.role == "assistant" and question and (answer := _without_notes(message.text[:MOST_ANSWER])):
            yield _turn(question, answer)
            question = ""


def _without_notes(text: str) -> str:
    """Remove the notes from an answer of this API, undo its escaping, and turn footnotes back into markers."""
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines) if _NOTES.match(line)), len(lines))
    return _NOTE.sub(r"[\1]", unescaped("\n".join(lines[:end]))).strip()


class Footnotes:
    """Writes markers as Markdown footnotes and records their positions in the text."""

    def __init__(self, site: str) -> None:
        """`site`: the address of this server, for pages that have none of their own."""
        self._site = site.rstrip("/")
        self._inert = Inert()
        self._length = 0  # of the text so far
        self._places: list[tuple[int, int, int]] = []  # start, end and number of each footnote's marker

    def revise(self, event: Event) -> Iterator[Event]:
        """Yield the event with footnotes instead of markers. The notes are sent as text before the sources."""
        if isinstance(event, ChunkEvent):
            if shown := self._inert.feed(marked(event.content, event.cites)):
                yield self._text(shown)
            return
        if rest := self._inert.flush():
            yield self._text(rest)
        match event:
            case SourcesEvent(sources=[_, *_] as sources):
                yield self._text("\n\n" + "\n".join(map(self._note, range(1, len(sources) + 1), sources)))
            case DoneEvent(disclaimer=str(disclaimer)):
                yield self._text(f"\n\n_{disclaimer}_")
            case DoneEvent(advice=str()):
                yield self._text("\n\n" + "\n\n".join(advice_of(event, self._address)))
        yield event

    def _text(self, shown: str) -> ChunkEvent:
        text, places = written_with_places(shown, _FOOTNOTE)
        self._places += [(start + self._length, end + self._length, number) for start, end, number in places]
        self._length += len(text)
        return ChunkEvent(content=text)

    def annotations(self, sources: Sequence[SourceCitation]) -> list[UrlCitation]:
        """Return the positions at which the text cites pages."""
        return [
            UrlCitation(
                start_index=start,
                end_index=end,
                title=sources[number - 1].place,
                url=self._address(sources[number - 1]),
            )
            for start, end, number in self._places
            if number <= len(sources) and sources[number - 1].source_url != SELECTION
        ]

    def _note(self, number: int, source: SourceCitation) -> str:
        """Return a footnote with place, address and quote."""
        place = inert_line(source.place)
        where = place if source.source_url == SELECTION else f"{place} — {link_to(self._address(source))}"
        return f"[^{number}]: {where}: “{inert_line(source.gist)}”"

    def _address(self, source: SourceCitation | NearSection) -> str:
        """Return the address at which a reader can open the source: its own, or that of the reader page here."""
        own = source.source_url.lower().startswith(("http://", "https://"))
        return source.source_url if own or not source.reader_url else self._site + source.reader_url


class Footnoted(Footnotes):
    """The format of a completion: text with footnotes, whole or in chunks."""

    def __init__(self, wanted: CompletionRequest, site: str) -> None:
        super().__init__(site)
        self._common: dict[str, Any] = {
            "id": f"chatcmpl-{uuid4().hex}",
            "created": int(time.time()),
            "model": wanted.model,
        }
        self._with_usage = bool(wanted.stream_options and wanted.stream_options.include_usage)
        self._begun = False
        self._sources: Sequence[SourceCitation] = ()

    def body(self, answer: ChatResponse) -> BaseModel:
        """Return the whole completion."""
        message = CompletionMessage(
            content=answer.answer, annotations=self._annotated(answer.sources), citations=answer.sources
        )
        choice = Choice(message=message, finish_reason=_finish(answer.status))
        return Completion(**self._common, choices=[choice], usage=_usage(answer.metadata))

    def write(self, event: Event) -> bytes:
        """Return the chunks for an event. Sources have no chunk of their own: they are in the last one."""
        match event:
            case ChunkEvent():
                return self._chunk(content=event.content)
            case SourcesEvent():
                self._sources = event.sources
                return b""
            case DoneEvent():
                annotations = self._annotated(self._sources)
                last = self._chunk(_finish(event.status), annotations=annotations, citations=self._sources)
                return last + (self._usage_chunk(event.metadata) if self._with_usage else b"") + data(DONE)
            case ErrorEvent():
                status = error_named(event.error_code, event.message).status
                body = ErrorResponse(error_code=event.error_code, message=event.message)
                return data(in_openai_words(body, status).model_dump_json())
            case _:  # the API has no such event; the chunk shows that the answer goes on
                return self._chunk(content="")

    def _chunk(self, finish: FinishReason | None = None, **delta: Any) -> bytes:
        if not self._begun:
            delta["role"], self._begun = "assistant", True
        choice = ChunkChoice(delta=Delta(**delta), finish_reason=finish)
        return data(CompletionChunk(**self._common, choices=[choice]).model_dump_json())

    def _annotated(self, sources: Sequence[SourceCitation]) -> list[Annotation]:
        return [Annotation(url_citation=citation) for citation in self.annotations(sources)]

    def _usage_chunk(self, metadata: AnswerMetadata) -> bytes:
        return data(CompletionChunk(**self._common, choices=[], usage=_usage(metadata)).model_dump_json())


def _finish(status: Status) -> FinishReason:
    return "length" if status == "truncated" else "stop"


def _usage(metadata: AnswerMetadata) -> Usage:
    return Usage(
        prompt_tokens=metadata.tokens_used - metadata.tokens_written,
        completion_tokens=metadata.tokens_written,
        total_tokens=metadata.tokens_used,
        judge_tokens=metadata.judge_tokens,
    )
