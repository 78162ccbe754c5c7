"""How often a client may ask: a moving window, in memory or in Redis for all workers together.

When Redis does not answer, this process counts alone until it does again: requests are served, each worker still
applies the limit, and `/health`, the metrics and the log say so.
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
RETRY_SECONDS: Final = 5.0  # after a failure Redis is left alone for so long, so that not every request waits for it


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
        """Redis, where it is used; without it questions are still answered."""
        return (Dependency("redis", "Redis", "REDIS_URL is set", self.probe, vital=False),) if self._shared else ()

    @property
    def redis(self) -> "RedisWindow | None":
        """The connection to Redis, for other users of it."""
        return self._shared

    async def take(self, client: str, allowed: int) -> None:
        """Count a request; raise `RateLimited`, with the time until the next one is taken, when it is one too many."""
        seconds = await self._count(client, allowed)
        if seconds > 0:
            wait = max(1, math.ceil(seconds))
            requests = "one request" if allowed == 1 else f"{allowed} requests"
            told = f"More than {requests} in {self._window} seconds. Ask again in {wait} s."
            raise RateLimited(told, retry_after=wait)

    async def probe(self) -> None:
        """Raise unless Redis answers; a success ends the time of counting alone."""
        assert self._shared is not None
        try:
            await self._shared.probe()
        except InternalError as failure:
            told = f"{failure.message} Rate limits are counted by each worker alone."
            raise InternalError(told) from failure
        self._alone_until = 0.0

    async def close(self) -> None:
        """Give the connections back."""
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
    """Counts in this process, on a clock that is never set."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clients: OrderedDict[str, deque[float]] = OrderedDict()  # the most recent client is last

    def __len__(self) -> int:
        return len(self._clients)

    def take(self, client: str, allowed: int) -> float:
        """The seconds until the client's next request is taken; 0 if this one was."""
        now = time.monotonic()
        self._forget_those_gone(now)
        times = self._clients.setdefault(client, deque())
        self._clients.move_to_end(client)
        while times and times[0] <= now - self._seconds:
            times.popleft()
        if len(times) >= allowed:
            return times[-allowed] + self._seconds - now
        times.append(now)
        return 0.0

    def _forget_those_gone(self, now: float) -> None:
        while self._clients:
            client, times = next(iter(self._clients.items()))
            if times and times[-1] > now - self._seconds:
                return
            del self._clients[client]


def _shared(url: str, window: int) -> "RedisWindow":
    from chapterverse.api.access.redis_window import RedisWindow

    return RedisWindow(url, window)
