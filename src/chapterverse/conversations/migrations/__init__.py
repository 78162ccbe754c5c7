"""Migrations of the database's schema: plain SQL files, and the code that applies them.

Each file is applied once, in its own transaction, under a lock. A released file is never changed; a change of the
schema is a new file.
"""

import functools
import hashlib
import importlib.resources
from typing import Any

from chapterverse.errors import ConversationsUnavailable

_LOCK = 0x_C4A9_0001  # any number, the same in every version
_RECORD = """
CREATE TABLE schema_migrations (
    version integer PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)"""


async def migrate(connection: Any) -> None:
    """Bring the database of an asyncpg connection up to date. Concurrent calls are safe."""
    for version, statements, checksum in _migrations():
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            # Checked first: a role that may not create tables may use those that another role made.
            if await connection.fetchval("SELECT to_regclass('schema_migrations') IS NULL"):
                await connection.execute(_RECORD)
            applied = await connection.fetchval("SELECT checksum FROM schema_migrations WHERE version = $1", version)
            if applied is None:
                await connection.execute(statements)
                await connection.execute("INSERT INTO schema_migrations VALUES ($1, $2)", version, checksum)
            elif applied != checksum:
                raise ConversationsUnavailable(
                    f"The database was migrated with a different migration {version:04}; it may not fit this version."
                )


@functools.cache
def _migrations() -> tuple[tuple[int, str, str], ...]:
    """Version, SQL and checksum of each file, in order."""
    files = [file for file in importlib.resources.files(__name__).iterdir() if file.name.endswith(".sql")]
    texts = sorted((int(file.name[:4]), file.read_text("utf-8")) for file in files)
    return tuple((version, text, hashlib.sha256(text.encode()).hexdigest()) for version, text in texts)
