"""A sliding window in Redis, shared by all workers. Concurrent requests are counted in one call.

`health/shared.py` uses the same connection. All times come from Redis, so that hosts with different clocks agree. Every
failure is raised as `InternalError`, which `rates` handles. This module is imported only if `REDIS_URL` is set.
"""

import asyncio
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from chapterverse.errors import InternalError

SECONDS: Final = 0.5  # time limit of one call, which takes about a millisecond
# The timeout is split into several waits. If this process was blocked for longer than the timeout, it still reads a
# reply that arrived meanwhile, instead of reporting that Redis failed.
PIECES: Final = 5
MOST: Final = 500  # requests counted in one call; such a call blocks Redis for about a millisecond

# Returns for each key 0 if the request was counted, else the milliseconds to wait. The list of a key has its newest
# time first. If that time is in the future, the clock was set back, and the list is deleted.
_SCRIPT: Final = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local window = tonumber(ARGV[1])
local waits = {}
for i, key in ipairs(KEYS) do
    local allowed = tonumber(ARGV[i + 1])
    if tonumber(redis.call('LINDEX', key, 0) or 0) > now + 1000 then redis.call('DEL', key) end
    local last = redis.call('LINDEX', key, allowed - 1)
    local wait = last and last + window - now or 0
    if wait <= 0 then
        wait = 0
        redis.call('LPUSH', key, now)
        redis.call('LTRIM', key, 0, allowed - 1)
        redis.call('PEXPIRE', key, window)
    end
    waits[i] = wait
end
return waits
"""

_Waiting = tuple[str, int, "asyncio.Future[float]"]


class RedisWindow:
    """Counts in Redis. Requests that arrive during a call share the next call."""

    def __init__(self, url: str, seconds: int) -> None:
        self._window = seconds * 1000
        self._waiting: list[_Waiting] = []
        self._calling: asyncio.Task[None] | None = None
        self._redis: Redis = Redis.from_url(
            url.replace("redis+unix://", "unix://"),
            socket_timeout=None,  # `ask` has its own timeout
            retry=Retry(NoBackoff(), 1),  # reconnects at once after a restart of Redis
        )

    async def take(self, client: str, allowed: int) -> float:
        """Count a request and return 0, or return the seconds until the next one is allowed."""
        answer: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((client, allowed, answer))
        if self._calling is None:
            self._calling = asyncio.create_task(self._call())
        return await answer

    async def probe(self) -> None:
        """Raise unless Redis answers."""
        await self.ask("PING")

    async def ask(self, *command: Any, seconds: float = SECONDS) -> Any:
        """Send a command and return the reply. Raise `InternalError` if Redis fails or does not reply in time."""
        call = asyncio.ensure_future(self._redis.execute_command(*command))  # type: ignore[no-untyped-call]
        try:
            for _ in range(PIECES):
                await asyncio.wait({call}, timeout=seconds / PIECES)
            if not call.done():
                raise InternalError(f"Redis did not answer within {seconds:g} seconds.")
            return call.result()
        except (RedisError, OSError, ValueError) as failure:  # ValueError: a reply that cannot be parsed
            raise InternalError(f"Redis failed ({type(failure).__name__}).") from failure
        finally:
            call.cancel()
            await asyncio.wait({call})

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _call(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                try:
                    waits = await self._count(batch)
                except InternalError as failure:
                    # The requests that are still waiting would fail, too.
                    for *_, answer in (*batch, *self._waiting):
                        if not answer.done():
                            answer.set_exception(failure)
                    self._waiting = []
                    return
                for (*_, answer), wait in zip(batch, waits, strict=True):
                    if not answer.done():
                        answer.set_result(wait / 1000)
        finally:
            self._calling = None

    async def _count(self, batch: list[_Waiting]) -> list[int]:
        keys = [f"chapterverse:{client}" for client, *_ in batch]
        limits = [allowed for _, allowed, _ in batch]
        waits = await self.ask("EVAL", _SCRIPT, len(keys), *keys, self._window, *limits)
        if not isinstance(waits, list) or len(waits) != len(batch) or not all(isinstance(wait, int) for wait in waits):
            raise InternalError("Redis returned a reply of the wrong type.")
        return waits
