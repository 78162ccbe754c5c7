"""`llms.txt`, `llms-full.txt` and pages as Markdown."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from markdown_it import MarkdownIt

from chapterverse.api import pages
from chapterverse.api.page_markdown import page_markdown
from chapterverse.api.pages import RenderedPage
from chapterverse.book import Edition, Manifest, Page, edition_key, page_id_for
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.images import image_name
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.sources.llms_txt import listed
from chapterverse.settings import Settings
from tests.api.test_errors import refused
from tests.browser.shelf import Shelf
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve


def written(path: str, text: str, category: str = "", kind: Any = "markdown") -> Page:
    chapters = (category,) if category else ()
    document = Document(f"https://b.test/{path}", path, "book", kind, text.encode(), chapters=chapters)
    return compose(document, read(document)[0])


FIRST = written(
    "start/first.md",
    "# First\n\nWhat it is about.\n\n"
    "See [the part](second.md#part), [away](https://else.test/a(b)c) and ![a [pic]](in.png).\n\n"
    "| a | b |\n|---|---|\n| [bar](https://else.test/?a\\|b) | `x \\| y` |\n\n"
    "![alone](x.svg)\n\n## Part\n\n`a [b](c)` stays.\n",
    "Begin",
)
SECOND = written("start/second.md", "# Second [two]\n\nWords.\n\n## Part\n\nMore.\n\n## Other\n\nMore.\n", "Begin")
THIRD = written("more/third.md", '<h1>Third</h1><p><a href="javascript:alert(1)">No link</a>.</p>', kind="html")
BOOK = [FIRST, SECOND, THIRD]


@contextmanager
def serving(shelf: Shelf, **settings: Any) -> Iterator[Served]:
    with serve(Settings.load(**settings), opening=without_engines(index=shelf), answering=Scripted()) as server:
        yield server


def links(markdown: str) -> list[tuple[str, str]]:
    """Text and address of each link and image, as a parser of Markdown finds them."""
    found = []
    for block in MarkdownIt("commonmark").enable("table").parse(markdown):
        for position, token in enumerate(block.children or ()):
            if token.type == "link_open":
                found.append((block.children[position + 1].content, str(token.attrs["href"])))  # type: ignore[index]
            elif token.type == "image":
                found.append((token.content, str(token.attrs["src"])))
    return found


def test_llms_txt_has_title_summary_and_chapters_in_reading_order() -> None:
    with serving(Shelf(BOOK), book_title="The Book") as server:
        answer = server.http.get("/llms.txt")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.text == (
            "# The Book\n\n> What it is about.\n\n"
            "Each link leads to one page as Markdown. All pages in one file: [llms-full.txt](llms-full.txt).\n\n"
            f"## Begin\n\n- [First](pages/{FIRST.page_id}.md): Part\n"
            f"- [Second \\[two\\]](pages/{SECOND.page_id}.md): Part, Other\n\n"
            f"## More\n\n- [Third](pages/{THIRD.page_id}.md)\n"
        )
        for address in listed(answer.text, f"{server.url}/llms.txt"):  # parsed as our own ingestion does
            assert httpx2.get(address, trust_env=False).status_code == 200


def test_page_has_title_source_text_links_and_images(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / image_name("https://b.test/start/x.svg")).write_bytes(b"<svg/>")
    with serving(Shelf(BOOK), chapterverse_home=tmp_path) as server:
        answer = server.http.get(f"/pages/{FIRST.page_id}.md")
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        text = answer.text
        assert text.startswith("# First\n\nSource: https://b.test/start/first.md\n\nWhat it is about.\n\n")
        assert links(text) == [
            ("the part", f"{SECOND.page_id}.md#part"),
            ("away", "https://else.test/a%28b%29c"),
            ("a \\[pic\\]", "https://b.test/start/in.png"),
            ("bar", "https://else.test/?a%7Cb"),
            ("alone", f"../images/{image_name('https://b.test/start/x.svg')}"),
        ]
        assert text.endswith("## Part\n\n`a [b](c)` stays.\n")
        refused(server.http.get(f"/pages/{page_id_for('none')}.md"), 404, "not_found")
        third = server.http.get(f"/pages/{THIRD.page_id}.md").text
        assert third == "# Third\n\nSource: https://b.test/more/third.md\n\nNo link.\n"


def test_link_inside_code_is_written_around_the_code() -> None:
    inner = '<code><a href="https://else.test/f">f()</a></code> or <code>g <a href="https://else.test/h">h</a> i</code>'
    page = written("t.html", f"<h1>T</h1><p>Call {inner}.</p>", kind="html")
    shown = pages._fields(page) | {"text": page.text}
    marks = [replace_fields(mark) for mark in page.marks]
    blocks = [replace_fields(block) for block in page.blocks]
    rendered = RenderedPage(**shown, blocks=blocks, marks=marks)
    text = page_markdown(rendered, lambda target: target, "")
    assert ("f()", "https://else.test/f") in links(text)
    assert all("`" not in address for _, address in links(text))


def replace_fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__ if name != "section"}


@dataclass
class CountingShelf(Shelf):
    """Counts the pages that were read."""

    read: int = 0

    async def page(self, page_id: str) -> Page | None:
        self.read += 1
        return await super().page(page_id)


def test_llms_full_txt_is_streamed_page_by_page() -> None:
    filler = "Some words that fill the page. " * 20_000
    one = replace(FIRST, text="# First\n\n" + filler, marks=(), blocks=FIRST.blocks[:1])
    long = [replace(one, page_id=page_id_for(str(number))) for number in range(60)]
    shelf = CountingShelf(long)
    with serving(shelf) as server, server.http.stream("GET", "/llms-full.txt") as answer:
        pieces = answer.iter_bytes(65_536)
        first = next(pieces)
        assert first.startswith(b"# First\n\nSource: https://b.test/start/first.md\n\nSome words")
        assert shelf.read < len(long), "the other pages are read while the client reads"
        assert sum(map(len, pieces)) + len(first) > len(long) * len(filler)
    assert shelf.read == len(long)


def test_page_deleted_during_the_stream_is_left_out() -> None:
    class Changing(Shelf):
        async def page(self, page_id: str) -> Page | None:
            return None if page_id == SECOND.page_id else await super().page(page_id)

    with serving(Changing(BOOK)) as server:
        text = server.http.get("/llms-full.txt").text
        assert "# First\n" in text and "\n# Third\n" in text and "Second" not in text


def test_matching_etag_returns_304() -> None:
    shelf = Shelf(BOOK)
    with serving(shelf) as server:
        tags = set()
        for path in ("/llms.txt", "/llms-full.txt", f"/pages/{FIRST.page_id}.md", f"/pages/{SECOND.page_id}.md"):
            answer = server.http.get(path)
            assert answer.headers["cache-control"] == "no-cache"
            again = server.http.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            tags.add(answer.headers["etag"])
        assert len(tags) == 4


def test_key_is_required_and_llms_full_txt_is_rate_limited() -> None:
    with serving(Shelf(BOOK), api_keys="sesame", api_key_rate_limit=1) as server:
        key = {"X-API-Key": "sesame"}
        for path in ("/llms.txt", "/llms-full.txt", f"/pages/{FIRST.page_id}.md"):
            refused(server.http.get(path), 401, "unauthorized")
            answer = server.http.get(path, headers=key)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "private, no-cache"
        refused(server.http.get("/llms-full.txt", headers=key), 429, "rate_limited")


@dataclass
class TwoBooks(Shelf):
    async def manifest(self) -> Manifest:
        editions = (Edition("guide", "1.0", pages=1), Edition("guide", "2.0", pages=1), Edition("manual", pages=1))
        return replace(await super().manifest(), editions=editions)


@dataclass(frozen=True)
class FewServices:
    """The services that these routes use."""

    settings: Settings
    index: Any
    dependencies: tuple[()] = ()


@pytest.fixture(scope="module")
def two_books() -> Iterator[Served]:
    def of(book: str, version: str) -> Page:
        key = edition_key(book, version)
        return replace(FIRST, page_id=page_id_for(FIRST.url, key), title=f"First {version}", edition=key)

    @asynccontextmanager
    async def opening(settings: Settings) -> AsyncIterator[FewServices]:
        yield FewServices(settings, TwoBooks([of("guide", "1.0"), of("guide", "2.0"), of("manual", "")]))

    with serve(Settings.load(), opening=opening, answering=Scripted()) as server:
        yield server


def test_each_edition_has_its_own_files(two_books: Served) -> None:
    whole = two_books.http.get("/llms.txt").text
    assert "\n## guide 2.0 · Begin\n" in whole and "\n## manual · Begin\n" in whole and "First 1.0" not in whole
    old = two_books.http.get("/editions/guide@1.0/llms.txt")
    assert old.text.startswith("# guide\n") and old.text.count(".md)") == 1 and "First 1.0" in old.text
    assert old.headers["etag"] != two_books.http.get("/editions/guide@2.0/llms.txt").headers["etag"]
    (address,) = [one for one in listed(old.text, f"{two_books.url}/editions/guide@1.0/llms.txt") if ".md" in one]
    assert httpx2.get(address, trust_env=False).text.startswith("# First")
    assert two_books.http.get("/editions/guide@1.0/llms-full.txt").text.count("Source: ") == 1
    refused(two_books.http.get("/editions/none/llms.txt"), 400, "validation_error")


def test_reader_page_links_to_its_markdown() -> None:
    with serving(Shelf(BOOK)) as server:
        assert f'<link rel="alternate" type="text/markdown" href="../pages/{FIRST.page_id}.md">' in (
            server.http.get(f"/read/{FIRST.page_id}").text
        )
        assert '<link rel="alternate" type="text/markdown" href="llms.txt">' in server.http.get("/").text
