"""The judge: a language model says which claims the evidence bears out.

Any OpenAI-compatible model will do. A call is limited in time and in size; a reply is read while it arrives, so that
the first verdicts need not wait for the last. What a judge does not answer, or answers in a form that cannot be read,
is not proven. Replies are data too: only claim numbers that were asked and unit numbers that were shown count.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2

from chapterverse.errors import AgentUnavailable
from chapterverse.health import LastCall

log = logging.getLogger(__name__)

JUDGE_SECONDS: Final = 8.0  # one call
CONNECT_SECONDS: Final = 3.0
LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)  # as OpenAI's client has, too
MAX_REPLY_BYTES: Final = 256 * 1024
PROMPT: Final = Path(__file__).with_name("judge.md").read_text("utf-8").strip()


def _object(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


_TEXT: Final = {"type": "string"}
_VERDICT: Final = _object(
    claim={"type": "integer"}, supported={"type": "boolean"}, units={"type": "array", "items": _TEXT}, reason=_TEXT
)
_REPLY: Final = _object(verdicts={"type": "array", "items": _VERDICT})  # SPEC 4.5
_FORMAT: Final = {"type": "json_schema", "json_schema": {"name": "verdicts", "strict": True, "schema": _REPLY}}

_BEGUN = re.compile(r'"claim"\s*:\s*"?(\d{1,4})"?\s*,\s*"supported"\s*:\s*(true|false)')
_OBJECT = re.compile(r'\{(?=\s*"(?:claim|supported|units|reason)")')
_LONGEST_OBJECT: Final = 8192  # characters of one verdict
_DECODER: Final = json.JSONDecoder()
_UNIT = re.compile(r"\d{1,3}(?:\.\d{1,4})?")
_FORMAT_REFUSED: Final = (400, 404, 415, 422, 501)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of one claim, counted from 1."""

    claim: int
    supported: bool
    units: tuple[str, ...] = ()
    reason: str = ""
    complete: bool = True  # False: the units are still being written


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What one call asks: claims, the evidence for them, and what the reader was told before."""

    evidence: Sequence[str]  # lines `[2.3] text` under their breadcrumbs
    claims: Sequence[str]
    question: str = ""
    before: str = ""  # the statement before the first claim, so that "it" can be understood

    def message(self) -> str:
        """The user message (SPEC 4.5)."""
        context = [f"Question: {_line(self.question)}"] if self.question else []
        context += [f"Text before the claims: {_line(self.before)}"] if self.before else []
        claims = [f"{number}. {_line(claim)}" for number, claim in enumerate(self.claims, start=1)]
        return "\n".join([*context, "Evidence", *self.evidence, "", "Claims", *claims])


@dataclass(slots=True)
class JudgeUsage:
    """What judging took."""

    calls: int = 0
    tokens: int = 0


class Judge(Protocol):
    """Says which claims the evidence bears out."""

    @property
    def name(self) -> str:
        """The model, for people."""

    def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        """The verdicts as they arrive, in any order, each perhaps without its units at first. A claim that is left out
        is not proven. Raises `JudgeFailed`, also where there is no verdict at all."""

    async def close(self) -> None:
        """Let go of connections."""


class JudgeFailed(Exception):
    """A call to the judge failed; `retryable` if another try may help."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


@dataclass(slots=True)
class ModelJudge:
    """A judge behind an OpenAI-compatible API. It remembers whether its last call failed, as the writer does."""

    name: str  # of the model
    base_url: str
    api_key: str = field(repr=False)
    extra: dict[str, Any] = field(default_factory=dict)  # more fields of the request, as the model wants them
    seconds: float = JUDGE_SECONDS
    _structured: bool = True  # False once the model refused `response_format`
    _client: httpx2.AsyncClient | None = None
    _last: LastCall = field(init=False)

    def __post_init__(self) -> None:
        """Its last call is watched from the start."""
        self._last = LastCall(self._ask_server)

    async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        """Ask once; without `response_format` if the model refuses it."""
        usage.calls += 1
        answered = False
        try:
            async with asyncio.timeout(self.seconds), AsyncExitStack() as open_calls:
                response = await self._reply(case, open_calls)
                async with aclosing(_content(response, usage, case)) as texts:
                    async for verdict in read_verdicts(texts, len(case.claims)):
                        answered = True
                        self._last.worked()
                        yield verdict
            if not answered:
                raise JudgeFailed("the judge gave no verdict that can be read")
        except (JudgeFailed, TimeoutError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as fault:
            failure = _translated(fault)
            self._last.failed(f"The last check of an answer failed: {failure}.")
            raise failure from (fault.__cause__ if failure is fault else fault)

    async def _reply(self, case: JudgeRequest, open_calls: AsyncExitStack) -> httpx2.Response:
        response = await open_calls.enter_async_context(self._call(case))
        if self._structured and response.status_code in _FORMAT_REFUSED:
            log.info("%s takes no response_format; it is asked in words from now on", self.name)
            self._structured = False
            response = await open_calls.enter_async_context(self._call(case))
        if (status := response.status_code) != 200:
            retryable = status in (408, 409, 429) or status >= 500
            raise JudgeFailed(f"the judge answered HTTP {status}", retryable=retryable)
        return response

    async def probe(self) -> None:
        """Raise `AgentUnavailable` if the server cannot be used now, or else if the last call failed."""
        await self._last.probe()

    async def _ask_server(self) -> None:
        """Costs no paid tokens."""
        try:
            response = await self._connected().get(f"{self.base_url.rstrip('/')}/models")
            # A server without a list of its models is still a server.
            if response.status_code != 404 and (response.is_error or not isinstance(response.json()["data"], list)):
                raise AgentUnavailable(f"The judge's server answered HTTP {response.status_code}.")
        except (httpx2.HTTPError, httpx2.InvalidURL) as fault:
            raise AgentUnavailable(f"The judge's server cannot be reached: {type(fault).__name__}.") from fault
        except (ValueError, TypeError, LookupError) as fault:
            raise AgentUnavailable("The judge's server gave no list of models.") from fault

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                # A server of one's own may want no key, and a header without one is refused by our own client.
                headers={"Authorization": f"Bearer {self.api_key}"} if self.api_key else {},
                timeout=httpx2.Timeout(self.seconds, connect=CONNECT_SECONDS),
                limits=LIMITS,
            )
        return self._client

    def _call(self, case: JudgeRequest) -> AbstractAsyncContextManager[httpx2.Response]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": "system", "content": PROMPT}, {"role": "user", "content": case.message()}],
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "response_format": _FORMAT if self._structured else None,
            **self.extra,
        }
        sent = {name: value for name, value in body.items() if value is not None}
        return self._connected().stream("POST", f"{self.base_url.rstrip('/')}/chat/completions", json=sent)


def _translated(fault: Exception) -> JudgeFailed:
    if isinstance(fault, JudgeFailed):
        return fault
    if isinstance(fault, TimeoutError):
        return JudgeFailed("the judge did not answer in time")
    return JudgeFailed(f"the judge cannot be reached: {type(fault).__name__}")


async def read_verdicts(texts: AsyncIterator[str], claims: int) -> AsyncGenerator[Verdict, None]:
    """The verdicts of a reply as they arrive, each first without its units, then complete; the first on a claim counts.

    Only claims that were asked about count."""
    text, at, begun = "", 0, 0
    left = {complete: set(range(1, claims + 1)) for complete in (False, True)}
    async for piece in texts:
        text += piece
        found: list[Verdict] = []
        while (start := _BEGUN.search(text, begun)) is not None:
            begun = start.end()
            found.append(Verdict(int(start[1]), start[2] == "true", complete=False))
        while "}" in piece and (opened := _OBJECT.search(text, at)) is not None:
            try:
                value, at = _DECODER.raw_decode(text, opened.start())
            except ValueError:
                if len(text) - opened.start() > _LONGEST_OBJECT:
                    raise JudgeFailed("the judge's reply cannot be read") from None
                break
            found += filter(None, [_verdict(value)])
        for verdict in found:
            if verdict.claim in left[verdict.complete]:
                left[verdict.complete].discard(verdict.claim)
                yield verdict


def _verdict(value: dict[str, Any]) -> Verdict | None:
    claim, supported, units = value.get("claim"), value.get("supported"), value.get("units") or []
    if isinstance(claim, str) and claim.isdigit():
        claim = int(claim)
    if type(claim) is not int or type(supported) is not bool or not isinstance(units, list):
        return None
    named = tuple(number for unit in units for number in _UNIT.findall(str(unit)))
    return Verdict(claim, supported, named, str(value.get("reason") or "")[:300])


async def _content(response: httpx2.Response, usage: JudgeUsage, case: JudgeRequest) -> AsyncGenerator[str, None]:
    """The text of a reply as it arrives. Tokens are estimated until the server has counted them."""
    size, chars, counted = 0, len(PROMPT) + len(case.message()), 0
    told = chars // 4  # of this call, in `usage`
    usage.tokens += told
    async with aclosing(_bodies(response)) as bodies:
        async for body in bodies:
            size += len(body)
            if size > MAX_REPLY_BYTES:
                raise JudgeFailed("the judge's reply is too long")
            text, tokens = _read(body)
            chars, counted = chars + len(text), tokens or counted
            usage.tokens += (counted or chars // 4) - told
            told = counted or chars // 4
            yield text


async def _bodies(response: httpx2.Response) -> AsyncGenerator[str, None]:
    """The JSON texts of a reply: its events, or, from a server that does not stream, all of it."""
    if "event-stream" in response.headers.get("content-type", ""):
        async for event in httpx2.EventSource(response, MAX_REPLY_BYTES):
            if not event.data.startswith("[DONE]"):
                yield event.data
        return
    body = ""
    async for piece in response.aiter_text():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            break
    yield body


def _read(body: str) -> tuple[str, int]:
    """The text of a completion, or of a piece of one, and how many tokens it says that all took."""
    try:
        value = json.loads(body)
        choice = (value.get("choices") or [{}])[0]
        said = choice.get("delta") or choice.get("message") or {}
        if value.get("error"):
            raise ValueError("an error instead of a completion")
        return str(said.get("content") or ""), int((value.get("usage") or {}).get("total_tokens") or 0)
    except (ValueError, TypeError, LookupError, AttributeError) as fault:
        raise JudgeFailed("the judge's reply cannot be read") from fault


def _line(text: str) -> str:
    """A text on one line, so that nothing in it can pass for a line of the prompt."""
    return " ".join(text.split())
