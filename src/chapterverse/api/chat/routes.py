"""Routes for questions. An answer is sent as JSON or as a stream of events; both are made from the same events.

Each question takes a slot, is prepared (failures are HTTP errors), releases the slot, and is then answered. `answering`
ends each stream with one `done` or `error` within the request's time limit. If the client disconnects, the model's run
is cancelled.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Protocol

from fastapi import APIRouter, Body, Depends, Request, Response
from pydantic import BaseModel

from chapterverse.api.access.guard import admitted, deadline_of, in_time, open_answer
from chapterverse.api.access.slots import Slot
from chapterverse.api.chat.seed_names import ChatBody, RunBody, RunForm, RunResponse
from chapterverse.api.chat.streaming import EventStream, data, while_present
from chapterverse.api.dependencies import services_of
from chapterverse.api.edition_paths import edition_of
from chapterverse.api.errors import reported, responses
from chapterverse.api.middleware import note, started_at
from chapterverse.api.openapi.examples import ANSWER, QUESTIONS, RUN, STREAM
from chapterverse.conversations.turns import Turn
from chapterverse.errors import error_named
from chapterverse.models import ChatRequest, ChatResponse, DoneEvent, ErrorEvent, Event
from chapterverse.telemetry import Telemetry
from chapterverse.tracing import AnswerTrace
from chapterverse.writing import Finished, Writer

router = APIRouter(tags=["ask"])


class Answering(Protocol):
    """The functions of `chapterverse.answering` that these routes use. Tests replace them with a script."""

    async def prepare(
        self, request: ChatRequest, services: Any, seconds: float, turns: Sequence[Turn] | None = None
    ) -> Any:
        """Do everything that can fail before the first byte. `seconds`: the time left for the whole answer. `turns`:
        the earlier turns, if the client keeps the conversation."""

    def stream(self, prepared: Any, services: Any) -> AsyncGenerator[Event, None]:
        """Yield the events of the answer; the last is `done` or `error`. Closing the generator cancels the model's
        run."""

    async def fold(self, events: AsyncIterator[Event]) -> ChatResponse:
        """Combine the events into the answer."""


class Form(Protocol):
    """The response format of a route."""

    def revise(self, event: Event) -> Iterable[Event]:
        """Return the events that this route sends in place of an event."""

    def body(self, answer: ChatResponse) -> BaseModel:
        """Return the body of a response that is not streamed."""

    def write(self, event: Event) -> bytes:
        """Serialize one event of a stream."""


class Plain:
    """The format of `/chat`: answers and events unchanged."""

    def revise(self, event: Event) -> Iterable[Event]:
        """Return the event unchanged."""
        return (event,)

    def body(self, answer: ChatResponse) -> BaseModel:
        """Return the answer unchanged."""
        return answer

    def write(self, event: Event) -> bytes:
        """Serialize the event as one message."""
        return data(event.model_dump_json())


PLAIN: Final = Plain()


@dataclass(frozen=True, slots=True)
class Asking:
    """One question over HTTP. `held` has its resources and is closed when the answer has been sent."""

    request: Request
    held: AsyncExitStack
    form: Form = PLAIN
    history: Sequence[Turn] | None = None  # the earlier turns, if the client keeps the conversation

    async def answer(self, question: ChatRequest) -> Response:
        """Return the answer as JSON."""
        return await while_present(self.request, self._answer(question))

    async def stream(self, question: ChatRequest) -> Response:
        """Return the answer as a stream of events. A failure before the first event is an HTTP error."""
        first, events = await while_present(self.request, self._open(question))
        self.held.enter_context(self._telemetry.streams.track_inprogress())
        heartbeat = self.request.app.state.heartbeat
        return EventStream(events, self.form.write, deadline_of(self.request), heartbeat, first=first)

    async def answered(self, question: ChatRequest) -> ChatResponse:
        """Return the answer as a model; MCP calls this directly."""
        async with aclosing(await self._begin(question)) as events:
            return await self._answering.fold(events)

    async def _answer(self, question: ChatRequest) -> Response:
        answer = await self.answered(question)
        return Response(self.form.body(answer).model_dump_json(), media_type="application/json")

    async def _open(self, question: ChatRequest) -> tuple[Event, AsyncGenerator[Event, None]]:
        """Wait for the first event. Return it and the generator of the others."""
        events = await self._begin(question)
        self.held.push_async_callback(events.aclose)
        first = await anext(events)
        if isinstance(first, ErrorEvent):
            raise error_named(first.error_code, first.message, first.retry_after)
        return first, events

    async def _begin(self, question: ChatRequest) -> AsyncGenerator[Event, None]:
        tracing = self.request.app.state.tracing
        trace = self.held.enter_context(tracing.answer(self.request.headers)) if tracing else None
        await self.held.enter_async_context(open_answer(self.request))
        slot = await self.held.enter_async_context(admitted(self.request))
        services = services_of(self.request)
        if (edition := edition_of(self.request.scope)) and not (question.filters and question.filters.book):
            # Added to the question, so that the edition is stored with the conversation.
            question = question.model_copy(update={"filters": edition.but(question.filters)})
        async with in_time(self.request):
            left = deadline_of(self.request) - asyncio.get_running_loop().time()
            prepared = await self._answering.prepare(question, _releasing(services, slot), left, self.history)
        slot.give_back()  # from here on, the request only waits for the model or for its client
        events = self._answering.stream(prepared, services)
        return self._observed(events, trace)

    async def _observed(
        self, events: AsyncGenerator[Event, None], trace: AnswerTrace | None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events in the format of this route. Record them in the metrics, the trace and the log."""
        first = True
        async with aclosing(events):
            async for answered in events:
                event = self._reported(answered)
                if first:
                    seconds = asyncio.get_running_loop().time() - started_at(self.request.scope)
                    self._telemetry.first_event_seconds.observe(seconds)
                    first = False
                self._telemetry.see_event(event, is_kept=self.history is None)
                if trace is not None:
                    trace.see(event)
                if isinstance(event, DoneEvent):
                    note(self.request.scope, answer=event.status, confidence_level=event.confidence_level)
                elif isinstance(event, ErrorEvent):
                    note(self.request.scope, error_code=event.error_code)
                for revised in self.form.revise(event):
                    yield revised

    def _reported(self, event: Event) -> Event:
        if not isinstance(event, ErrorEvent):
            return event
        return event.model_copy(update={"message": reported(event.message, self.request.scope)})

    @property
    def _answering(self) -> Answering:
        answering: Answering = self.request.app.state.answering
        return answering

    @property
    def _telemetry(self) -> Telemetry:
        telemetry: Telemetry = self.request.app.state.telemetry
        return telemetry


class SlotReleasingWriter:
    """Wraps a writer and releases the slot while the model rewrites a follow-up."""

    def __init__(self, inside: Writer, slot: Slot) -> None:
        self._inside, self._slot = inside, slot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)

    async def rewrite(self, question: str, history: Sequence[Turn]) -> tuple[str, Finished]:
        """Rewrite the question without holding the slot."""
        async with self._slot.given_back():
            return await self._inside.rewrite(question, history)


def _releasing(services: Any, slot: Slot) -> Any:
    if not hasattr(services, "writer"):
        return services
    return replace(services, writer=SlotReleasingWriter(services.writer, slot))


async def asking(request: Request) -> AsyncIterator[Asking]:
    """Yield an `Asking`. Its resources are released after the response, streamed or not, has been sent."""
    async with AsyncExitStack() as held:
        yield Asking(request, held)


Question = Annotated[ChatBody, Body(openapi_examples=QUESTIONS)]
AskingOf = Annotated[Asking, Depends(asking)]
_ERRORS = responses(400, 401, 413, 429, 503)
_WARNING = {
    "Warning": {"description": "The parts of the request that were ignored, if any.", "schema": {"type": "string"}}
}


def _described(content: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": content, "headers": _WARNING}, **_ERRORS}


@router.post("/chat", response_model=ChatResponse, responses=_described(ANSWER | STREAM))
async def chat(body: Question, asking: AskingOf) -> Response:
    """Ask the book, or only a selected passage, and get a verified answer with its sources, or a refusal.

    With `stream: true` the response is that of `/chat/stream`.
    """
    question = body.question()
    return _warned(body, await (asking.stream(question) if question.stream else asking.answer(question)))


@router.post("/chat/run", response_model=RunResponse, responses=_described(RUN | STREAM))
async def chat_run(body: Annotated[RunBody, Body(openapi_examples=QUESTIONS)], asking: AskingOf) -> Response:
    """Like `/chat`, with additional names for some fields: `response`, `citations`, `total_time_ms` and others.

    For clients that were written for earlier designs of this API.
    """
    question = body.question()
    sent = await asking.request.json()  # the body was read already and is cached
    run = replace(asking, form=RunForm(question.query, in_words=not {"query", "message"} & sent.keys()))
    return _warned(body, await (run.stream(question) if question.stream else run.answer(question)))


@router.post("/chat/stream", response_class=Response, responses=_described(STREAM))
async def chat_stream(body: Question, asking: AskingOf) -> Response:
    """Ask, and get the answer as Server-Sent Events.

    Each event is one line `data: {json}` and a blank line; comment lines keep the connection open. `retrieved` comes
    first (not with `selected_text`), then `chunk`s of verified text, `sources`, and exactly one `done` or `error`. The
    chunks joined are the `answer` of `/chat`. A failure before the first event is a plain HTTP error.
    """
    return _warned(body, await asking.stream(body.question()))


def _warned(body: ChatBody, response: Response) -> Response:
    """Add a header that lists the ignored parts of the request, if there are any."""
    if warning := body.warning():
        response.headers["Warning"] = f'299 chapterverse "{warning}"'
    return response
