"""Finds the passages for a question: embeds it once, searches by meaning and by words, within five seconds.

Plain functions without state.
"""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from chapterverse.book import OLDEST_RECIPE, Edition, Hit, edition_names
from chapterverse.calibration import FALLBACK, Calibration, assess, near
from chapterverse.editions import scope_of
from chapterverse.embeddings import Embedder, Vectors
from chapterverse.errors import (
    EmbeddingMismatchError,
    IndexOutdatedError,
    IndexTimeout,
    InvalidFilterError,
    RetrievalUnavailable,
)
from chapterverse.index import Filters, HybridQuery, Index
from chapterverse.index.filters import admits
from chapterverse.models import (
    ChunkResult,
    ConfidenceMetrics,
    EditionName,
    PassageUnit,
    RetrievalRequest,
    SearchFilters,
    SearchResult,
)
from chapterverse.settings import RETRIEVAL_SECONDS

RETRIES: Final = 3  # after the first try, if the engine is unavailable
FIRST_PAUSE: Final = 0.1  # seconds before the first retry; doubled each time, half of it random

_ROUNDING: Final = 1e-6  # tolerance of cosines in the engine; the exact threshold is applied afterwards
MOST_LISTED: Final = 50  # modules that an error lists

LISTING_COST: Final = 0.5  # standard deviations that are subtracted from pages that list changes or links
_ABOUT_CHANGES: Final = re.compile(
    r"\d\.\d|\b(?:19|20)\d\d\b|\b(?:chang|releas|deprecat|upgrad|migrat)\w*|\bwhat(?:'s| is) new\b", re.I
)

T = TypeVar("T")


async def embed_query(text: str, embedder: Embedder) -> Vectors:
    """The vector of a question."""
    return await embedder.embed_query(text)


async def retrieve(
    request: RetrievalRequest, embedder: Embedder, index: Index, also: Sequence[str] = ()
) -> SearchResult:
    """The best passages for the request, without retries. `also`: ids of chunks that are added after them."""
    started = time.perf_counter()
    await require_same_model(embedder, index)
    vector = await embed_query(request.query, embedder)
    return await _search(request, vector, index, also, started)


async def retrieve_with_retry(
    request: RetrievalRequest,
    embedder: Embedder,
    index: Index,
    also: Sequence[str] = (),
    seconds: float = RETRIEVAL_SECONDS,
    *,
    fitting: bool = False,
) -> SearchResult:
    """Like `retrieve`, but an unavailable engine is tried again, at most three times and within the time limit."""
    started = time.perf_counter()
    async with _at_most(seconds):
        await persist(lambda: require_same_model(embedder, index), seconds)
        vector = await embed_query(request.query, embedder)
        return await persist(lambda: _search(request, vector, index, also, started, fitting=fitting), seconds)


async def find_passages(request: RetrievalRequest, embedder: Embedder, index: Index) -> SearchResult:
    """The passages for a search that people see: like `retrieve_with_retry`, but passages that have no word of the
    query and are not near to it are left out, so that nonsense finds nothing. Answering judges those itself."""
    return await retrieve_with_retry(request, embedder, index, fitting=True)


async def require_same_model(embedder: Embedder, index: Index) -> None:
    """Refuse an index of an older version or of another embedding model, with the command that fixes it."""
    manifest = await index.manifest()
    if manifest.recipe.isdecimal() and int(manifest.recipe) < int(OLDEST_RECIPE):
        raise IndexOutdatedError(
            "The index was made by an older version of Chapterverse and cannot be used. "
            "Rebuild it with: chapterverse ingest --fresh SOURCE…",
            details={"index": manifest.recipe, "needed": OLDEST_RECIPE},
        )
    made_with, asked_with = manifest.fingerprint, embedder.fingerprint
    if made_with != asked_with:
        raise EmbeddingMismatchError(
            f"The index was made with {made_with.model} ({made_with.dimension} dimensions), "
            f"but questions are embedded with {asked_with.model} ({asked_with.dimension} dimensions). "
            "Re-embed the book with: chapterverse ingest --reembed",
            details={"index": made_with.model, "settings": asked_with.model},
        )


async def persist(attempt: Callable[[], Awaitable[T]], seconds: float = RETRIEVAL_SECONDS) -> T:
    """Call an index. If it is unavailable, it is tried again, at most three times and within the time limit."""
    pause = FIRST_PAUSE
    async with _at_most(seconds):
        for _ in range(RETRIES):
            try:
                return await attempt()
            except RetrievalUnavailable as failure:
                if not failure.retryable:
                    raise
                await asyncio.sleep(max(failure.retry_after or 0.0, pause * random.uniform(0.5, 1.0)))  # noqa: S311
                pause *= 2
        return await attempt()


@asynccontextmanager
async def _at_most(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise IndexTimeout(
            f"The search took longer than {seconds:g} seconds. Try again in a moment.", retry_after=1
        ) from None


async def _search(
    request: RetrievalRequest,
    vector: Vectors,
    index: Index,
    also: Sequence[str],
    started: float,
    *,
    fitting: bool = False,
) -> SearchResult:
    scope = await editions_in(request.filters, index)
    filters = _filters(request.filters, scope)
    await _require_known_modules(filters, index)
    calibration = calibration_of(scope)
    least = request.score_threshold or 0.0
    query = HybridQuery(
        text=request.query,
        vector=vector,
        limit=request.top_k,
        filters=filters,
        min_similarity=max(0.0, calibration.least_cosine(least) - _ROUNDING) if least else 0.0,
        with_vectors=True,
    )
    hits = _explaining_first(await index.search(query), request.query)
    if fitting:
        nearby = near([hit.similarity for hit in hits], calibration)
        hits = [hit for hit, is_near in zip(hits, nearby, strict=True) if is_near or hit.by_words]
    found = {hit.chunk.content_hash for hit in hits}
    recalled: dict[str, Hit] = {}
    for hit in await index.recall(also, vector) if also else ():
        if _is_new(hit, found, filters):
            recalled.setdefault(hit.chunk.content_hash, hit)
    scored = [(hit, calibration.relevance(hit.similarity)) for hit in (*hits, *recalled.values())]
    kept = [(hit, score) for hit, score in scored if score >= least]
    metrics = _assess(request, [hit for hit, _ in kept if hit.chunk.content_hash in found], calibration)
    results = [passage_of(hit, rank, score) for rank, (hit, score) in enumerate(kept, start=1)]
    return SearchResult(
        results=results,
        total_results=len(results),
        query=request.query,
        latency_ms=round((time.perf_counter() - started) * 1000, 3),
        confidence=metrics,
        editions=[EditionName(book=edition.book, version=edition.version) for edition in scope if edition.key],
    )


def _explaining_first(hits: Sequence[Hit], question: str) -> list[Hit]:
    """Rank passages of pages that list changes or links lower, unless the question is about changes."""
    if _ABOUT_CHANGES.search(question) or not any(hit.chunk.page_kind for hit in hits):
        return list(hits)
    return sorted(hits, key=lambda hit: (LISTING_COST if hit.chunk.page_kind else 0.0) - hit.score)


async def editions_in(filters: SearchFilters | None, index: Index) -> list[Edition]:
    """The editions that the filters name, else the latest version of each book."""
    shelf = (await index.manifest()).shelf
    return scope_of(shelf, (filters and filters.book) or (), (filters and filters.version) or ())


def calibration_of(scope: Sequence[Edition]) -> Calibration:
    """The calibration for several editions together: the strictest of theirs, because the best passage may be from any
    of them."""
    lines = [Calibration.from_dict(edition.calibration) if edition.calibration else FALLBACK for edition in scope]
    return Calibration(max(line.answered for line in lines), max(line.usual for line in lines))


def false_answers_in(scope: Iterable[Edition]) -> float | None:
    """The share of unanswerable questions that may be answered without a key: the smallest that is set for one of the
    editions; None if it is not set."""
    rates = [(edition.calibration or {}).get("false_answers") for edition in scope]
    return min((float(rate) for rate in rates if rate is not None), default=None)


def _is_new(hit: Hit, found: Collection[str], filters: Filters) -> bool:
    """Whether a recalled chunk matches the filters and was not found already."""
    return admits(filters, hit.chunk) and hit.chunk.content_hash not in found


async def _require_known_modules(filters: Filters, index: Index) -> None:
    """Refuse an unknown module: a search in it would find nothing without saying why."""
    if not filters.module:
        return
    modules = await index.modules(filters.edition)
    if unknown := [module for module in filters.module if module not in modules]:
        listed = ", ".join(modules[:MOST_LISTED]) + (", …" if len(modules) > MOST_LISTED else "")
        raise InvalidFilterError(
            f"There is no module {', '.join(unknown)} in the book. Its modules are: {listed or 'none'}.",
            details={"modules": modules[:MOST_LISTED]},
        )


def _assess(request: RetrievalRequest, hits: Sequence[Hit], calibration: Calibration) -> ConfidenceMetrics:
    # Without a threshold, few results mean that the book or the filter has few passages; that is not a reason for
    # doubt.
    wanted = request.top_k if request.score_threshold or not hits else min(request.top_k, len(hits))
    return assess([hit.similarity for hit in hits], [hit.vector or () for hit in hits], calibration, wanted)


def _filters(filters: SearchFilters | None, scope: Sequence[Edition]) -> Filters:
    within = tuple(edition.key for edition in scope)
    if filters is None:
        return Filters(edition=within)
    return Filters(
        edition=within,
        source_url=tuple(filters.source_url or ()),
        page_title=tuple(filters.page_title or ()),
        section_heading=tuple(filters.section_heading or ()),
        module=tuple(filters.module or ()),
        source_url_prefix=filters.source_url_prefix or "",
    )


def passage_of(hit: Hit, rank: int, relevance: float) -> ChunkResult:
    """A hit as a result of a search."""
    chunk = hit.chunk
    book, version = edition_names(chunk.edition)
    return ChunkResult(
        book=book,
        version=version,
        chunk_id=chunk.chunk_id,
        chunk_text=chunk.text,
        source_url=chunk.source_url,
        page_id=chunk.page_id,
        page_title=chunk.page_title,
        section_heading=chunk.section_heading,
        breadcrumb=chunk.breadcrumb,
        module=chunk.module,
        chunk_index=chunk.chunk_index,
        content_hash=chunk.content_hash,
        similarity_score=hit.similarity,
        relevance_score=relevance,
        rank=rank,
        char_start=chunk.start,
        char_end=chunk.end,
        flags=list(chunk.flags),
        units=[
            PassageUnit.model_construct(
                kind=unit.kind, start=unit.start, end=unit.end, head_start=unit.head_start, head_end=unit.head_end
            )
            for unit in chunk.units
        ],
        lead=chunk.lead,
    )
