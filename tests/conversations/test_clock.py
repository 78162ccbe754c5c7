"""A clock that jumps deletes nothing: by stored times in a real Postgres, as they would look after the jump."""

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from chapterverse.conversations.clock import DOUBT, judge
from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn

MONTH = timedelta(days=30)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
YEAR = timedelta(days=400)


@pytest.mark.parametrize(
    ("now", "trusted", "doubted", "judged"),
    [
        pytest.param(NOON, NOON - HOUR, None, (NOON, None), id="it goes on"),
        pytest.param(NOON, NOON - DOUBT, None, (NOON, None), id="a day without a server"),
        pytest.param(NOON, NOON - YEAR, None, (NOON - YEAR, NOON), id="a jump ahead"),
        pytest.param(NOON, NOON - YEAR, NOON - HOUR, (NOON - YEAR, NOON - HOUR), id="not yet believed"),
        pytest.param(NOON, NOON - YEAR, NOON - DOUBT, (NOON, None), id="believed after a day"),
        pytest.param(NOON, NOON - HOUR, NOON + YEAR, (NOON, None), id="set right again"),
        pytest.param(NOON, NOON - YEAR, NOON + HOUR, (NOON - YEAR, NOON), id="set back, and still wrong"),
        pytest.param(NOON, NOON + YEAR, None, (NOON, None), id="a jump back"),
    ],
)
def test_what_a_jump_looks_like(
    now: datetime, trusted: datetime, doubted: datetime | None, judged: tuple[datetime, datetime | None]
) -> None:
    assert judge(now, trusted, doubted) == judged


@pytest.fixture
async def conversations(database_url: str) -> AsyncIterator[Conversations]:
    opened = Conversations(database_url)
    yield opened
    await opened.close()


async def jump(url: str, days: int) -> None:
    """Make everything that is stored look as it would after the clock was set so far ahead."""
    connection = await asyncpg.connect(url)
    for table, columns in (
        ("conversations", ("created_at",)),
        ("conversation_threads", ("created_at", "updated_at")),
        ("housekeeping", ("trusted_at", "doubted_at")),
    ):
        changes = ", ".join(f"{column} = {column} - interval '{days} days'" for column in columns)
        await connection.execute(f"UPDATE {table} SET {changes}")
    await connection.close()


@pytest.mark.slow
async def test_a_clock_set_ahead_deletes_nothing_and_can_be_set_right(
    conversations: Conversations, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "chapterverse.conversations.clock")
    sessions = [str(uuid4()) for _ in range(3)]
    for session in sessions:
        await conversations.store(Turn(session, "question", "answer"))
    assert await conversations.purge(MONTH) == 0
    await jump(database_url, 400)
    newer = str(uuid4())
    await conversations.store(Turn(newer, "a question of the wrong date", "answer"))
    for _ in range(3):
        assert await conversations.purge(MONTH) == 0
    assert [record.levelname for record in caplog.records] == ["WARNING"], "told once"
    await jump(database_url, -400)
    assert await conversations.purge(MONTH) == 0
    for session in (*sessions, newer):
        assert await conversations.thread(session), "nothing is lost"
    await jump(database_url, 20)  # in which turns grow old, and a server runs
    await touch(database_url)
    await jump(database_url, 11)
    await touch(database_url)
    assert await conversations.purge(MONTH) == 3


@pytest.mark.slow
async def test_after_a_long_time_without_a_server_old_turns_go_a_day_late(
    conversations: Conversations, database_url: str
) -> None:
    old, young = str(uuid4()), str(uuid4())
    await conversations.store(Turn(old, "question", "answer"))
    assert await conversations.purge(MONTH) == 0
    await jump(database_url, 40)
    await conversations.store(Turn(young, "question", "answer"))
    assert await conversations.purge(MONTH) == 0
    await jump(database_url, 1)
    assert await conversations.purge(MONTH) == 1
    assert await conversations.thread(old) is None
    assert await conversations.thread(young)


async def touch(url: str) -> None:
    """As if somebody had tidied up all the time."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE housekeeping SET trusted_at = clock_timestamp(), doubted_at = NULL")
    await connection.close()
