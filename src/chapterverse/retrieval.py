"""From a question to ranked passages: embed once, search by meaning and by words, within five seconds.

Plain functions that get everything as arguments.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

from chapterverse.book import OLDEST_RECIPE, Edition, Hit, edition_names
from chapterverse.confidence import FALLBACK, Calibration, assess, near
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

RETRIES: Final = 3  # after the first try, on an engine that was lost
FIRST_PAUSE: Final = 0.1  # seconds before the first retry; doubled each time, half of it by chance

_ROUNDING: Final = 1e-6  # of cosines; what is too similar by that is left out afterwards
MOST_LISTED: Final = 50  # modules that an error names

LISTING_COST: Final = 0.5  # standard deviations: what a page of changes or links has to be better by
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
    """The passages that fit the request best, in one try, and after them the chunks `also` names by their ids."""
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
    """As `retrieve`, but a lost engine is tried again, three times at most and never beyond the time limit."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            await _persist(lambda: require_same_model(embedder, index))
            vector = await embed_query(request.query, embedder)
            return await _persist(lambda: _search(request, vector, index, also, started, fitting=fitting))
    except TimeoutError:
        raise IndexTimeout(
            f"The search took longer than {seconds:g} seconds. Try again in a moment.", retry_after=1
        ) from None


async def find_passages(request: RetrievalRequest, embedder: Embedder, index: Index) -> SearchResult:
    """What a search shows to whoever asked for it: as `retrieve_with_retry`, but without the passages that have no word
    of the query and are not near to it either, so that nonsense finds nothing. An answer weighs those itself."""
    return await retrieve_with_retry(request, embedder, index, fitting=True)


async def require_same_model(embedder: Embedder, index: Index) -> None:
    """Refuse an index of an older version or of another embedding model; the message names the command that helps."""
    manifest = await index.manifest()
    if manifest.recipe.isdecimal() and int(manifest.recipe) < int(OLDEST_RECIPE):
        raise IndexOutdatedError(
            "The index was made by an older version of Chapterverse, whose passages have no units to cite. "
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


async def _persist(attempt: Callable[[], Awaitable[T]]) -> T:
    pause = FIRST_PAUSE
    for _ in range(RETRIES):
        try:
            return await attempt()
        except RetrievalUnavailable as failure:
            if not failure.retryable:
                raise
            await asyncio.sleep(max(failure.retry_after or 0.0, pause * random.uniform(0.5, 1.0)))  # noqa: S311
            pause *= 2
    return await attempt()


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
    recalled = [hit for hit in (await index.recall(also, vector) if also else ()) if _is_new(hit, found, filters)]
    scored = [(hit, calibration.relevance(hit.similarity)) for hit in (*hits, *recalled)]
    kept = [(hit, score) for hit, score in scored if score >= least]
    metrics = _assess(request, [hit for hit, _ in kept if hit.chunk.content_hash in found], calibration)
    results = [passage_of(hit, rank, score) for rank, (hit, score) in enumerate(kept, start=1)]
    return SearchResult(
        results=results,
        total_results=len(results),
        query=request.query,
        latency_ms=round((time.perf_counter() - started) * 1000, 3),
        confidence=metrics,
        editions=[EditionName(book=one.book, version=one.version) for one in scope if one.key],
    )


def _explaining_first(hits: Sequence[Hit], question: str) -> list[Hit]:
    """The hits with passages of pages that list changes or links further down, unless the question is about changes."""
    if _ABOUT_CHANGES.search(question) or not any(hit.chunk.page_kind for hit in hits):
        return list(hits)
    return sorted(hits, key=lambda hit: (LISTING_COST if hit.chunk.page_kind else 0.0) - hit.score)


async def editions_in(filters: SearchFilters | None, index: Index) -> list[Edition]:
    """The scope of a question: the editions that its filters name, else the latest version of each book."""
    shelf = (await index.manifest()).shelf
    return scope_of(shelf, (filters and filters.book) or (), (filters and filters.version) or ())


def calibration_of(scope: Sequence[Edition]) -> Calibration:
    """The line to relevance for some editions together: a passage of any of them may be the best one, so that what is
    needed is the most that one of them needs."""
    lines = [Calibration.from_dict(one.calibration) if one.calibration else FALLBACK for one in scope]
    return Calibration(max(line.answered for line in lines), max(line.usual for line in lines))


def false_answers_in(scope: Iterable[Edition]) -> float | None:
    """The share of questions without an answer that may be answered without a key: the least that an owner set for one
    of the editions; None: nobody set it."""
    rates = [(one.calibration or {}).get("false_answers") for one in scope]
    return min((float(rate) for rate in rates if rate is not None), default=None)


def _is_new(hit: Hit, found: Collection[str], filters: Filters) -> bool:
    """Whether a chunk that was recalled adds to what was found, within what the reader asked for."""
    return admits(filters, hit.chunk) and hit.chunk.content_hash not in found


async def _require_known_modules(filters: Filters, index: Index) -> None:
    """Refuse a module that the book does not have: a search in it would find nothing, and not say why."""
    if not filters.module:
        return
    known = await index.modules(filters.edition)
    if unknown := [module for module in filters.module if module not in known]:
        listed = ", ".join(known[:MOST_LISTED]) + (", …" if len(known) > MOST_LISTED else "")
        raise InvalidFilterError(
            f"There is no module {', '.join(unknown)} in the book. Its modules are: {listed or 'none'}.",
            details={"modules": known[:MOST_LISTED]},
        )


def _assess(request: RetrievalRequest, hits: Sequence[Hit], calibration: Calibration) -> ConfidenceMetrics:
    # Without a threshold all that may be found was found: a book or a filter with few passages is no reason for doubt.
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
    """What a search shows of a hit."""
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
