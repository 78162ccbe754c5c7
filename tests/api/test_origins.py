"""A warning in the log names origins that `CORS_ORIGINS` does not list, and the setting that would allow them."""

import json
import logging
from collections.abc import Iterator

import pytest

from chapterverse.api.middleware import cors_log
from chapterverse.settings import Settings
from chapterverse.telemetry import JsonLines
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

DOCS = "https://docs.example.com"


class Lines(logging.Handler):
    """Collects log lines as they are written in production."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.seen: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(json.loads(self.format(record)))


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    cors_log.addHandler(lines)
    yield lines
    cors_log.removeHandler(lines)


def ask(server: Served, origin: str, **headers: str) -> None:
    wanted = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    server.http.options("/chat/stream", headers=wanted | headers)  # the preflight of a browser
    server.http.post("/chat/stream", json={"query": "answer"}, headers={"Origin": origin} | headers)


@pytest.mark.parametrize(
    ("allowed", "setting"),
    [
        ("", f"CORS_ORIGINS={DOCS}"),
        ("https://a.example,https://b.example", f"CORS_ORIGINS=https://a.example,https://b.example,{DOCS}"),
    ],
)
def test_unlisted_origin_is_logged_once_with_the_setting(lines: Lines, allowed: str, setting: str) -> None:
    settings = Settings.load(cors_origins=allowed)
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        ask(server, DOCS)
        ask(server, DOCS)
    (line,) = lines.seen
    assert (line["level"], line["origin"], line["setting"]) == ("WARNING", DOCS, setting)
    assert line["message"].endswith(f"To allow it: {setting}")
    allows = Settings.load(cors_origins=setting.partition("=")[2])
    assert DOCS in allows.cors_origins


def test_allowed_origins_and_same_origin_requests_are_not_logged(lines: Lines) -> None:
    settings = Settings.load(cors_origins=DOCS)
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        ask(server, DOCS)
        ask(server, server.url)  # the reader page
        ask(server, "https://ask.example.com", **{"Sec-Fetch-Site": "same-origin"})  # behind a proxy with another name
        ask(server, "moz-extension://0f3a")
        ask(server, "https://evil.example/\tpath")
    with serve(Settings.load(cors_origins="*"), opening=without_engines(), answering=Scripted()) as server:
        ask(server, DOCS)
    assert lines.seen == []


def test_null_origin_is_logged_with_a_hint(lines: Lines) -> None:
    with serve(Settings.load(), opening=without_engines(), answering=Scripted()) as server:
        ask(server, "null")
    (line,) = lines.seen
    assert "Serve the page over HTTP" in line["message"]


def test_number_of_logged_origins_is_limited(lines: Lines) -> None:
    settings = Settings.load(api_rate_limit=100_000)
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        for number in range(150):
            server.http.get("/livez", headers={"Origin": f"https://site-{number}.example"})
    assert len(lines.seen) == 100
