"""The sliding window of the rate limit, in memory and in a real Redis, also while Redis is down or hangs."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from redis import Redis

from chapterverse.api.access import rates, redis_window
from chapterverse.api.access.rates import OwnWindow, RateLimits
from chapterverse.errors import InternalError, RateLimited
from chapterverse.settings import Settings
from chapterverse.telemetry import Telemetry
from tests.redis_server import RedisServer, needs_redis
from tests.scripted import Scripted, without_engines
from tests.served import free_port, serve

ROOT = Path(__file__).parents[3]


async def taken(limits: RateLimits, client: str, times: int, allowed: int) -> int:
    results = await asyncio.gather(*(limits.take(client, allowed) for _ in range(times)), return_exceptions=True)
    assert all(result is None or isinstance(result, RateLimited) for result in results), results
    return results.count(None)


async def test_memory_window_is_exact_and_counts_clients_separately() -> None:
    limits = RateLimits(Telemetry())
    assert await taken(limits, "a", 200, allowed=50) == 50
    assert await taken(limits, "b", 10, allowed=50) == 10


async def test_request_is_accepted_after_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limits = RateLimits(Telemetry(), window=2)
    await limits.take("a", 2)
    now += 0.6
    await limits.take("a", 2)
    with pytest.raises(RateLimited) as caught:
        await limits.take("a", 2)
    assert caught.value.retry_after == 2  # the first leaves the window in 1.4 s
    now += caught.value.retry_after
    await limits.take("a", 2)


@needs_redis
@pytest.mark.slow
async def test_redis_window_is_exact_in_a_burst_and_shared_by_processes(redis: RedisServer) -> None:
    telemetry = Telemetry()
    one, other = RateLimits(telemetry, redis.url), RateLimits(telemetry, redis.url)
    counts = await asyncio.gather(taken(one, "a", 1000, 50), taken(other, "a", 1000, 50), taken(other, "b", 30, 50))
    assert (counts[0] + counts[1], counts[2]) == (50, 30)
    assert telemetry.registry.get_sample_value("chapterverse_rate_limit_fallbacks_total") == 0
    await one.probe()
    assert [dependency.name for dependency in one.dependencies] == ["redis"]
    await one.close()
    await other.close()


@needs_redis
@pytest.mark.slow
async def test_blocked_event_loop_does_not_count_as_a_redis_timeout(redis: RedisServer) -> None:
    telemetry = Telemetry()
    limits = RateLimits(telemetry, redis.url)
    await limits.take("a", 5)
    counting = asyncio.create_task(taken(limits, "a", 20, allowed=5))
    await asyncio.sleep(0)
    time.sleep(2 * redis_window.SECONDS)  # noqa: ASYNC251 - blocks the event loop, as CPU work of another request would
    assert await counting == 4
    assert telemetry.registry.get_sample_value("chapterverse_rate_limit_fallbacks_total") == 0
    await limits.close()


@needs_redis
@pytest.mark.slow
async def test_request_is_accepted_after_retry_after_with_redis(redis: RedisServer) -> None:
    limits = RateLimits(Telemetry(), redis.url, window=3)
    await limits.take("a", 1)
    with pytest.raises(RateLimited) as caught:
        await limits.take("a", 1)
    assert caught.value.retry_after in (1, 2, 3)
    await asyncio.sleep(caught.value.retry_after)
    await limits.take("a", 1)
    await limits.close()


@needs_redis
@pytest.mark.slow
async def test_future_timestamps_in_redis_are_ignored_after_the_clock_is_set_back(redis: RedisServer) -> None:
    limits = RateLimits(Telemetry(), redis.url)
    with Redis.from_url(redis.url) as client:
        client.lpush("chapterverse:a", *[int((time.time() + 3600) * 1000)] * 5)
        assert await taken(limits, "a", 20, allowed=5) == 5
        assert client.llen("chapterverse:a") == 5
    await limits.close()


async def test_memory_window_removes_clients_after_the_window_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    window = OwnWindow(60)
    for number in range(100):
        assert window.take(f"client {number}", 1) == 0
    assert window.take("client 0", 1) == 60
    now += 59.0
    assert window.take("late", 1) == 0
    assert len(window) == 101
    now += 1.0
    assert window.take("client 0", 1) == 0
    assert len(window) == 2


@needs_redis
@pytest.mark.slow
async def test_without_redis_each_process_uses_its_own_window(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    limits = RateLimits(telemetry, redis.url)
    assert await taken(limits, "a", 3, allowed=5) == 3
    redis.stop()
    started = time.perf_counter()
    assert await taken(limits, "a", 20, allowed=5) == 5  # its own window limits, too
    assert time.perf_counter() - started < 15
    assert telemetry.registry.get_sample_value("chapterverse_rate_limit_fallbacks_total") == 20
    with pytest.raises(InternalError, match="counted by each worker alone"):
        await limits.probe()
    redis.start()
    monkeypatch.setattr(rates, "RETRY_SECONDS", 0.0)
    await limits.probe()  # the health probe finds Redis again, and it is used at once
    assert await taken(limits, "a", 20, allowed=5) == 5
    assert telemetry.registry.get_sample_value("chapterverse_rate_limit_fallbacks_total") == 20
    await limits.close()


@needs_redis
@pytest.mark.slow
async def test_hanging_redis_is_waited_for_only_once(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits = RateLimits(Telemetry(), redis.url)
    await limits.take("a", 100)
    redis.signal(signal.SIGSTOP)
    monkeypatch.setattr(rates, "RETRY_SECONDS", 60.0)
    for _ in range(10):
        await limits.take("a", 100)
    (logged,) = (record.getMessage() for record in caplog.records)
    assert logged.startswith(f"Redis did not answer within {redis_window.SECONDS:g} seconds."), "Redis was called again"
    redis.signal(signal.SIGCONT)
    await limits.close()


@needs_redis
@pytest.mark.slow
def test_health_is_degraded_while_redis_is_down(redis: RedisServer) -> None:
    settings = Settings.load(redis_url=redis.url.replace("://", "://:@"))
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        server.service("redis", "up")
        redis.stop()
        assert server.http.post("/chat", json={"query": "answer"}).status_code == 200
        assert server.service("redis", "down")["status"] == "degraded"


@needs_redis
@pytest.mark.slow
def test_rate_limit_is_exact_across_processes_in_a_burst(redis: RedisServer, tmp_path: Path) -> None:
    program = (
        "import sys, uvicorn\n"
        "from chapterverse.settings import Settings\n"
        "from chapterverse.main import create_app\n"
        "from tests.scripted import Scripted, without_engines\n"
        "app = create_app(Settings.load(), without_engines(), Scripted())\n"
        "uvicorn.run(app, port=int(sys.argv[1]), log_level='warning')\n"
    )
    environment = os.environ | {"REDIS_URL": redis.url, "PYTHONPATH": str(ROOT)}
    ports = [free_port(), free_port()]
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(port)], env=environment, cwd=tmp_path) for port in ports
    ]
    try:
        with httpx2.Client(trust_env=False, timeout=30) as client:
            for port in ports:
                wait_for(client, f"http://127.0.0.1:{port}/livez")
        urls = [f"http://127.0.0.1:{port}/chat" for port in ports] * 150
        assert asyncio.run(burst(urls)) == {200: 60, 429: 240}
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)


async def burst(urls: list[str]) -> Counter[int]:
    """Posts a question to all URLs at once, each on its own connection; returns how often each status came."""
    connections = httpx2.Limits(max_connections=len(urls))
    async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=connections) as client:
        answers = await asyncio.gather(*(client.post(url, json={"query": "answer"}) for url in urls))
    return Counter(answer.status_code for answer in answers)


def wait_for(client: httpx2.Client, url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert client.get(url).status_code == 200
        except httpx2.ConnectError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)
        else:
            return
