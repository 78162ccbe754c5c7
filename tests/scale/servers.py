"""Postgres on a TCP port, and PgBouncer in front of it, for tests with several hosts."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from chapterverse.conversations.postgres import ROLE
from chapterverse.conversations.postgres.paths import settle
from tests.served import free_port

STARTING = 120.0  # seconds, on a busy machine
_PATHS = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))  # Debian installs servers there

PGBOUNCER = shutil.which("pgbouncer", path=_PATHS)
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="no PgBouncer: apt-get install pgbouncer")


@dataclass(frozen=True)
class Postgres:
    """A server on a TCP port with one empty database."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"postgresql://{ROLE}@127.0.0.1:{self.port}/fresh"

    def count_log_lines(self, words: str) -> int:
        """The number of log lines with these words. Statements that change the schema are logged."""
        return sum(words in line for line in self.log.read_text("utf-8", "replace").splitlines())

    def ask(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query."""

        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(self.url)
            rows: list[Any] = await connection.fetch(query, *values)
            await connection.close()
            return rows

        return asyncio.run(fetch())


@contextmanager
def postgres_server(cluster: Path, directory: Path) -> Iterator[Postgres]:
    """Runs Postgres on a copy of a stopped cluster."""
    subprocess.run(["cp", "-a", str(cluster), str(directory)], check=True)
    place = settle(directory)
    server = Postgres(free_port(), directory / "log")
    options = {"listen_addresses": "127.0.0.1", "port": server.port, "unix_socket_directories": "", "fsync": "off"}
    options["log_statement"] = "ddl"
    command = [str(place.binaries / "postgres"), "-D", str(place.data)]
    command += [f"--{name}={value}" for name, value in options.items()]
    with _running(command, directory / "log", place.account, signal.SIGINT):  # fast shutdown
        _wait(server.url.replace("/fresh", "/postgres"), "CREATE DATABASE fresh")
        yield server


@contextmanager
def pgbouncer(server: Postgres, directory: Path) -> Iterator[str]:
    """Runs PgBouncer in transaction mode with two server connections; returns its URL."""
    assert PGBOUNCER
    port = free_port()
    (directory / "users.txt").write_text(f'"{ROLE}" ""\n')
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\nfresh = host=127.0.0.1 port={server.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {directory}/users.txt\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nserver_round_robin = 1\nmax_client_conn = 200\n"
    )
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # it refuses to run as root
    if account:
        for path in (directory, *directory.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)
    with _running([PGBOUNCER, str(directory / "pgbouncer.ini")], directory / "log", account, signal.SIGTERM):
        url = f"postgresql://{ROLE}@127.0.0.1:{port}/fresh"
        _wait(url, "SELECT 1")
        yield url


@contextmanager
def _running(
    command: list[str], log: Path, account: pwd.struct_passwd | None, ending: signal.Signals
) -> Iterator[None]:
    identity: dict[str, Any] = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd="/", **identity)
    try:
        yield
    finally:
        process.send_signal(ending)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def _wait(url: str, statement: str) -> None:
    """Runs a statement as soon as the server accepts it."""

    async def run() -> None:
        connection = await asyncpg.connect(url, timeout=10, statement_cache_size=0)
        await connection.execute(statement)
        await connection.close()

    deadline = time.monotonic() + STARTING
    while True:
        try:
            asyncio.run(run())
        except (OSError, asyncpg.PostgresError):
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)
        else:
            return
