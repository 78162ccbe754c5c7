"""Pages as the doors give them: what is stored, in the types of the contract. Never formats HTTP."""

from pathlib import Path
from typing import Any

from chapterverse.book import Page
from chapterverse.errors import NotFound
from chapterverse.index import Index
from chapterverse.ingestion.images import image_name, stored_image
from chapterverse.ingestion.ordering import title_of_path
from chapterverse.models import PageBlock, PageList, PageMark, PageSummary, PageText, RenderedPage, SectionSummary


class Contents:
    """The list of pages, made once for each state of the book: a large one takes the engine a while."""

    def __init__(self) -> None:
        self._generation = ""
        self._listed = PageList(pages=[], total_pages=0)

    async def read(self, index: Index) -> PageList:
        """All pages in reading order, without their text."""
        generation = (await index.manifest()).generation
        if generation != self._generation:
            pages = [PageSummary(**_fields(page)) for page in await index.pages()]
            self._listed = PageList(pages=pages, total_pages=len(pages))
            self._generation = generation
        return self._listed


async def read_page(page_id: str, index: Index, asked_for: str = "") -> PageText:
    """One page with its text. `asked_for`: how the caller named it, if not by its id."""
    page = await _page(page_id, index, asked_for)
    return PageText(**_fields(page), text=page.text)


async def render_page(page_id: str, index: Index, home: Path) -> RenderedPage:
    """One page with its text and how it looks. `home` is where images are kept."""
    page = await _page(page_id, index)
    blocks = [
        PageBlock(
            kind=block.kind,
            start=block.start,
            end=block.end,
            info=block.info,
            caption=block.caption,
            inside=block.inside,
            source=_source(block.info, home) if block.kind == "image" else "",
        )
        for block in page.blocks
    ]
    marks = [
        PageMark(
            kind=mark.kind,
            start=mark.start,
            end=mark.end,
            target=mark.target,
            title=mark.title,
            source=_source(mark.target, home) if mark.kind == "image" else "",
        )
        for mark in page.marks
    ]
    return RenderedPage(**_fields(page), text=page.text, blocks=blocks, marks=marks)


async def _page(page_id: str, index: Index, asked_for: str = "") -> Page:
    page = await index.page(page_id)
    if page is None:
        raise NotFound(f"There is no page {asked_for or page_id} in the book.")
    return page


def _source(address: str, home: Path) -> str:
    name = image_name(address)
    return f"images/{name}" if name and stored_image(home, name) else ""


def _fields(page: Page) -> dict[str, Any]:
    return {
        "page_id": page.page_id,
        "title": page.title,
        "module": page.module,
        "category": page.chapters[0] if page.chapters else title_of_path(page.module) if page.module else "",
        "url": page.url,
        "flags": list(page.flags),
        "sections": [
            SectionSummary(
                heading=section.heading,
                level=section.level,
                anchor=section.anchor,
                start=section.start,
                end=section.end,
                breadcrumb=list(section.breadcrumb),
            )
            for section in page.sections
        ],
    }
