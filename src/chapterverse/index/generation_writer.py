"""What the writers of both engines have in common: the pages of a generation, and checks before anything is written."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from chapterverse.book import Chunk, Manifest, Page, PageRecord
from chapterverse.errors import IngestionError
from chapterverse.index import Vectors
from chapterverse.index.generations import new_name

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work that cannot be stopped once it has begun. A cancellation meanwhile comes too late and is dropped,
    so that the caller is not told that nothing happened."""
    task, caller = asyncio.create_task(work), asyncio.current_task()
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            assert caller is not None
            caller.uncancel()
    return task.result()


class GenerationWriter:
    """The next generation of an index. It starts empty, or from the current generation."""

    def __init__(self, bm25: Mapping[str, Any]) -> None:
        self._name = new_name()
        self._dimension = 0  # of the vectors; 0 as long as it is not known
        self._manifest: Manifest | None = None
        self._records: dict[str, PageRecord] = {}
        self._present: set[str] = set()  # ids of the pages in the new generation
        self._bm25 = bm25
        self._turn = asyncio.Lock()  # one change at a time

    @property
    def records(self) -> Mapping[str, PageRecord]:
        """The pages of the current generation by page id."""
        return self._records

    @property
    def manifest(self) -> Manifest | None:
        """The manifest of the current generation."""
        return self._manifest

    def _start_from(self, manifest: Manifest, records: Iterable[PageRecord]) -> None:
        """Start from the current generation. Old and new passages must have the same BM25 weights."""
        self._records = {record.page_id: record for record in records}
        self._present = set(self._records)
        self._manifest = manifest
        self._dimension = manifest.fingerprint.dimension
        self._bm25 = manifest.bm25

    def _completed(self, manifest: Manifest, pages: int, chunks: int) -> Manifest:
        """The manifest with the fields that the writer knows."""
        return replace(manifest, generation=self._name, pages=pages, chunks=chunks, bm25=dict(self._bm25))

    def _check(self, page: Page, record: PageRecord, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Check a page before it is written: engines silently accept invalid batches, or parts of them."""
        if {page.page_id, record.page_id, *(chunk.page_id for chunk in chunks)} != {page.page_id}:
            raise IngestionError(f"a chunk or record of another page was given with {page.url}")
        if vectors.ndim != 2 or len(vectors) != len(chunks):
            raise IngestionError(
                f"{len(chunks)} chunks need {len(chunks)} vectors, not an array of shape {vectors.shape}"
            )
        self._check_dimension(vectors.shape[1])
        if not np.isfinite(vectors).all():
            raise IngestionError("the embedding model returned a vector with values that are not finite")

    def _check_dimension(self, given: int) -> None:
        """Check that the vectors have the dimension of the index."""
        if self._dimension and given != self._dimension:
            raise IngestionError(
                f"the index has vectors of {self._dimension} numbers and these have {given}: it was made with another "
                "embedding model. Re-embed the book: chapterverse ingest --fresh <folder or URL>"
            )
        if not given:
            raise IngestionError("vectors of length 0 cannot be indexed")
