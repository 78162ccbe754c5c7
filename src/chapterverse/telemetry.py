"""Logs, as JSON lines or as plain lines on a terminal, and Prometheus metrics.

They contain no question, answer, address or secret: clients appear as a hash that changes with every start, and the
values of secret settings are removed from log lines.
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

LEAST_SECRET: Final = 8  # characters; a shorter secret is removed only as a whole word
SHARED_COUNTS: Final = "PROMETHEUS_MULTIPROC_DIR"  # folder of the counts of all workers; Prometheus's library reads it
LOOK_SECONDS: Final = 1.0  # between two updates of watched gauges for other workers
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Seconds: from a search to the request's limit.
_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0)
_SALT: Final = secrets.token_bytes(16)  # random for each process, so that hashes of clients cannot be looked up
_STATES: Final = {"up": 1.0, "degraded": 0.5, "down": 0.0}
# Attributes of every record; others were given with `extra`.
_NOT_FOR_PEOPLE: Final = {"time", "level", "logger", "message", "client", "request_id"}
_PLAIN: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def pseudonym(client: str) -> str:
    """A pseudonym for a client, which is the same until the process ends."""
    return hashlib.blake2b(client.encode(), key=_SALT, digest_size=6).hexdigest()


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, without the given secrets."""

    def __init__(self, hidden: Iterable[str] = ()) -> None:
        super().__init__()
        # Longer secrets come first, because one may contain another. A short one, such as the "x" that is used as the
        # key of a local model server, is replaced only as a whole word; otherwise it would be replaced inside other
        # words.
        ordered = [re.escape(secret) for secret in sorted(hidden, key=len, reverse=True)]
        short = [rf"(?<!\w){secret}(?!\w)" for secret in ordered if len(secret) < LEAST_SECRET]
        long = [secret for secret in ordered if len(secret) >= LEAST_SECRET]
        self._hidden = re.compile("|".join(long + short)) if ordered else None

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        return json.dumps(self._fields(record), ensure_ascii=False)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        fields: dict[str, Any] = self._redacted(line)
        return fields

    def _redacted(self, value: Any) -> Any:
        """The value without secrets. Numbers are never secrets, and the names of fields are ours."""
        match value:
            case None | bool() | int() | float():
                return value
            case dict():
                return {str(name): self._redacted(item) for name, item in value.items()}
            case list() | tuple():
                return [self._redacted(item) for item in value]
        return self._hidden.sub("***", str(value)) if self._hidden else str(value)


class TerminalLines(JsonLines):
    """Formats a record for people, without the fields that only log searches need."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line: the local time, the level if it matters, the message and the other fields."""
        fields = self._fields(record)
        trace = fields.pop("exception", "")
        level = f"{record.levelname.lower()}: " if record.levelno > logging.INFO else ""
        more = [f"{name}={value}" for name, value in fields.items() if name not in _NOT_FOR_PEOPLE]
        moment = datetime.fromtimestamp(record.created).astimezone()
        line = " ".join([f"{moment:%H:%M:%S} {level}{fields['message']}", *more])
        return f"{line}\n{trace}" if trace else line


def log_to_stderr(settings: Settings) -> None:
    """Log to stderr, including uvicorn's records: JSON lines, or on a terminal lines for people."""
    handler = logging.StreamHandler(sys.stderr)
    style = TerminalLines if sys.stderr.isatty() else JsonLines
    handler.setFormatter(style(secrets_of(settings)))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("chapterverse").setLevel(settings.log_level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        server = logging.getLogger(name)
        server.handlers.clear()
        # Not uvicorn's access log, which contains addresses and query strings; we log requests ourselves.
        server.propagate = name != "uvicorn.access"


def secrets_of(settings: Settings) -> set[str]:
    """The values of all secret settings."""
    found: set[str] = set()
    for value in dict(settings).values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, SecretStr) and item.get_secret_value():
                found.add(item.get_secret_value())
    return found


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Telemetry:
    """The metrics of one application. `shared`: a folder in which several workers count; the metrics are summed. The
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
        self.errors = self._counter("errors", "Errors sent to clients, also inside of streams.", "error_code")
        self.answers = self._counter("answers", "Questions answered or refused.", "status", "confidence_level", "mode")
        self.sentences = self._counter("sentences", "Sentences of answers.", "outcome")
        self.tokens = self._counter("tokens", "Tokens used by the language model.", "model")
        self.llm_calls = self._counter("llm_calls", "Calls of the language model.", "model")
        self.unstored = self._counter("unstored_turns", "Turns that could not be stored.")
        self.uncounted = self._counter(
            "rate_limit_fallbacks", "Requests counted by this process, because Redis was not available."
        )
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
        """Set a gauge from a function. With several workers it is updated every second."""
        if self._shared:
            self._watched.append((gauge, value))
        else:
            gauge.set_function(value)

    @asynccontextmanager
    async def telling_workers(self) -> AsyncIterator[None]:
        """Update the watched gauges for other workers."""
        work = asyncio.create_task(self._update_watched())
        try:
            yield
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work

    async def _update_watched(self) -> None:
        while self._watched:
            for gauge, value in self._watched:
                gauge.set(value())
            await asyncio.sleep(LOOK_SECONDS)

    def see_event(self, event: Event, *, is_kept: bool = True) -> None:
        """Count an event of an answer; `is_kept`: whether its turn should be stored."""
        match event:
            case ChunkEvent():
                self.sentences.labels("shown").inc()
            case DoneEvent():
                self.answers.labels(event.status, event.confidence_level, event.mode).inc()
                metadata = event.metadata
                self.sentences.labels("withheld").inc(metadata.sentences_withheld)
                self.tokens.labels(metadata.model).inc(metadata.tokens_used)
                self.llm_calls.labels(metadata.model).inc(metadata.llm_calls)
                self.unstored.inc(is_kept and not metadata.stored)

    def see_health(self, health: HealthResponse) -> None:
        """Set the gauges of the dependencies."""
        if not self._shared:  # shared gauges cannot be cleared
            self.dependency.clear()
        for name, service in health.services.items():
            self.dependency.labels(name, service.engine).set(_STATES[service.status])

    def exposition(self) -> bytes:
        """All metrics in the format of Prometheus."""
        return generate_latest(summed_over_workers(Path(self._shared)) if self._shared else self.registry)


def summed_over_workers(folder: Path) -> CollectorRegistry:
    """The metrics of all workers. Counters of dead workers are included, their gauges are not."""
    workers = {int(file.stem.rsplit("_", 1)[1]) for file in folder.glob("*.db")}
    alive = sorted(pid for pid in workers if _is_alive(pid))
    for pid in workers.difference(alive):
        mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    registry.register(_Processes(alive))
    return registry


class _Processes(Collector):
    """Memory, processor time and open files of several processes, summed."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._collectors = [ProcessCollector(pid=partial(int, pid), registry=None) for pid in pids]

    def collect(self) -> Iterator[Metric]:
        """Each metric once: the sum, or the minimum of the start times."""
        found: dict[str, Metric] = {}
        for collector in self._collectors:
            for metric in collector.collect():
                total = found.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for number, sample in enumerate(metric.samples):
                    if number == len(total.samples):
                        total.samples.append(sample)
                    else:
                        join = min if sample.name.endswith("_start_time_seconds") else float.__add__
                        value = join(float(total.samples[number].value), float(sample.value))
                        total.samples[number] = total.samples[number]._replace(value=value)
        yield from found.values()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
