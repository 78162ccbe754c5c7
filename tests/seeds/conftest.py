"""The real server with the example book, a real index, a real Postgres and a stub of Gemini."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from chapterverse.settings import Settings
from tests.llm_stub import LlmStub, Quotes, serving_llm
from tests.postgres_fixture import named
from tests.served import Served, serve


@dataclass(frozen=True)
class World:
    """A running server, the model behind it, and its database."""

    server: Served
    llm: LlmStub
    database_url: str
    settings: Settings

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = self.server.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    def get(self, path: str) -> dict[str, Any]:
        answer = self.server.http.get(path)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        async def fetch() -> list[dict[str, Any]]:
            connection = await asyncpg.connect(self.database_url)
            try:
                return [dict(row) for row in await connection.fetch(sql, *values)]
            finally:
                await connection.close()

        return asyncio.run(fetch())


@pytest.fixture(scope="session")
def seeds_database(postgres_url: str) -> str:
    async def make() -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("CREATE DATABASE seeds TEMPLATE migrated")
        await connection.close()

    asyncio.run(make())
    return named(postgres_url, "seeds")


@pytest.fixture(scope="session")
def seeds_world(example_home: Path, seeds_database: str) -> Iterator[World]:
    with serving_llm(gemini=True) as llm:
        settings = Settings.load(
            chapterverse_home=example_home,
            database_url=seeds_database,
            gemini_api_key="AIza-of-the-tests",
            gemini_model="gemini-2.0-flash",
            gemini_base_url=llm.url,
            api_rate_limit=100_000,
        )
        with serve(settings) as server:
            yield World(server, llm, seeds_database, settings)


@pytest.fixture
def world(seeds_world: World) -> World:
    """The shared server, with a model that quotes the first sentences of the passages."""
    seeds_world.llm.script.clear()
    seeds_world.llm.requests.clear()
    seeds_world.llm.usual = Quotes(3)
    return seeds_world
