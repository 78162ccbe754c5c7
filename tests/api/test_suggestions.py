"""`GET /suggestions` over real HTTP: stored suggestions, and a real server that makes them in the background."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from chapterverse.book import Fingerprint, Manifest, Page
from chapterverse.evaluation.suggesting import Suggestion
from chapterverse.evaluation.suggestion_store import Shelf, StoredSuggestions
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from chapterverse.settings import Settings
from tests.api.test_errors import refused
from tests.faults.processes import end, start
from tests.scripted import without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

OFFERED = [
    Suggestion(question=f"What is part {number}?", page=f"https://docs.example.com/{number}") for number in range(9)
]


class OneBook:
    """An index with only a manifest and a list of pages."""

    async def manifest(self) -> Manifest:
        return Manifest(Fingerprint("m", 3, "d"), "g", "2026-11-01T00:00:00", 9, 9)

    async def pages(self) -> list[Page]:
        """The pages in reading order, which differs from the order of the suggestions."""
        documents = [
            Document(one.page, one.page, "", "markdown", b"# A page\n\nIts text.") for one in reversed(OFFERED)
        ]
        return [compose(document, read(document)[0]) for document in documents]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serve(Settings.load(chapterverse_home=tmp_path), opening=without_engines(index=OneBook())) as served:
        yield served


def store(home: Path, offered: list[Suggestion]) -> None:
    Shelf(home).write(StoredSuggestions(book="g", model="m", made_at=datetime.now(UTC), suggestions=offered))


def test_stored_suggestions_are_returned_and_read_again_when_they_change(server: Served, tmp_path: Path) -> None:
    assert server.http.get("/suggestions").json() == {"suggestions": []}
    store(tmp_path, OFFERED)
    given = server.http.get("/suggestions").json()["suggestions"]
    assert given == [one.model_dump() for one in OFFERED[:6]]
    assert len(server.http.get("/suggestions", params={"limit": 2}).json()["suggestions"]) == 2
    store(tmp_path, OFFERED[:1])
    assert len(server.http.get("/suggestions").json()["suggestions"]) == 1


def test_suggestions_nearest_to_the_given_pages_come_first(server: Served, tmp_path: Path) -> None:
    store(tmp_path, OFFERED)

    def parts(*pages: str) -> list[int]:
        addresses = [f"https://docs.example.com/{page}" for page in pages]
        given = server.http.get("/suggestions", params={"page": addresses, "limit": 4}).json()["suggestions"]
        return [int(one["question"][-2]) for one in given]

    assert parts("7#part") == [7, 6, 8, 5]
    assert parts("1#part", "6") == [1, 6, 0, 2], "with several pages, the nearest counts"
    assert parts("elsewhere") == [0, 1, 2, 3], "in the stored order"
    refused(server.http.get("/suggestions", params={"page": "\0"}), 400, "validation_error")


def test_invalid_limit_returns_400(server: Served) -> None:
    refused(server.http.get("/suggestions", params={"limit": 0}), 400, "validation_error")


def test_server_makes_suggestions_in_the_background(example_home: Path) -> None:
    (example_home / "suggestions.json").unlink(missing_ok=True)
    server = start(example_home, suggestions=3)
    try:
        server.wait_until_ready()
        deadline = time.monotonic() + 60
        offered: list[dict[str, str]] = []
        while not offered and time.monotonic() < deadline:
            offered = httpx2.get(f"{server.url}/suggestions", trust_env=False).json()["suggestions"]
            time.sleep(0.2)  # polls
        assert len(offered) == 3
        answer = httpx2.post(f"{server.url}/chat", json={"query": offered[0]["question"]}, trust_env=False, timeout=30)
        assert answer.json()["status"] == "answered"
    finally:
        end(server)
