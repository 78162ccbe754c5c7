"""The moving window in Redis, for all workers together: one call counts all requests of the same moment.

`health/shared.py` calls Redis through it as well. Time is Redis's own, so that hosts whose clocks differ count alike.
Every failure is an `InternalError`; `rates` decides who counts then. Imported only where `REDIS_URL` is set.
"""

import asyncio
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from chapterverse.errors import InternalError

SECONDS: Final = 0.5  # for one call, which takes a millisecond
# The time is counted in pieces, so that it ends only while this process itself is able to listen: one that was held up
# for longer than that finds the answer waiting, and does not blame Redis.
PIECES: Final = 5
MOST: Final = 500  # requests counted by one call, during which Redis does nothing else: about a millisecond

# For each key the milliseconds until it may go on, 0 if it was counted. A key's list has its newest time first. Times
# that lie ahead are from before the clock was set back, and worth nothing.
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

_Asked = tuple[str, int, "asyncio.Future[float]"]


class RedisWindow:
    """Counts in Redis. Requests that arrive during a call share the next one."""

    def __init__(self, url: str, seconds: int) -> None:
        self._window = seconds * 1000
        self._waiting: list[_Asked] = []
        self._calling: asyncio.Task[None] | None = None
        self._redis: Redis = Redis.from_url(
            url.replace("redis+unix://", "unix://"),
            socket_timeout=None,  # `ask` limits it
            retry=Retry(NoBackoff(), 1),  # a connection that a restart of Redis broke is opened again at once
        )

    async def take(self, client: str, allowed: int) -> float:
        """The seconds until the client's next request is taken; 0 if this one was."""
        answer: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((client, allowed, answer))
        if self._calling is None:
            self._calling = asyncio.create_task(self._call())
        return await answer

    async def probe(self) -> None:
        """Raise unless Redis answers."""
        await self.ask("PING")

    async def ask(self, *command: Any, seconds: float = SECONDS) -> Any:
        """What Redis answers to a command; raise `InternalError` if it does not, or not in time."""
        asking = asyncio.ensure_future(self._redis.execute_command(*command))  # type: ignore[no-untyped-call]
        try:
            for _ in range(PIECES):
                await asyncio.wait({asking}, timeout=seconds / PIECES)
            if not asking.done():
                raise InternalError(f"Redis did not answer within {seconds:g} seconds.")
            return asking.result()
        except (RedisError, OSError, ValueError) as failure:  # ValueError: bytes that are no number
            raise InternalError(f"Redis failed ({type(failure).__name__}).") from failure
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def close(self) -> None:
        """Give the connections back."""
        await self._redis.aclose()

    async def _call(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                try:
                    waits = await self._count(batch)
                except InternalError as failure:
                    # The requests that still wait would fail, too.
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

    async def _count(self, batch: list[_Asked]) -> list[int]:
        keys = [f"chapterverse:{client}" for client, *_ in batch]
        limits = [allowed for _, allowed, _ in batch]
        waits = await self.ask("EVAL", _SCRIPT, len(keys), *keys, self._window, *limits)
        if not isinstance(waits, list) or len(waits) != len(batch) or not all(isinstance(wait, int) for wait in waits):
            raise InternalError("Redis returned a reply of the wrong type.")
        return waits
