"""Shares probe results between workers through Redis, so that one worker at a time probes each remote server.

A stored state expires when it may no longer be shown. Its age is computed from its remaining time, so only Redis's
clock matters. No secret is stored, and nothing about an engine that belongs to one host. If Redis fails or returns an
invalid reply, this process probes for itself.
"""

import asyncio
import hashlib
import ipaddress
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from chapterverse.errors import InternalError
from chapterverse.health import PROBE_SECONDS, REMEMBER_SECONDS, Dependency, Remote, Seen
from chapterverse.models import ServiceStatus

log = logging.getLogger(__name__)

SECONDS: Final = 0.2  # time limit of one call, which takes about a millisecond
RETRY_SECONDS: Final = 5.0  # pause after a failure of Redis
LOCK_SECONDS: Final = PROBE_SECONDS + 0.5  # after this time the probing worker is considered dead
LOOK_SECONDS: Final = 0.05  # between two looks for another worker's result
MOST: Final = 1000  # characters of a message
_THIS_HOST: Final = ("", "localhost", "host.docker.internal")
_VERSION: Final = 1  # of the stored format

# Returns the stored state, its remaining milliseconds, and whether the caller must probe, because the state is too old
# and no other worker is probing. Remaining times longer than any we set are ignored: the clock was set back.
_LOOK: Final = """
local longest, lock = tonumber(ARGV[2]), tonumber(ARGV[4])
local held = redis.call('PTTL', KEYS[2])
if held == -1 or held > lock then redis.call('DEL', KEYS[2]) end
local left = redis.call('PTTL', KEYS[1])
if left > longest then left = -1 end
local kept = left > 0 and redis.call('GET', KEYS[1]) or ''
local mine = left < tonumber(ARGV[1]) and redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', lock)
return {kept, left, mine and 1 or 0}
"""
# A worker that lost its lock stores nothing: another worker has a newer state.
_KEEP: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return redis.call('DEL', KEYS[2])
"""


class StoredState(BaseModel):
    """A state as it is stored in Redis."""

    status: Literal["up", "down", "degraded"]
    latency_ms: float | None = Field(ge=0, allow_inf_nan=False)
    message: Annotated[str, Field(max_length=MOST)] | None


class SharedHealth:
    """Reads and writes the states of remote servers. `ask` sends a command to Redis and raises `InternalError`."""

    def __init__(self, ask: Callable[..., Awaitable[Any]]) -> None:
        self._ask = ask
        self._alone_until = 0.0

    async def see(self, dependency: Dependency, probe: Callable[[], Awaitable[Seen]]) -> Seen:
        """Return a recent state from another worker, or the result of this worker's probe. If Redis fails, this worker
        probes."""
        if dependency.remote is None or time.monotonic() < self._alone_until:
            return await probe()
        name = name_of(dependency.remote)
        turn = uuid4().hex
        try:
            if shared := await self._load(name, turn, dependency.engine):
                return shared
        except InternalError as failure:
            self._give_up(failure)
            return await probe()
        seen = await probe()
        try:
            await self._store(name, turn, seen)
        except InternalError as failure:
            self._give_up(failure)
        return seen

    async def _load(self, name: str, turn: str, engine: str) -> Seen | None:
        """Return the stored state, or None if this worker must probe. While another worker probes, return an older
        state, or wait for the result if there is none."""
        began = time.monotonic()
        longest = REMEMBER_SECONDS + PROBE_SECONDS
        for _ in range(
            round(LOCK_SECONDS / LOOK_SECONDS) + 2
        ):  # counted, so that a blocked worker does not give up too early
            waited = time.monotonic() - began
            # The remaining seconds that a state needs to be recent enough; never 0, which means that there is none.
            least = max(longest - REMEMBER_SECONDS - waited, 0.001)
            times = _milliseconds(least), _milliseconds(longest), turn, _milliseconds(LOCK_SECONDS)
            answer = await self._ask("EVAL", _LOOK, 2, name, f"{name}:probed-by", *times, seconds=SECONDS)
            match answer:
                case [bytes(), int(), 1]:
                    return None
                case [b"", int(), 0]:
                    await asyncio.sleep(LOOK_SECONDS)
                case [bytes(stored), int(left), 0]:
                    return Seen(_read(stored, engine), time.monotonic() - (longest - left / 1000))
                case _:
                    raise InternalError("Redis returned a reply of the wrong type.")
        raise InternalError("Another worker probes and does not store its result.")

    async def _store(self, name: str, turn: str, seen: Seen) -> None:
        state = seen.state
        stored = StoredState(
            status=state.status, latency_ms=state.latency_ms, message=state.message and state.message[:MOST]
        )
        left = REMEMBER_SECONDS + PROBE_SECONDS - (time.monotonic() - seen.began)
        if left > 0:
            times = turn, stored.model_dump_json(), _milliseconds(left)
            await self._ask("EVAL", _KEEP, 2, name, f"{name}:probed-by", *times, seconds=SECONDS)

    def _give_up(self, failure: InternalError) -> None:
        log.warning("%s This process probes for itself for %g s.", failure.message, RETRY_SECONDS)
        self._alone_until = time.monotonic() + RETRY_SECONDS


def name_of(remote: Remote) -> str:
    """Return the Redis key of a server. It is the same on all hosts for the same server, use and user. It contains only
    two hexadecimal digits of a digest of passwords and keys, which change with a new key and do not help to guess
    it."""
    parts = urlsplit(remote.url)
    login, _, place = parts.netloc.rpartition("@")
    secrets = _digest(login, parts.query, remote.key)[:2]
    host = socket.gethostname() if _is_on_this_host(parts.hostname or "") else ""
    return f"chapterverse:health:{_VERSION}:{_digest(parts.scheme, place, parts.path, remote.part, secrets, host)[:32]}"


def _is_on_this_host(name: str) -> bool:
    """Whether an address means a different server on each host. The address of a unix socket has no host name."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in _THIS_HOST
    return address.is_loopback or address.is_unspecified


def _read(stored: bytes, engine: str) -> ServiceStatus:
    try:
        return ServiceStatus(engine=engine, **StoredState.model_validate_json(stored).model_dump())
    except ValidationError:
        raise InternalError("Redis contains an invalid state.") from None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
