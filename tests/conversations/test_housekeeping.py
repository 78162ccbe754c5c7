"""Housekeeping of a running server: idle threads are archived, old turns are purged, failures are retried."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from chapterverse.conversations import store
from chapterverse.conversations.housekeeping import keeping_house
from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from chapterverse.errors import ConversationsUnavailable
from chapterverse.settings import Settings
from tests.scripted import wait_until
from tests.served import serve

pytestmark = pytest.mark.slow

MONTH = timedelta(days=30)


@pytest.fixture
async def conversations(database_url: str) -> AsyncIterator[Conversations]:
    opened = Conversations(database_url)
    yield opened
    await opened.close()


async def age(database_url: str, session: str, interval: str) -> None:
    connection = await asyncpg.connect(database_url)
    for table, column, key in (
        ("conversations", "created_at", "session_id"),
        ("conversation_threads", "updated_at", "thread_id"),
    ):
        await connection.execute(
            f"UPDATE {table} SET {column} = {column} - interval '{interval}' WHERE {key} = $1", session
        )
    await connection.close()


async def archived(conversations: Conversations, session: str) -> bool | None:
    """None if the thread does not exist any more."""
    thread = await conversations.thread(session)
    return thread.archived if thread else None


async def until(conversations: Conversations, session: str, state: bool | None) -> None:
    async with asyncio.timeout(60):
        while await archived(conversations, session) is not state:  # noqa: ASYNC110 - set by another task
            await asyncio.sleep(0.01)


async def test_idle_threads_are_archived_and_old_turns_purged_repeatedly(
    conversations: Conversations, database_url: str
) -> None:
    idle, old, young = (str(uuid4()) for _ in range(3))
    for session in (idle, old, young):
        await conversations.store(Turn(session, "question", "answer"))
    await age(database_url, idle, "61 minutes")
    await age(database_url, old, "31 days")
    async with keeping_house(conversations, MONTH, every=0.05):
        await until(conversations, idle, True)
        await until(conversations, old, None)
        assert await archived(conversations, young) is False
        await age(database_url, young, "61 minutes")
        await until(conversations, young, True)


async def test_job_locked_by_another_worker_is_skipped(conversations: Conversations, database_url: str) -> None:
    session = str(uuid4())
    await conversations.store(Turn(session, "question", "answer"))
    await age(database_url, session, "61 minutes")
    other = await asyncpg.connect(database_url)
    await other.execute("SELECT pg_advisory_lock($1)", store._ARCHIVE_LOCK)
    async with keeping_house(conversations, MONTH, every=0.02):
        await asyncio.sleep(0.3)
        assert await archived(conversations, session) is False
        await other.close()
        await until(conversations, session, True)


class Faulty:
    """Fails while `down` is true."""

    def __init__(self) -> None:
        self.down, self.tries, self.purges = True, 0, 0

    async def archive_idle(self, idle: timedelta) -> int:
        self.tries += 1
        if self.down:
            raise ConversationsUnavailable("nobody there")
        return 0

    async def purge(self, older_than: timedelta) -> int:
        self.purges += 1
        return 0


async def test_failure_is_logged_once_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "chapterverse.conversations.housekeeping")
    faulty = Faulty()
    async with keeping_house(faulty, MONTH, every=0.01), asyncio.timeout(60):  # type: ignore[arg-type]
        while faulty.tries < 5:  # noqa: ASYNC110 - set by another task
            await asyncio.sleep(0.01)
        faulty.down = False
        while faulty.purges < 3:  # noqa: ASYNC110 - set by another task
            await asyncio.sleep(0.01)
    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in logged] == ["WARNING", "INFO"]
    assert "nobody there" in logged[0][1]
    tries = faulty.tries
    await asyncio.sleep(0.05)
    assert faulty.tries == tries, "it continued after its end"


async def test_housekeeping_ends_at_once_while_the_database_hangs() -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    conversations = Conversations(hang)
    async with asyncio.timeout(20):
        async with keeping_house(conversations, MONTH):
            await asyncio.sleep(0.05)
        await conversations.close()


async def test_server_archives_idle_threads(conversations: Conversations, database_url: str, tmp_path: Path) -> None:
    session = str(uuid4())
    await conversations.store(Turn(session, "question", "answer"))
    await age(database_url, session, "61 minutes")

    def serve_for_a_moment() -> None:
        with serve(Settings.load(chapterverse_home=tmp_path, database_url=database_url)) as server:
            wait_until(lambda: server.http.get(f"/sessions/{session}").json()["archived"])

    await asyncio.to_thread(serve_for_a_moment)


def test_embedded_database_is_started_with_the_server(postgres_root: Path) -> None:
    home = postgres_root / "early"
    running = home / "postgres" / "data" / "postmaster.pid"
    with serve(Settings.load(chapterverse_home=home)):
        wait_until(running.exists, seconds=60)
    assert not running.exists(), "the database was left running"


def test_server_starts_without_a_database(tmp_path: Path) -> None:
    lost = "postgresql://nobody@127.0.0.1:1/nothing"
    with serve(Settings.load(chapterverse_home=tmp_path, database_url=lost)) as server:
        assert server.http.get("/livez").status_code == 200
        server.service("database", "down")
