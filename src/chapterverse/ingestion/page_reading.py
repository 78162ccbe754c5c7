"""Reads a document into pages and chunks. Runs in a worker process (`worker_process.py`)."""

from dataclasses import replace

from chapterverse.book import Chunk, Page
from chapterverse.embeddings.wordpiece import count_tokens
from chapterverse.ingestion.chunking import cut
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, NothingToRead, Unreadable
from chapterverse.ingestion.inclusion import refused_files
from chapterverse.ingestion.readers import read

Pages = list[tuple[Page, list[Chunk]]]


def read_pages(document: Document, window: int) -> Pages:
    """The pages of a document with their chunks, each at most `window` tokens long."""
    with refused_files() as refused:
        drafts = read(document)
    composed = (replace(compose(document, draft), refused=tuple(refused)) for draft in drafts)
    pages = [(page, chunks) for page in composed if (chunks := cut(page, count_tokens, window))]
    if not pages:
        raise NothingToRead("no text")
    for page, _ in pages:
        _require_unicode(page.title, page.url, page.text, page.order)
    return pages


def _require_unicode(*texts: str) -> None:
    """Refuse lone surrogates, which can come from escapes in YAML or JSON and cannot be stored."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        raise Unreadable("has characters that are not Unicode text") from None
