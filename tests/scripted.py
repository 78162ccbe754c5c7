"""A replacement for `chapterverse.answering` whose behaviour depends on the question, for tests of the HTTP interface.

answer                          three sentences and their sources
pause SECONDS                   the same, with a pause before the first sentence
refuse                          a refusal
fail CODE                       an error event after the first sentence
break / stop short / go on      raises, ends without a done event, continues after it; `ended` corrects the stream
prepare fail / prepare pause S  fails or waits before the first byte
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from chapterverse.answering.story import ended
from chapterverse.api.openapi.examples import EVENTS, SUMMARY
from chapterverse.conversations.turns import Turn
from chapterverse.errors import AgentUnavailable, IndexTimeout
from chapterverse.models import (
    ChatRequest,
    ChatResponse,
    ChunkEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    RetrievedEvent,
    SourcesEvent,
)
from chapterverse.settings import Settings

SENTENCES = ("ROS 2 is a set of libraries [1]. ", "It is for robots “and más” [1]. ", "🤖 It is free [1].")
REFUSAL = "The book does not say."


@dataclass
class Scripted:
    """Answers as the question says, and records its calls."""

    asked: list[ChatRequest] = field(default_factory=list)
    histories: list[Sequence[Turn] | None] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    most_at_once: int = 0  # answers
    most_preparing: int = 0
    _now: int = 0
    _preparing: int = 0
    _deadlines: dict[int, float] = field(default_factory=dict)

    async def prepare(
        self, request: ChatRequest, services: Any, seconds: float, turns: Sequence[Turn] | None = None
    ) -> ChatRequest:
        self.asked.append(request)
        self._deadlines[id(request)] = time.perf_counter() + seconds
        self.histories.append(turns)
        if request.query == "prepare fail":
            raise IndexTimeout("The search took too long.", retry_after=1.2)
        if request.query.startswith("prepare pause"):
            self._preparing += 1
            self.most_preparing = max(self.most_preparing, self._preparing)
            try:
                await asyncio.sleep(float(request.query.split()[-1]))
            finally:
                self._preparing -= 1
                self.closed.append(request.query)
        return request

    def stream(self, prepared: ChatRequest, services: Any) -> AsyncGenerator[Event, None]:
        return ended(self._stream(prepared), self._deadlines.get(id(prepared), time.perf_counter() + 30))

    async def _stream(self, prepared: ChatRequest) -> AsyncGenerator[Event, None]:
        query = prepared.query
        self.opened.append(query)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            async for event in self._events(query, prepared):
                yield event
        finally:
            self._now -= 1
            self.closed.append(query)

    async def _events(self, query: str, request: ChatRequest) -> AsyncIterator[Event]:
        if request.mode == "general":
            yield RetrievedEvent.model_validate(EVENTS[0])
        if query.startswith("pause"):
            await asyncio.sleep(float(query.split()[1]))
        for sentence in (REFUSAL,) if query == "refuse" else SENTENCES:
            yield (
                ChunkEvent(content=sentence)
                if query == "refuse"
                else ChunkEvent(content=sentence, kind="supported", cites=[1])
            )
            if query.startswith("fail"):
                yield ErrorEvent(error_code=query.split()[1], message="As the script says.")
                return
            if query == "break":
                raise ZeroDivisionError("secret detail")
            if query == "stop short":
                return
        yield SourcesEvent.model_validate(EVENTS[2])
        status = "refused" if query == "refuse" else "answered"
        yield DoneEvent.model_validate(
            SUMMARY
            | {"status": status, "mode": request.mode, "session_id": request.session_id or SUMMARY["session_id"]}
        )
        if query == "go on":
            yield ChunkEvent(content="too late")

    async def fold(self, events: AsyncIterator[Event]) -> ChatResponse:
        text, sources = "", []
        async for event in events:
            if isinstance(event, ChunkEvent):
                text += event.content
            elif isinstance(event, SourcesEvent):
                sources = event.sources
            elif isinstance(event, DoneEvent):
                return ChatResponse(answer=text, sources=sources, **event.model_dump(exclude={"type"}))
            elif isinstance(event, ErrorEvent):
                raise AgentUnavailable(event.message)
        raise AssertionError("no end")


def without_engines(**services: Any) -> Callable[[Settings], Any]:
    """Opens services that have only these attributes."""

    @asynccontextmanager
    async def opening(settings: Settings) -> AsyncIterator[Any]:
        yield SimpleNamespace(settings=settings, **{"dependencies": (), **services})

    return opening


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until a condition holds that another thread makes true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.005)
