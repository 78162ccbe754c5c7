"""What workers on all hosts tell each other of the servers that they share: each is probed by one of them at a time.

A stored state expires when it may no longer be shown; its age is computed from its remaining time, so only Redis's
clock counts. No secret is stored, nor anything about an engine that belongs to one host. When Redis does not answer, or
returns what no worker wrote, this process probes for itself, as it does without Redis.
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

SECONDS: Final = 0.2  # for one call, which takes a millisecond
RETRY_SECONDS: Final = 5.0  # after a failure Redis is left alone for so long
LOCK_SECONDS: Final = PROBE_SECONDS + 0.5  # then the worker that probes is taken for dead
LOOK_SECONDS: Final = 0.05  # between two looks at what another worker is about to tell
MOST: Final = 1000  # characters of a message
_THIS_HOST: Final = ("", "localhost", "host.docker.internal")
_VERSION: Final = 1  # of what is kept

# What is kept, the milliseconds it has left, and whether the caller shall probe: when it is older than the caller wants
# and nobody else probes. Times beyond any that we set are from before the clock was set back, or nobody's of ours.
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
# Who was taken for dead keeps nothing: another worker found something newer.
_KEEP: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return redis.call('DEL', KEYS[2])
"""


class Kept(BaseModel):
    """A state as it lies in Redis."""

    status: Literal["up", "down", "degraded"]
    latency_ms: float | None = Field(ge=0, allow_inf_nan=False)
    message: Annotated[str, Field(max_length=MOST)] | None


class SharedHealth:
    """Tells and hears the states of remote servers by commands to Redis, which fail as `InternalError`."""

    def __init__(self, ask: Callable[..., Awaitable[Any]]) -> None:
        self._ask = ask
        self._alone_until = 0.0

    async def see(self, dependency: Dependency, probe: Callable[[], Awaitable[Seen]]) -> Seen:
        """What another worker found just now, or what this one finds. Never fails, and never waits long for Redis."""
        if dependency.remote is None or time.monotonic() < self._alone_until:
            return await probe()
        name = name_of(dependency.remote)
        turn = uuid4().hex
        try:
            if heard := await self._hear(name, turn, dependency.engine):
                return heard
        except InternalError as failure:
            self._give_up(failure)
            return await probe()
        seen = await probe()
        try:
            await self._tell(name, turn, seen)
        except InternalError as failure:
            self._give_up(failure)
        return seen

    async def _hear(self, name: str, turn: str, engine: str) -> Seen | None:
        """What is kept; None when it is this worker's turn to probe. While another one probes, what was found before
        will do; if there is nothing, its word is waited for."""
        asked = time.monotonic()
        longest = REMEMBER_SECONDS + PROBE_SECONDS
        for _ in range(round(LOCK_SECONDS / LOOK_SECONDS) + 2):  # looks, so that one who is held up gives up no sooner
            waited = time.monotonic() - asked
            # The seconds that what is new enough has left; of what is not kept nothing is.
            least = max(longest - REMEMBER_SECONDS - waited, 0.001)
            times = _milliseconds(least), _milliseconds(longest), turn, _milliseconds(LOCK_SECONDS)
            answer = await self._ask("EVAL", _LOOK, 2, name, f"{name}:probed-by", *times, seconds=SECONDS)
            match answer:
                case [bytes(), int(), 1]:
                    return None
                case [b"", int(), 0]:
                    await asyncio.sleep(LOOK_SECONDS)
                case [bytes(kept), int(left), 0]:
                    return Seen(_read(kept, engine), time.monotonic() - (longest - left / 1000))
                case _:
                    raise InternalError("Redis returned a reply of the wrong type.")
        raise InternalError("Another worker probes and tells nothing.")

    async def _tell(self, name: str, turn: str, seen: Seen) -> None:
        state = seen.state
        kept = Kept(status=state.status, latency_ms=state.latency_ms, message=state.message and state.message[:MOST])
        left = REMEMBER_SECONDS + PROBE_SECONDS - (time.monotonic() - seen.began)
        if left > 0:
            times = turn, kept.model_dump_json(), _milliseconds(left)
            await self._ask("EVAL", _KEEP, 2, name, f"{name}:probed-by", *times, seconds=SECONDS)

    def _give_up(self, failure: InternalError) -> None:
        log.warning("%s This process probes for itself for %g s.", failure.message, RETRY_SECONDS)
        self._alone_until = time.monotonic() + RETRY_SECONDS


def name_of(remote: Remote) -> str:
    """The key of a server: the same wherever the same server is asked for the same in the same name. Of passwords and
    keys two hexadecimal digits go in: enough to tell an old one from a new one, nothing to guess one by."""
    parts = urlsplit(remote.url)
    login, _, place = parts.netloc.rpartition("@")
    secrets = _digest(login, parts.query, remote.key)[:2]
    host = socket.gethostname() if _is_on_this_host(parts.hostname or "") else ""
    return f"chapterverse:health:{_VERSION}:{_digest(parts.scheme, place, parts.path, remote.part, secrets, host)[:32]}"


def _is_on_this_host(name: str) -> bool:
    """Whether an address leads to another server on each host. A socket's has no name."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in _THIS_HOST
    return address.is_loopback or address.is_unspecified


def _read(kept: bytes, engine: str) -> ServiceStatus:
    try:
        return ServiceStatus(engine=engine, **Kept.model_validate_json(kept).model_dump())
    except ValidationError:
        raise InternalError("Redis holds a state that no worker wrote.") from None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
