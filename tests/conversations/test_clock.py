"""A clock that jumps deletes nothing. The jump is simulated by changing stored times in a real Postgres."""

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
        pytest.param(NOON, NOON - HOUR, None, (NOON, None), id="normal"),
        pytest.param(NOON, NOON - DOUBT, None, (NOON, None), id="a day without a server"),
        pytest.param(NOON, NOON - YEAR, None, (NOON - YEAR, NOON), id="jump ahead"),
        pytest.param(NOON, NOON - YEAR, NOON - HOUR, (NOON - YEAR, NOON - HOUR), id="jump not yet trusted"),
        pytest.param(NOON, NOON - YEAR, NOON - DOUBT, (NOON, None), id="jump trusted after a day"),
        pytest.param(NOON, NOON - HOUR, NOON + YEAR, (NOON, None), id="corrected"),
        pytest.param(NOON, NOON - YEAR, NOON + HOUR, (NOON - YEAR, NOON), id="set back but still wrong"),
        pytest.param(NOON, NOON + YEAR, None, (NOON, None), id="jump back"),
    ],
)
def test_judge_detects_jumps_of_the_clock(
    now: datetime, trusted: datetime, doubted: datetime | None, judged: tuple[datetime, datetime | None]
) -> None:
    assert judge(now, trusted, doubted) == judged


@pytest.fixture
async def conversations(database_url: str) -> AsyncIterator[Conversations]:
    opened = Conversations(database_url)
    yield opened
    await opened.close()


async def jump(url: str, days: int) -> None:
    """Changes stored times as if the clock had been set this many days ahead."""
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
async def test_clock_set_ahead_deletes_nothing_and_can_be_corrected(
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
    assert [record.levelname for record in caplog.records] == ["WARNING"], "one warning is logged"
    await jump(database_url, -400)
    assert await conversations.purge(MONTH) == 0
    for session in (*sessions, newer):
        assert await conversations.thread(session), "nothing was deleted"
    await jump(database_url, 20)  # turns get older while a server runs
    await touch(database_url)
    await jump(database_url, 11)
    await touch(database_url)
    assert await conversations.purge(MONTH) == 3


@pytest.mark.slow
async def test_old_turns_are_purged_a_day_late_after_a_long_downtime(
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
    """Marks the clock as trusted now, as if a server had been running."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE housekeeping SET trusted_at = clock_timestamp(), doubted_at = NULL")
    await connection.close()
