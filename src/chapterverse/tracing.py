"""OpenTelemetry traces of answers, by the conventions for generative AI. Needs the extra `chapterverse[otel]`.

An answer is a span `invoke_agent` with child spans for the search and the model. Each statement's proof is an event of
the span. Spans contain no question, answer, address or session.

OpenTelemetry's own variables configure it (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`);
without an endpoint it is not imported.
"""

import logging
import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from chapterverse import __version__
from chapterverse.errors import ChapterverseError
from chapterverse.models import ChunkEvent, DoneEvent, ErrorEvent, Event, RetrievedEvent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
AGENT: Final = "chapterverse"
TOOL: Final = "search_documentation"
_MILLISECOND: Final = 1_000_000  # nanoseconds


def open_tracing(provider: str) -> "Tracing | None":
    """Tracing to the collector in the environment; None if there is none. `provider`: the provider of the model."""
    if not any(os.environ.get(name) for name in ENDPOINTS) or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        log.warning("an OpenTelemetry endpoint is set, but sending traces needs: pip install 'chapterverse[otel]'")
        return None
    return Tracing(provider, OTLPSpanExporter())


class Tracing:
    """Makes and sends the traces of one server. OpenTelemetry's global provider is not changed."""

    def __init__(self, provider: str, exporter: "SpanExporter") -> None:
        from opentelemetry import propagate
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = Resource.create({SERVICE_NAME: AGENT, SERVICE_VERSION: __version__})
        self._provider = TracerProvider(resource=named.merge(OTELResourceDetector().detect()))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = self._provider.get_tracer(AGENT, __version__)
        self.extract = propagate.extract
        self.model_provider = provider

    def answer(self, headers: Mapping[str, str]) -> "AnswerTrace":
        """Start the trace of an answer, as a child of the trace in the request's headers."""
        return AnswerTrace(self, headers)

    def close(self) -> None:
        """Send the remaining spans. Blocks."""
        self._provider.shutdown()


class AnswerTrace:
    """The trace of one answer, made from its events. A context manager."""

    def __init__(self, tracing: Tracing, headers: Mapping[str, str]) -> None:
        self._tracing = tracing
        given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT}
        self._context = tracing.extract(headers)
        self._span = tracing.tracer.start_span(
            f"invoke_agent {AGENT}", self._context, attributes=given | {"gen_ai.provider.name": tracing.model_provider}
        )
        self._retrieved = 0  # when the passages were found, in nanoseconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the trace, also after a disconnect or a failure."""
        if error is not None:
            self._fail(error.code if isinstance(error, ChapterverseError) else type(error).__name__)
        self._span.end()

    def see(self, event: Event) -> None:
        """Record an event of the answer."""
        match event:
            case RetrievedEvent():
                self._retrieved = time.time_ns()
            case ChunkEvent(kind=str(kind)):
                self._verdict(kind)
            case ErrorEvent():
                self._fail(event.error_code)
            case DoneEvent():
                self._done(event)

    def _verdict(self, label: str, **more: Any) -> None:
        attributes = {"gen_ai.evaluation.name": "evidence", "gen_ai.evaluation.score.label": label}
        self._span.add_event("gen_ai.evaluation.result", attributes | more)

    def _fail(self, code: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_status(StatusCode.ERROR)
        self._span.set_attribute("error.type", code)

    def _done(self, event: DoneEvent) -> None:
        metadata, now = event.metadata, time.time_ns()
        for label, count in (("withheld", metadata.sentences_withheld), ("replaced", metadata.sentences_replaced)):
            if count:
                self._verdict(label, **{"chapterverse.statements": count})
        read = metadata.tokens_used - metadata.tokens_written
        usage = {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": metadata.tokens_written}
        self._span.set_attributes(
            {
                "gen_ai.request.model": metadata.model,
                "chapterverse.status": event.status,
                "chapterverse.mode": event.mode,
                "chapterverse.confidence": event.confidence,
                "chapterverse.judge.calls": metadata.judge_calls,
                "chapterverse.judge.tokens": metadata.judge_tokens,
                **usage,
            }
        )
        if self._retrieved:
            found = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": TOOL}
            start = self._retrieved - int(metadata.retrieval_time_ms * _MILLISECOND)
            self._child_span(f"execute_tool {TOOL}", start, self._retrieved, found)
        if metadata.llm_calls:
            asked = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": metadata.model,
                "chapterverse.calls": metadata.llm_calls,
            }
            start = now - int(metadata.generation_time_ms * _MILLISECOND)
            self._child_span(f"chat {metadata.model}", start, now, asked | usage)

    def _child_span(self, name: str, start: int, end: int, attributes: dict[str, Any]) -> None:
        from opentelemetry.trace import set_span_in_context

        own = {"gen_ai.provider.name": self._tracing.model_provider}
        span = self._tracing.tracer.start_span(
            name, set_span_in_context(self._span), attributes=own | attributes, start_time=start
        )
        span.end(end)
