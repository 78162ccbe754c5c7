"""Traces of answers: a collector gets spans without texts; without one, OpenTelemetry is not imported."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from fastapi import FastAPI
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from chapterverse.models import AnswerMetadata, ChunkEvent, DoneEvent
from chapterverse.settings import Settings
from chapterverse.tracing import Tracing, open_tracing
from tests.scripted import Scripted, wait_until, without_engines
from tests.served import Served, serve

CALLER = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


class Traced:
    """A server whose spans are collected."""

    def __init__(self, served: Served, tracing: Tracing, spans: InMemorySpanExporter) -> None:
        self.http, self._tracing, self._spans = served.http, tracing, spans

    def take(self) -> list[ReadableSpan]:
        """Waits for the spans of an answer, which end shortly after its last byte; returns them."""

        def has_ended() -> bool:
            self._tracing._provider.force_flush()
            return any(span.name.startswith("invoke_agent") for span in self._spans.get_finished_spans())

        wait_until(has_ended)
        spans = list(self._spans.get_finished_spans())
        self._spans.clear()
        return spans


@pytest.fixture(scope="module")
def traced() -> Iterator[Traced]:
    spans = InMemorySpanExporter()
    tracing = Tracing("openai", spans)

    def prepare(app: FastAPI) -> None:
        app.state.tracing = tracing

    with serve(Settings.load(), opening=without_engines(), answering=Scripted(), prepare=prepare) as served:
        yield Traced(served, tracing, spans)
    tracing.close()


@pytest.mark.slow
@pytest.mark.parametrize("route", ["/chat", "/chat/stream"])
def test_answer_span_has_search_and_model_as_children(traced: Traced, route: str) -> None:
    assert traced.http.post(route, json={"query": "answer"}, headers=CALLER).status_code == 200
    spans = {span.name: span for span in traced.take()}
    assert set(spans) == {"invoke_agent chapterverse", "execute_tool search_documentation", "chat gemini-3.8-flash"}
    agent = spans["invoke_agent chapterverse"]
    given: Any = agent.attributes
    assert given["gen_ai.operation.name"] == "invoke_agent"
    assert given["gen_ai.provider.name"] == "openai"
    assert given["chapterverse.status"] == "answered"
    assert given["gen_ai.usage.input_tokens"] + given["gen_ai.usage.output_tokens"] == 1460
    context = agent.get_span_context()
    assert context is not None and agent.parent is not None
    assert f"{agent.parent.span_id:016x}" == "00f067aa0ba902b7", "the parent is the caller's span"
    for name in ("execute_tool search_documentation", "chat gemini-3.8-flash"):
        parent = spans[name].parent
        assert parent is not None and parent.span_id == context.span_id
    exported = json.dumps([json.loads(span.to_json()) for span in spans.values()])
    for text in ("session", "192.", "127.0.0.1"):
        assert text not in exported


def test_kind_of_proof_of_each_statement_is_an_event() -> None:
    spans = InMemorySpanExporter()
    tracing = Tracing("openai", spans)
    metadata = AnswerMetadata(
        query_time_ms=9.0,
        retrieval_time_ms=2.0,
        generation_time_ms=5.0,
        chunks_retrieved=1,
        model="m",
        tokens_used=0,
        llm_calls=0,
        sentences_withheld=2,
    )
    with tracing.answer({}) as trace:
        trace.see(ChunkEvent(content="The secret is out. ", kind="quoted"))
        trace.see(ChunkEvent(content="It is known.", kind="supported"))
        trace.see(
            DoneEvent(
                mode="general",
                session_id="a-session",
                timestamp=datetime.now(UTC),
                confidence=0.9,
                confidence_level="high",
                should_answer=True,
                status="answered",
                metadata=metadata,
            )
        )
    tracing.close()
    (span,) = spans.get_finished_spans()
    results = [event.attributes or {} for event in span.events if event.name == "gen_ai.evaluation.result"]
    labels = [one["gen_ai.evaluation.score.label"] for one in results]
    assert labels == ["quoted", "supported", "withheld"]
    assert results[-1]["chapterverse.statements"] == 2
    for text in ("secret", "known", "a-session"):
        assert text not in span.to_json()


@pytest.mark.slow
def test_failed_answer_has_the_error_code(traced: Traced) -> None:
    traced.http.post("/chat/stream", json={"query": "fail agent_unavailable"})
    (span,) = traced.take()
    assert (span.attributes or {})["error.type"] == "agent_unavailable"
    assert span.status.status_code.name == "ERROR"


@pytest.mark.slow
def test_configured_collector_gets_the_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "my-docs")
        tracing = open_tracing("chapterverse")
        assert tracing is not None
        with tracing.answer({}):
            pass
        tracing.close()
        server.shutdown()
    ((path, body),) = got
    assert path == "/v1/traces"
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"] == "my-docs"
    assert resource.scope_spans[0].spans[0].name == "invoke_agent chapterverse"


def test_tracing_is_off_without_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_tracing("chapterverse") is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert open_tracing("chapterverse") is None


def test_missing_extra_is_named_in_a_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert open_tracing("chapterverse") is None
    assert "chapterverse[otel]" in caplog.text


def test_name_of_the_service_may_be_a_resource_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> object:
        return Tracing("openai", InMemorySpanExporter())._provider.resource.attributes["service.name"]

    assert name() == "chapterverse"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=docs-prod")
    assert name() == "docs-prod"


@pytest.mark.slow
def test_server_without_a_collector_does_not_import_opentelemetry() -> None:
    code = (
        "import sys; from chapterverse.main import create_app; from chapterverse.settings import Settings; "
        "create_app(Settings.load()); print([name for name in sys.modules if 'opentelemetry.sdk' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
