"""The reader page: `/` is the book's title page, `/read/PAGE` one page of it.

Both are complete HTML that works without JavaScript. The scripts add asking, searching, and opening pages without a
reload. If the book needs a key (`API_KEYS`), or the engine does not answer in time, the page is sent without its text
and the scripts fetch it. In a large book the page lists only the open chapter; the scripts fetch the whole list once
(`/contents/STATE`).

A server with several books shows the latest version of each; under `/editions/NAME/` it shows one book or version.
"""

import asyncio
import json
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from html import escape
from pathlib import Path as FilePath
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import RedirectResponse

from chapterverse.api import web
from chapterverse.api.book import IMAGE, IMAGE_POLICY
from chapterverse.api.dependencies import ServicesOf
from chapterverse.api.edition_paths import edition_of
from chapterverse.api.errors import responses
from chapterverse.api.listing import ShownPages, by_module, list_for
from chapterverse.api.page_html import Attributes, Leading, Node, node, render
from chapterverse.api.pages import PageSummary, RenderedPage, first_paragraph, render_page
from chapterverse.book import edition_names
from chapterverse.editions import edition_label
from chapterverse.errors import IndexMissing, InvalidFilterError, NotFound, RetrievalUnavailable
from chapterverse.services import Services
from chapterverse.settings import LOGO_TYPES, Settings

router = APIRouter(tags=["page"])

TEMPLATE: Final = "index.html"
_PATIENCE: Final = 2.0  # seconds to wait for the book; after that the scripts fetch it
_MANY: Final = 60  # with more pages, only the module of the open page is unfolded
_MOST: Final = 100  # pages in the table of contents; in a larger book, those around the open page
_LISTED: Final = 8  # pages of a chapter that the title page lists
_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")
_HTML: Final[dict[str, Any]] = {
    "content": {"text/html": {"schema": {"type": "string"}}},
    "description": "The page, in HTML.",
}
_PAGES: Final[dict[int | str, dict[str, Any]]] = {
    200: _HTML,
    304: web.NOT_CHANGED,
    404: _HTML | {"description": "There is no such book or page, in HTML."},
}
_ELSEWHERE: Final[dict[int | str, dict[str, Any]]] = {
    307: {"description": "The page belongs to an edition that is not shown here; `Location` is its address."}
}
_CONTENTS: Final[dict[str, Any]] = {
    "content": {"application/json": {"schema": {"type": "object", "properties": {"pages": {"type": "array"}}}}},
    "description": "The pages of the book, for the contents of the reader page.",
}


@router.get("/", response_class=Response, responses={**responses(), **_PAGES})
async def title_page(request: Request, services: ServicesOf) -> Response:
    """The title page: the book's name, its description and its chapters; or a list of the books."""
    shell = _Shell(request, services.settings)
    try:
        async with asyncio.timeout(_PATIENCE):
            book = await shell.open(services)
            first = await render_page(book.pages[0].page_id, services.index, shell.home) if book.pages else None
    except (TimeoutError, RetrievalUnavailable) as failure:
        return shell.answer(_not_ingested() if isinstance(failure, IndexMissing) else None)
    except InvalidFilterError as failure:
        return shell.answer(_no_book(failure), status=404)
    if first is None:
        return shell.answer()

    def respond() -> Response:
        about = "" if shell.listing.several else first_paragraph(first)
        return shell.answer(_cover(shell, about), title=shell.book, description=about)

    return await asyncio.to_thread(respond)


@router.get("/read/{page_id}", response_class=Response, responses={**responses(), **_PAGES, **_ELSEWHERE})
async def page(
    page_id: Annotated[str, Path(max_length=36, description="As `/pages` and `/search` give it.")],
    request: Request,
    services: ServicesOf,
) -> Response:
    """One page of the book, in a browser. `?quote=START-END` highlights a range, `#book-ANCHOR` is a section."""
    shell = _Shell(request, services.settings, root="../", current=page_id)
    try:
        async with asyncio.timeout(_PATIENCE):
            await shell.open(services)
            found = await render_page(page_id, services.index, shell.home)
    except (TimeoutError, RetrievalUnavailable) as failure:
        return shell.answer(_not_ingested() if isinstance(failure, IndexMissing) else None)
    except InvalidFilterError as failure:
        return shell.answer(_no_book(failure), status=404)
    except NotFound:
        return shell.answer(_no_page(), status=404)

    if (found.book, found.version) not in shell.listing.editions:
        return RedirectResponse(shell.elsewhere(found))

    def respond() -> Response:
        title = f"{found.title} · {shell.book}"
        return shell.answer(_page(shell, found), title=title, description=first_paragraph(found))

    return await asyncio.to_thread(respond)


@router.get(
    "/contents/{state}", response_class=Response, responses={200: _CONTENTS, 304: web.NOT_CHANGED, **responses(503)}
)
async def contents(
    state: Annotated[str, Path(max_length=200, description="The state of the book, as the reader page gives it.")],
    request: Request,
    services: ServicesOf,
) -> Response:
    """The list of pages for the scripts. The address contains the state of the book, so that browsers cache it."""
    shell = _Shell(request, services.settings)
    await shell.open(services)
    names = {"page_id", "title", "module", "category", "url", "book", "version"}

    def listed() -> web.File:
        return _packed(json.dumps({"pages": [page.model_dump(include=names) for page in shell.listing.pages]}))

    caching = web.FOR_GOOD if state == shell.state else "no-store"
    return web.answer(request, await asyncio.to_thread(listed), "application/json", caching)


@router.get("/logo", response_class=Response, responses={200: IMAGE, **responses(404)})
async def logo(services: ServicesOf) -> Response:
    """The logo of the book (`BOOK_LOGO`)."""
    path = services.settings.book_logo
    if path is None or not await asyncio.to_thread(path.is_file):
        raise NotFound("This book has no logo.")
    headers = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": IMAGE_POLICY}
    return Response(await asyncio.to_thread(path.read_bytes), 200, headers, LOGO_TYPES[path.suffix.lower()])


class _Shell:
    """The parts of every page around its text: header, table of contents, ask panel."""

    def __init__(self, request: Request, settings: Settings, root: str = "", current: str = "") -> None:
        self.request, self.settings, self.root, self.current = request, settings, root, current
        self.home: FilePath = settings.chapterverse_home
        self.listing = ShownPages(given=settings.book_title or "")
        self.state = ""  # identifies the list of pages

    @property
    def book(self) -> str:
        """The title of the server or book."""
        return self.listing.title

    async def open(self, services: Services) -> ShownPages:
        """Read the list of pages. Raise `RetrievalUnavailable` if API keys are configured: then the page is sent
        without the book."""
        if self.settings.api_keys:
            raise RetrievalUnavailable("The page is sent without the book.")
        self.listing = await list_for(self.request, services)
        self.state = f"{(await services.index.manifest()).generation}-{web.version()}"
        return self.listing

    def shelf(self, book: str, version: str | None = None) -> str:
        """Return the address of a book: of its latest version, or of the given one."""
        top = f"{self.root}../../" if edition_of(self.request.scope) else self.root
        if version is None:
            return f"{top}editions/{quote(book or '@latest', safe='@')}/"
        return f"{top}editions/{quote(f'{book}@{version}', safe='@')}/"

    def elsewhere(self, found: RenderedPage) -> str:
        """Return the address of a page whose edition is not shown here."""
        query = f"?{self.request.url.query}" if self.request.url.query else ""
        return f"{self.shelf(found.book, found.version)}read/{found.page_id}{query}"

    def href(self, page_id: str) -> str:
        """The address of a page."""
        return f"{self.root}read/{page_id}"

    def leading(self, found: RenderedPage) -> Leading:
        """Return a function for the attributes of a page's links. A page of the same book opens here, others in a new
        tab."""

        def lead(target: str) -> Attributes | None:
            url, _, anchor = target.partition("#")
            if other := self.listing.page_at(url, found):
                return {
                    "href": self.href(other) + f"#{quote(f'book-{unquote(anchor)}')}" if anchor else self.href(other)
                }
            away = re.match(r"(?:https?|mailto):", target, re.IGNORECASE)
            return {"href": target, "target": "_blank", "rel": "noopener"} if away else None

        return lead

    def answer(
        self, main: list[Node] | None = None, title: str = "", description: str = "", status: int = 200
    ) -> Response:
        """Return the whole page. Without `main`, the scripts fill it in."""
        values = {
            "root": self.root or "./",
            "assets": self.root + web.asset_path(""),
            "accent": f"?accent={self.settings.accent[1:].lower()}" if self.settings.accent else "",
            "logo": self._logo("logo"),
            "markdown": f"{self.root}pages/{quote(self.current)}.md" if self.current else f"{self.root}llms.txt",
            "icon": f"{self.root}logo" if self.settings.book_logo else self.root + web.asset_path("icon.svg"),
        }
        text = {"title": title or self.book, "book": self.book, "description": description, "books": self._switch()}
        text["given"] = self.settings.book_title or ""
        text["list"] = f"contents/{quote(self.state)}" if len(self.listing.pages) > _MOST else ""
        values |= {name: escape(value) for name, value in text.items()}
        values["contents"] = "".join(part.html() for part in self._contents())
        shown = [*self._older(), *main] if main else [_waiting(bool(self.settings.api_keys))]
        values["main"] = "".join(part.html() for part in shown)
        file = _packed(_PLACE.sub(lambda found: values[found[1]], _template()))
        # Browsers revalidate it each time, so that a new release or a changed book is shown at once.
        answer = web.answer(self.request, file, "text/html; charset=utf-8", "no-cache")
        if answer.status_code == 200:
            answer.status_code = status
        return answer

    def _logo(self, kind: str) -> str:
        has = self.settings.book_logo is not None
        return node("img", class_=kind, src=f"{self.root}logo", alt="").html() if has else ""

    def _switch(self) -> str:
        """The books and versions to switch between, as JSON; empty if there is only one."""
        editions = sum(len(book.versions) for book in self.listing.books.books)
        return self.listing.books.model_dump_json() if editions > 1 else ""

    def _older(self) -> list[Node]:
        """Return a note with a link to the latest version, for pages of other versions."""
        if self.listing.several or not self.listing.pages:
            return []
        read = self.listing.pages[0]
        latest = next((listed.latest for listed in self.listing.books.books if listed.name == read.book), read.version)
        if read.version == latest:
            return []
        link = node("a", f"The latest is {latest}.", href=self.shelf(read.book))
        named = f"version {read.version}" if read.version else "an edition without a version"
        return [node("p", f"You are reading {named}. ", link, class_="older")]

    def _contents(self) -> list[Node]:
        if not self.listing.several:
            return self._modules(self.listing.pages)
        return [
            node("section", node("h2", label), *self._modules(pages), data_edition=key)
            for key, label, pages in self.listing.by_edition()
        ]

    def _modules(self, listed: Iterable[PageSummary]) -> list[Node]:
        return [self._module(pages) for pages in by_module(listed)]

    def _module(self, pages: list[PageSummary]) -> Node:
        """A chapter with its pages. In a large book a closed chapter is a link to its first page."""
        name = pages[0].category or "Pages"
        place = next((number for number, page in enumerate(pages) if page.page_id == self.current), None)
        is_open = len(self.listing.pages) <= _MANY or place is not None
        if len(self.listing.pages) > _MOST:
            if place is None:
                return node("p", node("a", name, href=self.href(pages[0].page_id), dir="auto"), class_="folded")
            pages = pages[max(0, place - _MOST // 2) : place + _MOST // 2]
        items = node("ul", *(node("li", self._link(page)) for page in pages))
        return node("details", node("summary", name), items, open="" if is_open else None)

    def _link(self, page: PageSummary) -> Node:
        current = "page" if page.page_id == self.current else None
        return node("a", page.title, href=self.href(page.page_id), dir="auto", data_url=page.url, aria_current=current)


def _waiting(with_key: bool) -> Node:
    """A placeholder for the book, until the scripts have fetched it."""
    hint = "This book needs a key. Asking for it takes JavaScript." if with_key else "Open this page again in a moment."
    return node("div", node("p", "Opening the book…", class_="note"), node("noscript", node("p", hint)))


def _not_ingested() -> list[Node]:
    """Explain how to ingest a book."""
    commands = "chapterverse ingest docs/\nchapterverse ingest https://docs.example.com/guide/"
    return [
        node("h1", "No book to read yet", class_="missing"),
        node("p", "Ingest a folder, a file or a website on the server, then open this page again:"),
        node("pre", node("code", commands), tabindex="0"),
    ]


def _no_book(failure: InvalidFilterError) -> list[Node]:
    return [node("h1", "There is no such book", class_="missing"), node("p", failure.message)]


def _no_page() -> list[Node]:
    return [node("h1", "There is no such page", class_="missing"), node("p", "The book may have changed.")]


def _cover(shell: _Shell, about: str) -> list[Node]:
    """The title page: the chapters of a book, or a list of several books."""
    picture = node("img", class_="cover-logo", src="logo", alt="") if shell.settings.book_logo else None
    head = node("div", picture, node("h1", shell.book, tabindex="-1", dir="auto"), class_="cover")
    if shell.listing.several:
        return [head, node("div", *(_book(shell, *listed) for listed in shell.listing.by_edition()), class_="chapters")]
    begin = node("a", "Start reading", class_="main-button", href=shell.href(shell.listing.pages[0].page_id))
    head.add(node("p", about, class_="lede", dir="auto") if about else None, node("p", begin, class_="buttons"))
    head.add(_versions(shell, shell.listing.pages[0].book))
    cards = [_card(shell, pages[0].category or "Pages", pages) for pages in by_module(shell.listing.pages)]
    return [head, node("div", *cards, class_="chapters")]


def _book(shell: _Shell, key: str, label: str, pages: list[PageSummary]) -> Node:
    book, _ = edition_names(key)
    link = node("a", label, href=shell.shelf(book), dir="auto")
    return _card(shell, link, pages).add(_versions(shell, book))


def _versions(shell: _Shell, book: str) -> Node | None:
    """Links to the versions of a book that are not shown."""
    summary = next((listed for listed in shell.listing.books.books if listed.name == book), None)
    versions = [edition.version for edition in summary.versions] if summary else []
    others = [version for version in versions if (book, version) not in shell.listing.editions]
    if not others:
        return None
    links = [node("a", version or "no version", href=shell.shelf(book, version)) for version in others]
    return node("p", "Other versions: ", *_between(links), class_="versions")


def _between(links: list[Node]) -> list[Node | str]:
    return [part for link in links for part in (", ", link)][1:]


def _card(shell: _Shell, title: Node | str, pages: list[PageSummary]) -> Node:
    """A chapter, or a book, with its first pages."""
    shown = pages if len(pages) == _LISTED + 1 else pages[:_LISTED]  # "and 1 more" takes as much space as the title
    items = [node("li", node("a", page.title, href=shell.href(page.page_id), dir="auto")) for page in shown]
    more = len(pages) - len(items)
    rest = node("li", f"and {more} more", class_="more") if more else None
    return node("section", node("h2", title), node("ul", *items, rest), class_="chapter")


def _page(shell: _Shell, found: RenderedPage) -> list[Node]:
    names = (edition_label(found.book, found.version) if shell.listing.several else "", found.category)
    named = " · ".join(filter(None, names))
    category = node("p", named, class_="module") if named else None
    shown = render(found, shell.leading(found), shell.root)
    return [*([category] if category else []), *shown, _turning(shell, found.page_id)]


def _turning(shell: _Shell, page_id: str) -> Node:
    ids = [page.page_id for page in shell.listing.pages]
    index = ids.index(page_id) if page_id in ids else -1
    before = shell.listing.pages[index - 1] if index > 0 else None
    after = shell.listing.pages[index + 1] if 0 <= index < len(ids) - 1 else None

    def link(other: PageSummary | None, label: str, relation: str) -> Node:
        if other is None:
            return node("span")
        return node("a", node("span", label), other.title, href=shell.href(other.page_id), rel=relation)

    turning = node("nav", class_="turning", aria_label="Next and previous page")
    return turning.add(link(before, "Previous", "prev"), link(after, "Next", "next"))


@cache
def _template() -> str:
    return web.source(TEMPLATE)


@lru_cache(maxsize=32)
def _packed(whole: str) -> web.File:
    return web.pack(whole.encode("utf-8", "replace"))
