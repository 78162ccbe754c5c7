"""Pages that name things without explaining them: changes by version, and lists of links. Known by their structure."""

import re
from typing import Final

from chapterverse.book import Page, PageKind

_VERSION: Final = re.compile(r"\bv?\d{1,4}\.\d{1,4}(?:\.\w{1,10}){0,3}\b|\b(?:19|20)\d\d\b")  # or a date
_MOST: Final = 0.5  # a larger share of the headings, or of the text, decides


def kind_of(page: Page) -> PageKind:
    """What a page is: `changes` where its title or most of its headings name versions or dates, `index` where most of
    its text is links."""
    headings = [section.heading for section in page.sections[1:]]
    named = sum(_VERSION.search(heading) is not None for heading in headings)
    if _VERSION.search(page.title) or (len(headings) > 1 and named > _MOST * len(headings)):
        return "changes"
    text = sum(block.end - block.start for block in page.blocks if block.kind not in ("heading", "image"))
    linked = sum(mark.end - mark.start for mark in page.marks if mark.kind == "link")
    return "index" if linked > _MOST * text else ""
