"""The protocols of an index: many readers search it, one writer replaces it as a whole.

A book is one collection. Its points are chunks (dense vector `dense`, sparse vector `bm25`), pages (payload only) and
one manifest (payload only), so that everything a reader sees changes at the same moment.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from chapterverse.book import Chunk, Hit, Manifest, Page, PageRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # shape (texts, dimension), or (dimension,) for one question
else:
    Vectors = Any  # the child process of the embedded engine imports this package and must not import numpy


@dataclass(frozen=True, slots=True)
class Filters:
    """Which chunks a search may return. In each given field one of the values must match.

    `source_url` matches a page's address with or without the section's anchor. `edition` contains keys; the key of the
    unnamed edition is empty."""

    source_url: tuple[str, ...] = ()
    page_title: tuple[str, ...] = ()
    section_heading: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    source_url_prefix: str = ""
    edition: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HybridQuery:
    """One search: by meaning, by words, or by both."""

    text: str
    vector: Vectors
    limit: int
    filters: Filters = field(default_factory=Filters)
    min_similarity: float = 0.0
    with_vectors: bool = False
    dense_weight: float | None = None  # None: the tuned default; 1.0: only dense; 0.0: only BM25


class IndexWriter(Protocol):
    """Builds the next generation of the book next to the current one. Nothing is visible before `publish`."""

    @property
    def records(self) -> Mapping[str, PageRecord]:
        """The pages of the current generation by page id; empty if the writer starts from nothing."""
        ...

    @property
    def manifest(self) -> Manifest | None:
        """The manifest of the current generation."""
        ...

    async def put(self, page: Page, record: PageRecord, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Add a page, or replace the one with the same id. Raise `IngestionError` if the vectors do not fit the
        index."""
        ...

    async def put_record(self, page: Page, record: PageRecord) -> None:
        """Replace the record of a stored page, which has not changed itself. Its chunks are kept."""
        ...

    async def remove(self, page_ids: Sequence[str]) -> None:
        """Remove pages and their chunks."""
        ...

    def vectors(self) -> AsyncIterator[tuple[Chunk, Vectors]]:
        """All chunks of the new generation with their vectors, for calibration."""
        ...

    async def publish(self, manifest: Manifest) -> Manifest:
        """Make the new generation the current one for all readers. Fills in `generation`, `pages`, `chunks` and `bm25`
        and returns the manifest as stored."""
        ...


class Index(Protocol):
    """A book that can be searched. All failures are `RetrievalUnavailable` or a subclass."""

    @property
    def engine(self) -> str:
        """The engine and its location, for people."""
        ...

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The best chunks, best first, at most `query.limit`, without duplicates (`content_hash`)."""
        ...

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Chunks by their ids with their similarity to a question, best first. Chunks that are no longer in the book
        are left out."""
        ...

    async def missing(self, words: Sequence[str], editions: Sequence[str] = ()) -> list[str]:
        """The words that occur in no chunk of these editions, in any form; without editions, of the whole index. A stop
        word is never missing."""
        ...

    async def manifest(self) -> Manifest:
        """The manifest of the current generation. Raise `IndexMissing` if there is no book yet."""
        ...

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of these editions, or of all, sorted. Cached until the book changes."""
        ...

    async def pages(self) -> list[Page]:
        """All pages without their text and blocks, in reading order."""
        ...

    async def page(self, page_id: str) -> Page | None:
        """One page with its text."""
        ...

    async def probe(self) -> str | None:
        """Raise if the engine cannot be used. Return a warning if it can be used, but something is wrong."""
        ...

    async def verify(self) -> str | None:
        """What is damaged and how to repair it; None if nothing is, or if the engine cannot check it."""
        ...

    def writer(self, *, fresh: bool = False) -> AbstractAsyncContextManager[IndexWriter]:
        """Start the next generation from the current one, or from nothing. Only one writer at a time. Without `publish`
        the changes are discarded."""
        ...

    async def close(self) -> None:
        """Close processes and connections."""
        ...
