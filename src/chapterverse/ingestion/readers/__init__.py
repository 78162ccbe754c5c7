"""From a fetched document to drafts of pages, one reader per format.

A parser is loaded only when a document needs it.
"""

from importlib import import_module

from chapterverse.ingestion.document import Document, Draft, Format, NothingToRead

_READERS: dict[Format, str] = {
    "markdown": "markdown",
    "mdx": "markdown",
    "rst": "rst",
    "asciidoc": "asciidoc",
    "html": "html",
    "text": "plain",
    "epub": "epub",
    "pdf": "pdf",
    "notebook": "notebook",
    "docx": "docx",
}


def read(document: Document) -> list[Draft]:
    """The pages that a document holds. Raises Unreadable or NothingToRead with the reason for the ledger."""
    reader = import_module(f"{__name__}.{_READERS[document.format]}")
    drafts: list[Draft] = reader.read(document)
    with_text = [draft for draft in drafts if any(part.kind not in ("heading", "image") for part in draft.parts)]
    if not with_text:
        raise NothingToRead("no text in it")
    return with_text
