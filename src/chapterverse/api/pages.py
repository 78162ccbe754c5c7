"""Pages as the doors give them: what is stored, in the types of the contract. Never formats HTTP."""

from typing import Any

from chapterverse.book import Page
from chapterverse.errors import NotFound
from chapterverse.index import Index
from chapterverse.models import PageSummary, PageText, SectionSummary


async def read_page(page_id: str, index: Index) -> PageText:
    """One page with its text."""
    page = await index.page(page_id)
    if page is None:
        raise NotFound(f"There is no page {page_id} in the book.")
    return PageText(**_fields(page), text=page.text)


def summary_of(page: Page) -> PageSummary:
    """A page without its text."""
    return PageSummary(**_fields(page))


def _fields(page: Page) -> dict[str, Any]:
    return {
        "page_id": page.page_id,
        "title": page.title,
        "module": page.module,
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
