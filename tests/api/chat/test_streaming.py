"""A stream sends exactly one final event, also to a client that reads slowly."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from chapterverse.api.chat import streaming
from chapterverse.api.chat.streaming import EventStream, data
from chapterverse.models import ChunkEvent, ErrorEvent, Event


class Reader:
    """A client that receives the first messages and then reads nothing until `reads` is set. `send` blocks meanwhile,
    as in a real server."""

    def __init__(self, taken: int) -> None:
        self.messages: list[Any] = []
        self.reads = asyncio.Event()
        self._taken = taken

    async def send(self, message: Any) -> None:
        if len(self.messages) > self._taken:
            await self.reads.wait()
        self.messages.append(message)

    async def receive(self) -> Any:
        await asyncio.Event().wait()

    @property
    def events(self) -> list[dict[str, Any]]:
        bodies = [message["body"] for message in self.messages if message["type"] == "http.response.body"]
        return [json.loads(body.removeprefix(b"data: ")) for body in bodies if body.startswith(b"data: ")]


async def stream(reader: Reader, seconds: float) -> None:
    async def answer() -> AsyncGenerator[Event, None]:
        yield ChunkEvent(content="A node is a process. ")
        yield ErrorEvent(error_code="agent_unavailable", message="The model is gone.")

    def write(event: Event) -> bytes:
        return data(event.model_dump_json())

    deadline = asyncio.get_running_loop().time() + seconds
    await EventStream(answer(), write, deadline)({"type": "http"}, reader.receive, reader.send)


async def test_client_that_reads_slowly_at_the_end_gets_a_timeout_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last event is still unsent at the deadline, so the timeout error replaces it."""
    monkeypatch.setattr(streaming, "READING_SECONDS", 0.0)
    reader = Reader(taken=1)
    asyncio.get_running_loop().call_later(0.3, reader.reads.set)
    await stream(reader, seconds=0.1)
    assert [event["type"] for event in reader.events] == ["chunk", "error"]
    assert reader.events[-1]["message"] == "The answer took too long. Ask again."
    assert [message["more_body"] for message in reader.messages[1:]] == [True, False]


async def test_client_that_reads_gets_the_final_event_of_the_answer() -> None:
    reader = Reader(taken=10)
    await stream(reader, seconds=30)
    assert [event.get("message") for event in reader.events] == [None, "The model is gone."]
