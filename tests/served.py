"""Runs the real server in a thread, on a free loopback port, with an HTTP client for it."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI

from chapterverse.cli.running import server_options
from chapterverse.main import create_app
from chapterverse.settings import Settings

Health = dict[str, Any]


@dataclass(frozen=True)
class Served:
    """A running server and a client for it."""

    url: str
    http: httpx2.Client

    def health(self, wanted: Callable[[Health], bool], seconds: float = 60.0) -> Health:
        """Polls `/health` until it has the wanted state. On a busy machine a probe may time out, and its service is
        reported as down for a moment."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.http.get("/health")
            health: Health = answer.json()
            assert (answer.status_code == 503) == (health["status"] == "unhealthy"), answer.text
            if wanted(health):
                return health
            assert time.monotonic() < deadline, f"unexpected /health: {answer.text}"
            time.sleep(0.1)

    def service(self, name: str, status: str) -> Health:
        """Polls `/health` until a service has this status."""
        return self.health(lambda health: health["services"][name]["status"] == status)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serve(
    settings: Settings, heartbeat: float | None = None, prepare: Callable[[FastAPI], None] | None = None, **parts: Any
) -> Iterator[Served]:
    """Serves the application as `chapterverse serve` does. `prepare` changes the application before it starts; other
    `parts` go to `create_app`."""
    port = free_port()
    app = create_app(settings, **parts)
    if prepare is not None:
        prepare(app)
    if heartbeat is not None:
        app.state.heartbeat = heartbeat
    changed = {"log_level": "warning", "lifespan": "on", "timeout_graceful_shutdown": 1}
    config = uvicorn.Config(app, host="127.0.0.1", port=port, **server_options() | changed)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    url = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=url, timeout=30, trust_env=False) as client:
        yield Served(url, client)
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive(), "the server did not stop"
