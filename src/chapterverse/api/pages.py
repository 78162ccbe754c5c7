"""Schemas of pages and books, for HTTP, MCP and the reader page."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field

from chapterverse.book import Block, Edition, Mark, Page, edition_names
from chapterverse.editions import books_of
from chapterverse.errors import NotFound
from chapterverse.index import Index
from chapterverse.ingestion.images import image_name, stored_image
from chapterverse.ingestion.ordering import title_of_path
from chapterverse.models import EditionName, Frozen, SearchFilters
from chapterverse.retrieval import editions_in

_DESCRIPTION: Final = 240  # characters


class SectionSummary(Frozen):
    """A heading and the offsets of its section in the page, in characters."""

    heading: str
    level: int
    anchor: str
    start: int
    end: int
    breadcrumb: list[str]


class PageSummary(Frozen):
    """A page in the list of contents."""

    page_id: str
    title: str
    module: str
    category: str = Field("", description="The module's name for readers.")
    url: str
    book: str = ""
    version: str = ""
    sections: list[SectionSummary]
    flags: list[str] = Field(default_factory=list)


class PageBlock(Frozen):
    """The kind of a range of a page's text, which is `text[start:end]`."""

    kind: str = Field(description="heading, paragraph, list, field, code, table, quote, admonition or image")
    start: int
    end: int
    info: str = Field(
        "",
        description="Language of code, kind of an admonition, address of an image; `caption` for a caption.",
    )
    caption: str = Field("", description="Title of code; label of an admonition, as in its text.")
    inside: int = Field(
        0, description="How many list items, admonitions, quotes and fields of earlier blocks it is inside of."
    )
    source: str = Field("", description="For an image: its address on this server, relative to the root.")


class PageMark(Frozen):
    """Formatting or link of a range of a page's text."""

    kind: str = Field(description="emphasis, strong, code, math, link, image, sub, sup or footnote")
    start: int
    end: int
    target: str = Field("", description="Address of a link or an image; label of a footnote.")
    title: str = Field("", description="Alternative text of an image.")
    source: str = Field("", description="For an image: its address on this server, relative to the root.")


Shown = TypeVar("Shown", PageBlock, PageMark)


class PageText(PageSummary):
    """A page with its stored text. The offsets of citations refer to `text`."""

    text: str


class RenderedPage(PageText):
    """A page with all that is needed to show it."""

    blocks: list[PageBlock]
    marks: list[PageMark]


class PageList(Frozen):
    """The pages of a book, or of the latest version of each."""

    pages: list[PageSummary]
    total_pages: int


class BookVersion(Frozen):
    """One version of a book."""

    version: str
    pages: int


class BookSummary(Frozen):
    """A book on this server."""

    name: str = Field(description="For `filters.book`; empty: a book without a name.")
    title: str = Field(description="For people; the name, if no title was given.")
    versions: list[BookVersion] = Field(description="The latest first.")
    latest: str = Field(description="The version that is used unless another one is named.")
    pages: int = Field(description="Of the latest version.")


class BookList(Frozen):
    """The books on this server."""

    books: list[BookSummary]
    default: list[EditionName] = Field(description="What is searched when neither a book nor a version is named.")


class Contents:
    """The lists of pages, cached for each generation of the book: reading a large book takes a while."""

    def __init__(self) -> None:
        self._generation = ""
        self._listed: dict[str, list[PageSummary]] = {}  # by the key of an edition, which is first in reading order

    async def read(self, index: Index, filters: SearchFilters | None = None) -> PageList:
        """The pages of the editions, in reading order, without their text."""
        generation = (await index.manifest()).generation
        if generation != self._generation:
            self._listed, self._generation = {}, generation
        listed = self._listed  # another generation may replace it meanwhile
        keys = sorted(edition.key for edition in await editions_in(filters, index))
        if missing := [key for key in keys if key not in listed]:
            found: dict[str, list[PageSummary]] = {key: [] for key in missing}
            for page in await index.pages():
                if page.edition in found:
                    found[page.edition].append(PageSummary(**_fields(page)))
            listed.update(found)
        pages = [page for key in keys for page in listed[key]]
        return PageList(pages=pages, total_pages=len(pages))


def list_books(shelf: Iterable[Edition]) -> BookList:
    """Return the books of a server with their versions."""
    books = books_of(shelf)
    return BookList(
        books=[
            BookSummary(
                name=name,
                title=next((edition.title for edition in editions if edition.title), name),
                versions=[BookVersion(version=edition.version, pages=edition.pages) for edition in editions],
                latest=editions[0].version,
                pages=editions[0].pages,
            )
            for name, editions in books.items()
        ],
        default=[EditionName(book=name, version=editions[0].version) for name, editions in books.items()],
    )


async def read_page(page_id: str, index: Index, asked_for: str = "") -> PageText:
    """Return a page with its text. `asked_for`: the name for error messages, if the caller did not use the id."""
    page = await _page(page_id, index, asked_for)
    return PageText(**_fields(page), text=page.text)


async def render_page(page_id: str, index: Index, home: Path) -> RenderedPage:
    """Return a page with its text and formatting. `home`: the folder with the images."""
    page = await _page(page_id, index)
    blocks = [_shown(PageBlock, block, block.info, page, home) for block in page.blocks]
    marks = [_shown(PageMark, mark, mark.target, page, home) for mark in page.marks]
    return RenderedPage(**_fields(page), text=page.text, blocks=blocks, marks=marks)


def first_paragraph(page: RenderedPage) -> str:
    """Return the first paragraph of a page, shortened, for use as a description."""
    block = next((block for block in page.blocks if block.kind == "paragraph"), None)
    text = " ".join(page.text[block.start : block.end].replace("`", "").split()) if block else ""
    if len(text) <= _DESCRIPTION:
        return text
    sentences = re.match(rf".{{80,{_DESCRIPTION}}}(?:[.!?](?= )|[。！？])", text)
    cut = text[:_DESCRIPTION]
    return sentences[0] if sentences else f"{cut.rpartition(' ')[0] or cut} …"


async def _page(page_id: str, index: Index, asked_for: str = "") -> Page:
    page = await index.page(page_id)
    if page is None:
        raise NotFound(f"There is no page {asked_for or page_id} in the book.")
    return page


def _shown(kind: type[Shown], item: Block | Mark, address: str, page: Page, home: Path) -> Shown:
    """Convert a block or mark of the page. A stored image gets its address on this server."""
    shown = kind.model_validate(item, from_attributes=True)
    name = image_name(address, page.edition) if shown.kind == "image" else ""
    return shown.model_copy(update={"source": f"images/{name}"}) if name and stored_image(home, name) else shown


def _fields(page: Page) -> dict[str, Any]:
    book, version = edition_names(page.edition)
    return {
        "book": book,
        "version": version,
        "page_id": page.page_id,
        "title": page.title,
        "module": page.module,
        "category": page.chapters[0] if page.chapters else title_of_path(page.module) if page.module else "",
        "url": page.url,
        "flags": list(page.flags),
        "sections": [SectionSummary.model_validate(section, from_attributes=True) for section in page.sections],
    }
