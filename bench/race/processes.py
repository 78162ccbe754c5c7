"""The processes of the race: started in their own sessions, measured with all their children, and stopped.

Only processes that were started here are stopped. The product's embedded Postgres is not a child of the server that
started it. It is found by its data folder and counted with the server.
"""

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench.race.client import ask
from bench.race.racers import CACHE, Racer

_PSS = re.compile(r"(?m)^Pss:\s+(\d+) kB")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_READY_SECONDS: Final = 90.0
_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR")
ALL_CORES: Final = frozenset(os.sched_getaffinity(0))


def environment(racer: Racer, store: Path | None = None) -> dict[str, str]:
    """Return the whole environment of a service's process, without the settings of the user who runs the race."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    return {**kept, **racer.env(store)}


def confine(pid: int, cores: Iterable[int]) -> None:
    """Restrict a process and all its threads to these cores."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), set(cores))


class Server:
    """A running service. If `cores` are given, it is restricted to them, and so are its children."""

    def __init__(self, racer: Racer, port: int, cores: Iterable[int] = (), store: Path | None = None) -> None:
        self.racer, self.port = racer, port
        self._store = store or racer.store
        command = [str(racer.python), *(part.format(port=port) for part in racer.command)]
        self.log = CACHE / f"log-{racer.slug}.txt"
        with self.log.open("wb") as log:
            self.started = time.perf_counter()
            self.process = subprocess.Popen(
                command,
                cwd=racer.folder,
                env=environment(racer, store),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        confine(self.process.pid, cores or ALL_CORES)

    def pss_mb(self) -> float:
        """Memory of all its processes. Shared memory is counted in proportion (PSS)."""
        return round(sum(_pss_kb(pid) for pid in self._pids()) / 1024, 1)

    def cpu_seconds(self) -> float:
        """CPU time of all its processes."""
        return sum(_cpu_ticks(pid) for pid in self._pids()) / _TICKS

    def stop(self) -> None:
        """Stop it, gracefully if possible."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def _pids(self) -> list[int]:
        roots = [self.process.pid]
        try:
            lines = (self._store / "postgres" / "data" / "postmaster.pid").read_text("utf-8").split()
            roots += [int(lines[0])]
        except (OSError, ValueError, IndexError):
            pass
        return _with_children(roots)


def _with_children(pids: list[int]) -> list[int]:
    found: list[int] = []
    while pids:
        pid = pids.pop()
        found.append(pid)
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            pass
    return found


def _pss_kb(pid: int) -> int:
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


async def first_answer(server: Server, question: str) -> float:
    """Return the seconds from a server's start to the end of its first answer. It is asked until it answers."""
    body = server.racer.dialect.body(question)
    while (waited := time.perf_counter() - server.started) < _READY_SECONDS:
        if server.process.poll() is not None:
            break
        try:
            reply = await ask(server.port, "/chat", body)
            if reply.status == 200 and reply.complete:
                return time.perf_counter() - server.started
        except OSError:
            pass
        await asyncio.sleep(0.02)
    tail = server.log.read_text("utf-8", "replace")[-800:]
    raise SystemExit(f"{server.racer.name} did not answer within {waited:.0f} s: {tail}")


@asynccontextmanager
async def serving(
    racers: Iterable[Racer], first_port: int, question: str, cores: Iterable[int]
) -> AsyncIterator[dict[str, Server]]:
    """Start all of them and wait until each has answered."""
    servers: dict[str, Server] = {}
    try:
        for at, racer in enumerate(racers):
            servers[racer.name] = Server(racer, first_port + at, cores)
            await first_answer(servers[racer.name], question)
        yield servers
    finally:
        for server in servers.values():
            server.stop()
