"""What a writer refuses before anything is written: engines take part of a bad batch, or all of it, in silence."""

from collections.abc import Sequence

import numpy as np

from chapterverse.book import Chunk, Page, PageRecord
from chapterverse.errors import IngestionError
from chapterverse.index import Vectors


def check_page(page: Page, record: PageRecord, chunks: Sequence[Chunk]) -> None:
    """A page, its record and its chunks belong together."""
    if {page.page_id, record.page_id, *(chunk.page_id for chunk in chunks)} != {page.page_id}:
        raise IngestionError(f"a chunk or record of another page was given with {page.url}")


def check_vectors(vectors: Vectors, count: int, dimension: int) -> None:
    """One finite vector per chunk, as long as those of the index; `dimension` 0: the index has none yet."""
    if vectors.ndim != 2 or len(vectors) != count:
        raise IngestionError(f"{count} chunks need {count} vectors, not an array of shape {vectors.shape}")
    check_dimension(vectors.shape[1], dimension)
    if not np.isfinite(vectors).all():
        raise IngestionError("the embedding model returned a vector that is not made of numbers")


def check_dimension(given: int, dimension: int) -> None:
    """Vectors of one length in one index."""
    if dimension and given != dimension:
        raise IngestionError(
            f"the index holds vectors of {dimension} numbers and these have {given}: it was made with another "
            "embedding model. Re-embed the book: chapterverse ingest --fresh <folder or URL>"
        )
    if not given:
        raise IngestionError("vectors of length 0 cannot be indexed")
