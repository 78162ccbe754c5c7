"""Our reader of streamed completions: what is merged, what is left as it came, and how it ends."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import orjson
import pytest

from chapterverse.writing.completions import Stream, together


def event(content: Any = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}]}


def texts(events: list[dict[str, Any]]) -> list[Any]:
    return [one["choices"][0]["delta"].get("content") for one in together(events)]


def test_neighbours_that_are_text_alone_become_one() -> None:
    assert texts([event("One ", role="assistant"), event("two"), event(" three.")]) == ["One two three."]


@pytest.mark.parametrize(
    "other",
    [
        event(None, tool_calls=[{"index": 0}]),
        event("said", reasoning_content="thought"),
        event("", "stop"),
        event("end", "length"),
        {"choices": [], "usage": {"total_tokens": 3}},
        {"choices": "odd"},
    ],
)
def test_all_else_stays_as_it_came_and_in_its_place(other: dict[str, Any]) -> None:
    found = list(together([event("a"), event("b"), other, event("c")]))
    assert found == [event("ab"), other, event("c")]


def stream_of(*pieces: bytes) -> Stream:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    request = httpx2.Request("POST", "http://model.test/v1/chat/completions")
    return Stream(httpx2.Response(200, content=body(), request=request))


def line(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"


async def said(stream: Stream) -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def test_events_may_be_cut_anywhere() -> None:
    whole = b": a comment\n\n" + line(event("Grüße, ")) + line(event("Welt.")) + b"data: [DONE]\n\n"
    for size in (1, 7, len(whole)):
        stream = stream_of(*(whole[at : at + size] for at in range(0, len(whole), size)))
        assert await said(stream) == "Grüße, Welt."
        assert stream.response.is_closed


async def test_what_comes_after_the_end_is_not_read() -> None:
    assert await said(stream_of(line(event("All.")) + b"data: [DONE]\n\n" + line(event("More.")))) == "All."


async def test_an_error_in_the_stream_is_the_vendors_error() -> None:
    with pytest.raises(openai.APIError) as raised:
        await said(stream_of(line(event("So far.")), line({"error": {"code": 503}})))
    assert raised.value.body == {"code": 503}


@pytest.mark.parametrize("garbage", [b"data: {broken\n\n", b"data: [1]\n\n"])
async def test_garbage_is_an_error_that_the_agent_knows(garbage: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        await said(stream_of(garbage))


async def test_a_connection_that_breaks_is_told_after_what_was_said() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield line(event("So far."))
        raise httpx2.ReadError("gone")

    request = httpx2.Request("POST", "http://model.test/v1/chat/completions")
    stream, heard = Stream(httpx2.Response(200, content=body(), request=request)), ""
    with pytest.raises(httpx2.ReadError):
        async for chunk in stream:
            heard += chunk.choices[0].delta.content or ""
    assert heard == "So far."


async def test_who_leaves_early_closes_the_answer() -> None:
    stream = stream_of(*(line(event(f"{number} ")) for number in range(5_000)))
    chunks = aiter(stream)
    assert (await anext(chunks)).choices
    await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert stream.response.is_closed
