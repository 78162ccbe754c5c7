"""The Protocols of an index: searched by many readers, replaced as a whole by one writer.

A book is one collection. Its points are chunks (dense vector `dense`, sparse vector `bm25`), pages (payload only)
and one manifest (payload only), so that everything a reader sees changes in the same moment.
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
    Vectors = Any  # the child process of the embedded engine imports this package and must not pay for numpy


@dataclass(frozen=True, slots=True)
class Filters:
    """Which chunks a search may return. Inside a field any value may match; all given fields must.

    `source_url` matches a page's address with or without the section's anchor. `edition` holds keys; the empty one is
    that of the unnamed edition."""

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
    dense_weight: float | None = None  # None: the tuned default; 1.0 dense alone, 0.0 BM25 alone


class IndexWriter(Protocol):
    """Builds the next state of the book beside the current one. Nothing is visible before `publish`."""

    @property
    def records(self) -> Mapping[str, PageRecord]:
        """The pages of the current state by page id; empty when it starts from nothing."""
        ...

    @property
    def manifest(self) -> Manifest | None:
        """The manifest of the current state."""
        ...

    async def put(self, page: Page, record: PageRecord, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Add a page, or replace the one with the same id. `IngestionError` if vectors do not fit the index."""
        ...

    async def remove(self, page_ids: Sequence[str]) -> None:
        """Take pages and their chunks out."""
        ...

    def vectors(self) -> AsyncIterator[tuple[Chunk, Vectors]]:
        """All chunks of the state being built with their vectors, for calibration."""
        ...

    async def publish(self, manifest: Manifest) -> Manifest:
        """Make the new state the current one, at once and for all readers. The writer itself fills in what it
        alone knows: `generation`, `pages`, `chunks` and `bm25`; the manifest as stored is returned."""
        ...


class Index(Protocol):
    """A book that can be searched. All failures are `RetrievalUnavailable` or one of its kinds."""

    @property
    def engine(self) -> str:
        """A few words for people: which engine this is and where."""
        ...

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The best chunks, best first, at most `query.limit`, equal `content_hash` once."""
        ...

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Chunks by their ids with their similarity to a question, best first; those that are no longer in the
        book are left out."""
        ...

    async def missing(self, words: Sequence[str], editions: Sequence[str] = ()) -> list[str]:
        """Those of the words that stand in no chunk of these editions, whatever their form; none: of all. A stop word
        is never missing."""
        ...

    async def manifest(self) -> Manifest:
        """What the current state says of itself; `IndexMissing` when there is no book yet."""
        ...

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of these editions, or of all, sorted. Cheap: known after the first call, until the book
        changes."""
        ...

    async def pages(self) -> list[Page]:
        """All pages without their text and blocks, in reading order."""
        ...

    async def page(self, page_id: str) -> Page | None:
        """One page with its text."""
        ...

    async def probe(self) -> str | None:
        """Raise if the engine cannot be used now. Return what is wrong if it can be used all the same."""
        ...

    async def verify(self) -> str | None:
        """What is damaged in what is stored, and how to repair it; None if nothing is, or if that cannot be told."""
        ...

    def writer(self, *, fresh: bool = False) -> AbstractAsyncContextManager[IndexWriter]:
        """Start the next state from the current one, or from nothing. One writer at a time; leaving without
        `publish` discards it."""
        ...

    async def close(self) -> None:
        """Let go of processes and connections."""
        ...
