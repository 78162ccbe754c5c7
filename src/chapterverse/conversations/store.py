"""Conversations in Postgres: turns are stored, read as context, archived and purged.

The only module that imports asyncpg. Every failure is raised as `ConversationsUnavailable`. No connection is held
between two calls, so an answer that streams holds none.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID, uuid4

import asyncpg
import orjson

from chapterverse.book import edition_key
from chapterverse.conversations.clock import trusts_its_clock
from chapterverse.conversations.migrations import migrate
from chapterverse.conversations.turns import AskedQuestion, SearchRecord, SessionSummary, Turn
from chapterverse.errors import ConversationsUnavailable
from chapterverse.models import ConversationThread, Feedback, FeedbackKept, FeedbackRequest, Message

_log = logging.getLogger(__name__)
T = TypeVar("T")

UNIT_SECONDS = 5.0  # one unit of work, connecting included (SPEC 7)
JOB_SECONDS = 60.0  # a clean-up, which no request waits for
RETRIES = 2  # on a new connection, after one was lost
REST_SECONDS = 3.0  # pause after a failure, so that not every question waits for an unavailable database
POOL_SIZE = 5  # units are short; the embedded server accepts 50 connections of all workers together
IDLE_SECONDS = 60.0  # an idle connection is closed after this time, so that a serverless Postgres can sleep
REPORTED = 100_000  # the maximum of questions that a report reads
THREAD_MESSAGES = 50  # the last messages that a thread shows (SPEC 2.3)

_ARCHIVE_LOCK, _PURGE_LOCK = 0x_C4A9_0002, 0x_C4A9_0003  # any numbers, the same in every version
# Options of other drivers; asyncpg would send them as server settings, which servers refuse. `_open` learns of others.
_FOREIGN_OPTIONS = {"pgbouncer", "channel_binding", "connect_timeout", "connection_limit", "pool_timeout"}
# The connection failed, not the work: it is tried again on a new one.
_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
_FIXES = {
    asyncpg.InvalidAuthorizationSpecificationError: "It refuses the user or password in DATABASE_URL.",
    asyncpg.InvalidCatalogNameError: "It has no database of the name in DATABASE_URL.",
    asyncpg.InsufficientPrivilegeError: "Its user needs more rights: GRANT CREATE ON SCHEMA public TO the user.",
    asyncpg.ReadOnlySQLTransactionError: "It can only be read: DATABASE_URL must name the primary server.",
    asyncpg.ProtocolViolationError: "Poolers refuse options in DATABASE_URL that they do not know: remove them.",
}
# What asyncpg raises if a connection is closed during a call, or if the server is not Postgres.
_CONFUSED = (AttributeError, LookupError, ValueError)


class Conversations:
    """The conversations of a database.

    `address` is its URL, or a function that starts a server and returns its URL. `lost` returns a message if new data
    would be lost: an embedded server keeps running when its files are removed.

    The constructor does not connect. The first call opens the pool and runs the migrations. After a lost connection the
    pool is opened again, which also restarts an embedded server. After a failure all calls fail at once for
    `REST_SECONDS`; then one call tries again. `probe` always tries."""

    def __init__(
        self, address: str | Callable[[], Awaitable[str]], lost: Callable[[], str | None] = lambda: None
    ) -> None:
        self._address = address
        self._lost = lost
        self._opening: asyncio.Task[Any] | None = None
        self._closed = False
        self._rests_until = 0.0  # 0 without a failure

    async def recent(self, session_id: str, messages: int) -> list[Turn]:
        """The turns with the last messages of a session, oldest first."""
        turns = (messages + 1) // 2
        if not turns or (session := _session(session_id)) is None:
            return []
        rows = await self._unit(lambda connection: connection.fetch(_RECENT, session, turns))
        return [_turn(row) for row in reversed(rows)]

    async def store(self, turn: Turn, *, continues: bool = False) -> None:
        """Store a turn. The same statement creates its thread, or takes it out of the archive. A turn that `continues`
        a thread is not stored if the thread was deleted meanwhile."""
        values = (*_values(turn), continues)
        if not _count(await self._unit(lambda connection: connection.execute(_STORE, *values))):
            raise ConversationsUnavailable("The session was deleted while it was answered.")
        self._require_home()

    async def thread(self, session_id: str) -> ConversationThread | None:
        """A session with its last messages, or None if it is unknown."""
        if (session := _session(session_id)) is None:
            return None
        rows = await self._unit(lambda connection: connection.fetch(_THREAD, session, THREAD_MESSAGES // 2))
        return _thread(rows) if rows else None

    async def sessions(self, limit: int) -> list[SessionSummary]:
        """The sessions with the most recent turns, newest first."""
        rows = await self._unit(lambda connection: connection.fetch(_SESSIONS, limit))
        return [SessionSummary(str(row[0]), *row[1:]) for row in rows]

    async def delete(self, session_id: str) -> bool:
        """Delete a session with all its turns. Returns whether it existed."""
        if (session := _session(session_id)) is None:
            return False
        return _count(await self._unit(lambda connection: connection.execute(_DELETE, session))) > 0

    async def set_topic(self, session_id: str, summary: str) -> None:
        """Set a session's topic, cut to 200 characters, unless it has one."""
        session = UUID(session_id)
        await self._unit(lambda connection: connection.execute(_SET_TOPIC, session, summary[:200]))

    async def rate(self, given: FeedbackRequest) -> FeedbackKept | None:
        """Store the feedback on a turn and replace earlier feedback. Returns None if there is no such turn."""
        session = UUID(given.session_id) if given.session_id else None
        values = (UUID(given.turn_id), session, given.rating, given.reason, given.comment)
        row = await self._unit(lambda connection: connection.fetchrow(_RATE, *values))
        self._require_home()
        return FeedbackKept(turn_id=given.turn_id, session_id=str(row["session_id"]), **_feedback(row)) if row else None

    async def asked(self, since: datetime, until: datetime) -> list[AskedQuestion]:
        """The last `REPORTED` questions of a period, oldest first."""
        fetch = lambda connection: connection.fetch(_ASKED, since, until, REPORTED)  # noqa: E731
        rows = await self._unit(fetch, JOB_SECONDS)
        return [_asked(row) for row in reversed(rows)]

    async def rated(self, since: datetime, until: datetime) -> list[Turn]:
        """The last `REPORTED` rated turns of a period, oldest first."""
        fetch = lambda connection: connection.fetch(_RATED, since, until, REPORTED)  # noqa: E731
        return [_turn(row) for row in reversed(await self._unit(fetch, JOB_SECONDS))]

    async def archive_idle(self, after: timedelta = timedelta(hours=1)) -> int:
        """Archive threads without a turn in this time; returns how many. Only one worker at a time does it."""
        return sum(await self._job(_ARCHIVE_LOCK, after, _ARCHIVE))

    async def purge(self, older_than: timedelta) -> int:
        """Delete older turns, topics made of their questions, and empty threads, unless the clock is in doubt; returns
        how many turns."""
        purges = (_PURGE_TOPICS, _PURGE_TURNS, _PURGE_THREADS)
        changed = await self._job(_PURGE_LOCK, older_than, *purges, by_trusted_clock=True)
        return changed[1] if changed else 0

    async def probe(self) -> None:
        """Raise `ConversationsUnavailable` unless the database answers. On success other calls are tried again."""
        self._rests_until = min(self._rests_until, time.monotonic())
        await self._unit(lambda connection: connection.fetchval("SELECT 1"))
        self._require_home()

    def _require_home(self) -> None:
        if reason := self._lost():
            raise ConversationsUnavailable(reason)

    async def close(self) -> None:
        """Close all connections. Later calls fail."""
        self._closed = True
        opening, self._opening = self._opening, None
        if opening is None or _has_failed(opening):
            return
        opening.cancel()  # no effect on a pool that is open
        with contextlib.suppress(asyncio.CancelledError):
            pool = await opening
            try:
                async with asyncio.timeout(UNIT_SECONDS):
                    await pool.close()
            except (TimeoutError, *_LOST):
                pool.terminate()

    async def _job(self, lock: int, age: timedelta, *statements: str, by_trusted_clock: bool = False) -> list[int]:
        """Run the statements, unless another worker does so. Returns the number of rows that each one changed."""

        async def work(connection: Any) -> list[int]:
            async with connection.transaction():
                free = await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", lock)
                if not free or (by_trusted_clock and not await trusts_its_clock(connection)):
                    return []
                return [_count(await connection.execute(statement, age)) for statement in statements]

        return await self._unit(work, JOB_SECONDS)

    async def _unit(self, work: Callable[[Any], Awaitable[T]], seconds: float | None = None) -> T:
        """Do one unit of work on a connection, within a time limit. Units must be safe to repeat."""
        with _failures_translated():
            self._take_turn()
            try:
                result = await self._persist(work, seconds or UNIT_SECONDS)
            except asyncpg.DataError:  # an error in the work, not in the database
                raise
            except (TimeoutError, ConversationsUnavailable, *_LOST):
                self._rests_until = time.monotonic() + REST_SECONDS
                raise
            self._rests_until = 0.0
            return result

    def _take_turn(self) -> None:
        """Fail during the pause after a failure. After the pause one call at a time tries again."""
        now = time.monotonic()
        if now < self._rests_until:
            raise ConversationsUnavailable(
                "The conversations' database failed a moment ago. Try again soon.", retry_after=self._rests_until - now
            )
        if self._rests_until:
            self._rests_until = now + REST_SECONDS

    async def _persist(self, work: Callable[[Any], Awaitable[T]], seconds: float) -> T:
        opening = self._open()
        try:
            async with asyncio.timeout(seconds):
                for _ in range(RETRIES):
                    try:
                        return await _attempt(opening, work)
                    except _LOST as failure:
                        if isinstance(failure, asyncpg.DataError):  # an invalid value would fail again
                            raise
                        _log.info("trying again on a new connection after %s", type(failure).__name__)
                        self._forget(opening)
                        opening = self._open()
                return await _attempt(opening, work)
        except TimeoutError:
            self._forget(opening)  # the other connections to a server that does not answer are not used either
            raise

    def _open(self) -> "asyncio.Task[Any]":
        """The task that opens, or has opened, the pool; all calls share it."""
        if self._closed:
            raise ConversationsUnavailable("The conversations are closed.")
        if self._opening is None or _has_failed(self._opening):
            self._opening = asyncio.create_task(_open(self._address))
            self._opening.add_done_callback(_has_failed)  # retrieves the exception, even if no caller waits
        return self._opening

    def _forget(self, opening: "asyncio.Task[Any]") -> None:
        """Drop a pool with broken connections. Other calls that use it try again on a new one."""
        if opening.done() and not _has_failed(opening):
            opening.result().terminate()
            if self._opening is opening:
                self._opening = None


async def _attempt(opening: "asyncio.Task[Any]", work: Callable[[Any], Awaitable[T]]) -> T:
    try:
        # Opening continues after a caller's timeout, so that a slow start is not repeated.
        pool = await asyncio.shield(opening)
        async with pool.acquire(timeout=UNIT_SECONDS) as connection:
            try:
                return await work(connection)
            except (asyncio.CancelledError, *_CONFUSED, *_LOST):
                connection.terminate()  # otherwise releasing it waits for a server that may never answer
                raise
    except _CONFUSED as failure:
        if isinstance(failure, asyncpg.DataError):
            raise
        raise asyncpg.InterfaceError("the connection broke, or the server is not Postgres") from failure


def _has_failed(task: "asyncio.Task[Any]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


@contextlib.contextmanager
def _failures_translated() -> Iterator[None]:
    """Translate failures of the driver and the network."""
    try:
        yield
    except TimeoutError as failure:
        raise ConversationsUnavailable("The conversations' database did not answer in time.") from failure
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as failure:
        reason = type(failure).__name__
        fixes = [f" {fix}" for kind, fix in _FIXES.items() if isinstance(failure, kind)]
        message = f"The conversations' database is not available ({reason})." + "".join(fixes)
        raise ConversationsUnavailable(message, details={"reason": reason}) from failure


async def _open(address: str | Callable[[], Awaitable[str]]) -> Any:
    url = address if isinstance(address, str) else await address()
    left_out = _FOREIGN_OPTIONS
    try:
        while True:
            try:
                return await _open_pool(_read_address(url, left_out), foreign=isinstance(address, str))
            except asyncpg.UndefinedObjectError as failure:
                refused = [name for name, _ in _options(url) if re.search(rf"\b{re.escape(name)}\b", str(failure))]
                if not refused or left_out.issuperset(refused):
                    raise
                _log.warning("the database does not know %s in DATABASE_URL; it is left out", ", ".join(refused))
                left_out = left_out.union(refused)
    except ValueError:
        # Without the cause, because its text may contain the URL with the password.
        raise ConversationsUnavailable("DATABASE_URL is not a valid address.") from None


async def _open_pool(url: str, foreign: bool) -> Any:
    pool = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=POOL_SIZE,
        timeout=UNIT_SECONDS,
        max_inactive_connection_lifetime=IDLE_SECONDS,
        # There may be a pooler before a foreign server, which the address does not show. It may give each transaction
        # another server process, which does not have our prepared statements.
        statement_cache_size=0 if foreign else 100,
        reset=_leave_as_is,
    )
    try:
        async with pool.acquire() as connection:
            await migrate(connection)
    except BaseException:
        pool.terminate()
        raise
    return pool


async def _leave_as_is(_: Any) -> None:
    """Units leave no session state, so releasing a connection needs no round trip."""


def _read_address(url: str, left_out: Collection[str] = _FOREIGN_OPTIONS) -> str:
    """The URL without options for other drivers."""
    kept = urlencode([(name, value) for name, value in _options(url) if name not in left_out])
    return urlsplit(url)._replace(query=kept).geturl()


def _options(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query, keep_blank_values=True)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _session(session_id: str) -> UUID | None:
    """The id as a UUID; None if it is not one."""
    try:
        return UUID(session_id)
    except ValueError:
        return None


def _count(command_tag: str) -> int:
    return int(command_tag.rpartition(" ")[2])


def _values(turn: Turn) -> tuple[Any, ...]:
    """The parameters of `_STORE`. The id is made here, so that a retry does not store the turn twice."""
    return (
        UUID(turn.turn_id) if turn.turn_id else uuid4(),
        UUID(turn.session_id),
        turn.query,
        turn.response,
        orjson.dumps(turn.sources).decode(),
        turn.mode,
        turn.selected_text,
        turn.chunks_retrieved,
        turn.latency_ms,
        turn.confidence,
        turn.status,
        turn.standalone_query,
        orjson.dumps(turn.searches).decode(),
        turn.evidence,
        orjson.dumps(turn.metadata).decode(),
    )


def _turn(row: Any) -> Turn:
    searches = (
        SearchRecord(
            **search
            | {
                "searched_at": datetime.fromisoformat(search["searched_at"]),
                "editions": tuple(search.get("editions", ())),
            }
        )
        for search in orjson.loads(row["searches"])
    )
    fields = {name: value for name, value in row.items() if name not in ("id", *Feedback.model_fields)}
    return Turn(
        **fields
        | {
            "turn_id": str(row["id"]),
            "feedback": Feedback(**_feedback(row)) if row["rating"] else None,
            "session_id": str(row["session_id"]),
            "sources": tuple(orjson.loads(row["sources"])),
            "searches": tuple(searches),
            "evidence": tuple(row["evidence"]),
        }
    )


def _asked(row: Any) -> AskedQuestion:
    filters, searched, cited = (orjson.loads(value) if value else None for value in row[11:])
    editions = tuple(edition_key(edition["book"], edition["version"]) for edition in cited or searched or ())
    return replace(AskedQuestion(str(row[0]), str(row[1]), *row[2:11]), filters=filters, editions=editions)


def _feedback(row: Any) -> dict[str, Any]:
    return {name: row[name] for name in ("rating", "reason", "rated_at")} | {"comment": row["comment"] or ""}


def _thread(rows: list[Any]) -> ConversationThread:
    """A thread from rows with one turn each, newest first. A thread without turns has one row."""
    messages: list[Message] = []
    for row in reversed(rows):
        if row["answered_at"] is None:
            continue
        answered_at = row["answered_at"]
        asked_at = answered_at - timedelta(milliseconds=row["latency_ms"])
        if messages:  # times never go back: two questions may be asked at once, and a clock may be set back
            asked_at, answered_at = (max(at, messages[-1].timestamp) for at in (asked_at, answered_at))
        messages.append(Message(role="user", content=row["query"], timestamp=asked_at))
        messages.append(
            Message(
                role="assistant",
                content=row["response"],
                timestamp=answered_at,
                confidence=row["confidence"],
                searches=orjson.loads(row["searches"]),
                turn_id=str(row["id"]),
                feedback=Feedback(**_feedback(row)) if row["rating"] else None,
            )
        )
    first = rows[0]
    return ConversationThread(
        thread_id=str(first["thread_id"]),
        messages=messages,
        created_at=first["created_at"],
        updated_at=first["updated_at"],
        topic_summary=first["topic_summary"],
        metadata=orjson.loads(first["metadata"]),
        turn_count=first["turn_count"],
        archived=first["archived_at"] is not None,
    )


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_TURN = """
SELECT id, session_id, query, response, sources, mode, selected_text, chunks_retrieved, latency_ms, confidence, status,
       standalone_query, searches, evidence, created_at, rating, reason, comment, rated_at
FROM conversations"""

_RECENT = f"{_TURN} WHERE session_id = $1 ORDER BY position DESC LIMIT $2"

_RATED = f"""{_TURN} WHERE rating IS NOT NULL AND created_at >= $1 AND created_at < $2
ORDER BY position DESC LIMIT $3"""

_ASKED = """
SELECT id, session_id, query, standalone_query, mode, status, confidence, created_at, rating, reason, comment,
       searches #> '{0,filters}' AS filters, searches #> '{0,editions}' AS searched,
       (SELECT jsonb_agg(DISTINCT jsonb_build_object('book', cited -> 'book', 'version', cited -> 'version'))
        FROM jsonb_array_elements(sources) AS cited WHERE cited ? 'book') AS cited
FROM conversations WHERE created_at >= $1 AND created_at < $2 ORDER BY position DESC LIMIT $3"""

_RATE = """
UPDATE conversations SET rating = $3, reason = $4, comment = NULLIF($5, ''), rated_at = clock_timestamp()
WHERE id = $1 AND ($2::uuid IS NULL OR session_id = $2)
RETURNING session_id, rating, reason, comment, rated_at"""

# The turn's position is assigned after the thread's row is locked, so turns keep their order if the clock is set back.
_STORE = """
WITH thread AS (
    INSERT INTO conversation_threads AS known (thread_id, metadata)
    SELECT $2, $15 WHERE NOT $16 OR EXISTS (SELECT 1 FROM conversation_threads WHERE thread_id = $2)
    ON CONFLICT (thread_id) DO UPDATE
    SET updated_at = clock_timestamp(), archived_at = NULL, metadata = known.metadata || excluded.metadata
    RETURNING thread_id
)
INSERT INTO conversations (id, session_id, query, response, sources, mode, selected_text, chunks_retrieved, latency_ms,
                           confidence, status, standalone_query, searches, evidence)
SELECT $1, thread_id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14 FROM thread
ON CONFLICT (id) DO UPDATE SET id = EXCLUDED.id"""  # a repeated turn changes nothing, but is counted

_THREAD = """
SELECT t.thread_id, t.created_at, t.updated_at, t.topic_summary, t.metadata, t.archived_at,
       (SELECT count(*) FROM conversations WHERE session_id = t.thread_id) AS turn_count,
       c.id, c.query, c.response, c.confidence, c.latency_ms, c.searches, c.created_at AS answered_at,
       c.rating, c.reason, c.comment, c.rated_at
FROM conversation_threads t
LEFT JOIN LATERAL (
    SELECT * FROM conversations WHERE session_id = t.thread_id ORDER BY position DESC LIMIT $2
) c ON true
WHERE t.thread_id = $1 ORDER BY c.position DESC"""

_SESSIONS = """
SELECT t.thread_id, t.updated_at, (SELECT count(*) FROM conversations WHERE session_id = t.thread_id), t.topic_summary,
  (SELECT query FROM conversations WHERE session_id = t.thread_id ORDER BY position LIMIT 1)
FROM conversation_threads t ORDER BY t.updated_at DESC, t.thread_id LIMIT $1"""

_DELETE = "DELETE FROM conversation_threads WHERE thread_id = $1"

_SET_TOPIC = "UPDATE conversation_threads SET topic_summary = $2 WHERE thread_id = $1 AND topic_summary IS NULL"

_ARCHIVE = """
UPDATE conversation_threads SET archived_at = clock_timestamp()
WHERE archived_at IS NULL AND updated_at < clock_timestamp() - $1::interval"""

# In one transaction: `now()` is the same in all three. The next turn of a thread sets its topic again.
_PURGE_TOPICS = """
UPDATE conversation_threads SET topic_summary = NULL WHERE topic_summary IS NOT NULL
AND thread_id IN (SELECT session_id FROM conversations WHERE created_at < now() - $1::interval)"""

_PURGE_TURNS = "DELETE FROM conversations WHERE created_at < now() - $1::interval"

_PURGE_THREADS = """
DELETE FROM conversation_threads t WHERE updated_at < now() - $1::interval
AND NOT EXISTS (SELECT 1 FROM conversations WHERE session_id = t.thread_id)"""
