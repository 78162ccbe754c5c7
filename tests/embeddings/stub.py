"""A real HTTP server on loopback that speaks the embedding APIs of Cohere and OpenAI, and fails on demand.

It has the documented wire formats and limits of the providers, and faults of networks and providers. It records
requests. Vectors come from `HashEmbedder`: texts that share words are near. It sleeps only for `slow` and `DRIP`.

    async with EmbeddingStub() as stub:
        stub.play(status(503), status(429, "0.2"))      # for the next two requests; later ones succeed
        stub.play(forever=HANG)                         # for all further ones
"""

import asyncio
import base64
import contextlib
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote

import numpy as np
import orjson

from chapterverse.testing import HashEmbedder

KEY = "stub-key-3f9a"
COHERE_DIMENSIONS = {"embed-english-v3.0": 1024, "embed-english-light-v3.0": 384, "embed-v4.0": 1536}
OPENAI_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "nomic-embed-text": 768}


@dataclass(frozen=True, slots=True)
class Fault:
    """The answer to one request. `kind` "ok" with status 200 is no fault."""

    kind: str = "ok"
    status: int = 200
    retry_after: str = ""
    seconds: float = 0.0


OK = Fault()
HANG = Fault("hang")  # accepts the request and never answers
DRIP = Fault("drip", seconds=0.02)  # answers byte by byte: each read is fast, the whole takes minutes
DROP = Fault("drop")  # closes the connection without an answer
TRUNCATED = Fault("truncated")  # announces more than it sends
GARBAGE = Fault("garbage")  # success, but with the HTML page of a proxy as its body
EMPTY = Fault("empty")  # success without a body
STRANGE = Fault("strange")  # valid JSON of another shape
WRONG_DIMENSION = Fault("wrong dimension")
WRONG_COUNT = Fault("wrong count")
NOT_A_NUMBER = Fault("nan")  # the bare word NaN, as Python's json writes it
NULL = Fault("null")  # null instead of a number, as JavaScript writes NaN
HUGE = Fault("huge")  # numbers whose length overflows
ZERO = Fault("zero")  # a vector without a direction
BASE64 = Fault("base64")  # no fault: some servers send base64 although floats were requested
SHUFFLED = Fault("shuffled")  # no fault: right indexes in another order


def status(code: int, retry_after: str = "") -> Fault:
    """An error answer."""
    return Fault("status", code, retry_after)


def slow(seconds: float) -> Fault:
    """A correct answer that is late."""
    return Fault("slow", seconds=seconds)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float  # time.monotonic()

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        return list(self.body.get("texts") or self.body.get("input") or [])


@dataclass
class EmbeddingStub:
    """The server. `url` is Cohere's base; `url + "/v1"` is OpenAI's."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    most_at_once: int = 0
    abandoned: int = 0  # requests whose client disconnected before the answer
    key: str = KEY
    lists_models: bool = True
    _script: deque[Fault] = field(default_factory=deque)
    _forever: Fault = OK
    _now: int = 0
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def play(self, *faults: Fault, forever: Fault = OK) -> None:
        """Answers the next requests with these faults, in order, and all later ones with `forever`."""
        self._script, self._forever = deque(faults), forever

    def reset(self) -> None:
        """Resets everything but the port."""
        self.play()
        self.received.clear()
        self.most_at_once = self.abandoned = 0
        self.key, self.lists_models = KEY, True

    async def wait_for(self, requests: int) -> None:
        """Waits until this many requests have arrived."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.received) >= requests)

    async def wait_for_silence(self) -> None:
        """Waits until no request is being answered."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self._now == 0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; returns whether the connection can be used again."""
        request = await _receive(reader)
        fault = self._script.popleft() if self._script else self._forever
        self.received.append(request)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await self._notify()
        try:
            if fault.kind in ("hang", "slow"):
                # A disconnect of the client ends the wait.
                gone = asyncio.ensure_future(reader.read(1))
                await asyncio.wait([gone], timeout=fault.seconds or None)
                if gone.done():
                    self.abandoned += 1
                    return False
                gone.cancel()
                await asyncio.wait([gone])
            if fault.kind == "drop":
                return False
            answer = self._answer(request, fault)
            for start in range(0, len(answer), step := 1 if fault.kind == "drip" else len(answer)):
                writer.write(answer[start : start + step])
                await writer.drain()
                await asyncio.sleep(fault.seconds if fault.kind == "drip" else 0)
        finally:
            self._now -= 1
            await self._notify()
        return fault.kind != "truncated"

    async def _notify(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()

    def _answer(self, request: Received, fault: Fault) -> bytes:
        if fault.kind == "status":
            # Real providers repeat the key in their errors; our errors must not contain it.
            return _response(fault.status, {"message": f"no: {request.headers.get('authorization')}"}, fault)
        if fault.kind in ("garbage", "empty", "strange"):
            body = {"garbage": b"<html>gateway</html>", "empty": b"", "strange": b'{"result": [1, 2]}'}[fault.kind]
            return _response(200, body, fault)
        code, body = self._serve(request, fault)
        raw = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        if fault.kind == "nan":
            raw = raw.replace(b"123456789", b"NaN", 1)
        return _response(code, raw, fault)

    def _serve(self, request: Received, fault: Fault) -> tuple[int, Any]:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"message": "invalid api token"}
        if request.path == "/v2/embed" and request.method == "POST":
            return _cohere(request.body, fault)
        if request.path == "/v1/embeddings" and request.method == "POST":
            return _openai(request.body, fault)
        if request.method == "GET" and request.path.removeprefix("/v1/models/") in COHERE_DIMENSIONS:
            return 200, {"name": request.path.rpartition("/")[2], "endpoints": ["embed"]}
        if request.method == "GET" and request.path == "/v1/models" and self.lists_models:
            return 200, {"object": "list", "data": [{"id": model} for model in OPENAI_DIMENSIONS]}
        return 404, {"message": "not found"}


def _cohere(body: dict[str, Any], fault: Fault) -> tuple[int, Any]:
    texts, model = body["texts"], body["model"]
    if model not in COHERE_DIMENSIONS:
        return 404, {"message": f"model '{model}' not found"}
    if not 1 <= len(texts) <= 96:
        return 400, {"message": "at most 96 texts"}
    if body["input_type"] not in ("search_query", "search_document") or body["embedding_types"] != ["float"]:
        return 400, {"message": "input_type and embedding_types are required"}
    if body.get("truncate", "NONE") == "NONE" and any(len(text.split()) > 512 for text in texts):
        return 400, {"message": "too many tokens"}
    if "output_dimension" in body and "v3" in model:
        return 400, {"message": "output_dimension is not supported by this model"}
    dimension = body.get("output_dimension", COHERE_DIMENSIONS[model])
    return 200, {"id": "1", "texts": texts, "embeddings": {"float": _vectors(texts, dimension, fault)}}


def _openai(body: dict[str, Any], fault: Fault) -> tuple[int, Any]:
    texts, model = body["input"], body["model"]
    if model not in OPENAI_DIMENSIONS:
        return 404, {"error": {"message": f"The model `{model}` does not exist", "code": "model_not_found"}}
    tokens = [max(len(text.split()), len(text.encode()) // 8) for text in texts]  # a lower bound of any tokenizer
    if not 1 <= len(texts) <= 2048 or "" in texts or max(tokens) > 8191 or sum(tokens) > 300_000:
        return 400, {"error": {"message": "invalid input"}}
    if "dimensions" in body and not model.startswith("text-embedding-3-"):
        return 400, {"error": {"message": "this model does not support specifying dimensions"}}
    vectors: list[Any] = list(_vectors(texts, body.get("dimensions", OPENAI_DIMENSIONS[model]), fault))
    if fault.kind == "base64":
        vectors = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return 200, {"object": "list", "model": model, "data": data[::-1] if fault.kind == "shuffled" else data}


def _vectors(texts: list[str], dimension: int, fault: Fault) -> list[Any]:
    embedder = HashEmbedder(dimension - 1 if fault.kind == "wrong dimension" else dimension)
    vectors: list[Any] = [3 * embedder.vector(text) for text in texts]  # not normalised, as with some servers
    if fault.kind == "wrong count":
        vectors.pop()
    elif fault.kind == "zero":
        vectors[-1] = np.zeros(dimension, dtype=np.float32)
    elif fault.kind in ("nan", "null", "huge"):
        odd = {"nan": 123456789, "null": None, "huge": 1e300}[fault.kind]
        vectors[-1] = [odd, *vectors[-1].tolist()[1:]]
    return vectors


async def _receive(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, unquote(target.partition("?")[0]), headers, orjson.loads(raw or b"{}"), time.monotonic())


def _response(code: int, body: Any, fault: Fault) -> bytes:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    head = [f"HTTP/1.1 {code} Reason", "Content-Type: application/json", f"Content-Length: {len(raw)}"]
    if fault.retry_after:
        head.append(f"Retry-After: {fault.retry_after}")
    if fault.kind == "truncated":
        raw = raw[: len(raw) // 2]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + raw
