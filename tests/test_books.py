"""Several books and versions on one server, over HTTP, the command line, MCP and Python."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from bench.editions import BOOK, Fact, ask_all, facts, summary
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from selectolax.lexbor import LexborHTMLParser

from chapterverse import Book
from chapterverse.evaluation.suggesting import Suggestion, make_suggestions
from chapterverse.evaluation.suggestion_store import Shelf, StoredSuggestions
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tests.cli.process import assert_refused, chapterverse
from tests.llm_stub import Calls, Quotes, serving_llm
from tests.served import Served, serve

pytestmark = pytest.mark.slow

KNOWN = facts(parts=3)
PORT, STORAGE = KNOWN[0], KNOWN[9]
OLD = {"book": BOOK, "version": "1.0"}


@pytest.fixture(scope="module")
def server(editions_home: Path, postgres_url: str) -> Iterator[Served]:
    settings = Settings.load(chapterverse_home=editions_home, database_url=postgres_url, api_rate_limit=100_000)
    with serve(settings) as served:
        yield served


def ask(server: Served, query: str, path: str = "/chat", **fields: Any) -> dict[str, Any]:
    answer = server.http.post(path, json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


def cites(answer: dict[str, Any], fact: Fact, version: str) -> bool:
    """Whether the answer cites the fact of this version. Fails if it cites another edition."""
    assert {(source["book"], source["version"]) for source in answer["sources"]} <= {(BOOK, version)}
    return any(fact.text_in(version) in source["quote"] for source in answer["sources"])


def test_books_lists_all_books_and_versions(server: Served) -> None:
    listed = server.http.get("/books").json()
    assert listed["default"] == [{"book": BOOK, "version": "2.0"}, {"book": "robots", "version": ""}]
    harbor, robots = listed["books"]
    assert harbor == {
        "name": BOOK,
        "title": "The Harbor",
        "versions": [{"version": "2.0", "pages": 3}, {"version": "1.0", "pages": 3}],
        "latest": "2.0",
        "pages": 3,
    }
    assert (robots["title"], robots["latest"], robots["pages"]) == ("robots", "", 2)


def test_answer_is_from_the_latest_version_unless_filtered(server: Served) -> None:
    latest = ask(server, PORT.question)
    assert cites(latest, PORT, "2.0")
    assert latest["editions"] == [{"book": BOOK, "version": "2.0"}, {"book": "robots", "version": ""}]
    assert "From “harbor 2.0 › " in latest["answer"], "the answer names its edition"
    old = ask(server, PORT.question, filters=OLD)
    assert cites(old, PORT, "1.0") and old["editions"] == [OLD]
    assert cites(ask(server, PORT.question, filters={"version": "latest"}), PORT, "2.0")
    for source in (*latest["sources"], *old["sources"]):
        text = server.http.get(f"/pages/{source['page_id']}").json()["text"]
        assert text[source["quote_start"] : source["quote_end"]] == source["quote"]


def test_search_and_pages_have_the_same_default_editions(server: Served) -> None:
    def versions(**fields: Any) -> set[tuple[str, str]]:
        found = server.http.post("/search", json={"query": PORT.question, "top_k": 20, **fields}).json()
        return {(result["book"], result["version"]) for result in found["results"]}

    assert (BOOK, "1.0") not in versions()
    assert versions(filters=OLD) == {(BOOK, "1.0")}
    assert versions(filters={"version": ["1.0", "2.0"]}) == {(BOOK, "1.0"), (BOOK, "2.0")}

    def pages(query: str = "") -> list[tuple[str, str]]:
        listed = server.http.get(f"/pages{query}").json()["pages"]
        return sorted({(page["book"], page["version"]) for page in listed})

    assert pages() == [(BOOK, "2.0"), ("robots", "")]
    assert pages("?book=harbor&version=1.0") == [(BOOK, "1.0")]
    assert pages("?book=robots") == [("robots", "")]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"book": "harbour"}, "There is no book harbour here. The books are: harbor, robots."),
        ({"version": "3.0"}, "There is no version 3.0 of harbor, robots."),
        ({"book": "robots", "version": "1.0"}, "There is no version 1.0 of robots."),
    ],
)
def test_unknown_book_or_version_returns_400_with_the_known_ones(server: Served, filters: Any, message: str) -> None:
    for path in ("/chat", "/chat/stream", "/search"):
        refused = server.http.post(path, json={"query": "Which port?", "filters": filters})
        assert (refused.status_code, refused.json()["error_code"]) == (400, "validation_error")
        assert refused.json()["message"].startswith(message) and refused.json()["details"]
    assert server.http.get("/pages", params=filters).status_code == 400


def test_conversation_keeps_its_edition_until_another_is_given(server: Served) -> None:
    first = ask(server, PORT.question, filters=OLD)
    session = {"session_id": first["session_id"]}
    assert cites(ask(server, STORAGE.question, **session), STORAGE, "1.0")
    assert cites(ask(server, PORT.question, **session, filters={"version": "2.0"}), PORT, "2.0"), (
        "another version is given"
    )
    assert cites(ask(server, STORAGE.question, **session), STORAGE, "2.0"), "the new version is kept"
    assert cites(ask(server, PORT.question, **session, filters={"book": BOOK}), PORT, "2.0")
    thread = server.http.get(f"/sessions/{first['session_id']}").json()
    searches = [message["searches"][0] for message in thread["messages"] if message["searches"]]
    assert [search["editions"] for search in searches[:2]] == [[OLD], [OLD]]


def test_refusal_names_only_pages_of_its_edition(server: Served) -> None:
    refused = ask(server, "What does the robot's battery weigh?", filters=OLD)
    assert refused["status"] == "refused"
    assert {(place["book"], place["version"]) for place in refused["nearest"]} == {(BOOK, "1.0")}
    assert "- harbor 1.0 › " in refused["advice"]
    nothing = ask(server, "zxqv blorp", filters=OLD | {"page_title": "No such page"})
    assert {(place["book"], place["version"]) for place in nothing["nearest"]} <= {(BOOK, "1.0")}


def test_answer_from_two_versions_names_both(editions_home: Path, postgres_url: str) -> None:
    with serving_llm() as stub:
        stub.usual = Quotes(count=8)
        settings = Settings.load(
            chapterverse_home=editions_home, database_url=postgres_url, openai_api_key="key", openai_base_url=stub.url,
            judge="off",
        )  # fmt: skip
        with serve(settings) as server:
            both = ask(server, PORT.question, filters={"book": BOOK, "version": ["1.0", "2.0"]})
    versions = [source["version"] for source in both["sources"]]
    assert set(versions) == {"1.0", "2.0"}
    assert re.search(r"\n\nThe sources are of different versions: harbor [12]\.0 \[\d", both["answer"])
    closing = both["answer"].rpartition("\n\n")[2]
    for number, version in enumerate(versions, start=1):
        assert f"[{number}]" in closing.partition(f"harbor {version} ")[2].partition(", harbor")[0]
    shown = json.dumps(stub.requests[0], ensure_ascii=False)
    assert "harbor 1.0 › " in shown and "harbor 2.0 › " in shown, "the model sees which passage is of which version"


def test_model_cannot_search_other_versions(editions_home: Path, postgres_url: str) -> None:
    with serving_llm() as stub:
        again = {"query": PORT.question, "filters": {"book": [BOOK], "version": ["1.0"]}}
        stub.script.extend((Calls(again), Quotes(count=8)))
        settings = Settings.load(
            chapterverse_home=editions_home, database_url=postgres_url, openai_api_key="key", openai_base_url=stub.url,
            judge="off",
        )  # fmt: skip
        with serve(settings) as server:
            answer = ask(server, PORT.question, filters={"book": BOOK})
            assert {source["version"] for source in answer["sources"]} == {"2.0"}


def test_each_edition_has_its_own_url(server: Served) -> None:
    """For clients that cannot send filters."""
    under = "/editions/harbor@1.0"
    first = ask(server, PORT.question, f"{under}/chat")
    assert cites(first, PORT, "1.0")
    assert cites(ask(server, STORAGE.question, session_id=first["session_id"]), STORAGE, "1.0"), "the edition is kept"
    assert cites(ask(server, PORT.question, "/editions/harbor/chat"), PORT, "2.0")
    assert cites(ask(server, PORT.question, "/editions/harbor/chat", filters={"version": "1.0"}), PORT, "1.0")
    pages = server.http.get(f"{under}/pages").json()["pages"]
    assert {(page["book"], page["version"]) for page in pages} == {(BOOK, "1.0")}
    completion = server.http.post(
        f"{under}/v1/chat/completions", json={"messages": [{"role": "user", "content": PORT.question}]}
    ).json()
    assert PORT.text_in("1.0") in completion["choices"][0]["message"]["citations"][0]["quote"]
    assert "harbor 1.0 › " in completion["choices"][0]["message"]["content"]
    assert server.http.get(f"{under}/books").json() == server.http.get("/books").json()
    outside = server.http.post(f"{under}/search", json={"query": "x", "filters": {"version": "2.0"}})
    assert outside.status_code == 400 and "harbor: 1.0." in outside.json()["message"]
    lost = server.http.get("/editions/harbor@3/pages")
    assert lost.status_code == 400 and "harbor: 2.0, 1.0" in lost.json()["message"]
    page = server.http.get(f"{under}/")
    assert page.status_code == 200 and "book-switch" in page.text and PORT.part in page.text
    moved = server.http.get("/editions/a%5Cb")
    assert (moved.status_code, moved.headers["location"]) == (307, "./a%5Cb/"), "not to another server"


def test_edition_urls_require_the_api_key(editions_home: Path, postgres_url: str) -> None:
    settings = Settings.load(chapterverse_home=editions_home, database_url=postgres_url, api_keys="secret-key-of-mine")
    with serve(settings) as server:
        for path in ("/books", "/suggestions", "/editions/harbor/pages", "/editions/harbor@1.0/books"):
            assert server.http.get(path).status_code == 401
            assert server.http.get(path, headers={"X-API-Key": "secret-key-of-mine"}).status_code == 200
        assert "scheduler" not in server.http.get("/editions/harbor/").text


def test_page_lists_each_book_and_links_to_other_versions(server: Served) -> None:
    page = LexborHTMLParser(server.http.get("/").text)
    assert [found.text() for found in page.css(".contents h2")] == ["The Harbor 2.0", "robots"]
    assert [found.attributes["data-edition"] for found in page.css(".contents section")] == ["harbor@2.0", "robots"]
    assert len(page.css(".contents a")) == 5
    assert [found.attributes["href"] for found in page.css(".chapter h2 a")] == ["editions/harbor/", "editions/robots/"]
    assert [found.attributes["href"] for found in page.css(".versions a")] == ["editions/harbor@1.0/"]
    assert page.css("#book-switch")[0].attributes["data-books"] == server.http.get("/books").text
    assert [found.text() for found in page.css("title, .brand span, main h1")] == ["The Harbor and robots"] * 3
    old = LexborHTMLParser(server.http.get("/editions/harbor@1.0/").text)
    assert [found.text() for found in old.css("title, .brand span, main h1")] == ["The Harbor"] * 3
    assert [found.attributes["href"] for found in old.css(".versions a")] == ["../../editions/harbor@2.0/"]
    assert len(old.css(".contents a")) == 3 and not old.css(".contents section")


def test_page_of_another_edition_redirects_to_its_edition_url(server: Served) -> None:
    there = server.http.get("/pages", params=OLD).json()["pages"][0]
    for path in ("", "/editions/harbor", "/editions/robots"):
        moved = server.http.get(f"{path}/read/{there['page_id']}?quote=0-5")
        assert moved.status_code == 307
        target = moved.url.join(moved.headers["location"])
        assert target.raw_path.decode() == f"/editions/harbor@1.0/read/{there['page_id']}?quote=0-5"
    page = LexborHTMLParser(server.http.get(str(target)).text)
    assert [found.text() for found in page.css(".contents [aria-current=page]")] == [there["title"]]
    latest = server.http.get("/pages").json()["pages"][0]
    shown = LexborHTMLParser(server.http.get(f"/read/{latest['page_id']}").text)
    assert shown.css(".module")[0].text().startswith("harbor 2.0")
    lost = server.http.get("/editions/harbor@3/")
    assert lost.status_code == 404 and "harbor: 2.0, 1.0" in lost.text


async def test_suggestions_are_made_and_offered_per_edition(
    server: Served, editions_home: Path, database_url: str
) -> None:
    async with open_services(Settings.load(chapterverse_home=editions_home, database_url=database_url)) as services:
        made = await make_suggestions(services, 2)
    assert made
    assert {(one.book, one.version) for one in made} <= {(BOOK, "1.0"), (BOOK, "2.0"), ("robots", "")}
    assert all(len([one for one in made if one.version == version]) <= 2 for version in ("1.0", "2.0", ""))
    offered = [
        Suggestion(question=f"What is {book} {version}?", page="p", book=book, version=version)
        for book, version in ((BOOK, "1.0"), (BOOK, "1.0"), (BOOK, "2.0"), (BOOK, "2.0"), ("robots", ""))
    ]
    Shelf(editions_home).write(StoredSuggestions(book="g", model="m", made_at=datetime.now(UTC), suggestions=offered))

    def asked(path: str) -> list[tuple[str, str]]:
        given = server.http.get(path).json()["suggestions"]
        return [(one["book"], one["version"]) for one in given]

    assert asked("/suggestions") == [(BOOK, "2.0"), ("robots", ""), (BOOK, "2.0")], (
        "alternating between books, latest versions only"
    )
    assert asked("/suggestions?book=harbor&version=1.0") == [(BOOK, "1.0")] * 2
    assert asked("/editions/harbor@1.0/suggestions") == [(BOOK, "1.0")] * 2
    assert asked("/editions/robots/suggestions") == [("robots", "")]
    assert server.http.get("/suggestions?book=nothing").status_code == 400
    (editions_home / "suggestions.json").unlink()


async def test_mcp_tools_take_book_and_version(server: Served) -> None:
    async with (
        httpx2.AsyncClient(timeout=30, trust_env=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
    ):
        listed = await client.call_tool("list_books", {})
        assert [book["name"] for book in listed.structured_content["books"]] == [BOOK, "robots"]
        said = await client.call_tool("ask_book", {"question": PORT.question, "filters": OLD})
        assert cites(said.structured_content, PORT, "1.0")
        url = said.structured_content["sources"][0]["source_url"]
        for names, version in (({}, "2.0"), (OLD, "1.0")):
            page = (await client.call_tool("read_page", {"url": url, **names})).structured_content
            assert page["version"] == version and PORT.text_in(version) in page["text"]
        refused = await client.call_tool("search_documentation", {"query": "x", "filters": {"book": "nothing"}})
        assert refused.is_error and "harbor, robots" in refused.structured_content["message"]


@pytest.mark.parametrize(
    ("path", "titles"),
    [
        ("", {"harbor 1.0", "harbor 2.0", "robots"}),
        ("/editions/harbor", {"harbor 1.0", "harbor 2.0"}),
        ("/editions/harbor@1.0", {"harbor 1.0"}),
        ("/editions/robots", {"robots"}),
    ],
)
async def test_mcp_resources_are_the_pages_of_the_url(server: Served, path: str, titles: set[str]) -> None:
    async with (
        httpx2.AsyncClient(timeout=30, trust_env=False) as http,
        Client(streamable_http_client(f"{server.url}{path}/mcp", http_client=http)) as client,
    ):
        listed = (await client.list_resources()).resources
        assert {(one.title or "").partition(" › ")[0] for one in listed} == titles
        text = (await client.read_resource(listed[0].uri)).contents[0]
        assert getattr(text, "text", "").startswith("# ")


def test_pages_of_a_url_do_not_depend_on_earlier_requests(server: Served) -> None:
    counts = [
        len(server.http.get(f"{path}/pages").json()["pages"]) for path in ("/editions/robots", "", "/editions/harbor")
    ]
    assert counts == [2, 5, 3]


def test_cli_commands_take_book_and_version(editions_home: Path, tmp_path: Path, postgres_url: str) -> None:
    kept = {"DATABASE_URL": postgres_url}
    shown = chapterverse(editions_home, "books").stdout
    assert "3 pages  harbor 2.0  The Harbor  latest" in shown and "2 pages  robots" in shown
    listed = json.loads(chapterverse(editions_home, "sources", "--book", BOOK, "--version", "1.0", "--json").stdout)
    assert listed == [{"source": "docs", "pages": 3, "book": BOOK, "version": "1.0"}]
    assert "harbor@1.0: docs" in chapterverse(editions_home, "sources").stdout
    found = chapterverse(editions_home, "search", PORT.question, "--version", "1.0", "-k", "1")
    assert PORT.text_in("1.0") in found.stdout and "1. harbor 1.0 › " in found.stdout
    answer = chapterverse(editions_home, "ask", PORT.question, "--book", BOOK, "--version", "1.0", "--json", **kept)
    assert cites(json.loads(answer.stdout), PORT, "1.0")
    assert_refused(editions_home, ["search", "x", "--book", "nothing"], 2, "The books are: harbor, robots.")
    assert_refused(editions_home, ["ingest", str(tmp_path), "--book", "a b"], 2, "--book a b: use up to 64")
    assert_refused(editions_home, ["forget", "docs"], 2, "docs is in harbor@1.0, harbor@2.0. Say which")
    proof = tmp_path / "proof.json"
    chapterverse(editions_home, "ask", PORT.question, "--version", "1.0", "--proof", str(proof), **kept)
    assert [(one["book"], one["version"]) for one in json.loads(proof.read_bytes())["quotes"]] == [(BOOK, "1.0")]
    verified = chapterverse(editions_home, "verify", str(proof))
    assert "stands" in verified.stdout and "harbor 1.0" in verified.stdout
    assert_refused(editions_home, ["forget"], 2, "Name at least one SOURCE")


def test_forget_and_fresh_affect_one_version_only(tmp_path: Path) -> None:
    home, docs = tmp_path / "home", tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Apples\n\nApples are red.")
    for version in ("1", "2"):
        assert chapterverse(home, "ingest", str(docs), "--book", "fruit", "--version", version).returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("# Bananas\n\nBananas are yellow.")
    fresh = ["ingest", str(other), "--book", "fruit", "--version", "2", "--fresh"]
    assert_refused(home, fresh, 2, "--fresh would forget docs (1 page).")
    assert chapterverse(home, *fresh, "--yes").returncode == 0
    assert "fruit@1: docs" in chapterverse(home, "sources").stdout
    gone = chapterverse(home, "forget", "--book", "fruit", "--version", "1", "--json")
    assert json.loads(gone.stdout)["removed"] == 1, gone.stderr
    listed = json.loads(chapterverse(home, "books", "--json").stdout)["books"]
    assert [one["version"] for one in listed[0]["versions"]] == ["2"]


async def test_report_counts_questions_by_edition(editions_home: Path, database_url: str) -> None:
    async with Book.open(editions_home, database_url=database_url) as book:
        await book.ask(PORT.question, filters=OLD)
        await book.ask(PORT.question)
        await book.ask("How is sourdough bread baked?", filters=OLD)
    made = json.loads(chapterverse(editions_home, "report", "--json", DATABASE_URL=database_url).stdout)
    counts = {f"{one['book']} {one['version']}": (one["questions"], one["refused"]) for one in made["editions"]}
    assert counts == {"harbor 1.0": (2, 1), "harbor 2.0": (1, 0)}
    assert {place["version"] for place in made["gaps"][0]["nearest"]} == {"1.0"}
    shown = chapterverse(editions_home, "report", "--book", BOOK, DATABASE_URL=database_url).stdout
    assert "questions              1" in shown and "harbor 2.0: 1 asked" in shown


async def test_answers_do_not_cite_another_version(editions_home: Path, database_url: str) -> None:
    """A sample; `bench/editions.py` asks all 200 questions."""
    async with Book.open(editions_home, database_url=database_url) as book:
        result = summary(await ask_all(book, KNOWN[:12]))
    assert result["questions_with_a_wrong_citation"] == 0
    assert result["answered_with_the_fact"] >= 10
