"""Rate limits: a sliding window for each client, in memory, or in Redis for all workers together.

If Redis does not answer, each worker counts alone until Redis is back. Requests are still served and limited;
`/health`, the metrics and the log report it.
"""

import logging
import math
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

from chapterverse.errors import InternalError, RateLimited
from chapterverse.health import Dependency
from chapterverse.telemetry import Telemetry

if TYPE_CHECKING:
    from chapterverse.api.access.redis_window import RedisWindow

log = logging.getLogger(__name__)

WINDOW: Final = 60  # seconds
RETRY_SECONDS: Final = 5.0  # pause after a failure of Redis, so that not every request waits for it


class RateLimits:
    """Counts requests by client."""

    def __init__(self, telemetry: Telemetry, redis_url: str | None = None, window: int = WINDOW) -> None:
        self._telemetry = telemetry
        self._window = window
        self._own = OwnWindow(window)
        self._shared = _shared(redis_url, window) if redis_url else None
        self._alone_until = 0.0

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Redis, if it is used. It is not vital: questions are answered without it."""
        return (Dependency("redis", "Redis", "REDIS_URL is set", self.probe, vital=False),) if self._shared else ()

    @property
    def redis(self) -> "RedisWindow | None":
        """The connection to Redis, which `health/shared.py` uses, too."""
        return self._shared

    async def take(self, client: str, allowed: int) -> None:
        """Count a request. Over the limit, raise `RateLimited` with the seconds to wait."""
        seconds = await self._count(client, allowed)
        if seconds > 0:
            wait = max(1, math.ceil(seconds))
            requests = "one request" if allowed == 1 else f"{allowed} requests"
            message = f"More than {requests} in {self._window} seconds. Ask again in {wait} s."
            raise RateLimited(message, retry_after=wait)

    async def probe(self) -> None:
        """Raise unless Redis answers. On success, Redis is used again at once."""
        assert self._shared is not None
        try:
            await self._shared.probe()
        except InternalError as failure:
            message = f"{failure.message} Rate limits are counted by each worker alone."
            raise InternalError(message) from failure
        self._alone_until = 0.0

    async def close(self) -> None:
        """Close the connections."""
        if self._shared:
            await self._shared.close()

    async def _count(self, client: str, allowed: int) -> float:
        if self._shared and time.monotonic() >= self._alone_until:
            try:
                return await self._shared.take(client, allowed)
            except InternalError as failure:
                log.warning("%s This process counts alone for %g s.", failure.message, RETRY_SECONDS)
                self._alone_until = time.monotonic() + RETRY_SECONDS
        if self._shared:
            self._telemetry.uncounted.inc()
        return self._own.take(client, allowed)


class OwnWindow:
    """Counts in this process, on a monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clients: OrderedDict[str, deque[float]] = OrderedDict()  # the most recent client is last

    def __len__(self) -> int:
        return len(self._clients)

    def take(self, client: str, allowed: int) -> float:
        """Count a request and return 0, or return the seconds until the next one is allowed."""
        now = time.monotonic()
        self._drop_expired(now)
        times = self._clients.setdefault(client, deque())
        self._clients.move_to_end(client)
        while times and times[0] <= now - self._seconds:
            times.popleft()
        if len(times) >= allowed:
            return times[-allowed] + self._seconds - now
        times.append(now)
        return 0.0

    def _drop_expired(self, now: float) -> None:
        while self._clients:
            client, times = next(iter(self._clients.items()))
            if times and times[-1] > now - self._seconds:
                return
            del self._clients[client]


def _shared(url: str, window: int) -> "RedisWindow":
    from chapterverse.api.access.redis_window import RedisWindow

    return RedisWindow(url, window)
