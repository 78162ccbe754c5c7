"""Health of shared servers in a real Redis: one worker probes at a time, no secret is stored, Redis may fail."""

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis

from chapterverse.api.access.redis_window import RedisWindow
from chapterverse.api.health import shared
from chapterverse.api.health.shared import SharedHealth, name_of
from chapterverse.errors import IndexUnavailable
from chapterverse.health import PROBE_SECONDS, REMEMBER_SECONDS, Dependency, Health, Remote
from chapterverse.settings import Settings
from chapterverse.wiring import remote_database, remote_embedder, remote_index, remote_model
from tests.redis_server import RedisServer, needs_redis

SERVER = Remote("https://qdrant.test:6333", "key", "book")
NAME = name_of(SERVER)
GENEROUS = 30.0  # seconds for a call to Redis: enough for a busy machine
pytestmark = [needs_redis, pytest.mark.slow]


class Probe:
    """A probe that counts its calls."""

    def __init__(self) -> None:
        self.asked, self.at_once, self.most = 0, 0, 0
        self.down, self.seconds = False, 0.0

    async def __call__(self) -> None:
        self.asked += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        if self.down:
            raise IndexUnavailable("nobody there")


@asynccontextmanager
async def workers(redis: RedisServer, probe: Callable[[], Awaitable[None]], count: int) -> AsyncIterator[list[Health]]:
    """The health checks of several workers, each with its own connection to Redis."""
    windows = [RedisWindow(redis.url, 60) for _ in range(count)]
    dependency = Dependency("qdrant", "Qdrant", "", probe, vital=True, remote=SERVER)
    yield [Health((dependency,), shared=SharedHealth(window.ask)) for window in windows]
    for window in windows:
        await window.close()


async def states(healths: list[Health]) -> list[Any]:
    answers = await asyncio.gather(*(health.check() for health in healths))
    return [(answer.services["qdrant"].status, answer.services["qdrant"].latency_ms) for answer in answers]


async def test_workers_share_one_probe(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SECONDS", GENEROUS)
    probe = Probe()
    probe.seconds = 0.3  # the others wait for it meanwhile
    async with workers(redis, probe, 8) as healths:
        seen = await states(healths)
    assert probe.asked == 1
    assert len(set(seen)) == 1 and seen[0][0] == "up"


async def test_all_workers_see_a_failure_and_the_recovery(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS", "LOCK_SECONDS"):
        monkeypatch.setattr(shared, name, GENEROUS)
    probe = Probe()
    probe.seconds = 0.05
    async with workers(redis, probe, 4) as healths:
        for down, status in ((False, "up"), (True, "down"), (False, "up")):
            probe.down = down
            async with asyncio.timeout(60):
                while {state for state, _ in await states(healths)} != {status}:  # noqa: ASYNC110 - they expire
                    await asyncio.sleep(0.05)
        answer = await healths[-1].check()
    assert probe.most == 1, "one prober at a time"
    assert answer.services["qdrant"].engine == "Qdrant"


async def test_stored_state_expires(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SECONDS", GENEROUS)
    probe = Probe()
    async with workers(redis, probe, 2) as healths:
        await healths[0].check()
        with Redis.from_url(redis.url) as client:
            assert 0 < client.pttl(NAME) <= (PROBE_SECONDS + REMEMBER_SECONDS) * 1000
            assert not client.exists(f"{NAME}:probed-by")
            client.pexpire(NAME, round(PROBE_SECONDS * 1000) - 1)  # just older than REMEMBER_SECONDS
            await healths[1].check()
            assert probe.asked == 2
            while client.exists(NAME):  # noqa: ASYNC110 - Redis removes it
                await asyncio.sleep(0.05)


async def test_stored_state_is_used_while_another_worker_probes(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "SECONDS", GENEROUS)
    probe = Probe()
    async with workers(redis, probe, 2) as healths:
        await healths[0].check()
        with Redis.from_url(redis.url) as client:
            # The state is older than REMEMBER_SECONDS and another worker holds the lock.
            client.pexpire(NAME, round(PROBE_SECONDS * 1000) - 1)
            client.set(f"{NAME}:probed-by", "another", px=3000)
            answer = await healths[1].check()
            untouched = client.get(f"{NAME}:probed-by") == b"another"
    if untouched:  # otherwise the machine was stalled for the three seconds
        assert probe.asked == 1
    assert answer.status == "healthy"


async def test_lock_of_a_dead_worker_expires_and_another_worker_probes(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "SECONDS", GENEROUS)
    probe = Probe()
    async with workers(redis, probe, 3) as healths:
        with Redis.from_url(redis.url) as client:
            client.set(f"{NAME}:probed-by", "the dead", px=400)
        assert {state for state, _ in await states(healths)} == {"up"}
    assert probe.asked == 1


@pytest.mark.parametrize("milliseconds", [None, 10**9], ids=["no expiry", "set before the clock was set back"])
async def test_a_lock_with_a_wrong_expiry_is_ignored(redis: RedisServer, milliseconds: int | None) -> None:
    probe = Probe()
    async with workers(redis, probe, 1) as healths:
        with Redis.from_url(redis.url) as client:
            client.set(f"{NAME}:probed-by", "x", px=milliseconds)
            client.set(NAME, b'{"status":"down","latency_ms":null,"message":"from another time"}', px=milliseconds)
        assert (await healths[0].check()).status == "healthy"
    assert probe.asked == 1


GARBAGE = [
    b"\xff\x00 no protocol of this world",
    b"{}",
    b'{"status": "splendid", "latency_ms": 1, "message": null}',
    b'{"status": "up", "latency_ms": -1, "message": null}',
    b'{"status": "up", "latency_ms": 1, "message": "%b"}' % (b"x" * 2000),
    b"[" * 10_000,
]


@pytest.mark.parametrize("kept", GARBAGE, ids=range(len(GARBAGE)))
async def test_invalid_stored_state_is_ignored(redis: RedisServer, kept: bytes) -> None:
    probe = Probe()
    async with workers(redis, probe, 1) as healths:
        with Redis.from_url(redis.url) as client:
            client.set(NAME, kept, px=round((PROBE_SECONDS + REMEMBER_SECONDS) * 1000))
        answer = await healths[0].check()
    assert (answer.status, probe.asked) == ("healthy", 1)
    assert answer.services["qdrant"].message is None


async def test_stored_key_of_another_type_is_ignored(redis: RedisServer) -> None:
    probe = Probe()
    async with workers(redis, probe, 1) as healths:
        with Redis.from_url(redis.url) as client:
            client.lpush(NAME, "x")
            client.pexpire(NAME, 3900)
        assert (await healths[0].check()).status == "healthy"
    assert probe.asked == 1


async def test_without_redis_each_process_probes(redis: RedisServer) -> None:
    probe = Probe()
    async with workers(redis, probe, 3) as healths:
        redis.stop()
        began = time.monotonic()
        assert [state for state, _ in await states(healths)] == ["up"] * 3
        assert probe.asked == 3
        assert time.monotonic() - began < 10
        assert all(health.shared._alone_until > began for health in healths)  # type: ignore[union-attr]


async def test_hanging_redis_delays_health_only_a_little(redis: RedisServer) -> None:
    probe = Probe()
    async with workers(redis, probe, 2) as healths:
        await states(healths)
        redis.signal(signal.SIGSTOP)
        for health in healths:
            health._answer = None
        probe.asked = 0
        began = time.monotonic()
        assert [state for state, _ in await states(healths)] == ["up"] * 2
        assert time.monotonic() - began < 5 * (shared.SECONDS + 1)
        assert probe.asked == 2
        redis.signal(signal.SIGCONT)


SECRET = "tell-nobody"


async def test_no_secret_reaches_redis(redis: RedisServer) -> None:
    async def refused() -> None:
        raise IndexUnavailable("it refuses the key")

    settings = Settings.load(
        embeddings="cohere",
        cohere_api_key=SECRET,
        gemini_api_key=SECRET,
        qdrant_url="https://qdrant.test",
        qdrant_api_key=SECRET,
        database_url=f"postgresql://reader:{SECRET}@db.test/book?password={SECRET}",
    )
    probes: list[Callable[[], Awaitable[None]]] = [refused, Probe(), refused, Probe()]
    remotes = [which(settings) for which in (remote_embedder, remote_index, remote_model, remote_database)]
    window = RedisWindow(redis.url, 60)
    dependencies = [
        Dependency(f"d{n}", SECRET, "", probe, vital=True, remote=remote)
        for n, (remote, probe) in enumerate(zip(remotes, probes, strict=True))
    ]
    assert SECRET not in repr([dependency.remote for dependency in dependencies])
    await Health(tuple(dependencies), shared=SharedHealth(window.ask)).check()
    with Redis.from_url(redis.url) as client:
        names = client.keys("*")
        seen = b"\n".join([*names, *(client.get(name) for name in names)])
    await window.close()
    assert len(names) == 4
    for secret in (SECRET, "reader", "db.test", "qdrant.test"):
        assert secret.encode() not in seen


def test_embedded_engines_are_not_shared() -> None:
    settings = Settings.load()
    assert [which(settings) for which in (remote_embedder, remote_index, remote_model, remote_database)] == [None] * 4


def test_different_servers_have_different_names(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        replace(SERVER, url="https://qdrant.test:6334"),
        replace(SERVER, key="another key"),
        replace(SERVER, part="another book"),
        Remote("postgresql://a@db.test/book"),
        Remote("postgresql://a@db.test/other"),
        Remote("postgresql://a@one.test:1,two.test:2/book"),
        Remote("postgresql:///book?host=/run/postgresql"),
        Remote("http://127.0.0.1:6333"),
        Remote("http://localhost:6333"),
        Remote("http://[::1]:6333"),
    ]
    names = {remote.url + remote.key + remote.part: name_of(remote) for remote in (SERVER, *others)}
    assert len(set(names.values())) == len(others) + 1
    monkeypatch.setattr(socket, "gethostname", lambda: "another host")
    moved = [remote.url for remote in others if name_of(remote) not in names.values()]
    assert moved == [remote.url for remote in others[-4:]], "a local address means another server on another host"
