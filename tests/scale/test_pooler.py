"""Conversations through PgBouncer in transaction mode with two server connections."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from tests.faults.processes import serving
from tests.faults.worlds import copied_book
from tests.scale.servers import Postgres, needs_pgbouncer, pgbouncer, postgres_server
from tests.scale.worker_client import Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_pgbouncer]


@pytest.fixture(scope="module")
def postgres(cluster: Path) -> Iterator[Postgres]:
    with postgres_server(cluster, cluster.with_name("pooled")) as server:
        yield server


@pytest.fixture(scope="module")
def pooler(postgres: Postgres, postgres_root: Path) -> Iterator[str]:
    directory = postgres_root / "pgbouncer"
    directory.mkdir()
    with pgbouncer(postgres, directory) as url:
        yield url


async def test_concurrent_turns_through_two_connections_are_all_stored(pooler: str) -> None:
    workers = [Conversations(pooler) for _ in range(4)]
    sessions = [str(uuid4()) for _ in range(6)]

    async def talk(number: int, session: str) -> None:
        for turn in range(5):
            await workers[(number + turn) % 4].store(Turn(session, f"question {turn}", "answer"))
            assert len(await workers[(number + turn + 1) % 4].recent(session, 100)) == turn + 1

    await asyncio.gather(*(talk(number, session) for number, session in enumerate(sessions)))
    for session in sessions:
        turns = await workers[0].recent(session, 100)
        assert [turn.query for turn in turns] == [f"question {turn}" for turn in range(5)]
    for worker in workers:
        await worker.close()


def test_server_stores_and_purges_through_pgbouncer(
    pooler: str, postgres: Postgres, example_home: Path, tmp_path: Path
) -> None:
    old = asyncio.run(_store_an_old_turn(postgres))
    home = copied_book(example_home, tmp_path)
    with serving(home, database_url=pooler) as server:
        with closing(Worker(server.url, server.process.pid)) as worker:
            _check_conversation(worker)
        deadline = time.monotonic() + 120
        while postgres.ask("SELECT 1 FROM conversations WHERE session_id = $1", old):
            assert time.monotonic() < deadline, "the old turn was not purged"
            time.sleep(0.05)
    assert postgres.count_log_lines("prepared statement") == 0


async def _store_an_old_turn(postgres: Postgres) -> UUID:
    session = uuid4()
    conversations = Conversations(postgres.url)
    await conversations.store(Turn(str(session), "question", "answer"))
    await conversations.close()
    connection = await asyncpg.connect(postgres.url)
    await connection.execute("UPDATE conversations SET created_at = now() - interval '31 days'")
    await connection.close()
    return session


def _check_conversation(worker: Worker) -> None:
    session = None
    for question in ("What is a node in ROS 2?", "What is a topic?"):
        session = worker.ask_in_session(question, session)
    assert worker.ask("GET", f"/sessions/{session}")[1]["turn_count"] == 2
    assert worker.ask("DELETE", f"/sessions/{session}")[0] == 204
    assert worker.ask("GET", f"/sessions/{session}")[0] == 404
