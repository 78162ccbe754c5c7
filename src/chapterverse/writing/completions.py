"""OpenAI's client with its own reader of streamed answers, which costs a fraction of the time.

Events that arrive together and hold nothing but text become one chunk. Everything else is the vendor's client.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from functools import cached_property
from typing import Any, Final, cast

import httpx2
import openai
import orjson
from openai import AsyncOpenAI, Omit
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletionChunk

from chapterverse.connections import fast_transport

_END: Final = b"[DONE]"
_DRAIN_SECONDS: Final = 0.1  # for the rest of an answer that is over
_NOT_OF_THE_BODY: Final = ("extra_headers", "extra_query", "extra_body", "timeout")


class CompletionsClient(AsyncOpenAI):
    """The vendor's client, but streams are read here."""

    def __init__(self, *, api_key: str, base_url: str, timeout: httpx2.Timeout) -> None:
        self.http = openai.DefaultAsyncHttpxClient(timeout=timeout, transport=fast_transport())
        super().__init__(api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout, http_client=self.http)

    @cached_property
    def chat(self) -> AsyncChat:
        """Where completions are asked for."""
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(self, **wanted: Any) -> Any:
        """As the vendor's, where it is not a stream."""
        if wanted.get("stream") is not True:
            return await super().create(**wanted)
        client = cast(CompletionsClient, self._client)
        body = {name: value for name, value in wanted.items() if name not in _NOT_OF_THE_BODY and _is_given(value)}
        request = client.http.build_request(
            "POST",
            f"{client.base_url}chat/completions",
            content=orjson.dumps(body | (wanted.get("extra_body") or {})),
            params=wanted.get("extra_query") or None,
            headers={**client.auth_headers, "Content-Type": "application/json", **(wanted.get("extra_headers") or {})},
        )
        response = await client.http.send(request, stream=True)
        if not response.is_success:
            await response.aread()
            raise openai.APIStatusError(f"HTTP {response.status_code}", response=response, body=_json(response))
        return Stream(response)


class Stream:
    """A streamed answer, as the SDK wants to have it."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._chunks = self._read()

    def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        return self._chunks

    async def __anext__(self) -> ChatCompletionChunk:
        return await anext(self._chunks)

    async def close(self) -> None:
        """Break the answer off, if it is not over."""
        await self.response.aclose()

    aclose = close

    async def _read(self) -> AsyncIterator[ChatCompletionChunk]:
        """The chunks. What arrived together while the last ones were worked on is found together."""
        rest = b""
        try:
            async with aclosing(self.response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    *lines, rest = (rest + piece).split(b"\n")
                    events = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
                    ended = next((at for at, event in enumerate(events) if event.startswith(_END)), None)
                    for value in together(_values(events[:ended])):
                        if value.get("error"):
                            raise openai.APIError("the model failed", self.response.request, body=value["error"])
                        yield ChatCompletionChunk.construct(**value)
                    if ended is not None:
                        await _drain(pieces)
                        return
        finally:
            await self.response.aclose()


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the rest of an answer that is over, so that the connection can be used again; it is no loss if it cannot."""
    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in pieces:
                pass


def _values(events: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for event in events:
        value = orjson.loads(event)
        if not isinstance(value, dict):
            raise TypeError("an event is no object")
        yield value


def together(values: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same events, with neighbours that are nothing but text made one."""
    held: dict[str, Any] | None = None
    for value in values:
        if _is_text(value):
            if held is None:
                held = value
            else:
                held["choices"][0]["delta"]["content"] += value["choices"][0]["delta"]["content"]
            continue
        if held is not None:
            yield held
            held = None
        yield value
    if held is not None:
        yield held


def _is_text(value: Mapping[str, Any]) -> bool:
    choices = value.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or value.get("usage"):
        return False
    choice = choices[0]
    if not isinstance(choice, dict) or choice.get("finish_reason") or choice.get("logprobs") or choice.get("index"):
        return False
    delta = choice.get("delta")
    if not isinstance(delta, dict) or not isinstance(delta.get("content"), str):
        return False
    return not any(value for name, value in delta.items() if name not in ("role", "content"))


def _is_given(value: object) -> bool:
    return value is not None and not isinstance(value, Omit | openai.NotGiven)


def _json(response: httpx2.Response) -> object:
    try:
        return response.json()
    except ValueError:
        return response.text
