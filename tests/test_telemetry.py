"""Logs: one JSON line per request, without questions and secrets."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from chapterverse.settings import Settings
from chapterverse.telemetry import JsonLines, TerminalLines, pseudonym, secrets_of
from tests.scripted import Scripted, wait_until, without_engines
from tests.served import Served, serve


class Lines(logging.Handler):
    """Collects the formatted log lines."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.setFormatter(JsonLines(secrets_of(settings)))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def of(self, request_id: str) -> dict[str, Any]:
        """Waits for the line of a request, which is written shortly after the response."""

        def found() -> list[dict[str, Any]]:
            lines = [json.loads(line) for line in self.lines]
            return [line for line in lines if line.get("request_id") == request_id and "ms" in line]

        wait_until(lambda: bool(found()))
        assert len(found()) == 1
        return found()[0]


SETTINGS = {"api_keys": "s3cr3t-key", "database_url": "postgresql://u:s3cr3t-word@h/d"}


@pytest.fixture
def logged() -> Iterator[Lines]:
    handler = Lines(Settings.load(**SETTINGS))
    logger = logging.getLogger("chapterverse")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.fixture
def server() -> Iterator[Served]:
    with serve(Settings.load(**SETTINGS), opening=without_engines(), answering=Scripted()) as served:
        yield served


@pytest.mark.slow
def test_request_is_logged_as_one_line(server: Served, logged: Lines) -> None:
    key = {"Authorization": "Bearer s3cr3t-key"}
    server.http.post("/chat", json={"query": "answer"}, headers=key | {"X-Request-ID": "one"})
    line = logged.of("one")
    assert line.pop("ms") >= 0
    assert len(line.pop("client")) == 12
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "chapterverse.requests",
        "message": "request",
        "method": "POST",
        "route": "/chat",
        "status": 200,
        "request_id": "one",
        "answer": "answered",
        "confidence_level": "high",
    }


@pytest.mark.slow
def test_failures_are_logged_without_questions_and_secrets(server: Served, logged: Lines) -> None:
    key = {"X-API-Key": "s3cr3t-key"}
    bodies = [{"query": "fail agent_unavailable"}, {"query": "break"}, {"query": "private words", "top_k": 0}]
    for number, body in enumerate(bodies):
        server.http.post("/chat/stream?secret=private", json=body, headers=key | {"X-Request-ID": f"n{number}"})
    server.http.post("/chat", json={"query": "x"}, headers={"X-API-Key": "guess-private", "X-Request-ID": "n3"})
    codes = [logged.of(f"n{number}")["error_code"] for number in range(4)]
    assert codes == ["agent_unavailable", "internal_error", "validation_error", "unauthorized"]
    assert [logged.of(f"n{number}")["status"] for number in range(4)] == [200, 200, 400, 401]
    text = "\n".join(logged.lines)
    assert "ZeroDivisionError" in text  # the log has the traceback, which the client does not get
    for hidden in ("private", "s3cr3t", "127.0.0.1"):
        assert hidden not in text, hidden


@pytest.mark.slow
def test_disconnected_client_is_logged_with_status_499(server: Served, logged: Lines) -> None:
    with pytest.raises(httpx2.TimeoutException):
        headers = {"X-API-Key": "s3cr3t-key", "X-Request-ID": "left"}
        server.http.post("/chat", json={"query": "pause 30"}, headers=headers, timeout=0.3)
    assert logged.of("left")["status"] == 499


@pytest.mark.slow
def test_probes_are_not_logged_at_info_level(server: Served, logged: Lines) -> None:
    server.http.get("/livez", headers={"X-Request-ID": "probe"})
    server.http.get("/nowhere", headers={"X-Request-ID": "lost"})
    assert logged.of("lost")["route"] == "unmatched"
    assert not any('"probe"' in line for line in logged.lines)


def test_secrets_are_masked_in_messages_and_tracebacks() -> None:
    settings = Settings.load(api_keys='a-long-key,a-long,with"quote', redis_url="redis://:word@h")
    try:
        raise RuntimeError('cannot use a-long-key nor with"quote at redis://:word@h')
    except RuntimeError as failure:
        trace = (RuntimeError, failure, failure.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "failed with %s", ("a-long-key",), trace)
    line = JsonLines(secrets_of(settings)).format(record)
    assert json.loads(line)["message"] == "failed with ***"
    for secret in ("a-long", "quote", "word"):
        assert secret not in json.loads(line)["exception"].split("RuntimeError: ")[1]
    assert "\n" not in line


@pytest.mark.slow
def test_server_process_logs_json_only() -> None:
    program = (
        "import logging\n"
        "from chapterverse.settings import Settings\n"
        "from chapterverse.telemetry import log_to_stderr\n"
        "from uvicorn import Config\n"
        "Config('x:y')\n"  # uvicorn configures logging before the application exists
        "log_to_stderr(Settings.load(openai_api_key='s3cr3t'))\n"
        "logging.getLogger('uvicorn.error').warning('logged s3cr3t')\n"
        "logging.getLogger('chapterverse.requests').info('request', extra={'status': 200})\n"
        "logging.getLogger('chapterverse.requests').debug('not logged')\n"
        "logging.getLogger('uvicorn.access').info('192.0.2.1 - GET /x?not=logged')\n"
        "logging.getLogger('elsewhere').info('not logged')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    assert [line["message"] for line in lines] == ["logged ***", "request"]
    assert lines[1]["status"] == 200
    assert run.stdout == ""


def test_lines_for_a_terminal_are_short_and_without_secrets() -> None:
    lines = TerminalLines(["s3cr3t-key"])
    record = logging.LogRecord("chapterverse.requests", logging.INFO, "", 1, "request", (), None)
    record.method, record.status, record.request_id, record.client = "GET", 200, "5f2b", "0514"
    assert lines.format(record)[8:] == " request method=GET status=200"
    try:
        raise RuntimeError("no s3cr3t-key")
    except RuntimeError as failure:
        trace = (RuntimeError, failure, failure.__traceback__)
    failed = lines.format(logging.LogRecord("x", logging.ERROR, "", 1, "failed with %s", ("s3cr3t-key",), trace))
    assert failed[8:].startswith(" error: failed with ***\nTraceback")
    assert failed.endswith("RuntimeError: no ***")


def test_pseudonym_is_stable_and_hides_the_address() -> None:
    assert pseudonym("192.0.2.1") == pseudonym("192.0.2.1") != pseudonym("192.0.2.2")
    assert "192" not in pseudonym("192.0.2.1")


def test_short_secret_is_masked_only_as_a_whole_word() -> None:
    settings = Settings.load(openai_api_key="x", api_keys="1,:,hunter2")
    record = logging.LogRecord("x", logging.INFO, "", 1, "next: Bearer x, hunter2 (hunter22)", (), None)
    record.status, record.taken = 1, {"exit": ["x", 1.5]}
    line = json.loads(JsonLines(secrets_of(settings)).format(record))
    assert line["message"] == "next: Bearer ***, *** (hunter22)"
    assert (line["status"], line["taken"], line["level"]) == (1, {"exit": ["***", 1.5]}, "INFO")
