"""A server with scripted answers, and a Redis server."""

from collections.abc import Iterator

import pytest

from chapterverse.settings import Settings
from tests.redis_server import RedisServer
from tests.scripted import Scripted, without_engines
from tests.served import Served, free_port, serve


@pytest.fixture(scope="module")
def script() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def server(script: Scripted) -> Iterator[Served]:
    settings = Settings.load(api_rate_limit=10_000)
    with serve(settings, heartbeat=0.05, opening=without_engines(), answering=script) as served:
        yield served


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    server = RedisServer(free_port())
    server.start()
    yield server
    server.stop()
