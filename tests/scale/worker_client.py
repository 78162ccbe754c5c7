"""Sends requests to one of several workers that share a port. The kernel's data shows which worker has a connection."""

import http.client
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 120.0  # seconds until a worker accepts a connection, and until it responds


@dataclass(frozen=True)
class Worker:
    """One worker process of a server, and the open connections to it."""

    url: str
    pid: int
    _idle: list[http.client.HTTPConnection] = field(default_factory=list, repr=False)

    def ask(self, method: str, path: str, body: Any = None, client: str = "192.0.2.1") -> tuple[int, Any]:
        """Sends a request to this worker with `client` in X-Forwarded-For; returns status and body."""
        sent = None if body is None else json.dumps(body)
        while True:
            idle = self._reused()
            connection = idle or self._connect()
            try:
                connection.request(method, path, sent, {"Content-Type": "application/json", "X-Forwarded-For": client})
                answer = connection.getresponse()
                text = answer.read()
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                if idle is None:
                    raise
                continue  # the server closes idle connections
            self._idle.append(connection)
            reply = json.loads(text) if answer.headers.get_content_type() == "application/json" else text.decode()
            return answer.status, reply

    def ask_in_session(self, question: str, session: str | None, client: str = "192.0.2.1") -> str:
        """Asks in a conversation until the turn is stored, because the database may be slow; returns the session."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status, answer = self.ask("POST", "/chat", {"query": question, "session_id": session}, client)
            assert status == 200, answer
            if answer["metadata"]["stored"]:
                return str(answer["session_id"])
            assert time.monotonic() < deadline, "the turn was not stored"

    def close(self) -> None:
        """Closes the connections."""
        while self._idle:
            self._idle.pop().close()

    def _reused(self) -> http.client.HTTPConnection | None:
        with suppress(IndexError):  # several threads may ask
            return self._idle.pop()
        return None

    def _connect(self) -> http.client.HTTPConnection:
        """A new connection to this worker."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(self.url).port, timeout=PATIENCE)
            connection.auto_open = 0  # it must not reconnect, perhaps to another worker
            connection.connect()
            # A worker accepts it soon; if it is another worker, a new connection is tried.
            for _ in range(10):
                if self._holds(connection.sock.getsockname()[1]):
                    return connection
                time.sleep(0.005)
            connection.close()
        raise AssertionError(f"the worker {self.pid} accepted no connection within {PATIENCE:g} s")

    def _holds(self, port: int) -> bool:
        """Whether the worker has the other end of the connection from this port."""
        ends = f"{urlsplit(self.url).port or 0:04X}", f"{port:04X}"
        for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            columns = row.split()
            if (columns[1][-4:], columns[2][-4:]) == ends:
                wanted = f"socket:[{columns[9]}]"
                with suppress(OSError):  # the worker closed it meanwhile
                    return any(str(file.readlink()) == wanted for file in Path(f"/proc/{self.pid}/fd").iterdir())
        return False
