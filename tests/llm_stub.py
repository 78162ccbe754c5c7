"""A stub of a language model server: real HTTP on loopback, OpenAI's chat completions, with and without streaming.

It sends scripted replies, one for each request, optionally with the quirks of Gemini, and records whether the client
disconnected. It runs in its own thread, so that blocking tests and servers can use it.
"""

import asyncio
import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chapterverse.evidence.judge import PROMPT as JUDGE_PROMPT
from chapterverse.language import sentences


@dataclass(frozen=True)
class Replies:
    """Replies with this text, word by word, with a pause in seconds before each word."""

    text: str
    pause: float = 0.0
    finish: str | None = "stop"


@dataclass(frozen=True)
class Quotes:
    """Replies with the first sentences of the passages in the request, each with its marker."""

    count: int = 2
    pause: float = 0.0


@dataclass(frozen=True)
class Calls:
    """Calls a tool."""

    arguments: dict[str, Any] | str
    name: str = "search_documentation"
    before: str = ""  # text written first


@dataclass(frozen=True)
class Fails:
    """Replies with an error status."""

    status: int
    body: Any = field(default_factory=lambda: {"error": {"message": "secret inner words", "code": "stub"}})
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Hangs:
    """Sends nothing until the client disconnects."""

    after: str = ""  # text streamed before that


@dataclass(frozen=True)
class CutsOff:
    """Breaks the connection in the middle of the reply."""

    text: str


@dataclass(frozen=True)
class ErrorInStream:
    """Reports an error inside the stream, after some text."""

    text: str
    error: dict[str, Any] = field(
        default_factory=lambda: {"code": 503, "message": "inner words", "status": "UNAVAILABLE"}
    )


@dataclass(frozen=True)
class Raw:
    """Sends these bytes as the body of a 200 response."""

    body: bytes
    content_type: str = "text/html"


@dataclass(frozen=True)
class Judged:
    """The content of a request to the judge."""

    evidence: dict[str, str]  # text by unit number
    claims: list[str]
    message: str


@dataclass
class JudgeScript:
    """The model's behaviour as a judge. By default it supports only claims in `truths`."""

    truths: set[str] = field(default_factory=set)
    mode: str = "right"  # gullible, prose, huge, half, wrong_numbers, empty, fails, hangs, no_format, refuses, whole
    looks: bool = True  # a truth is supported only if the evidence has half of its words
    pause: float = 0.0
    asked: list[Judged] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)  # of all requests, also of rejected ones

    def supports(self, claim: str, evidence: dict[str, str]) -> tuple[bool, list[str]]:
        if self.mode == "gullible":
            return True, list(evidence)[:1]
        known = _plain(claim) in {_plain(truth) for truth in self.truths}
        words = set(_plain(claim).split())
        shared = {number: len(words & set(_plain(text).split())) for number, text in evidence.items()}
        near = sorted((number for number in shared if 2 * shared[number] > 3), key=lambda number: -shared[number])
        covered = words & {word for number in near[:2] for word in _plain(evidence[number]).split()}
        return known and (not self.looks or 2 * len(covered) >= len(words)), near[:2]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


Reply = Replies | Quotes | Calls | Fails | Hangs | CutsOff | ErrorInStream | Raw


def gemini_error(status: int, message: str, *details: dict[str, Any]) -> Fails:
    """An error in the format of Gemini: inside a list."""
    return Fails(status, [{"error": {"code": status, "message": message, "status": "ERROR", "details": list(details)}}])


def gemini_busy(delay: str) -> Fails:
    """Returns the error for too many requests, with the delay in the body and not in a header."""
    return gemini_error(429, "Quota", {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})


class LlmStub:
    """The server. It sends the replies of `script` first, and then `usual` for every request."""

    def __init__(self, *, gemini: bool = False) -> None:
        self.script: deque[Reply] = deque()
        self.usual: Reply = Quotes()
        self.gemini = gemini
        self.requests: list[dict[str, Any]] = []  # bodies of chat completions, in order
        self.headers: list[dict[str, str]] = []  # of all requests
        self.models: Reply | None = None  # None: a valid list of models
        self.probes = 0
        self.words_sent = 0
        self.judge = JudgeScript()
        self.port = 0
        self._disconnected = threading.Event()
        self._asked = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def wait_disconnect(self, seconds: float = 30.0) -> bool:
        """Waits up to this time. Returns whether a client disconnected before its reply was complete."""
        return self._disconnected.wait(seconds)

    def wait_asked(self, seconds: float = 30.0, times: int = 1) -> bool:
        """Waits up to this time. Returns whether this many chat completions were requested."""
        with self._asked:
            return self._asked.wait_for(lambda: len(self.requests) >= times, seconds)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles one connection with one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.headers.append(headers)
            gone = asyncio.ensure_future(reader.read(1))
            try:
                await self._reply(lines[0].split()[1], body, _Wire(writer, gone, self))
            finally:
                gone.cancel()
        except (_Gone, ConnectionError, asyncio.IncompleteReadError):
            self._disconnected.set()
        finally:
            writer.close()

    async def _reply(self, path: str, body: bytes, wire: "_Wire") -> None:
        if path.endswith("/models"):
            self.probes += 1
            await self._models(wire)
            return
        request = json.loads(body)
        if request["messages"][0]["content"] == JUDGE_PROMPT:
            await self._judge(request, wire)
            return
        with self._asked:
            self.requests.append(request)
            self._asked.notify_all()
        reply = self.script.popleft() if self.script else self.usual
        if isinstance(reply, Fails | Raw | Hangs) and not (isinstance(reply, Hangs) and reply.after):
            await wire.send_unstreamed(reply)
        elif request.get("stream"):
            await self._stream(reply, request, wire)
        else:
            message, finish = self._whole(reply, request)
            choice = {"index": 0, "message": message, "finish_reason": finish}
            await wire.send_json(200, {**_envelope("chat.completion"), "choices": [choice], "usage": _usage(1)})

    async def _judge(self, request: dict[str, Any], wire: "_Wire") -> None:
        script = self.judge
        script.bodies.append(request)
        if script.mode == "refuses" or (script.mode == "no_format" and "response_format" in request):
            await wire.send_json(400, {"error": {"message": "response_format is not supported"}})
            return
        asked = judged(request)
        script.asked.append(asked)
        await wire.wait(script.pause)
        if script.mode in ("fails", "hangs"):
            await wire.send_unstreamed(Fails(500) if script.mode == "fails" else Hangs())
            return
        text = verdicts(script, asked)
        if script.mode == "whole" or not request.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            await wire.send_json(200, {**_envelope("chat.completion"), "choices": [choice], "usage": _usage(9)})
            return
        await wire.start_stream()
        size = 65_536 if script.mode == "huge" else 7
        for at in range(0, len(text), size):
            await wire.chunk({"content": text[at : at + size]}, None)
        await wire.finish("stop")

    async def _models(self, wire: "_Wire") -> None:
        if isinstance(self.models, Fails | Raw | Hangs):
            await wire.send_unstreamed(self.models)
        else:
            model = {"id": "stub", "object": "model", "created": 0, "owned_by": "stub"}
            await wire.send_json(200, {"object": "list", "data": [model]})

    def _whole(self, reply: Reply, request: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if isinstance(reply, Calls):
            return {"role": "assistant", "content": None, "tool_calls": [_tool_call(reply, 0)]}, "tool_calls"
        return {"role": "assistant", "content": _text(reply, request)}, "stop"

    async def _stream(self, reply: Reply, request: dict[str, Any], wire: "_Wire") -> None:
        await wire.start_stream()
        if isinstance(reply, Calls):
            if reply.before:
                await wire.chunk({"role": "assistant", "content": reply.before}, None)
            call = _tool_call(reply, len(self.requests))
            delta = call if self.gemini else {"index": 0, **call}
            await wire.chunk({"role": "assistant", "tool_calls": [delta]}, None)
            await wire.finish("stop" if self.gemini else "tool_calls")
            return
        for word in re.findall(r"\S+\s*", _text(reply, request)):
            await wire.wait(getattr(reply, "pause", 0.0))
            self.words_sent += 1
            await wire.chunk({"role": "assistant", "content": word}, None)
        if isinstance(reply, Hangs):
            await wire.wait(None)
        elif isinstance(reply, CutsOff):
            wire.abort()
        elif isinstance(reply, ErrorInStream):
            await wire.event({"error": reply.error})
            await wire.end()
        else:
            await wire.finish(reply.finish if isinstance(reply, Replies) else "stop")


class _Gone(Exception):
    pass


@dataclass
class _Wire:
    """The connection on which one reply is sent."""

    writer: asyncio.StreamWriter
    gone: "asyncio.Future[bytes]"
    stub: LlmStub

    async def wait(self, seconds: float | None) -> None:
        if seconds == 0.0:
            await asyncio.sleep(0)
        else:
            await asyncio.wait({self.gone}, timeout=seconds)
        if self.gone.done():
            raise _Gone

    async def send_unstreamed(self, reply: Fails | Raw | Hangs) -> None:
        if isinstance(reply, Hangs):
            await self.wait(None)
        elif isinstance(reply, Fails):
            await self.send_json(reply.status, reply.body, reply.headers)
        else:
            await self.send(200, reply.body, reply.content_type)

    async def send_json(self, status: int, body: Any, headers: tuple[tuple[str, str], ...] = ()) -> None:
        await self.send(status, json.dumps(body).encode(), "application/json", headers)

    async def send(self, status: int, body: bytes, kind: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        lines = [
            f"HTTP/1.1 {status} Stub",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        lines += [f"{name}: {value}" for name, value in headers]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def start_stream(self) -> None:
        head = ("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked", "Connection: close")
        self.writer.write("\r\n".join([*head, "", ""]).encode())
        await self.writer.drain()

    async def chunk(self, delta: dict[str, Any], finish: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        usage = {"usage": _usage(self.stub.words_sent)} if self.stub.gemini else {}
        await self.event({**_envelope("chat.completion.chunk"), "choices": [choice], **usage})

    async def event(self, data: dict[str, Any]) -> None:
        await self._write(f"data: {json.dumps(data)}\n\n".encode())

    async def finish(self, reason: str | None) -> None:
        if reason is not None:
            await self.chunk({}, reason)
        if not self.stub.gemini:
            await self.event({**_envelope("chat.completion.chunk"), "choices": [], "usage": _usage(7)})
        await self._write(b"data: [DONE]\n\n")
        await self.end()

    async def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def abort(self) -> None:
        self.writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        if self.gone.done():
            raise _Gone
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()


@contextmanager
def serving_llm(stub: LlmStub | None = None, *, gemini: bool = False) -> Iterator[LlmStub]:
    """Runs this stub, or a new one."""
    stub = stub or LlmStub(gemini=gemini)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="llm-stub", daemon=True)
    thread.start()
    starting = asyncio.start_server(stub.answer, "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
    stub.port = server.sockets[0].getsockname()[1]
    try:
        yield stub
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _stop(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@dataclass(frozen=True)
class Passage:
    """A passage in a request to the model."""

    number: int
    units: dict[str, str]  # text by number
    breadcrumb: str
    source_url: str = ""
    similarity: float = 1.0

    @property
    def text(self) -> str:
        return "\n".join(self.units.values())


@dataclass(frozen=True)
class Shown:
    """The question and the passages of a request to the model."""

    question: str
    passages: list[Passage]


_UNIT = re.compile(r"^\[(\d+\.\d+)\] (.*(?:\n    .*)*)", re.MULTILINE)
_PLACE = re.compile(r"^Passage (\d+): ?(.*)$", re.MULTILINE)


def units_in(text: str) -> dict[str, str]:
    return {number: said.replace("\n    ", "\n") for number, said in _UNIT.findall(text)}


def shown(request: dict[str, Any]) -> Shown:
    """Parses the question and the passages of the last turn of a request."""
    messages = request["messages"]
    last = max(at for at, message in enumerate(messages) if message["role"] == "user")
    question, passages = messages[last]["content"], []
    if "\n\nQuestion: " in question:
        body, _, question = question.rpartition("\n\nQuestion: ")
        places = list(_PLACE.finditer(body))
        ends = [place.start() for place in places[1:]] + [len(body)] * bool(places)
        for place, end in zip(places, ends, strict=True):
            passages.append(Passage(int(place[1]), units_in(body[place.end() : end]), place[2]))
    for message in messages[last:]:
        if message["role"] == "tool":
            for result in json.loads(message["content"]).get("results", ()):
                crumb = " › ".join(filter(None, (result["page_title"], result["section_heading"])))
                number, score = result["passage"], result["similarity_score"]
                found = Passage(number, units_in(result["chunk_text"]), crumb, result["source_url"], score)
                passages.append(found)
    return Shown(question, passages)


def judged(request: dict[str, Any]) -> Judged:
    """Parses a request to the judge."""
    message = request["messages"][1]["content"]
    evidence, _, claims = message.partition("\nClaims\n")
    assert "\nEvidence\n" in f"\n{evidence}"
    return Judged(units_in(evidence), [claim.partition(". ")[2] for claim in re.split(r"\n(?! )", claims)], message)


def verdicts(script: JudgeScript, asked: Judged) -> str:
    """The reply of the judge."""
    if script.mode == "prose":
        return "All of these claims look fine to me. Claim 1 is supported by 1.1."
    if script.mode == "empty":
        return ""
    found = []
    for number, claim in enumerate(asked.claims, start=1):
        supported, units = script.supports(claim, asked.evidence)
        shift = 100 if script.mode == "wrong_numbers" else 0
        entry = {"claim": number + shift, "supported": supported, "units": units, "reason": "as {scripted}"}
        if script.mode == "huge":
            entry["reason"] = "x" * 10_000_000
        found.append(entry)
    if script.mode == "half":
        found = found[::2]
    return json.dumps({"verdicts": found})


def _text(reply: Reply, request: dict[str, Any]) -> str:
    if isinstance(reply, Quotes):
        return " ".join(_quotes(request, reply.count))
    if isinstance(reply, Hangs):
        return reply.after
    return reply.text if isinstance(reply, Replies | CutsOff | ErrorInStream) else ""


def _quotes(request: dict[str, Any], count: int) -> Iterator[str]:
    for passage in shown(request).passages:
        for number, text in passage.units.items():
            whole = [(start, end) for start, end in sentences(text)] == [(0, len(text))]
            if whole and text[0].isalpha() and text.endswith(".") and count:
                count -= 1
                yield f"{text[:-1]} [{number}]."


def _tool_call(reply: Calls, number: int) -> dict[str, Any]:
    arguments = reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
    return {"id": f"call_{number}", "type": "function", "function": {"name": reply.name, "arguments": arguments}}


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "stub", "object": kind, "created": 0, "model": "stub"}


def _usage(words: int) -> dict[str, int]:
    return {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}
