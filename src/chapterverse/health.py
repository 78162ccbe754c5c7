"""Whether each dependency can be used now: real probes, limited in time, remembered for a moment.

A probe costs no paid tokens and shows no secret. Where workers share what they find (`api.shared_health`), a server
that all of them use is probed by one of them at a time.
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

# Together below 5 s: after that a change must be visible (SPEC 2.3).
PROBE_SECONDS: Final = 2.5  # a dependency that does not answer by then is down
REMEMBER_SECONDS: Final = 1.5  # so that a busy orchestrator's questions cost nothing


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that other hosts use as well, and how it is asked. Two that are equal have the same state."""

    url: str = field(repr=False)  # perhaps with a password
    key: str = field(default="", repr=False)
    part: str = ""  # the collection or model


@dataclass(frozen=True, slots=True)
class Dependency:
    """Something that answers need. Without a vital one nothing can be served."""

    name: str
    engine: str
    why: str  # this engine was chosen
    probe: Callable[[], Awaitable[str | None]]  # raises when it is down; returns what is wrong when it is degraded
    vital: bool
    also_as: str = ""  # the vendor's name, which the seeds use
    remote: Remote | None = None  # None: of this host or process alone
    public: str = ""  # the engine without addresses and paths, for callers without a key; empty: the same


@dataclass(frozen=True, slots=True)
class Seen:
    """What a probe found."""

    state: ServiceStatus
    began: float  # when it began, by this process's monotonic clock: it tells nothing of what happened later


class LastCall:
    """Whether the last real call to a model failed, so that its health does not rest on a list of models.

    A model whose last call failed is down until a call succeeds: nothing else could tell without paid tokens. Readiness
    (`/readyz`) does not depend on it, so that questions still arrive and the next of them tells. Each worker knows of
    its own calls."""

    def __init__(self, probe: Callable[[], Awaitable[None]]) -> None:
        self._probe = probe  # of the model's server
        self._failure = ""

    def worked(self) -> None:
        """Note a call that was answered."""
        self._failure = ""

    def failed(self, why: str) -> None:
        """Note a call that failed."""
        self._failure = why

    async def probe(self) -> None:
        """Raise if the server cannot be reached, or if the last call failed."""
        await self._probe()
        if self._failure:
            raise AgentUnavailable(self._failure)


class Shared(Protocol):
    """Where workers tell each other what their probes found."""

    async def see(self, dependency: Dependency, probe: Callable[[], Awaitable[Seen]]) -> Seen:
        """What another worker found just now, or what this one finds. Never fails."""


@dataclass(slots=True)
class Health:
    """Probes all dependencies at once."""

    dependencies: tuple[Dependency, ...]
    patience: float = PROBE_SECONDS
    shared: Shared | None = None
    _answer: HealthResponse | None = None
    _began: float = 0.0  # when the first of its probes did
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def check_publicly(self) -> HealthResponse:
        """The state of everything, without addresses and paths."""
        whole = await self.check()
        services = dict(whole.services)
        for dependency in self.dependencies:
            for name in filter(None, (dependency.name, dependency.also_as)):
                state = services[name]
                engine = dependency.public or dependency.engine
                services[name] = state.model_copy(update={"engine": engine, "message": _without_places(state.message)})
        return whole.model_copy(update={"services": services})

    async def check(self) -> HealthResponse:
        """The state of everything, at most `REMEMBER_SECONDS` old when it was asked for; of a server that another
        worker probes right now, `PROBE_SECONDS` more."""
        fresh = time.monotonic() - REMEMBER_SECONDS
        async with self._lock:
            if self._answer is None or self._began < fresh:
                now = time.monotonic()
                seen = await asyncio.gather(*(self._see(dependency) for dependency in self.dependencies))
                self._began = min((one.began for one in seen), default=now)
                self._answer = self._sum_up([one.state for one in seen])
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
    except Exception:  # one probe with a fault of its own must not hide how the others do
        log.exception("the probe of %s failed with an unexpected error", dependency.name)
        return ServiceStatus(status="down", engine=dependency.engine, message="failed with an unexpected error")
    latency = round((time.perf_counter() - started) * 1000, 3)
    if degraded:
        return ServiceStatus(status="degraded", engine=dependency.engine, latency_ms=latency, message=degraded)
    return ServiceStatus(status="up", engine=dependency.engine, latency_ms=latency)
