"""A language model server that replays recorded replies of a slow model.

There is one file for each request. An unknown request is refused and noted. `fill` sends the noted requests to the
model and stores the replies byte for byte. So a run can be interrupted and continued, the product's time limits need
not be changed for a slow machine, and changes of the product are measured on the same replies.
"""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx2

LONGEST: Final = 220  # maximum tokens of a reply: about as many as the model can write in the product's time limit


@dataclass(frozen=True, slots=True)
class Record:
    """The reply of the model, and how long it took on this machine."""

    kind: str  # content type
    body: str
    first: float  # seconds until the first piece of text
    seconds: float

    @property
    def text(self) -> str:
        """The text of the reply."""
        if not self.kind.startswith("text/event-stream"):
            return str(json.loads(self.body)["choices"][0]["message"].get("content") or "")
        events = (json.loads(line[6:]) for line in self.body.splitlines() if line.startswith("data: {"))
        return "".join(choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ()))


class Recorder:
    """The records of one model, and the requests that are missing."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._model = model
        self._lock = threading.Lock()
        self.missing: dict[str, dict[str, Any]] = {}  # by key, in the order of asking
        self.served: list[Record] = []

    def answer(self, request: dict[str, Any]) -> Record | None:
        """The record of a request. If there is none, the request is noted and None is returned."""
        key = self._key(request)
        path = self._path(key)
        with self._lock:
            if not path.exists():
                self.missing[key] = request
                return None
            record = Record(**json.loads(path.read_text("utf-8")))
            self.served.append(record)
            return record

    def fill(self, address: str) -> Iterator[Record]:
        """Send the missing requests to the model, one after the other."""
        for key, request in list(self.missing.items()):
            record = _ask(address, request)
            self._folder.mkdir(parents=True, exist_ok=True)
            growing = self._path(key).with_suffix(".part")
            growing.write_text(json.dumps(asdict(record)), "utf-8")
            growing.rename(self._path(key))
            del self.missing[key]
            yield record

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _key(self, request: dict[str, Any]) -> str:
        key = json.dumps([self._model, LONGEST, request], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()[:32]


@contextmanager
def serving_records(recorder: Recorder) -> Iterator[str]:
    """Run a server that answers from the records, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, "application/json", json.dumps({"object": "list", "data": []}))

        def do_POST(self) -> None:
            record = recorder.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if record is None:
                self._send(400, "application/json", json.dumps({"error": {"message": "not recorded"}}))
            else:
                self._send(200, record.kind, record.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            """Log nothing."""

        def _send(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _ask(address: str, request: dict[str, Any]) -> Record:
    begin = time.perf_counter()
    first = 0.0
    pieces: list[str] = []
    asked = {**request, "max_tokens": LONGEST}
    with httpx2.stream("POST", f"{address}/v1/chat/completions", json=asked, timeout=600) as response:
        for piece in response.iter_text():
            if not first and ("content" in piece and '"content":null' not in piece.replace(" ", "")):
                first = time.perf_counter() - begin
            pieces.append(piece)
    if response.status_code != 200:
        raise RuntimeError(f"the language model server answered {response.status_code}: {''.join(pieces)[:300]}")
    return Record(response.headers["content-type"], "".join(pieces), first, time.perf_counter() - begin)
