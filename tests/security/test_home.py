"""A missing or read-only home is reported, and child processes get no keys."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from chapterverse.conversations.postgres import EmbeddedPostgres
from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from chapterverse.environment import child_environment
from chapterverse.errors import ConversationsUnavailable
from tests.cli.process import chapterverse
from tests.conftest import EXAMPLE_BOOK
from tests.faults.processes import descendants, serving
from tests.faults.worlds import copied_book
from tests.index.places import patient_index, scratch_directory
from tests.index.sample import ask, manifest, write_page

pytestmark = pytest.mark.slow

SECRETS = {
    "OPENAI_API_KEY": "sk-secret-1",
    "COHERE_API_KEY": "secret-2",
    "API_KEYS": "secret-3",
    "AWS_SECRET_ACCESS_KEY": "secret-4",
    "DATABASE_PASSWORD": "secret-5",
}
SESSION = "11111111-1111-4111-8111-111111111111"


def test_child_processes_get_only_allowed_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_TIME", "C")
    given = child_environment(LC_ALL="C")
    assert not set(SECRETS) & set(given)
    assert {"PATH", "LC_TIME", "LC_ALL"} <= set(given)


def test_no_child_process_of_a_server_has_a_key(example_home: Path, postgres_root: Path) -> None:
    """Postgres runs under another account, which can read the environment of its processes."""
    home = copied_book(example_home, postgres_root / "secrets")
    secrets = {"cohere_api_key": "secret-2", "embeddings": "local", "api_keys": "secret-3"}
    with serving(home, **secrets) as server:
        httpx2.get(f"{server.url}/health", timeout=60, trust_env=False)
        found = {pid: Path(f"/proc/{pid}/environ") for pid in _child_processes(server.process.pid, home)}
        assert len(found) >= 2  # the engine, and Postgres
        for pid, environ in found.items():
            try:
                assert b"secret-" not in environ.read_bytes(), Path(f"/proc/{pid}/cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended
    shutil.rmtree(home, ignore_errors=True)


def _child_processes(pid: int, home: Path) -> list[int]:
    """The child processes of a server and those of its Postgres, which has no parent."""
    postgres = [
        int(place.name)
        for place in Path("/proc").iterdir()
        if place.name.isdecimal() and _cwd(place).startswith(str((home / "postgres" / "data").resolve()))
    ]
    return [one for one in (*descendants(pid), *postgres) if one != pid]


def _cwd(place: Path) -> str:
    try:
        return str((place / "cwd").readlink())
    except OSError:
        return ""


async def test_storing_a_turn_fails_if_the_home_is_missing(postgres_root: Path) -> None:
    home = postgres_root / "gone"
    postgres = EmbeddedPostgres(home, fast=True)
    kept = Conversations(postgres.start, postgres.lost)
    try:
        await asyncio.to_thread(lambda: asyncio.run(_create_cluster(home)))
        await kept.probe()
        await kept.store(Turn(session_id=SESSION, query="a", response="b"))
        data = (home / "data").resolve()
        # Moved, because removing is slow on a busy machine, and if Postgres ends meanwhile it is created again.
        for place in (data, home):
            place.rename(place.with_name(f"{place.name}-moved"))
        with pytest.raises(ConversationsUnavailable, match="is missing"):
            await kept.store(Turn(session_id=SESSION, query="a", response="b"))
        with pytest.raises(ConversationsUnavailable):
            await kept.probe()
    finally:
        await kept.close()
        await postgres.stop()
        for place in Path("/proc").iterdir():  # noqa: ASYNC240
            if place.name.isdecimal() and _cwd(place).startswith(str(home)):
                os.kill(int(place.name), signal.SIGKILL)
        for place in home.parent.glob("gone*"):
            shutil.rmtree(place, ignore_errors=True)


async def _create_cluster(home: Path) -> None:
    """Creates the cluster, which takes longer than the timeout of a call."""
    postgres = EmbeddedPostgres(home, fast=True)
    await postgres.start()
    await postgres.stop()


async def test_probe_reports_a_missing_index_folder() -> None:
    with scratch_directory() as scratch:
        index = patient_index(scratch / "index")
        try:
            async with index.writer() as writer:
                await write_page("p.html", ["ROS 2 is a robot operating system."]).put(writer)
                await writer.publish(manifest())
            assert await index.search(ask("robot"))
            assert await index.probe() is None
            await asyncio.to_thread(shutil.rmtree, scratch / "index")
            report = await index.probe()
            assert report and "missing" in report
        finally:
            await index.close()


@pytest.fixture
def read_only_home(example_home: Path, tmp_path: Path) -> Iterator[Path]:
    """A home with the example book on a read-only disk; for users other than root, without write permission."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = os.geteuid() == 0 and not _run("mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", str(place))
    if os.geteuid() == 0 and not mounted:
        pytest.skip("no disk can be mounted here")
    home = copied_book(example_home, place / "home")
    if mounted:
        assert not _run("mount", "-o", "remount,ro", str(place))
    else:
        for path in (home, *home.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    yield home
    if mounted:
        _run("umount", "--lazy", str(place))
    else:
        for path in (home, *home.rglob("*")):
            path.chmod(0o755)


def _run(*command: str) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_read_only_home_can_be_searched_and_ingest_fails_with_a_message(read_only_home: Path) -> None:
    found = chapterverse(read_only_home, "search", "What is ROS 2?")
    assert found.returncode == 0, found.stderr
    assert "ROS 2" in found.stdout
    changed = chapterverse(read_only_home, "ingest", str(EXAMPLE_BOOK))
    assert changed.returncode == 10, changed.stderr
    assert "Traceback" not in changed.stderr
    shown = chapterverse(read_only_home, "doctor", "--json")
    assert "Traceback" not in shown.stderr
    assert "read-only" in shown.stdout
