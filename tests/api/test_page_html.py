"""Pages rendered as HTML. `tests/browser/test_reader_page.py` compares them with what the scripts render."""

from pathlib import Path
from typing import cast

import pytest

from chapterverse.api.page_html import render
from chapterverse.api.pages import render_page
from chapterverse.index import Index
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Format
from chapterverse.ingestion.readers import read
from tests.browser.shelf import Shelf

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("form", "text", "html"),
    [
        ("markdown", "Of $n$.", '<p dir="auto">Of <span class="math" dir="ltr">n</span>.</p>'),
        ("markdown", "From $HOME/$USER to $PATH.", '<p dir="auto">From $HOME/$USER to $PATH.</p>'),
        ("markdown", "$$\na\n$$", '<p dir="auto"><span class="math" dir="ltr"> a </span></p>'),
        ("asciidoc", "2^80^ bytes", '<p dir="auto">2<sup>80</sup> bytes</p>'),
        ("asciidoc", "Wordfootnote:[A _note_.].", '<p dir="auto">Word <small>(A <em>note</em>.)</small>.</p>'),
        ("rst", "Word [1]_.\n\n.. [1] A note.", '<sup class="footnote" aria-label="Footnote 1">1</sup>'),
        (
            "asciidoc",
            ".Mind: the gap\nWARNING: Hot.",
            '<div class="aside tone-warning" role="note" dir="auto">'
            '<p class="label">Mind: the gap</p><p dir="auto">Hot.</p></div>',
        ),
        (
            "html",
            "<p>An arm:</p><figure><img src=a.png alt=A><figcaption>The <b>arm</b></figcaption></figure>",
            '<figcaption dir="auto">The <strong>arm</strong></figcaption></figure>',
        ),
        (
            "asciidoc",
            ".The *sizes*\n|===\n|a\n|===",
            '<table dir="auto"><caption dir="auto">The <strong>sizes</strong></caption><tbody>',
        ),
    ],
)  # fmt: skip
async def test_source_is_rendered_as_html(form: Format, text: str, html: str) -> None:
    document = Document("https://b.test/x", "x", "book", form, text.encode())
    page = compose(document, read(document)[0])
    rendered = await render_page(page.page_id, cast(Index, Shelf([page])), Path("no-home"))
    assert html in "".join(node.html() for node in render(rendered, lambda _: None, ""))
