"""Probes the dependencies, with a time limit, and caches the results for a moment.

A probe costs no paid tokens and shows no secret. If workers share their results (`api/health/shared.py`), only one of
them probes a shared server at a time.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from chapterverse import __version__
from chapterverse.errors import AgentUnavailable, ChapterverseError
from chapterverse.models import HealthResponse, ServiceStatus

log = logging.getLogger(__name__)

# A path from the root, or an address with its port.
_PLACE: Final = re.compile(
    r"\b\w{1,20}://[^\s,;]+|(?<![\w.…])~?/[^\s:,;]+(?<![.])"
    r"|(?<=\bat )[\w-]{1,63}(?:\.[\w-]{1,63})+|(?<![\w.-])[\w.-]{1,253}:\d{2,5}\b"
)

# Their sum is below 5 s: after that a change must be visible (SPEC 2.3).
PROBE_SECONDS: Final = 2.5  # a dependency that does not answer in this time is down
REMEMBER_SECONDS: Final = 1.5  # results are cached, because orchestrators ask often


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that other hosts use, too. Equal values mean the same state."""

    url: str = field(repr=False)  # perhaps with a password
    key: str = field(default="", repr=False)
    part: str = ""  # the collection or model


@dataclass(frozen=True, slots=True)
class Dependency:
    """Something that answering needs. If a vital one is down, the server is unhealthy."""

    name: str
    engine: str
    why: str  # reason for the choice of this engine
    probe: Callable[[], Awaitable[str | None]]  # raises if it is down; returns a message if it is degraded
    vital: bool
    also_as: str = ""  # the vendor's name, as in the seeds
    remote: Remote | None = None  # None: it belongs to this host or process
    public: str = ""  # the engine without addresses and paths, for callers without a key; empty: the same


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a probe."""

    state: ServiceStatus
    began: float  # when the probe began, by the monotonic clock


class LastCall:
    """Whether the last call of a model failed. A list of models alone does not show that a model works.

    A model whose last call failed is down until a call succeeds, because another check would cost paid tokens.
    Readiness (`/readyz`) does not depend on it, so that the next question can succeed. Each worker knows only its own
    calls."""

    def __init__(self, probe: Callable[[], Awaitable[None]]) -> None:
        self._probe = probe  # of the model's server
        self._failure = ""

    def worked(self) -> None:
        """Record a call that succeeded."""
        self._failure = ""

    def failed(self, why: str) -> None:
        """Record a call that failed."""
        self._failure = why

    async def probe(self) -> None:
        """Raise if the server cannot be reached, or if the last call failed."""
        await self._probe()
        if self._failure:
            raise AgentUnavailable(self._failure)


class Shared(Protocol):
    """Shares the results of probes between workers."""

    async def see(self, dependency: Dependency, probe: Callable[[], Awaitable[Seen]]) -> Seen:
        """A recent result of another worker, or the result of `probe`. Never fails."""


@dataclass(slots=True)
class Health:
    """Probes all dependencies at once."""

    dependencies: tuple[Dependency, ...]
    patience: float = PROBE_SECONDS
    shared: Shared | None = None
    _answer: HealthResponse | None = None
    _began: float = 0.0  # when the first of its probes began
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def check_publicly(self) -> HealthResponse:
        """The state of all dependencies, without addresses and paths."""
        health = await self.check()
        services = dict(health.services)
        for dependency in self.dependencies:
            for name in filter(None, (dependency.name, dependency.also_as)):
                state = services[name]
                engine = dependency.public or dependency.engine
                services[name] = state.model_copy(update={"engine": engine, "message": _without_places(state.message)})
        return health.model_copy(update={"services": services})

    async def check(self) -> HealthResponse:
        """The state of all dependencies, at most `REMEMBER_SECONDS` old; for a server that another worker is probing,
        `PROBE_SECONDS` more."""
        fresh = time.monotonic() - REMEMBER_SECONDS
        async with self._lock:
            if self._answer is None or self._began < fresh:
                now = time.monotonic()
                seen = await asyncio.gather(*(self._see(dependency) for dependency in self.dependencies))
                self._began = min((result.began for result in seen), default=now)
                self._answer = self._sum_up([result.state for result in seen])
            return self._answer

    async def _see(self, dependency: Dependency) -> Seen:
        async def probe() -> Seen:
            began = time.monotonic()
            return Seen(await _probe(dependency, self.patience), began)

        return await self.shared.see(dependency, probe) if self.shared and dependency.remote else await probe()

    def _sum_up(self, states: Sequence[ServiceStatus]) -> HealthResponse:
        services: dict[str, ServiceStatus] = {}
        worst = "healthy"
        for dependency, state in zip(self.dependencies, states, strict=True):
            services[dependency.name] = state
            if dependency.also_as:
                services[dependency.also_as] = state
            if state.status == "down" and dependency.vital:
                worst = "unhealthy"
            elif state.status != "up" and worst == "healthy":
                worst = "degraded"
        return HealthResponse.model_validate(
            {"status": worst, "services": services, "timestamp": datetime.now(UTC), "version": __version__}
        )


def _without_places(message: str | None) -> str | None:
    """A message without file paths and addresses."""
    return message and _PLACE.sub("…", message)


async def _probe(dependency: Dependency, patience: float) -> ServiceStatus:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(patience):
            degraded = await dependency.probe()
    except TimeoutError:
        return ServiceStatus(status="down", engine=dependency.engine, message=f"no answer within {patience:g} seconds")
    except ChapterverseError as failure:
        return ServiceStatus(status="down", engine=dependency.engine, message=failure.message)
    except Exception:  # a bug in one probe must not hide the results of the others
        log.exception("the probe of %s failed with an unexpected error", dependency.name)
        return ServiceStatus(status="down", engine=dependency.engine, message="failed with an unexpected error")
    latency = round((time.perf_counter() - started) * 1000, 3)
    if degraded:
        return ServiceStatus(status="degraded", engine=dependency.engine, latency_ms=latency, message=degraded)
    return ServiceStatus(status="up", engine=dependency.engine, latency_ms=latency)
