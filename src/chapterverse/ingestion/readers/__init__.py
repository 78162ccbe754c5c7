"""Readers: one module for each format, which turns a document into drafts of pages. Imported on first use."""

from collections.abc import Callable
from importlib import import_module

from chapterverse import plugins
from chapterverse.book import CONTENTS
from chapterverse.errors import ConfigurationError
from chapterverse.ingestion.document import Document, Draft, Format, NothingToRead, Part, Unreadable

_READERS: dict[Format, str] = {
    "markdown": "markdown",
    "mdx": "markdown",
    "rst": "rst",
    "asciidoc": "asciidoc.reader",
    "html": "html",
    "text": "plain",
    "epub": "epub",
    "pdf": "pdf",
    "notebook": "notebook",
    "docx": "docx",
}


def read(document: Document) -> list[Draft]:
    """The pages of a document. Raises Unreadable or NothingToRead with the reason for the ledger."""
    drafts = _reader(document.format)(document)
    with_text = [draft for draft in drafts if any(map(_is_text, draft.parts))]
    if not with_text:
        raise NothingToRead("no text in it")
    return with_text


def _is_text(part: Part) -> bool:
    return part.kind not in ("heading", "image") and part.info != CONTENTS


def _reader(form: str) -> Callable[[Document], list[Draft]]:
    if module := _READERS.get(form):
        read_builtin: Callable[[Document], list[Draft]] = import_module(f"{__name__}.{module}").read
        return read_builtin
    try:
        return plugins.load("reader", form)
    except ConfigurationError as failure:
        raise Unreadable(failure.message) from failure
