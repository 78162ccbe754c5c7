"""Two hosts, one of them with three workers, share Postgres, Redis and Qdrant and have consistent state.

`tests/conversations/test_store.py` and `tests/conversations/test_housekeeping.py` test that one worker at a time purges
and that concurrent turns have one order.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chapterverse.conversations.migrations import _migrations
from chapterverse.settings import Settings
from tests.cli.process import chapterverse
from tests.contract.qdrant_server import qdrant_server
from tests.faults.processes import STARTING, Server, end, start
from tests.faults.worlds import fill
from tests.redis_server import RedisServer, needs_redis
from tests.scale.servers import Postgres, postgres_server
from tests.scale.worker_client import PATIENCE, Worker
from tests.served import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_redis]

LIMIT = 12  # requests a minute
CLIENTS = map(str, map(IPv4Address, itertools.count(0x_0A00_0001)))  # new clients, so that none reaches its rate limit
QUESTIONS = ["What is a node in ROS 2?", "What is a topic?", "What is a service?", "What is an action?"]


@dataclass(frozen=True)
class Hosts:
    """Two hosts and the services that they share."""

    workers: list[Worker]  # three of the first host, one of the second
    home: Path  # of the first
    postgres: Postgres
    shared: dict[str, Any]


@pytest.fixture(scope="module")
def hosts(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with ExitStack() as stack:
        homes = [tmp_path_factory.mktemp("host") for _ in range(2)]
        postgres = stack.enter_context(postgres_server(cluster, cluster.with_name("workers")))
        redis = RedisServer(free_port())
        redis.start()
        stack.callback(redis.stop)
        shared: dict[str, Any] = {
            "database_url": postgres.url,
            "redis_url": redis.url,
            "qdrant_url": stack.enter_context(qdrant_server()),
            "qdrant_collection_name": f"workers_{uuid4().hex}",
        }
        asyncio.run(fill(Settings.load(chapterverse_home=homes[0], **shared)))
        limits: dict[str, Any] = {"api_rate_limit": LIMIT, "trusted_proxies": "127.0.0.1"}
        servers = [start(home, "--workers", n, **shared, **limits) for home, n in zip(homes, "31", strict=True)]
        for server in servers:
            stack.callback(end, server)
        workers = [worker for server, n in zip(servers, (3, 1), strict=True) for worker in wait_for_workers(server, n)]
        for worker in workers:
            stack.callback(worker.close)
        yield Hosts(workers, homes[0], postgres, shared)


def wait_for_workers(server: Server, number: int) -> list[Worker]:
    """The workers of a server, once all are healthy."""
    server.wait_until_ready()
    deadline = time.monotonic() + STARTING
    while len(server.workers) < number:
        assert time.monotonic() < deadline, "not all workers started"
        time.sleep(0.05)
    workers = [Worker(server.url, pid) for pid in server.workers]
    for worker in workers:
        while not healthy(worker):
            assert time.monotonic() < deadline, f"{worker} is not healthy"
            time.sleep(0.1)
    return workers


def healthy(worker: Worker) -> bool:
    status, health = worker.ask("GET", "/health")
    return status == 200 and health["status"] == "healthy"


def counted_locally(hosts: Hosts) -> float:
    """Requests that workers counted locally because Redis timed out on a busy machine."""
    lines = [line for worker in hosts.workers for line in str(worker.ask("GET", "/metrics")[1]).splitlines()]
    return sum(float(line.split()[1]) for line in lines if line.startswith("chapterverse_rate_limit_fallbacks_total "))


def test_schema_is_created_once(hosts: Hosts) -> None:
    versions = [version for version, *_ in _migrations()]
    rows = hosts.postgres.ask("SELECT version FROM schema_migrations ORDER BY version")
    assert [row["version"] for row in rows] == versions
    for table in ("schema_migrations", "conversation_threads"):
        assert hosts.postgres.count_log_lines(f"CREATE TABLE {table}") == 1
    assert hosts.postgres.count_log_lines("already exists") == 0


def test_rate_limit_is_shared_by_all_workers(hosts: Hosts) -> None:
    for _ in range(5):
        client, before, began = next(CLIENTS), counted_locally(hosts), time.monotonic()

        def ask(worker: Worker, client: str = client) -> int:
            return worker.ask("POST", "/search", {"query": "node"}, client)[0]

        with ThreadPoolExecutor(10) as readers:
            statuses = Counter(readers.map(ask, hosts.workers * 5))
        # Tried again if it took so long that the first requests expired, or if Redis did not count all.
        if time.monotonic() - began < 50 and counted_locally(hosts) == before:
            break
    assert statuses == {200: LIMIT, 429: 4 * 5 - LIMIT}


def test_one_worker_probes_shared_services_for_all(hosts: Hosts) -> None:
    """All workers report the same latency, which is that of one probe."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with ThreadPoolExecutor(4) as askers:
            reported = list(askers.map(lambda worker: worker.ask("GET", "/health")[1]["services"], hosts.workers))
        times = {name: {services[name]["latency_ms"] for services in reported} for name in ("qdrant", "database")}
        if all(len(found) == 1 for found in times.values()):
            break
        assert time.monotonic() < deadline, times  # the requests never fell into the same probe period
        time.sleep(0.1)


def test_conversation_continues_on_any_worker(hosts: Hosts) -> None:
    session: str | None = None
    asked = []
    for turn, worker in enumerate(hosts.workers * 2):
        asked.append(f"{QUESTIONS[turn % len(QUESTIONS)]} ({turn})")
        session = worker.ask_in_session(asked[-1], session, next(CLIENTS))

    def ask_at_once(numbered: tuple[int, Worker]) -> str:
        question = f"{QUESTIONS[numbered[0]]} (at once, {numbered[0]})"
        assert numbered[1].ask_in_session(question, session, next(CLIENTS)) == session
        return question

    with ThreadPoolExecutor(4) as readers:
        at_once = set(readers.map(ask_at_once, enumerate(hosts.workers)))
    threads: list[Any] = [worker.ask("GET", f"/sessions/{session}")[1] for worker in hosts.workers]
    assert all(thread == threads[0] for thread in threads)
    kept = [message["content"] for message in threads[0]["messages"] if message["role"] == "user"]
    assert kept[:8] == asked
    assert set(kept[8:]) == at_once
    assert len(kept) == 12
    assert hosts.workers[-1].ask("DELETE", f"/sessions/{session}")[0] == 204
    assert [worker.ask("GET", f"/sessions/{session}")[0] for worker in hosts.workers] == [404] * 4


def test_all_workers_serve_a_newly_ingested_page(hosts: Hosts, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Gyroscope drift\n\nThe quokka board corrects gyroscope drift every second.\n")
    settings = {name.upper(): value for name, value in hosts.shared.items()}
    done = chapterverse(hosts.home, "ingest", str(tmp_path), **settings)
    assert done.returncode == 0, done.stderr
    for worker in hosts.workers:
        deadline = time.monotonic() + PATIENCE
        while not finds(worker, "quokka board gyroscope drift"):
            assert time.monotonic() < deadline, f"the worker {worker.pid} has the old book"
            time.sleep(0.1)


def finds(worker: Worker, text: str) -> bool:
    status, found = worker.ask("POST", "/search", {"query": text}, next(CLIENTS))
    assert status == 200, found
    return any("quokka" in result["chunk_text"] for result in found["results"])
