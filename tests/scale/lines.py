"""A request to one worker among several that share a port: which of them took a connection is read from the kernel."""

import http.client
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 120.0  # seconds until a worker happens to take a connection, and until it answers


@dataclass(frozen=True)
class Worker:
    """One process that answers at an address, and the connections to it that are open."""

    url: str
    pid: int
    _idle: list[http.client.HTTPConnection] = field(default_factory=list, repr=False)

    def ask(self, method: str, path: str, body: Any = None, client: str = "192.0.2.1") -> tuple[int, Any]:
        """Status and body of an answer by this worker, for a client as a proxy before it would name it."""
        sent = None if body is None else json.dumps(body)
        while True:
            idle = self._reused()
            line = idle or self._line()
            try:
                line.request(method, path, sent, {"Content-Type": "application/json", "X-Forwarded-For": client})
                answer = line.getresponse()
                text = answer.read()
            except (http.client.HTTPException, ConnectionError):
                line.close()
                if idle is None:
                    raise
                continue  # the server closes a line that was idle for a while
            self._idle.append(line)
            told = json.loads(text) if answer.headers.get_content_type() == "application/json" else text.decode()
            return answer.status, told

    def say(self, question: str, session: str | None, client: str = "192.0.2.1") -> str:
        """Ask in a conversation, again if the answer says that it was not kept: a database may be late. The session."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status, answer = self.ask("POST", "/chat", {"query": question, "session_id": session}, client)
            assert status == 200, answer
            if answer["metadata"]["stored"]:
                return str(answer["session_id"])
            assert time.monotonic() < deadline, "the turn was not stored"

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def _reused(self) -> http.client.HTTPConnection | None:
        with suppress(IndexError):  # several threads may ask
            return self._idle.pop()
        return None

    def _line(self) -> http.client.HTTPConnection:
        """A connection that this worker took."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            line = http.client.HTTPConnection("127.0.0.1", urlsplit(self.url).port, timeout=PATIENCE)
            line.auto_open = 0  # by itself it would open another one, to any worker
            line.connect()
            # Whoever takes it does so soon; if that is another one, the next connection is tried.
            for _ in range(10):
                if self._holds(line.sock.getsockname()[1]):
                    return line
                time.sleep(0.005)
            line.close()
        raise AssertionError(f"the worker {self.pid} took no connection within {PATIENCE:g} s")

    def _holds(self, port: int) -> bool:
        """Whether the other end of the connection from this port is a file of the worker."""
        ends = f"{urlsplit(self.url).port or 0:04X}", f"{port:04X}"
        for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            columns = row.split()
            if (columns[1][-4:], columns[2][-4:]) == ends:
                wanted = f"socket:[{columns[9]}]"
                with suppress(OSError):  # a file that it closed meanwhile
                    return any(str(file.readlink()) == wanted for file in Path(f"/proc/{self.pid}/fd").iterdir())
        return False
