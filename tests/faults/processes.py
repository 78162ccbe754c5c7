"""`chapterverse` as an operator runs it, in separate processes that can be signalled and killed.

Everything that a test starts here ends with it.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from chapterverse.settings import Settings
from tests.served import free_port

STARTING = 240.0  # seconds until a process must serve, on a busy machine
STOPPING = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "chapterverse.cli", *arguments]


def environment(home: Path, **settings: Any) -> dict[str, str]:
    """Returns the environment of a process, without settings of this machine. Names in capitals are passed
    unchanged."""
    clean = {name: value for name, value in os.environ.items() if name.lower() not in Settings.model_fields}
    given = {name.upper(): str(value) for name, value in settings.items()}
    # Suggestions are made in the background and would ask the engines whose calls are counted.
    fixed = {"CHAPTERVERSE_HOME": str(home), "API_RATE_LIMIT": "1000000", "LOG_LEVEL": "ERROR", "SUGGESTIONS": "0"}
    return clean | fixed | given


@dataclass
class Server:
    """A running `chapterverse serve`."""

    url: str
    process: "subprocess.Popen[bytes]"

    @property
    def workers(self) -> list[int]:
        """The serving processes: those of `--workers`, or the only one."""
        return [pid for pid in children(self.process.pid) if "spawn_main" in command_line(pid)] or [self.process.pid]

    def ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/readyz", timeout=5, trust_env=False).status_code == 200
        except httpx2.HTTPError:
            return False

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + STARTING
        while not self.ready():
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kills the process."""
        self.process.kill()
        self.process.wait(STOPPING)

    def stop(self) -> int:
        """Stops the server; returns its exit code."""
        self.process.terminate()
        return self.process.wait(STOPPING)


def start(home: Path, *arguments: str, port: int = 0, **settings: Any) -> Server:
    """Starts a server without waiting for it."""
    port = port or free_port()
    process = subprocess.Popen(
        command("serve", "--port", str(port), *arguments),
        env=environment(home, **settings),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if os.environ.get("SHOW_SERVERS") else subprocess.DEVNULL,
    )
    return Server(f"http://127.0.0.1:{port}", process)


@contextmanager
def serving(home: Path, *arguments: str, **settings: Any) -> Iterator[Server]:
    """A ready server. Afterwards it is killed, or stopped if its embedded Postgres must be stopped, too."""
    server = start(home, *arguments, **settings)
    try:
        server.wait_until_ready()
        yield server
    finally:
        if "database_url" in settings:
            server.kill()
        else:
            end(server)


def end(server: Server) -> None:
    """Ends a server in any state."""
    if server.process.poll() is None:
        for pid in descendants(server.process.pid):
            _signal(pid, signal.SIGCONT)
        try:
            server.stop()
        except subprocess.TimeoutExpired:
            server.kill()


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if entry.name.isdigit() else 0
        except (OSError, IndexError):  # it has just ended
            continue
        if parent == pid:
            found.append(int(entry.name))
    return sorted(found)


def runs(pid: int) -> bool:
    """Whether a process runs, that is, has not ended and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False


def descendants(pid: int) -> list[int]:
    """The process and all that it and they started."""
    return [pid, *(below for child in children(pid) for below in descendants(child))]


def working_in(folder: Path) -> list[int]:
    """The processes with this working folder, for example those of a Postgres."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").samefile(folder):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def until(condition: Any, seconds: float = 120.0, what: str = "it") -> float:
    """Waits for a state; returns how many seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"{what} did not happen within {seconds:g} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def command_line(pid: int) -> str:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
