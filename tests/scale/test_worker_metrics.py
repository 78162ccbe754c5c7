"""Metrics of a server with two workers are the sum of both, also after one of them died."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.faults.processes import STARTING, Server, end, runs, start

pytestmark = pytest.mark.slow

ASKED = 12


@pytest.fixture
def server(small_home: Path) -> Iterator[Server]:
    server = start(small_home, "--workers", "2", suggestions=0)
    try:
        server.wait_until_ready()
        wait_for(lambda: len(server.workers) == 2)
        yield server
    finally:
        end(server)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STARTING
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.05)


def scraped(server: Server, name: str, labels: str = "") -> float:
    """The value of a metric, over a new connection, so that any worker may respond."""
    text = httpx2.get(f"{server.url}/metrics", trust_env=False).text
    found = re.findall(rf"^{name}{re.escape(labels)} (\S+)$", text, re.MULTILINE)
    return float(found[0]) if found else 0.0


def search(server: Server) -> int:
    asked = httpx2.post(f"{server.url}/search", json={"query": "nodes"}, trust_env=False, timeout=30)
    return asked.status_code


def test_metrics_sum_all_workers_and_survive_the_death_of_one(server: Server) -> None:
    assert {search(server) for _ in range(ASKED)} == {200}
    counted = ("chapterverse_requests_total", '{method="POST",route="/search",status="200"}')
    assert {scraped(server, *counted) for _ in range(8)} == {ASKED}
    assert scraped(server, "chapterverse_request_seconds_count", '{route="/search"}') == ASKED
    workers = server.workers
    # Each worker publishes its gauges once a second.
    wait_for(lambda: scraped(server, "process_resident_memory_bytes") == resident(workers))

    os.kill(workers[0], signal.SIGKILL)
    wait_for(lambda: not runs(workers[0]) and len(server.workers) == 2 and server.ready())
    assert scraped(server, *counted) == ASKED, "requests of the dead worker are still counted"
    assert search(server) == 200
    wait_for(lambda: scraped(server, *counted) == ASKED + 1)
    # The last gauges may be from the middle of the search.
    wait_for(lambda: scraped(server, "chapterverse_running_requests") == 0)
    assert scraped(server, "chapterverse_dependency_up", '{dependency="qdrant",engine="Qdrant Edge, embedded"}') == 1


def resident(pids: list[int]) -> object:
    return pytest.approx(sum(memory_of(pid) for pid in pids), rel=0.2)


def memory_of(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
