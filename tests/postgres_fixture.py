"""A real Postgres for tests: one cluster per run, whose migrated database is cloned for each test.

Register with `pytest_plugins = ["tests.postgres_fixture"]` in `tests/conftest.py`.
"""

import asyncio
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from chapterverse.conversations.migrations import migrate
from chapterverse.conversations.postgres import EmbeddedPostgres
from tests.index.places import memory_folder

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_root() -> Iterator[Path]:
    """A folder that other accounts can enter: Postgres does not run as root, and pytest's folders are private."""
    root = Path(tempfile.mkdtemp(prefix="cv-", dir=memory_folder(1 << 30)))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def cluster(postgres_root: Path) -> Path:
    """A directory of `EmbeddedPostgres` with a stopped cluster. Tests must leave it intact and stopped."""
    directory = postgres_root / "cluster"

    async def make() -> None:
        server = EmbeddedPostgres(directory, fast=True)
        url = await server.start()
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE DATABASE migrated")
        await connection.close()
        connection = await asyncpg.connect(named(url, "migrated"))
        await migrate(connection)
        await connection.close()
        await server.stop()

    asyncio.run(make())
    return directory


@pytest.fixture(scope="session")
def postgres_url(cluster: Path) -> Iterator[str]:
    """The server that tests share. It runs on a copy, because some tests stop and kill the original."""
    directory = cluster.with_name("shared")
    subprocess.run(["cp", "-a", str(cluster), str(directory)], check=True)
    server = EmbeddedPostgres(directory, fast=True)
    yield asyncio.run(server.start())
    asyncio.run(server.stop())


@pytest.fixture
async def database_url(postgres_url: str) -> AsyncIterator[str]:
    """A new database for the test, migrated and empty."""
    name = f"test_{next(_numbers)}"
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE migrated")
    yield named(postgres_url, name)
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


def named(url: str, database: str) -> str:
    """The URL of another database of the same server."""
    return url.replace("/postgres?", f"/{database}?")
