"""Chunks of every format are in their page, word for word, at their offsets."""

import html
import json
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.book import Page
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.ingestion.chunking import cut
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Format, NothingToRead
from chapterverse.ingestion.formats import BuiltInFormat
from chapterverse.ingestion.readers import read
from tests.ingestion.readers.test_docx import paragraph as docx_paragraph
from tests.ingestion.readers.test_docx import word_file
from tests.ingestion.readers.test_epub import FILES, archive
from tests.ingestion.readers.test_pdf import write_pdf

BUDGET = 64  # tokens; small, so that many chunks are made

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
plain = st.lists(words, min_size=1, max_size=60).map(" ".join).map(str.strip).filter(bool)
WORDS = ["The", "robot", "waits.", "Nodes", "publish", "`data`", "at", "10", "Hz;", "see", "v1.2.3!"]
prose = st.lists(st.sampled_from(WORDS), min_size=1, max_size=90)
paragraph = prose.map(" ".join) | plain
sections = st.lists(
    st.tuples(plain.map(lambda text: text[:60].strip() or "x"), st.lists(paragraph, max_size=4)), max_size=5
)
Sections = list[tuple[str, list[str]]]


def markdown(parts: Sections) -> bytes:
    return "\n\n".join(f"## {head}\n\n" + "\n\n".join(body) for head, body in parts).encode()


def rst(parts: Sections) -> bytes:
    return "\n\n".join(f"{head}\n{'=' * 200}\n\n" + "\n\n".join(body) for head, body in parts).encode()


def asciidoc(parts: Sections) -> bytes:
    return "\n\n".join(f"== {head}\n\n" + "\n\n".join(body) for head, body in parts).encode()


def web(parts: Sections) -> bytes:
    inside = "".join(
        f"<h2>{html.escape(head)}</h2>"
        + "".join(f"<p>{html.escape(text)}</p><pre><code>{html.escape(text)}</code></pre>" for text in body)
        for head, body in parts
    )
    return f"<html><body><main>{inside}</main></body></html>".encode()


def text(parts: Sections) -> bytes:
    return "\n\n".join(f"{head.upper()}\n\n" + "\n\n".join(body) for head, body in parts).encode()


def epub(parts: Sections) -> bytes:
    return archive(FILES | {"OEBPS/text/one.xhtml": web(parts).decode()})


def pdf(parts: Sections) -> bytes:
    lines = [
        [line.encode("latin-1", "replace").decode("latin-1")[:90] for line in [head, *body]] for head, body in parts
    ]
    return write_pdf([*lines, ["something"]])  # invisible characters alone are no text


def notebook(parts: Sections) -> bytes:
    cells = [
        {"cell_type": kind, "source": source, "metadata": {}, "outputs": []}
        for head, body in parts
        for kind, source in [
            ("markdown", f"## {head}"),
            *(("code" if "`" in text else "markdown", text) for text in body),
        ]
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}).encode()


def word(parts: Sections) -> bytes:
    inside = "".join(
        docx_paragraph(html.escape(head), style="H1") + "".join(docx_paragraph(html.escape(text)) for text in body)
        for head, body in parts
    )
    return word_file(inside)


WRITERS: dict[Format, Callable[[Sections], bytes]] = {
    "markdown": markdown,
    "mdx": markdown,
    "rst": rst,
    "asciidoc": asciidoc,
    "html": web,
    "text": text,
    "epub": epub,
    "pdf": pdf,
    "notebook": notebook,
    "docx": word,
}


def pages(form: Format, data: bytes) -> list[Page]:
    document = Document("https://book.example/page", "part/page", "book", form, data)
    try:
        return [compose(document, draft) for draft in read(document)]
    except NothingToRead:
        return []


def test_every_format_has_a_writer() -> None:
    assert set(WRITERS) == set(get_args(BuiltInFormat))


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITERS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(parts=sections)
def test_chunks_of_every_format_are_at_their_offsets(form: Format, parts: Sections) -> None:
    for page in pages(form, WRITERS[form](parts)):
        for chunk in cut(page, count_tokens, BUDGET):
            assert page.text[chunk.start : chunk.end] == chunk.text
            assert chunk.text.strip()
            assert count_tokens(chunk.passage) <= BUDGET or len(chunk.units) == 1  # a long unit is kept whole
            section = next(s for s in page.sections if s.start <= chunk.start < s.end)
            assert chunk.end <= section.end
            assert chunk.section_heading == section.heading


@pytest.mark.slow
@pytest.mark.parametrize("form", ["markdown", "rst", "asciidoc", "html"])
def test_page_with_ten_thousand_headings_has_distinct_anchors(form: Format) -> None:
    parts: Sections = [(f"Heading {number}", ["A sentence."]) for number in range(10_000)]
    (page,) = pages(form, WRITERS[form](parts))
    assert len({section.anchor for section in page.sections}) == 10_000  # the first heading is the title
    chunks = cut(page, lambda text: len(text.split()), BUDGET)
    assert len(chunks) == 10_000
