"""`GET /suggestions` over real HTTP, from what is kept; a real server makes it in the background."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from chapterverse.book import Fingerprint, Manifest
from chapterverse.config import Settings
from chapterverse.evaluation.suggesting import Suggestion
from chapterverse.evaluation.suggestions import Shelf, StoredSuggestions
from tests.api.test_errors import refused
from tests.faults.processes import end, start
from tests.scripted import without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

OFFERED = [
    Suggestion(question=f"What is part {number}?", page=f"https://docs.example.com/{number}") for number in range(9)
]


class OneBook:
    """An index of which only the manifest is asked for."""

    async def manifest(self) -> Manifest:
        return Manifest(Fingerprint("m", 3, "d"), "g", "2026-11-01T00:00:00", 9, 9)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serve(Settings.load(chapterverse_home=tmp_path), opening=without_engines(index=OneBook())) as served:
        yield served


def keep(home: Path, offered: list[Suggestion]) -> None:
    Shelf(home).write(StoredSuggestions(book="g", model="m", made_at=datetime.now(UTC), suggestions=offered))


def test_what_is_kept_is_offered_and_seen_anew_when_it_changes(server: Served, tmp_path: Path) -> None:
    assert server.http.get("/suggestions").json() == {"suggestions": []}
    keep(tmp_path, OFFERED)
    given = server.http.get("/suggestions").json()["suggestions"]
    assert given == [one.model_dump() for one in OFFERED[:6]]
    assert len(server.http.get("/suggestions", params={"limit": 2}).json()["suggestions"]) == 2
    keep(tmp_path, OFFERED[:1])
    assert len(server.http.get("/suggestions").json()["suggestions"]) == 1


def test_the_questions_of_a_page_come_first(server: Served, tmp_path: Path) -> None:
    keep(tmp_path, OFFERED)
    given = server.http.get("/suggestions", params={"page": "https://docs.example.com/7#part"}).json()["suggestions"]
    assert [one["question"] for one in given[:2]] == ["What is part 7?", "What is part 0?"]


def test_a_bad_limit_is_refused(server: Served) -> None:
    refused(server.http.get("/suggestions", params={"limit": 0}), 400, "validation_error")


def test_a_server_makes_them_in_the_background(example_home: Path) -> None:
    (example_home / "suggestions.json").unlink(missing_ok=True)
    server = start(example_home, suggestions=3)
    try:
        server.wait_until_ready()
        deadline = time.monotonic() + 60
        offered: list[dict[str, str]] = []
        while not offered and time.monotonic() < deadline:
            offered = httpx2.get(f"{server.url}/suggestions", trust_env=False).json()["suggestions"]
            time.sleep(0.2)  # between looks at the server's state
        assert len(offered) == 3
        answer = httpx2.post(f"{server.url}/chat", json={"query": offered[0]["question"]}, trust_env=False, timeout=30)
        assert answer.json()["status"] == "answered"
    finally:
        end(server)
