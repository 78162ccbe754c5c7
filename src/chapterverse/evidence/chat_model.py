"""A client for language models behind an OpenAI-compatible API: streamed chat completions with our own errors.

The writer and the judge use it. They also do the retries, because they know what was read already and when the answer
is due. Servers are not trusted: a reply is limited in size, and a malformed one is a failure.
"""

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from chapterverse.embeddings.remote import HTTP_FAULTS, explain_status, seconds_until
from chapterverse.errors import AgentUnavailable
from chapterverse.health import LastCall
from chapterverse.settings import GENERATION_SECONDS, OPENAI_URL

CONNECT_SECONDS: Final = 3.0
PROBE_SECONDS: Final = 2.0
MAX_REPLY_BYTES: Final = 16 * 1024 * 1024  # of JSON, a few hundred for each token
LIMITS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)

# Exceptions that reading a reply may raise. The built-in ones come from a malformed reply.
FAULTS: Final = (*HTTP_FAULTS, ValueError, TypeError, AttributeError, LookupError)

_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SPENT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_GEMINI = re.compile(r"gemini-(\d+)?")
_THINKS = re.compile(r"gpt-5|o\d")
_NEED_NOT_THINK = re.compile(r"gpt-5\.\d")  # these accept tools in chat completions only if they do not think


@dataclass(slots=True)
class ModelReply:
    """A chat completion, assembled from its pieces."""

    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": None})
    calls: dict[Any, dict[str, Any]] = field(default_factory=dict)  # calls of tools, by their index
    usage: Mapping[str, Any] = field(default_factory=dict)
    cut_off: bool = False  # by a limit on tokens

    def add(self, piece: Mapping[str, Any]) -> str:
        """Add the next piece and return its text. A server that does not stream sends one piece, with a `message`."""
        usage = piece.get("usage")
        self.usage = usage if isinstance(usage, Mapping) else self.usage
        choices = [one for one in piece.get("choices") or () if not one.get("index")]
        delta = (choices[0].get("delta") or choices[0].get("message") or {}) if choices else {}
        self.cut_off = self.cut_off or bool(choices and choices[0].get("finish_reason") == "length")
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            if said := delta.get(name):
                self.message[name] = (self.message.get(name) or "") + said
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        return delta.get("content") or ""

    def tokens(self, kind: str = "total") -> int:
        """Return the tokens that the server has counted so far: `prompt`, `completion` or `total`."""
        counted = self.usage.get(f"{kind}_tokens")
        return counted if isinstance(counted, int) else 0

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        """Add a piece of a tool call. Pieces of one call have the same index; a call without an index is complete."""
        number = piece.get("index")
        number = len(self.calls) if number is None else number
        fresh = {"id": f"call_{number}", "type": "function", "function": {"name": "", "arguments": ""}}
        call, said = self.calls.setdefault(number, fresh), piece.get("function") or {}
        call["function"]["name"] = said.get("name") or call["function"]["name"]
        call["function"]["arguments"] += said.get("arguments") or ""
        call.update({name: value for name, value in piece.items() if value and name not in ("index", "function")})


@dataclass(eq=False)
class ChatModel:
    """A model and its server. It records whether its last call failed, so that health checks need not trust a list of
    models. It connects with the first call."""

    name: str  # the model's name
    base_url: str
    api_key: str = field(repr=False)
    fields: Mapping[str, Any] = field(default_factory=dict)  # added to each request; a field that is None is left out
    service: str = "The language model"  # the name of the service, in messages
    settings: str = "OPENAI"  # prefix of the names of its settings
    seconds: float = GENERATION_SECONDS  # limit for one call
    max_bytes: int = MAX_REPLY_BYTES
    last: LastCall = field(init=False, repr=False)
    _client: httpx2.AsyncClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Create the client and the record of the last call."""
        self.last = LastCall(self._ask_server)
        self._client = httpx2.AsyncClient(
            # A self-hosted server may need no key, and the HTTP client rejects a header without one.
            headers={"Authorization": f"Bearer {self.api_key}"} if self.api_key else {},
            timeout=httpx2.Timeout(self.seconds, connect=CONNECT_SECONDS),
            limits=LIMITS,
            follow_redirects=True,
        )

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], reply: ModelReply, **fields: Any
    ) -> AsyncGenerator[str, None]:
        """Yield the text of a chat completion as it arrives, also empty pieces, and collect the whole in `reply`."""
        body = {"model": self.name, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
        body |= {**fields, **self.fields}
        given = {name: value for name, value in body.items() if value is not None}
        try:
            async with self._client.stream("POST", self._url("chat/completions"), json=given) as response:
                if response.status_code != 200:
                    raise await self._refused(response)
                async with aclosing(_bodies(response, self.max_bytes)) as texts:
                    async for text in texts:
                        piece = json.loads(text)
                        if said := piece.get("error") and _error(piece):
                            busy = str(said.get("code")) == "429"
                            raise (
                                self._refusal(429, said) if busy else self.failure("failed in the middle of its answer")
                            )
                        yield reply.add(piece)
        except FAULTS as fault:
            raise self.explain(fault) from fault

    async def probe(self) -> None:
        """Raise `AgentUnavailable` if the server cannot be reached, or if the last call failed. Costs no paid
        tokens."""
        await self.last.probe()

    async def _ask_server(self) -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                response = await self._client.get(self._url("models"))
            if response.status_code == 404:
                return  # a server without a list of its models is still a server
            if response.is_error:
                raise await self._refused(response)
            if not isinstance(response.json()["data"], list):
                raise TypeError("no list of models")
        except FAULTS as fault:
            raise self.explain(fault) from fault

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def explain(self, fault: Exception) -> AgentUnavailable:
        """Translate an error of a library into `AgentUnavailable`."""
        if isinstance(fault, TimeoutError | httpx2.TimeoutException):
            return self.failure("did not answer in time")
        if isinstance(fault, HTTP_FAULTS):
            return self.failure("cannot be reached, or broke off its answer")
        return self.failure("gave an answer that cannot be read")

    def failure(self, what: str) -> AgentUnavailable:
        """Return a retryable error that says what the model did."""
        return AgentUnavailable(f"{self.service} {what}.", details={"model": self.name}, retryable=True)

    async def _refused(self, response: httpx2.Response) -> AgentUnavailable:
        wait = seconds_until(response.headers.get("Retry-After", ""), datetime.now(UTC))
        try:
            said = json.loads("".join([text async for text in _bodies(response, self.max_bytes)]))
        except ValueError:  # for example an error page of a proxy
            said = {}
        return self._refusal(response.status_code, _error(said), wait)

    def _refusal(self, status: int, said: dict[str, Any], wait: float | None = None) -> AgentUnavailable:
        status = 401 if status == 400 and _detail(said, "reason") == "API_KEY_INVALID" else status  # Gemini's 401
        message, retryable = explain_status(status, self.service, f"{self.settings}_API_KEY", self.name)
        if status == 404:
            message += f" Set {self.settings}_MODEL to one that it serves, and check {self.settings}_BASE_URL."
        if status == 429 and said.get("code") in _SPENT:
            message, retryable = f"{self.service} says that the quota of {self.settings}_API_KEY is spent.", False
        delay = _DELAY.fullmatch(_detail(said, "retryDelay"))  # the wait that Gemini asks for, in seconds
        if status == 429 and wait is None and delay:
            wait = math.ceil(float(delay[1]) * 10) / 10
        details = {"model": self.name, "status": status}
        wait = wait if retryable else None
        return AgentUnavailable(message, details=details, retryable=retryable, retry_after=wait)

    def _url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"


async def _bodies(response: httpx2.Response, most: int) -> AsyncGenerator[str, None]:
    """Yield the JSON texts of a reply: its events or, from a server that does not stream, the whole body."""
    streamed, size, body = "event-stream" in response.headers.get("content-type", ""), 0, ""
    async for piece in httpx2.EventSource(response, most) if streamed else response.aiter_text():
        text = piece if isinstance(piece, str) else piece.data
        size += len(text)
        if size > most:
            raise ValueError("the reply is too long")
        if not streamed:
            body += text
        elif not text.startswith("[DONE]"):
            yield text
    if not streamed:
        yield body


def _error(body: object) -> dict[str, Any]:
    """Return the error object of a body: bare, inside `error`, or, from Gemini, inside a list."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {}


def _detail(said: dict[str, Any], name: str) -> str:
    """Return a field from the first of an error's details that has it."""
    details = said.get("details")
    entries = details if isinstance(details, list) else []
    return next((str(entry[name]) for entry in entries if isinstance(entry, dict) and name in entry), "")


def is_openai(base_url: str) -> bool:
    """Whether an address is OpenAI's own."""
    return urlsplit(base_url).hostname == urlsplit(OPENAI_URL).hostname


def request_fields(model: str, base_url: str, temperature: float = 0.0) -> dict[str, Any]:
    """Return the fields that some models want or refuse in a request; None leaves a field out. Servers other than
    OpenAI's refuse fields that they do not know."""
    effort, store, taken = None, None, True
    if (named := _GEMINI.search(model)) and int(named[1] or 3) >= 3:
        effort, taken = "low", temperature > 0  # loops below its default temperature; thinks long unless told otherwise
    elif is_openai(base_url):
        effort, store, taken = "none" if _NEED_NOT_THINK.match(model) else None, False, not _THINKS.match(model)
    return {"temperature": temperature if taken else None, "reasoning_effort": effort, "store": store}
