"""Headings of the book may have the ids of elements of the reader page."""

import pytest
from playwright.sync_api import expect

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from tests.browser.chromium import open_browser, visiting
from tests.browser.shelf import Shelf, scripted_server
from tests.scripted import Scripted

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = """# Page {#cv-page}

First.

## Search {#cv-search}

Second.

## Results {#cv-results}

Third.
"""


def test_ids_of_headings_do_not_collide_with_ids_of_the_page() -> None:
    document = Document("book/ids.md", "ids.md", "book", "markdown", TEXT.encode())
    page = compose(document, read(document)[0])
    with (
        scripted_server(Shelf([page]), Scripted(), api_rate_limit=100_000) as server,
        open_browser() as browser,
        visiting(browser, server.url, f"/read/{page.page_id}#book-cv-search") as opened,
    ):
        expect(opened.locator("main h2").first).to_have_text("Search")
        for name in ("cv-page", "cv-search", "cv-results"):
            expect(opened.locator(f"[id={name}]")).to_have_count(1)
        expect(opened.locator("h2#book-cv-search")).to_have_count(1)
        expect(opened.locator("dialog#cv-search")).to_have_count(1)
