"""The model and the embedder of the race: `python -m bench.race.stub LLM_PORT AUX_PORT`, both on loopback.

Simulates pace and faults, and counts the requests of each service. A service is recognised by the first part of the
path: `/NAME/v1/chat/completions`. The embedder is the product's own MiniLM with OpenAI's API. It caches vectors by text
and listens on the second port, so that the model alone can be down. `/admin` on that port configures both.
"""

import asyncio
import base64
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import httptools
import numpy as np
import orjson
import uvloop

from bench.race.answers import CALL_ID, Answer, Call, pieces, prompt_text, reply
from chapterverse.embeddings.local import DIMENSION, LocalEmbedder
from chapterverse.embeddings.wordpiece import count_tokens

_TOOL_TOKENS = 12
_JUDGE_TOKEN_CHARS = 4  # characters per token of a verdict, which is JSON
_REASONS = {200: b"OK", 404: b"Not Found", 429: b"Too Many Requests", 500: b"Internal Server Error"}


@dataclass(slots=True)
class Pace:
    """How the model behaves at the moment."""

    first_ms: float = 0.0
    token_ms: float = 0.0
    tokens: int = 60
    mode: str = "ok"  # 429, 500, malformed_tool, unknown_tool, bad_citation, stream_cut, hang, down
    count_tokens: bool = False
    own_words: bool = True  # the model begins its sentences itself, so that they are not quotations
    embed: str = "real"  # or "hash": vectors made from a hash, at no cost


class Stub:
    """State shared by both ports."""

    def __init__(self, llm_port: int) -> None:
        self.pace = Pace()
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.embedder = LocalEmbedder()
        self.vectors: dict[str, Any] = {}
        self.connections: set[Connection] = set()
        self._llm_port = llm_port
        self._llm: asyncio.AbstractServer | None = None

    async def listen(self) -> None:
        """Open the model's port."""
        loop = asyncio.get_running_loop()
        self._llm = await loop.create_server(lambda: Connection(self, True), "127.0.0.1", self._llm_port, backlog=1024)

    async def set(self, wanted: Mapping[str, Any]) -> None:
        """Change the pace. Settings that are not given return to their defaults. `down` closes the port and all
        connections."""
        was_down, self.pace = self.pace.mode == "down", Pace(**wanted)
        if self.pace.mode == "down" and self._llm is not None:
            self._llm.close()
            for connection in list(self.connections):
                connection.abort()
        elif was_down and self.pace.mode != "down":
            await self.listen()

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Vectors of texts. Each text is computed once."""
        if self.pace.embed == "hash":
            return [_hashed(text) for text in texts]
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        started = time.perf_counter()
        self.vectors.update(zip(missing, await self.embedder.embed_passages(missing), strict=True))
        self.counts["all"]["embedding_ms"] += round((time.perf_counter() - started) * 1000)
        return [self.vectors[text] for text in texts]


def _hashed(text: str) -> Any:
    vector = np.full(DIMENSION, 0.01, np.float32)
    vector[hash(text) % DIMENSION] = 1.0
    return vector / np.linalg.norm(vector)


class Connection(asyncio.Protocol):
    """One client's connection. Its requests are answered in order."""

    def __init__(self, stub: Stub, is_llm: bool) -> None:
        self._stub, self._is_llm = stub, is_llm
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._body = b"", bytearray()
        self._todo: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._streams_for = ""  # the service whose answer is being streamed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._task = asyncio.ensure_future(self._serve())
        if self._is_llm:
            self._stub.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stub.connections.discard(self)
        if self._streams_for:
            self._stub.counts[self._streams_for]["aborted"] += 1
        self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._url, self._body = b"", bytearray()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._todo.put_nowait((self._url.decode(), bytes(self._body)))

    def abort(self) -> None:
        """Break the connection."""
        self._transport.abort()

    async def _serve(self) -> None:
        while True:
            url, body = await self._todo.get()
            name, _, path = url.removeprefix("/").partition("/")
            if path.endswith("chat/completions"):
                await self._chat(name, json.loads(body))
            elif path.endswith("embeddings"):
                await self._embeddings(orjson.loads(body))
            elif path.endswith("models"):
                self._send(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]})
            elif name == "admin":
                await self._admin(path, body)
            else:
                self._send(404, {"error": {"message": "no such path"}})

    async def _admin(self, path: str, body: bytes) -> None:
        if path == "pace":
            await self._stub.set(orjson.loads(body))
        elif path == "reset":
            self._stub.counts.clear()
        elif path == "forget":
            self._stub.vectors.clear()
        self._send(200, {"counts": self._stub.counts, "pace": asdict(self._stub.pace)})

    def _send(self, status: int, value: Any) -> None:
        body = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        if not self._transport.is_closing():
            self._transport.write(head % (status, _REASONS[status], len(body)) + body)

    async def _embeddings(self, request: Mapping[str, Any]) -> None:
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        vectors = await self._stub.embed(texts)
        if request.get("encoding_format") == "base64":
            vectors = [base64.b64encode(vector.tobytes()).decode() for vector in vectors]
        data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self._send(200, {"object": "list", "model": request.get("model", "minilm"), "data": data, "usage": usage})

    async def _chat(self, name: str, request: Mapping[str, Any]) -> None:
        pace, counts = self._stub.pace, self._stub.counts[name]
        counts["calls"] += 1
        if pace.mode in ("429", "500"):
            self._send(int(pace.mode), {"error": {"message": "the stub refuses", "code": pace.mode}})
            return
        if pace.mode == "hang":
            await asyncio.sleep(3600)
        if pace.count_tokens:
            counts["prompt_tokens"] += count_tokens(prompt_text(request))
        said = reply(request, pace.mode, own_words=pace.own_words)
        if isinstance(said, Answer) and said.judged:
            counts["judge_calls"] += 1
            counts["judge_tokens"] += count_tokens(prompt_text(request)) + count_tokens(said.text)
        parts = _deltas(said, pace)
        usage = {"prompt_tokens": 1000, "completion_tokens": len(parts), "total_tokens": 1000 + len(parts)}
        if request.get("stream"):
            await self._stream(name, said, parts, usage if request.get("stream_options") else None)
        else:
            await asyncio.sleep((pace.first_ms + pace.token_ms * (len(parts) - 1)) / 1000)
            message: dict[str, Any] = {"role": "assistant", "content": said.text if isinstance(said, Answer) else None}
            if isinstance(said, Call):
                message["tool_calls"] = [_tool_call(said)]
            choice = {"index": 0, "message": message, "finish_reason": _finish(said), "logprobs": None}
            self._send(200, {**_ENVELOPE, "object": "chat.completion", "choices": [choice], "usage": usage})

    async def _stream(self, name: str, said: Call | Answer, parts: list[Any], usage: Any) -> None:
        pace, now = self._stub.pace, asyncio.get_running_loop().time
        cut = pace.mode == "stream_cut" and isinstance(said, Answer)
        self._streams_for = name
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self._transport.write(head)
        begin = now() + pace.first_ms / 1000
        together: list[bytes] = []
        for number, part in enumerate(parts[:10] if cut else parts):
            together.append(_event({"choices": [{"index": 0, "delta": part, "finish_reason": None}]}))
            wait = begin + pace.token_ms * number / 1000 - now()
            if pace.first_ms or pace.token_ms:
                await asyncio.sleep(max(0.0, wait))
                self._transport.write(together.pop())
        if cut:
            self._transport.write(b"".join(together))
            self._streams_for = ""
            self._transport.abort()
            return
        together.append(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(said)}]}))
        if usage:
            together.append(_event({"choices": [], "usage": usage}))
        self._transport.write(b"".join(together) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        self._streams_for = ""


_ENVELOPE: dict[str, Any] = {"id": "chatcmpl-race", "created": 1_700_000_000, "model": "stub"}


def _event(value: dict[str, Any]) -> bytes:
    line = b"data: %s\n\n" % orjson.dumps({**_ENVELOPE, "object": "chat.completion.chunk", **value})
    return b"%x\r\n%s\r\n" % (len(line), line)


def _finish(said: Call | Answer) -> str:
    return "tool_calls" if isinstance(said, Call) else "stop"


def _tool_call(call: Call) -> dict[str, Any]:
    return {"id": CALL_ID, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _deltas(said: Call | Answer, pace: Pace) -> list[dict[str, Any]]:
    """The answer as deltas, one for each token."""
    if isinstance(said, Answer):
        tokens = len(said.text) // _JUDGE_TOKEN_CHARS if said.judged else pace.tokens
        return [{"role": "assistant", "content": piece} for piece in pieces(said.text, tokens)]
    first = {**_tool_call(said), "index": 0, "function": {"name": said.name, "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in pieces(said.arguments, _TOOL_TOKENS - 1)]
    return [{"role": "assistant", "content": None, "tool_calls": [call]} for call in (first, *rest)]


async def main(llm_port: int, aux_port: int) -> None:
    """Serve until killed. Prints a line when ready."""
    stub = Stub(llm_port)
    await stub.listen()
    loop = asyncio.get_running_loop()
    aux = await loop.create_server(lambda: Connection(stub, False), "127.0.0.1", aux_port, backlog=1024)
    print("ready", flush=True)
    await aux.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
