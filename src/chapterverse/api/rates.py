"""How often a client may ask: a moving window, in memory or in Redis for all workers together.

Owns the counting. When Redis does not answer, this process counts alone until it does again: readers are served, each
worker still holds the limit, and `/health`, the metrics and the log say so.
"""

import asyncio
import logging
import math
import time
from typing import Any, Final

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from chapterverse.errors import InternalError, RateLimited
from chapterverse.health import Dependency
from chapterverse.telemetry import Telemetry

log = logging.getLogger(__name__)

WINDOW: Final = 60  # seconds
REDIS_SECONDS: Final = 0.5  # for one count; a hit takes 0.1 ms
RETRY_SECONDS: Final = 5.0  # after a failure Redis is left alone for so long, so that not every request waits for it
CONNECTIONS: Final = 20


class RateLimits:
    """Counts requests by client."""

    def __init__(self, telemetry: Telemetry, redis_url: str | None = None, window: int = WINDOW) -> None:
        self._telemetry = telemetry
        self._window = window
        self._own = MovingWindowRateLimiter(MemoryStorage())
        self._pool: Any = None
        self._storage: RedisStorage | None = None
        if redis_url:
            self._pool, self._storage = _redis(redis_url)
        self._shared = MovingWindowRateLimiter(self._storage) if self._storage else None
        self._alone_until = 0.0

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Redis, where it is used; without it questions are still answered."""
        return (Dependency("redis", "Redis", "REDIS_URL is set", self.probe, vital=False),) if self._shared else ()

    async def take(self, client: str, allowed: int) -> None:
        """Count a request; raise `RateLimited`, with the time until the next one is taken, when it is one too many."""
        item = RateLimitItemPerSecond(allowed, self._window, namespace="chapterverse")
        if self._shared and time.monotonic() >= self._alone_until:
            try:
                async with asyncio.timeout(REDIS_SECONDS):
                    return await _take(self._shared, item, client)
            except (StorageError, TimeoutError, OSError) as failure:
                reason = type(failure.__cause__ or failure).__name__
                log.warning("Redis failed (%s): this process counts alone for %g s", reason, RETRY_SECONDS)
                self._alone_until = time.monotonic() + RETRY_SECONDS
        if self._shared:
            self._telemetry.uncounted.inc()
        return await _take(self._own, item, client)

    async def probe(self) -> None:
        """Raise unless Redis answers; a success ends the time of counting alone."""
        assert self._storage is not None
        if not await self._storage.check():
            raise InternalError("Redis does not answer: rate limits are counted by each worker alone.")
        self._alone_until = 0.0

    async def close(self) -> None:
        """Give the connections back."""
        if self._pool:
            await self._pool.disconnect()


async def _take(limiter: MovingWindowRateLimiter, item: RateLimitItem, client: str) -> None:
    if await limiter.hit(item, client):
        return
    free_at = (await limiter.get_window_stats(item, client)).reset_time
    wait = max(1, math.ceil(free_at - time.time()))
    raise RateLimited(
        f"More than {item.amount} requests in {item.multiples} seconds. Ask again in {wait} s.", retry_after=wait
    )


def _redis(url: str) -> tuple[Any, RedisStorage]:
    from redis.asyncio import BlockingConnectionPool
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    pool = BlockingConnectionPool.from_url(
        url.replace("redis+unix://", "unix://"),
        max_connections=CONNECTIONS,
        timeout=REDIS_SECONDS,
        socket_timeout=REDIS_SECONDS,
        socket_connect_timeout=REDIS_SECONDS,
        retry=Retry(NoBackoff(), 1),  # a connection that a restart of Redis broke is opened again at once
    )
    # The pool decides where to connect; the address given here only chooses the kind of storage.
    options: dict[str, Any] = {"connection_pool": pool}
    return pool, RedisStorage("redis://", wrap_exceptions=True, implementation="redispy", **options)
