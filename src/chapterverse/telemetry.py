"""What operators see: one JSON line per log record, and Prometheus metrics.

Logs and metrics contain no question, answer, address or secret: clients appear as a hash that changes with every start,
and the values of secret settings are removed from whatever is logged.
"""

import asyncio
import hashlib
import json
import logging
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from pydantic import SecretStr

from chapterverse.models import ChunkEvent, DoneEvent, Event, HealthResponse
from chapterverse.settings import Settings

LEAST_SECRET: Final = 8  # characters from which on a secret is struck out of other words, too
SHARED_COUNTS: Final = "PROMETHEUS_MULTIPROC_DIR"  # where workers of one server count; its library reads the variable
LOOK_SECONDS: Final = 1.0  # between two looks at what workers tell each other
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Seconds: from a search alone to the request's limit.
_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0)
_SALT: Final = secrets.token_bytes(16)  # of this process, so that hashes of clients cannot be looked up
_STATES: Final = {"up": 1.0, "degraded": 0.5, "down": 0.0}
# What every record has; the rest was given with `extra`.
_PLAIN: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def pseudonym(client: str) -> str:
    """A name for a client that tells its requests from others' for as long as the process lives, and nothing else."""
    return hashlib.blake2b(client.encode(), key=_SALT, digest_size=6).hexdigest()


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class JsonLines(logging.Formatter):
    """One record, one line of JSON; the given secrets are struck out."""

    def __init__(self, hidden: Iterable[str] = ()) -> None:
        super().__init__()
        # A secret inside another is struck out after it. A short one, such as the "x" that a local model server takes
        # for a key, is struck out where it stands alone: else it would be struck out of every other word.
        ordered = [re.escape(secret) for secret in sorted(hidden, key=len, reverse=True)]
        short = [rf"(?<!\w){secret}(?!\w)" for secret in ordered if len(secret) < LEAST_SECRET]
        long = [secret for secret in ordered if len(secret) >= LEAST_SECRET]
        self._hidden = re.compile("|".join(long + short)) if ordered else None

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(self._struck(line), ensure_ascii=False)

    def _struck(self, value: Any) -> Any:
        """The value without secrets. Numbers are none, and names of fields are ours."""
        match value:
            case None | bool() | int() | float():
                return value
            case dict():
                return {str(name): self._struck(one) for name, one in value.items()}
            case list() | tuple():
                return [self._struck(one) for one in value]
        return self._hidden.sub("***", str(value)) if self._hidden else str(value)


def log_as_json(settings: Settings) -> None:
    """Have this process log JSON lines to stderr, the server's own records too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(secrets_of(settings)))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("chapterverse").setLevel(settings.log_level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        server = logging.getLogger(name)
        server.handlers.clear()
        server.propagate = (
            name != "uvicorn.access"
        )  # it would log addresses and query strings; we log requests ourselves


def secrets_of(settings: Settings) -> set[str]:
    """The values of all secret settings."""
    found: set[str] = set()
    for value in dict(settings).values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, SecretStr) and one.get_secret_value():
                found.add(one.get_secret_value())
    return found


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Telemetry:
    """The metrics of one application. With `shared`, a folder, they are summed over all workers that count there; the
    process must have been started with `SHARED_COUNTS` set to it."""

    def __init__(self, shared: str = "") -> None:
        self._shared = shared
        self._watched: list[tuple[Gauge, Callable[[], float]]] = []
        self.registry = CollectorRegistry()
        if not shared:
            ProcessCollector(registry=self.registry)
        self.requests = self._counter("requests", "Requests answered.", "route", "method", "status")
        self.request_seconds = self._histogram("request_seconds", "Time to the last byte of an answer.", "route")
        self.first_event_seconds = self._histogram("first_event_seconds", "Time to the first event of a stream.")
        self.errors = self._counter("errors", "Errors told to clients, also inside of streams.", "error_code")
        self.answers = self._counter("answers", "Questions answered or refused.", "status", "confidence_level", "mode")
        self.sentences = self._counter("sentences", "Sentences of answers.", "outcome")
        self.tokens = self._counter("tokens", "Tokens used by the language model.", "model")
        self.llm_calls = self._counter("llm_calls", "Calls of the language model.", "model")
        self.unstored = self._counter("unstored_turns", "Turns that could not be kept in their conversation.")
        self.uncounted = self._counter("rate_limit_fallbacks", "Requests counted by this process, for want of Redis.")
        self.queue = self._gauge("queue_length", "Requests waiting for a slot.")
        self.running = self._gauge("running_requests", "Requests that hold a slot.")
        self.streams = self._gauge("active_streams", "Streams that are open.")
        self.dependency = self._gauge(
            "dependency_up", "1 up, 0.5 degraded, 0 down.", "dependency", "engine", summed="livemostrecent"
        )

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"chapterverse_{name}", about, labels, registry=self.registry)

    def _gauge(
        self, name: str, about: str, *labels: str, summed: Literal["livesum", "livemostrecent"] = "livesum"
    ) -> Gauge:
        return Gauge(f"chapterverse_{name}", about, labels, registry=self.registry, multiprocess_mode=summed)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(f"chapterverse_{name}", about, labels, registry=self.registry, buckets=_BUCKETS)

    def watch(self, gauge: Gauge, value: Callable[[], float]) -> None:
        """Have a gauge tell what a function returns. Other workers are told of it every second."""
        if self._shared:
            self._watched.append((gauge, value))
        else:
            gauge.set_function(value)

    @asynccontextmanager
    async def telling_workers(self) -> AsyncIterator[None]:
        """Keep what other workers are told up to date."""
        work = asyncio.create_task(self._tell_again_and_again())
        try:
            yield
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work

    async def _tell_again_and_again(self) -> None:
        while self._watched:
            for gauge, value in self._watched:
                gauge.set(value())
            await asyncio.sleep(LOOK_SECONDS)

    def see_event(self, event: Event, *, is_kept: bool = True) -> None:
        """Count what an event of an answer says; `is_kept`: whether its turn was to be stored at all."""
        match event:
            case ChunkEvent():
                self.sentences.labels("shown").inc()
            case DoneEvent():
                self.answers.labels(event.status, event.confidence_level, event.mode).inc()
                took = event.metadata
                self.sentences.labels("withheld").inc(took.sentences_withheld)
                self.tokens.labels(took.model).inc(took.tokens_used)
                self.llm_calls.labels(took.model).inc(took.llm_calls)
                self.unstored.inc(is_kept and not took.stored)

    def see_health(self, health: HealthResponse) -> None:
        """Remember how each dependency does."""
        if not self._shared:  # what workers share cannot be cleared
            self.dependency.clear()
        for name, service in health.services.items():
            self.dependency.labels(name, service.engine).set(_STATES[service.status])

    def exposition(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(summed_over_workers(Path(self._shared)) if self._shared else self.registry)


def summed_over_workers(folder: Path) -> CollectorRegistry:
    """The metrics of all workers. What one that died had counted still counts; its load does not."""
    workers = {int(file.stem.rsplit("_", 1)[1]) for file in folder.glob("*.db")}
    alive = sorted(pid for pid in workers if _is_alive(pid))
    for pid in workers.difference(alive):
        mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    registry.register(_Processes(alive))
    return registry


class _Processes(Collector):
    """Memory, processor time and open files of several processes together."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._collectors = [ProcessCollector(pid=partial(int, pid), registry=None) for pid in pids]

    def collect(self) -> Iterator[Metric]:
        """Each metric once: the sum, but of the times of start the first."""
        found: dict[str, Metric] = {}
        for collector in self._collectors:
            for metric in collector.collect():
                together = found.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for at, sample in enumerate(metric.samples):
                    if at == len(together.samples):
                        together.samples.append(sample)
                    else:
                        join = min if sample.name.endswith("_start_time_seconds") else float.__add__
                        value = join(float(together.samples[at].value), float(sample.value))
                        together.samples[at] = together.samples[at]._replace(value=value)
        yield from found.values()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
