"""The reader page as the server sends it: readable without scripts, with all text of the book escaped."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from chapterverse.book import Edition, Manifest, Page, edition_key, edition_names, page_id_for
from chapterverse.errors import ChapterverseError, ConfigurationError, IndexMissing
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from chapterverse.settings import Settings
from tests.browser.shelf import Shelf
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

HOSTILE = '</script><script>alert(1)</script> & "quoted" \u2028 \''

ESCAPED = escape(HOSTILE, quote=False)


def written(path: str, text: str, category: str = "") -> Page:
    document = Document(
        f"https://book.test/{path}",
        path,
        "my-handbook",
        "markdown",
        text.encode(),
        chapters=(category,) if category else (),
    )
    return compose(document, read(document)[0])


BOOK = [
    written(
        "start/first.md",
        f"# First &lt;b&gt;\n\nWhat it is about. It is *short*.\n\n{ESCAPED}\n\n## Part\n\nWords.",
        "Begin <here>",
    ),
    written(
        "start/second.md",
        '# Second\n\nSee [the part](first.md#part).\n\n```python\nprint("<b>")\n```\n',
        "Begin <here>",
    ),
    written("more-things/third.md", "# Third\n\nThe [end](https://else.test/x), [no link](javascript:alert(1)).\n"),
]


@contextmanager
def serving(shelf: Shelf, **settings: Any) -> Iterator[Served]:
    with serve(Settings.load(**settings), opening=without_engines(index=shelf), answering=Scripted()) as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving(Shelf(BOOK)) as server:
        yield server


def fetched(server: Served, path: str, status: int = 200) -> LexborHTMLParser:
    answer = server.http.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    return LexborHTMLParser(answer.text)


def texts(page: LexborHTMLParser, selector: str) -> list[str]:
    return [found.text() for found in page.css(selector)]


def value(page: LexborHTMLParser, selector: str, name: str) -> str:
    """An attribute of the first element that matches the selector."""
    return str(page.css(selector)[0].attributes[name])


pytestmark = pytest.mark.slow


def test_title_page_has_name_description_and_chapters(server: Served) -> None:
    page = fetched(server, "/")
    assert texts(page, "main h1") == ["book.test"], "without BOOK_TITLE the name is the host"
    assert texts(page, "title") == ["book.test"]
    assert texts(page, "main .lede") == ["What it is about. It is short."]
    assert texts(page, ".chapter h2") == ["Begin <here>", "More things"]
    assert texts(page, ".chapter a") == [one.title for one in BOOK]
    assert value(page, ".cover a", "href") == f"read/{BOOK[0].page_id}"
    assert page.css_first("#book-switch") is not None


@pytest.mark.parametrize(("pages", "names"), [(9, []), (10, ["and 2 more"])])
def test_a_chapter_on_the_title_page_never_ends_in_one_more(pages: int, names: list[str]) -> None:
    with serving(
        Shelf([written(f"part/{number}.md", f"# {number}\n\nWords.", "Part") for number in range(pages)])
    ) as server:
        page = fetched(server, "/")
        assert texts(page, ".chapter .more") == names
        assert len(page.css(".chapter a")) == pages - 2 * len(names)


class Books(Shelf):
    """An index with several books of one page each."""

    async def manifest(self) -> Manifest:
        editions = tuple(Edition(edition_names(page.edition)[0], "", pages=1) for page in self.shelved)
        return replace(await super().manifest(), editions=editions)


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("guide", ""), "book.test and guide"),
        (("guide", "api", "tour"), "api, guide and tour"),
        (("a", "b", "c", "d", "e"), "a, b and 3 more"),
    ],
)
def test_title_of_several_books_lists_their_names(names: tuple[str, ...], title: str) -> None:
    books = [replace(BOOK[0], edition=edition_key(name, ""), page_id=page_id_for(name)) for name in names]
    with serving(Books(books)) as server:
        assert texts(fetched(server, "/"), "title, .brand span, main h1") == [title] * 3
    with serving(Books(books), book_title="All of it") as server:
        assert texts(fetched(server, "/"), "title, .brand span, main h1") == ["All of it"] * 3


def test_page_text_and_links_work_without_scripts(server: Served) -> None:
    page = fetched(server, f"/read/{BOOK[1].page_id}")
    assert texts(page, "title") == ["Second · book.test"]
    assert texts(page, "main .module") == ["Begin <here>"]
    assert texts(page, "main h1") == ["Second"]
    assert texts(page, "main pre code") == ['print("<b>")']
    assert texts(page, ".contents [aria-current=page]") == ["Second"]
    links = {link.text(): link.attributes["href"] for link in page.css("main a")}
    assert links["the part"] == f"../read/{BOOK[0].page_id}#book-part"
    assert links["PreviousFirst <b>"] == f"../read/{BOOK[0].page_id}"
    assert links["NextThird"] == f"../read/{BOOK[2].page_id}"
    there = server.http.get(f"/read/{BOOK[1].page_id}").url.join(links["the part"].partition("#")[0])
    assert fetched(server, there.path).css_first("#book-part") is not None
    third = fetched(server, f"/read/{BOOK[2].page_id}")
    away = third.css("main p a")[0]
    assert dict(away.attributes) == {"href": "https://else.test/x", "target": "_blank", "rel": "noopener"}
    assert "no link" not in texts(third, "main p a")


def test_folder_without_a_title_is_named_after_the_folder() -> None:
    document = Document("my-handbook/a.md", "a.md", "my-handbook", "markdown", b"# A\n\nWords.")
    with serving(Shelf([compose(document, read(document)[0])])) as server:
        assert texts(fetched(server, "/"), "main h1") == ["My handbook"]


@pytest.mark.parametrize("path", ["/", f"/read/{BOOK[0].page_id}"])
def test_text_of_the_book_is_escaped(server: Served, path: str) -> None:
    page = fetched(server, path)
    assert [str(script.attributes.get("src")).rpartition("/")[2] for script in page.css("script")] == [
        "theme.js",
        "reader.js",
    ]
    assert page.css("b, here, [onclick]") == []
    title = "First <b>"
    assert title in texts(page, ".contents a")
    if path != "/":
        assert HOSTILE.partition(" ")[0] in texts(page, "main")[0]
        assert texts(page, "main h1") == [title]


def test_every_link_in_the_page_works(server: Served) -> None:
    for path in ("/", f"/read/{BOOK[0].page_id}"):
        answer = server.http.get(path)
        page = LexborHTMLParser(answer.text)
        found = [node.attributes.get("href") or node.attributes.get("src") for node in page.css("[href], [src]")]
        for address in {str(one).partition("#")[0] for one in found} - {""}:
            assert server.http.get(answer.url.join(address)).status_code == 200, address


def test_unknown_page_returns_404(server: Served) -> None:
    for wanted in ("00000000-0000-4000-8000-000000000000", "nothing"):
        assert texts(fetched(server, f"/read/{wanted}", 404), "main h1") == ["There is no such page"]


def test_page_is_revalidated_with_an_etag(server: Served) -> None:
    first = server.http.get("/")
    assert first.headers["cache-control"] == "no-cache"
    assert server.http.get("/", headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    assert server.http.get("/", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("failure", [IndexMissing("There is no book yet."), None])
def test_page_is_served_if_the_book_is_missing_or_the_index_hangs(failure: ChapterverseError | None) -> None:
    with serving(Shelf(BOOK, failure=failure, hangs=failure is None)) as server:
        for path in ("/", f"/read/{BOOK[0].page_id}"):
            page = fetched(server, path)
            assert page.css(".contents a") == []
            assert ("No book to read yet" if failure else "Opening the book") in texts(page, "main")[0]


class Slow(Shelf):
    """An index that answers slowly, as after a start."""

    async def page(self, page_id: str) -> Page | None:
        await asyncio.sleep(0.3)
        return await super().page(page_id)


def test_page_waits_for_a_slow_index() -> None:
    with serving(Slow(BOOK)) as server:
        assert texts(fetched(server, "/"), ".cover h1") == ["book.test"]
        assert texts(fetched(server, f"/read/{BOOK[1].page_id}"), "main h1") == ["Second"]


def test_page_has_no_text_of_the_book_if_keys_are_configured() -> None:
    with serving(Shelf(BOOK), api_keys="key") as server:
        for path in ("/", f"/read/{BOOK[0].page_id}"):
            text = server.http.get(path).text
            assert not re.search("First|Begin|book.test|What it is about", text)
        assert server.http.get("/contents/any").status_code == 503


def test_title_logo_and_accent_are_shown(tmp_path: Path) -> None:
    drawn = tmp_path / "logo.svg"
    drawn.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    with serving(Shelf(BOOK), book_title="The <i>Handbook</i>", book_logo=drawn, accent="#0A7F5B") as server:
        page = fetched(server, f"/read/{BOOK[0].page_id}")
        assert texts(page, ".brand") == ["The <i>Handbook</i>"]
        assert value(page, ".brand img", "src") == "../logo"
        assert "reader.css?accent=0a7f5b" in value(page, "link[rel=stylesheet]", "href")
        assert texts(fetched(server, "/"), "main h1") == ["The <i>Handbook</i>"]
        logo = server.http.get("/logo")
        assert (logo.content, logo.headers["content-type"]) == (drawn.read_bytes(), "image/svg+xml")
        assert "sandbox" in logo.headers["content-security-policy"]
    with serving(Shelf(BOOK)) as server:
        assert server.http.get("/logo").status_code == 404


@pytest.mark.parametrize(
    ("name", "value"), [("accent", "blue"), ("accent", "#12345"), ("book_logo", "nowhere.svg"), ("book_logo", __file__)]
)
def test_invalid_logo_or_accent_is_a_configuration_error(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name.upper()):
        Settings.load(**{name: value})


def large_book(chapters: int) -> list[Page]:
    """300 pages with code, in this many chapters."""
    pages = []
    for number in range(300):
        chapter = number % chapters
        title = f"How the {number}th part of the machine is put together and tested"
        text = f"# {title}\n\nWords about part {number}.\n\n```python\nprint({number})\n```\n"
        pages.append(written(f"chapter-{chapter:02}/part-{number}-of-the-machine.md", text, f"Chapter {chapter}"))
    return pages


@pytest.mark.parametrize("chapters", [1, 30])
def test_page_and_title_page_of_a_large_book_stay_below_60_kb_without_fonts(chapters: int) -> None:
    pages = large_book(chapters)
    with serving(Shelf(pages)) as server:
        for path in ("/", f"/read/{pages[150].page_id}"):
            sizes = sent_for(server, path)
            code = 0 if path != "/" else next(size for name, size in sizes.items() if name.endswith("prism.js"))
            print(f"{path}, {len(pages)} pages, {chapters} chapters: {sum(sizes.values()) - code} bytes")
            assert sum(sizes.values()) - code < 60_000, sizes  # the title page has no code
        page = fetched(server, f"/read/{pages[150].page_id}")
        assert texts(page, ".contents [aria-current=page]") == [pages[150].title]
        assert len(page.css(".contents a")) <= 130
        address = value(page, ".contents", "data-list")
        listed = server.http.get(f"/{address}")
        assert "immutable" in listed.headers["cache-control"]
        assert {one["page_id"] for one in listed.json()["pages"]} == {one.page_id for one in pages}
        old = server.http.get("/contents/of-another-state")
        assert (old.status_code, old.headers["cache-control"]) == (200, "no-store")


def test_page_with_code_stays_below_60_kb_without_fonts(server: Served) -> None:
    sizes = sent_for(server, f"/read/{BOOK[1].page_id}")
    print(f"a page with code: {sum(sizes.values())} bytes")
    assert len(sizes) == 6
    assert sum(sizes.values()) < 60_000, sizes


def sent_for(server: Served, path: str) -> dict[str, int]:
    """The compressed size of each file that a page with code loads, by address."""
    page = fetched(server, path)
    loaded = [
        node.attributes.get("src") or node.attributes["href"]
        for node in page.css("script, link[rel=stylesheet], link[rel=icon]")
    ]
    sheet = next(address for address in loaded if address and address.endswith("reader.css"))
    addresses = [
        path,
        *(server.http.get(path).url.join(str(one)).path for one in [*loaded, sheet.replace("reader.css", "prism.js")]),
    ]
    sizes = {}
    for address in addresses:
        with server.http.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as answer:
            sizes[address] = sum(map(len, answer.iter_raw()))
    return sizes
