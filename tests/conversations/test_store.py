import asyncio
import inspect
import os
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.conversations import migrations, store
from chapterverse.conversations.postgres import EmbeddedPostgres
from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import SearchRecord, Turn
from chapterverse.errors import ConversationsUnavailable
from chapterverse.models import FeedbackRequest
from tests.postgres_fixture import named

pytestmark = pytest.mark.slow

FULL = Turn(
    session_id="",
    query="And for a “service”? 🤖",
    response='It\'s a "call"; DROP TABLE conversations; -- \\ 日本語 [1].',
    sources=({"source_url": "https://book/a#b", "quote": "naïve ' \" \\", "rank": 1, "relevance_score": 0.5},),
    mode="selected_text",
    selected_text="  line one\n\tline two  ",
    chunks_retrieved=5,
    latency_ms=1234.5,
    confidence=0.75,
    status="truncated",
    standalone_query="What is a ROS 2 service?",
    searches=(
        SearchRecord("ROS 2 service", 5, 0.625, datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
        SearchRecord("nothing", 0, None, datetime(2026, 1, 2, tzinfo=UTC)),
    ),
    evidence=("chunk-1", 'chunk,2 "quoted"'),
)


def new_session() -> str:
    return str(uuid4())


def ask(session: str, number: int = 1) -> Turn:
    return Turn(session, f"question {number}", f"answer {number}", confidence=0.5, latency_ms=1000)


async def execute(url: str, statement: str, *values: object) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement, *values)
    await connection.close()


async def fetch(url: str, statement: str, *values: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(statement, *values))
    finally:
        await connection.close()


@pytest.fixture
async def conversations(database_url: str) -> AsyncIterator[Conversations]:
    opened = Conversations(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def server(cluster: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A separate server that the test can stop, freeze and kill."""
    own = EmbeddedPostgres(cluster, fast=True)
    yield own
    await own.stop()


def processes(cluster: Path) -> list[int]:
    """The server and its sessions: all processes whose working folder is the cluster."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").samefile(cluster / "data"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def test_stored_turn_is_returned_unchanged(conversations: Conversations) -> None:
    turn = replace(FULL, session_id=new_session())
    before = datetime.now(UTC)
    await conversations.store(turn)
    [kept] = await conversations.recent(turn.session_id, 10)
    assert replace(kept, created_at=None) == turn
    assert kept.created_at and before - timedelta(seconds=1) < kept.created_at < datetime.now(UTC) + timedelta(
        seconds=1
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\x00")), similarity=st.floats(0, 1))
async def test_any_text_without_nul_is_returned_unchanged(
    conversations: Conversations, text: str, similarity: float
) -> None:
    session = new_session()
    source = {"quote": text, text: similarity}
    await conversations.store(Turn(session, text, text, sources=(source,), evidence=(text,)))
    [kept] = await conversations.recent(session, 2)
    assert (kept.query, kept.response, kept.sources, kept.evidence) == (text, text, (source,), (text,))


async def test_turn_that_cannot_be_stored_is_an_error_and_changes_nothing(conversations: Conversations) -> None:
    session = new_session()
    await conversations.store(ask(session))
    for bad in ("\x00", "\ud800"):
        with pytest.raises(ConversationsUnavailable):
            await conversations.store(Turn(session, bad, "answer"))
    assert [turn.query for turn in await conversations.recent(session, 10)] == ["question 1"]


async def test_recent_gives_the_last_messages_oldest_first(conversations: Conversations) -> None:
    session = new_session()
    for number in range(1, 8):
        await conversations.store(ask(session, number))
    await conversations.store(ask(new_session(), 99))

    async def numbers(messages: int) -> list[int]:
        return [int(turn.query.split()[1]) for turn in await conversations.recent(session, messages)]

    assert await numbers(10) == [3, 4, 5, 6, 7]
    assert await numbers(3) == [6, 7]
    assert await numbers(100) == [1, 2, 3, 4, 5, 6, 7]
    assert await numbers(0) == []


async def test_an_unknown_session_is_empty(conversations: Conversations) -> None:
    for unknown in (new_session(), "no uuid", ""):
        assert await conversations.recent(unknown, 10) == []
        assert await conversations.thread(unknown) is None
        assert await conversations.delete(unknown) is False


async def test_a_thread_shows_the_last_fifty_messages_in_order(conversations: Conversations) -> None:
    session = new_session()
    for number in range(1, 28):
        await conversations.store(ask(session, number))
    thread = await conversations.thread(session)
    assert thread
    assert (thread.thread_id, thread.turn_count, thread.archived, thread.metadata) == (session, 27, False, {})
    assert [message.role for message in thread.messages] == ["user", "assistant"] * 25
    assert thread.messages[0].content == "question 3"
    assert thread.messages[-1].content == "answer 27"
    assert (thread.messages[-2].confidence, thread.messages[-1].confidence) == (None, 0.5)
    times = [message.timestamp for message in thread.messages]
    assert times == sorted(times)
    assert thread.messages[1].timestamp - thread.messages[0].timestamp == timedelta(seconds=1)
    assert thread.created_at <= thread.updated_at <= times[-1] <= thread.updated_at + timedelta(seconds=1)


async def test_concurrent_turns_are_all_stored_in_one_order(database_url: str) -> None:
    session = new_session()
    workers = [Conversations(database_url) for _ in range(3)]
    await asyncio.gather(*(workers[n % 3].store(ask(session, n)) for n in range(30)))
    rows = await fetch(database_url, "SELECT query FROM conversations ORDER BY position")
    assert len(rows) == 30
    kept = await workers[0].recent(session, 60)
    assert [turn.query for turn in kept] == [row["query"] for row in rows], "times and positions give the same order"
    thread = await workers[1].thread(session)
    assert thread and thread.turn_count == 30
    for worker in workers:
        await worker.close()


async def test_turns_with_equal_times_keep_their_order(conversations: Conversations, database_url: str) -> None:
    session = new_session()
    for number in range(1, 5):
        await conversations.store(ask(session, number))
    await execute(database_url, "UPDATE conversations SET created_at = '2026-01-01'")
    assert [turn.query[-1] for turn in await conversations.recent(session, 6)] == ["2", "3", "4"]
    thread = await conversations.thread(session)
    assert thread and [message.content[-1] for message in thread.messages[::2]] == ["1", "2", "3", "4"]


async def test_clock_set_back_does_not_change_the_order(conversations: Conversations, database_url: str) -> None:
    session = new_session()
    await conversations.store(ask(session, 1))
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE conversations SET created_at = created_at + interval '1 day'")
    await connection.close()
    await conversations.store(ask(session, 2))
    assert [turn.query for turn in await conversations.recent(session, 10)] == ["question 1", "question 2"]
    thread = await conversations.thread(session)
    assert thread is not None
    assert [message.content for message in thread.messages if message.role == "user"] == ["question 1", "question 2"]
    times = [message.timestamp for message in thread.messages]
    assert times == sorted(times)
    assert (await conversations.sessions(1))[0].first_question == "question 1"


async def test_an_idle_thread_is_archived_until_its_next_turn(conversations: Conversations) -> None:
    session = new_session()
    await conversations.store(ask(session))
    assert await conversations.archive_idle() == 0
    assert await conversations.archive_idle(timedelta(0)) == 1
    assert await conversations.archive_idle(timedelta(0)) == 0
    asleep = await conversations.thread(session)
    assert asleep and asleep.archived and asleep.turn_count == 1
    await conversations.store(ask(session, 2))
    awake = await conversations.thread(session)
    assert awake and not awake.archived and awake.turn_count == 2 and awake.updated_at > asleep.updated_at
    assert awake.created_at == asleep.created_at


async def test_purge_removes_old_turns_and_empty_threads_only(conversations: Conversations, database_url: str) -> None:
    old, mixed, young = new_session(), new_session(), new_session()
    for session in (old, mixed):
        await conversations.store(ask(session))
    await execute(database_url, "UPDATE conversations SET created_at = created_at - interval '31 days'")
    await execute(database_url, "UPDATE conversation_threads SET updated_at = updated_at - interval '31 days'")
    for session in (mixed, young):
        await conversations.store(ask(session, 2))
    assert await conversations.purge(timedelta(days=30)) == 2
    assert await conversations.thread(old) is None
    for session in (mixed, young):
        thread = await conversations.thread(session)
        assert thread and [message.content for message in thread.messages] == ["question 2", "answer 2"]
    assert await conversations.purge(timedelta(days=30)) == 0


async def test_purged_question_does_not_stay_as_the_topic(conversations: Conversations, database_url: str) -> None:
    old, young = new_session(), new_session()
    for session in (old, young):
        await conversations.store(ask(session))
        await conversations.set_topic(session, "question 1")
    await execute(
        database_url, "UPDATE conversations SET created_at = created_at - interval '31 days' WHERE session_id = $1", old
    )
    await conversations.store(ask(old, 2))
    assert await conversations.purge(timedelta(days=30)) == 1
    topics = {entry.thread_id: entry.topic_summary for entry in await conversations.sessions(2)}
    assert topics == {old: None, young: "question 1"}


async def test_job_locked_by_another_worker_is_skipped(conversations: Conversations, database_url: str) -> None:
    await conversations.store(ask(new_session()))
    other = await asyncpg.connect(database_url)
    await other.execute("SELECT pg_advisory_lock($1)", store._PURGE_LOCK)
    assert await conversations.purge(timedelta(0)) == 0
    assert await conversations.archive_idle(timedelta(0)) == 1
    await other.close()
    assert await conversations.purge(timedelta(0)) == 1


async def test_sessions_are_listed_newest_first_with_their_topic(conversations: Conversations) -> None:
    first, second, third = (new_session() for _ in range(3))
    for session in (first, second, third, first):
        await conversations.store(ask(session))
    await conversations.set_topic(first, "x" * 300)
    listed = await conversations.sessions(2)
    assert [(entry.thread_id, entry.turn_count, entry.topic_summary) for entry in listed] == [
        (first, 2, "x" * 200),
        (third, 1, None),
    ]
    assert listed[0].updated_at > listed[1].updated_at


async def test_deleted_session_does_not_come_back_with_a_late_answer(conversations: Conversations) -> None:
    session = new_session()
    await conversations.store(ask(session))
    await conversations.store(ask(session, 2), continues=True)
    assert await conversations.delete(session)
    with pytest.raises(ConversationsUnavailable, match="deleted"):
        await conversations.store(ask(session, 3), continues=True)
    assert await conversations.thread(session) is None


async def test_delete_removes_a_session_and_no_other(conversations: Conversations, database_url: str) -> None:
    gone, kept = new_session(), new_session()
    for session in (gone, gone, kept):
        await conversations.store(ask(session))
    assert await conversations.delete(gone) is True
    assert await conversations.delete(gone) is False
    assert await conversations.thread(gone) is None
    rows = await fetch(database_url, "SELECT session_id::text FROM conversations")
    assert [row[0] for row in rows] == [kept]


async def test_indexes_are_those_of_the_specification(database_url: str) -> None:
    indexes = await fetch(database_url, "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
    definitions = {row[0]: row[1].partition(" USING btree ")[2] for row in indexes}
    assert definitions["idx_conversations_session_id"] == "(session_id)"
    assert definitions["idx_conversations_session_created"] == "(session_id, created_at DESC)"
    assert definitions["idx_threads_updated"] == "(updated_at DESC)"
    assert definitions["idx_threads_created"] == "(created_at DESC)"


async def test_concurrent_migrations_run_once(postgres_url: str) -> None:
    await execute(postgres_url, "CREATE DATABASE fresh")
    url = named(postgres_url, "fresh")
    workers = [Conversations(url) for _ in range(4)]
    await asyncio.gather(*(worker.probe() for worker in workers))
    await asyncio.gather(*(worker.close() for worker in workers))
    rows = await fetch(url, "SELECT version, checksum FROM schema_migrations ORDER BY version")
    assert [row["version"] for row in rows] == [1, 2, 3]

    await execute(url, "UPDATE schema_migrations SET checksum = 'another'")
    changed = Conversations(url)
    with pytest.raises(ConversationsUnavailable, match="migration 0001"):
        await changed.probe()
    await changed.close()
    await execute(postgres_url, "DROP DATABASE fresh")


async def test_connections_are_idle_between_calls_and_none_is_made_before(database_url: str) -> None:
    Conversations("postgresql://nobody@[::1]:1/none")
    conversations = Conversations(database_url)
    await asyncio.gather(*(conversations.probe() for _ in range(20)))
    busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'"
    all_open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    assert (await fetch(database_url, busy))[0][0] == 1, "only the connection of this query is active"
    assert (await fetch(database_url, all_open))[0][0] <= store.POOL_SIZE + 1
    await conversations.close()
    await conversations.close()
    with pytest.raises(ConversationsUnavailable, match="closed"):
        await conversations.probe()


async def test_hung_server_times_out(server: EmbeddedPostgres, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversations = Conversations(await server.start())
    session = new_session()
    await conversations.store(ask(session))
    monkeypatch.setattr(store, "UNIT_SECONDS", 0.5)
    hung = processes(cluster)
    assert len(hung) > 2
    for pid in hung:
        os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(2):  # on an open connection, and on one that cannot be opened
            conversations._rests_until = 0.0
            began = time.monotonic()
            with pytest.raises(ConversationsUnavailable, match="in time"):
                async with asyncio.timeout(30):
                    await conversations.recent(session, 10)
            assert time.monotonic() - began < 4
    finally:
        for pid in hung:
            os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    await conversations.probe()
    assert len(await conversations.recent(session, 10)) == 1
    await conversations.close()


async def test_restarted_server_is_used_again(server: EmbeddedPostgres) -> None:
    conversations = Conversations(await server.start())
    session = new_session()
    await conversations.store(ask(session))
    await server.stop()
    for _ in range(2):
        with pytest.raises(ConversationsUnavailable):
            await conversations.recent(session, 10)
    await server.start()
    await conversations.probe()
    assert len(await conversations.recent(session, 10)) == 1
    await conversations.close()


async def test_unreachable_database_is_not_tried_again_for_a_while(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, address = 0, database_url.replace("/test_", "/no_test_")

    async def find() -> str:
        nonlocal asked
        asked += 1
        if address != database_url:
            raise ConversationsUnavailable("nobody there")
        return address

    monkeypatch.setattr(store, "REST_SECONDS", 1.5)
    conversations = Conversations(find)
    session = new_session()
    for _ in range(20):
        with pytest.raises(ConversationsUnavailable) as failure:
            await conversations.store(ask(session))
    assert asked == 1, "after the first failure no call connects"
    assert failure.value.retry_after is not None and 0 < failure.value.retry_after <= 1.5
    with pytest.raises(ConversationsUnavailable):
        await conversations.probe()
    assert asked == 2, "but a probe connects"
    address = database_url
    with pytest.raises(ConversationsUnavailable):
        await conversations.store(ask(session))
    async with asyncio.timeout(60):
        while not await stored(conversations, session):  # noqa: ASYNC110 - set by another task
            await asyncio.sleep(0.02)
    assert asked == 3
    conversations._rests_until = time.monotonic() + 60
    await conversations.probe()
    assert await stored(conversations, session), "a successful probe ends the wait"
    await conversations.close()


async def stored(conversations: Conversations, session: str) -> bool:
    try:
        await conversations.store(ask(session))
    except ConversationsUnavailable:
        return False
    return True


async def test_only_one_call_checks_a_hung_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "UNIT_SECONDS", 0.2)
    asked = 0

    async def hang() -> str:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()
        return ""

    conversations = Conversations(hang)
    assert not await stored(conversations, new_session())
    conversations._rests_until = time.monotonic()
    monkeypatch.setattr(store, "UNIT_SECONDS", 2.0)
    tries = await asyncio.gather(*(timed(stored(conversations, new_session())) for _ in range(10)))
    assert sum(seconds > 1.5 for seconds in tries) == 1
    await conversations.close()


async def timed(call: Awaitable[object]) -> float:
    began = time.monotonic()
    await call
    return time.monotonic() - began


async def test_turn_that_cannot_be_stored_does_not_block_others(conversations: Conversations) -> None:
    session = new_session()
    with pytest.raises(ConversationsUnavailable):
        await conversations.store(Turn(session, "\x00", "answer"))
    assert await stored(conversations, session)


async def test_killed_embedded_server_is_restarted_by_the_next_call(cluster: Path) -> None:
    server = EmbeddedPostgres(cluster)  # durable
    conversations = Conversations(server.start)
    session = new_session()
    await conversations.store(ask(session, 1))
    for pid in processes(cluster):
        os.kill(pid, signal.SIGKILL)
    await conversations.store(ask(session, 2))
    assert [turn.query for turn in await conversations.recent(session, 10)] == ["question 1", "question 2"]
    await conversations.close()
    await server.stop()


async def test_terminated_connections_are_replaced(conversations: Conversations, database_url: str) -> None:
    session = new_session()
    await asyncio.gather(*(conversations.store(ask(session, number)) for number in range(20)))
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    for _ in range(3):
        calls = [asyncio.create_task(conversations.recent(session, 60)) for _ in range(20)]
        await fetch(database_url, f"{others} AND pid <> pg_backend_pid()")
        assert [len(turns) for turns in await asyncio.gather(*calls)] == [20] * 20


async def test_cancelled_call_returns_its_connection(conversations: Conversations) -> None:
    await conversations.probe()
    for _ in range(store.POOL_SIZE + 1):
        waiting = asyncio.create_task(conversations._unit(lambda connection: connection.execute("SELECT pg_sleep(60)")))
        probe = asyncio.create_task(conversations.probe())
        await probe
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await conversations.probe()


async def test_storing_the_same_turn_twice_stores_it_once(conversations: Conversations, database_url: str) -> None:
    turn = replace(ask(new_session()), turn_id=str(uuid4()))
    for _ in range(2):
        await conversations.store(turn)
    assert len(await fetch(database_url, "SELECT 1 FROM conversations")) == 1


def every_failure() -> list[type[Exception]]:
    ours = [kind for _, kind in inspect.getmembers(asyncpg.exceptions, inspect.isclass)]
    raised = [kind for kind in ours if issubclass(kind, Exception) and not issubclass(kind, Warning)]
    assert len(raised) > 200
    return [*raised, OSError, ConnectionRefusedError, FileNotFoundError, TimeoutError, socket.gaierror, ssl.SSLError]


async def test_driver_and_network_errors_are_translated(conversations: Conversations) -> None:
    for kind in every_failure():

        async def fail(_: object, kind: type[Exception] = kind) -> None:
            raise kind("a secret")

        conversations._rests_until = 0.0
        with pytest.raises(ConversationsUnavailable) as failure:
            await conversations._unit(fail)
        assert "secret" not in f"{failure.value.message} {failure.value.details}", kind
    await conversations.probe()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hunter2@127.0.0.1:1/none",
        "postgresql://user:hunter2@/none?host=/no/such/folder",
        "postgresql://user:hunter2@no-such-host.invalid/none",
        "postgresql://user:hunter2@a..b/none",
        "postgresql://user:hunter2@host:port/none",
        "postgresql://user:hunter2@[::1/none",
        "postgresql://user:hunter2@127.0.0.1/none?sslmode=nonsense",
        "postgresql://user:hunter2@127.0.0.1/none?sslmode=verify-full&sslrootcert=/no/such/file",
        "mysql://user:hunter2@127.0.0.1/none",
    ],
)
async def test_error_of_an_invalid_address_does_not_contain_the_password(url: str) -> None:
    conversations = Conversations(url)
    with pytest.raises(ConversationsUnavailable) as failure:
        await conversations.probe()
    error_text, cause = str(failure.value), failure.value.__cause__
    assert "hunter2" not in f"{error_text} {failure.value.details} {cause}"
    await conversations.close()


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("postgresql://u:p%40@h:5432/d", "postgresql://u:p%40@h:5432/d"),
        (
            "postgresql://u@ep-cool-1-pooler.eu.neon.tech/d?sslmode=require&channel_binding=require",
            "postgresql://u@ep-cool-1-pooler.eu.neon.tech/d?sslmode=require",
        ),
        ("postgres://u@h/d?pgbouncer=true", "postgres://u@h/d"),
        ("postgresql://u@/d?host=%2Ftmp%2Fa+b", "postgresql://u@/d?host=%2Ftmp%2Fa+b"),
    ],
)
def test_unsupported_options_are_removed_from_the_address(url: str, read: str) -> None:
    assert store._read_address(url) == read


async def test_options_that_the_server_does_not_know_are_left_out(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    conversations = Conversations(f"{database_url}&schema=public&keepalives=1&application_name=book")
    await conversations.probe()
    assert "schema" in caplog.text and "keepalives" in caplog.text and "application_name" not in caplog.text
    await conversations.close()


async def test_error_of_a_wrong_setup_says_what_to_do(postgres_url: str) -> None:
    await execute(postgres_url, "CREATE ROLE reader LOGIN")
    await execute(postgres_url, "CREATE DATABASE frozen")
    await execute(postgres_url, "ALTER ROLE reader SET default_transaction_read_only = on")
    as_reader = postgres_url.replace("chapterverse@", "reader@")
    for url, fix in (
        (named(as_reader, "frozen"), "must name the primary server"),
        (named(as_reader, "frozen") + "&default_transaction_read_only=off", "GRANT CREATE"),
        (named(as_reader, "nowhere"), "no database of the name"),
        (postgres_url.replace("chapterverse@", "stranger@"), "refuses the user"),
    ):
        conversations = Conversations(url)
        with pytest.raises(ConversationsUnavailable, match=fix):
            await conversations.probe()
        await conversations.close()
    await execute(postgres_url, "DROP DATABASE frozen")
    await execute(postgres_url, "DROP ROLE reader")


async def test_external_server_gets_no_prepared_statements(database_url: str) -> None:
    conversations = Conversations(database_url)
    session = new_session()
    for number in range(3):
        await conversations.store(ask(session, number))
    prepared = await conversations._unit(
        lambda connection: connection.fetchval(
            "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '\\_\\_asyncpg%'"
        )
    )
    assert prepared == 0
    await conversations.close()


async def test_feedback_is_stored_with_the_turn_and_purged_with_it(database_url: str) -> None:
    conversations = Conversations(database_url)
    session, turn = new_session(), str(uuid4())
    old, soon = datetime.now(UTC) - timedelta(days=40), datetime.now(UTC) + timedelta(hours=1)
    await conversations.store(replace(FULL, session_id=session, turn_id=turn))
    await conversations.store(ask(session))
    given = FeedbackRequest(turn_id=turn, rating="down", reason="wrong", comment="It is 42; DROP TABLE feedback")
    assert await conversations.rate(given.model_copy(update={"turn_id": str(uuid4())})) is None
    kept = await conversations.rate(given)
    assert kept and kept.session_id == session

    [rated] = await conversations.rated(old, soon)
    assert rated == replace(FULL, session_id=session, created_at=rated.created_at, feedback=rated.feedback)
    assert rated.feedback and (rated.feedback.reason, rated.feedback.comment) == ("wrong", given.comment)
    asked = await conversations.asked(old, soon)
    assert [(one.query, one.rating) for one in asked] == [(FULL.query, "down"), ("question 1", None)]
    assert asked[0].standalone_query == FULL.standalone_query
    assert await conversations.asked(old, old + timedelta(days=1)) == []

    await execute(database_url, "UPDATE conversations SET created_at = $2 WHERE id = $1", UUID(turn), old)
    assert await conversations.purge(timedelta(days=30)) == 1
    assert await conversations.rated(old - timedelta(days=1), soon) == [], "feedback is deleted with its turn"
    await conversations.close()


async def test_turns_from_before_the_feedback_migration_can_be_rated(postgres_url: str) -> None:
    """The migration is applied to a database with conversations."""
    url = named(postgres_url, "before_feedback")
    await execute(postgres_url, "CREATE DATABASE before_feedback")
    connection = await asyncpg.connect(url)
    earlier = migrations._migrations()[:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "_migrations", lambda: earlier)
        await migrations.migrate(connection)
    session, turn = uuid4(), uuid4()
    await connection.execute("INSERT INTO conversation_threads (thread_id) VALUES ($1)", session)
    await connection.execute(
        "INSERT INTO conversations (id, session_id, query, response) VALUES ($1, $2, 'q', 'a')", turn, session
    )
    await connection.close()
    conversations = Conversations(url)
    assert [one.feedback for one in await conversations.recent(str(session), 2)] == [None]
    assert await conversations.rate(FeedbackRequest(turn_id=str(turn), rating="up")) is not None
    await conversations.close()
