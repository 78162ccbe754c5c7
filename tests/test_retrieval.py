"""Retrieval: results, thresholds, retries and the time limit."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chapterverse.book import OLDEST_RECIPE, RECIPE, Chunk, Fingerprint, Hit, Manifest
from chapterverse.calibration import FALLBACK
from chapterverse.errors import (
    EmbeddingError,
    EmbeddingMismatchError,
    IndexMissing,
    IndexOutdatedError,
    IndexTimeout,
    IndexUnavailable,
    InvalidFilterError,
)
from chapterverse.index import HybridQuery, Index
from chapterverse.models import RetrievalRequest, SearchFilters
from chapterverse.retrieval import RETRIES, embed_query, find_passages, retrieve, retrieve_with_retry
from chapterverse.testing import HashEmbedder

EMBEDDER = HashEmbedder()


def chunk(name: str) -> Chunk:
    return Chunk(name, "p", "u", "u#a", "Title", "Section", "Title › Section", "m", 0, 10, 14, "text", f"hash-{name}")


@dataclass
class Scripted:
    """A fake index with scripted results."""

    faults: list[Exception] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    recalled: list[Hit] = field(default_factory=list)
    fingerprint: Fingerprint = EMBEDDER.fingerprint
    recipe: str = ""
    hang: bool = False
    asked: list[HybridQuery] = field(default_factory=list)

    async def search(self, query: HybridQuery) -> list[Hit]:
        self.asked.append(query)
        if self.hang:
            await asyncio.Event().wait()
        if self.faults:
            raise self.faults.pop(0)
        return self.hits

    async def recall(self, chunk_ids: Sequence[str], vector: object) -> list[Hit]:
        return [hit for hit in self.recalled if hit.chunk.chunk_id in chunk_ids]

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        return ["m"]

    async def manifest(self) -> Manifest:
        return Manifest(self.fingerprint, "g", "now", 1, 1, recipe=self.recipe)


def index_of(**values: Any) -> tuple[Scripted, Index]:
    scripted = Scripted(**values)
    return scripted, scripted  # type: ignore[return-value]


async def test_retrieve_sends_the_request_and_returns_the_hits() -> None:
    scripted, index = index_of(hits=[Hit(chunk("a"), 0.8, 1.5, (1.0, 0.0)), Hit(chunk("b"), 0.5, 0.5, (0.0, 1.0))])
    request = RetrievalRequest(
        query="what", top_k=3, score_threshold=0.2, filters=SearchFilters(module=["m"], source_url_prefix="u")
    )
    found = await retrieve(request, EMBEDDER, index)
    (asked,) = scripted.asked
    assert (asked.text, asked.limit) == ("what", 3)
    assert (asked.filters.module, asked.filters.source_url_prefix) == (("m",), "u")
    assert [(one.chunk_id, one.rank, one.similarity_score) for one in found.results] == [("a", 1, 0.8), ("b", 2, 0.5)]
    assert (found.results[0].char_start, found.results[0].char_end) == (10, 14)
    assert found.confidence is not None
    assert found.confidence.num_chunks == 2
    assert found.confidence.chunk_diversity == 1.0
    assert (await embed_query("what", EMBEDDER)).tolist() == asked.vector.tolist()


async def test_threshold_applies_to_the_calibrated_score() -> None:
    _, index = index_of(
        hits=[Hit(chunk("a"), 0.5, 1.5), Hit(chunk("b"), 0.35, 0.5)], recalled=[Hit(chunk("c"), 0.1, 0.1)]
    )
    found = await retrieve(RetrievalRequest(query="x"), EMBEDDER, index, also=["c"])
    scores = [one.relevance_score for one in found.results]
    assert scores == [FALLBACK.relevance(cosine) for cosine in (0.5, 0.35, 0.1)]
    assert scores[0] > 0.8 > scores[1] > 0.6 > scores[2]
    for least, kept in ((0.0, ["a", "b", "c"]), (0.6, ["a", "b"]), (scores[0], ["a"]), (0.9, [])):
        request = RetrievalRequest(query="x", score_threshold=least)
        found = await retrieve(request, EMBEDDER, index, also=["c"])
        assert [one.chunk_id for one in found.results] == kept
        assert found.confidence is not None
        assert found.confidence.num_chunks == min(2, len(kept))
        assert not kept or found.confidence.min_similarity >= least


async def test_metrics_and_results_are_on_one_scale() -> None:
    _, index = index_of(hits=[Hit(chunk(name), cosine, 1.0) for name, cosine in (("a", 0.8), ("b", 0.5), ("c", 0.2))])
    found = await retrieve(RetrievalRequest(query="x"), EMBEDDER, index)
    best, middle, worst = (one.relevance_score for one in found.results)
    assert best > 0.85  # where the scale bends
    metrics = found.confidence
    assert metrics is not None
    assert metrics.max_similarity == pytest.approx(best, abs=1e-4)
    assert metrics.min_similarity == pytest.approx(worst, abs=1e-4)
    assert metrics.average_similarity == pytest.approx((best + (best + middle + worst) / 3) / 2, abs=1e-4)


async def test_index_gets_the_threshold_as_minimum_cosine() -> None:
    """Otherwise passages below it would take the places of better ones."""
    for least, cosine in ((None, 0.0), (0.0, 0.0), (0.6, FALLBACK.answered), (0.85, FALLBACK.usual), (1.0, 1.0)):
        scripted, index = index_of()
        await retrieve(RetrievalRequest(query="x", score_threshold=least), EMBEDDER, index)
        (asked,) = scripted.asked
        assert asked.min_similarity == pytest.approx(cosine, abs=1e-5)


async def test_unknown_module_raises_an_error_with_the_known_ones() -> None:
    _, index = index_of()
    request = RetrievalRequest(query="x", filters=SearchFilters(module=["m", "n"]))
    with pytest.raises(InvalidFilterError, match=r"There is no module n in the book. Its modules are: m."):
        await retrieve(request, EMBEDDER, index)


async def test_recalled_chunks_with_the_same_text_are_returned_once() -> None:
    twin = replace(chunk("c"), chunk_id="twin of c")
    _, index = index_of(hits=[Hit(chunk("a"), 0.8, 1.0)], recalled=[Hit(chunk("c"), 0.4, 0.4), Hit(twin, 0.4, 0.4)])
    found = await retrieve(RetrievalRequest(query="x"), EMBEDDER, index, also=["c", "twin of c"])
    assert [result.chunk_id for result in found.results] == ["a", "c"]


async def test_recalled_chunks_follow_the_hits_without_duplicates() -> None:
    _, index = index_of(
        hits=[Hit(chunk("a"), 0.8, 1.0)], recalled=[Hit(chunk("a"), 0.8, 0.8), Hit(chunk("c"), 0.3, 0.3)]
    )
    found = await retrieve(RetrievalRequest(query="x"), EMBEDDER, index, also=["a", "c", "gone"])
    assert [one.chunk_id for one in found.results] == ["a", "c"]


async def test_other_embedding_model_raises_an_error_with_the_command() -> None:
    scripted, index = index_of(fingerprint=Fingerprint("other", 64, "x"))
    with pytest.raises(EmbeddingMismatchError, match="chapterverse ingest --reembed"):
        await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index)
    assert not scripted.asked


@pytest.mark.parametrize("recipe", ["1", "3"])
async def test_outdated_index_raises_an_error_with_the_command(recipe: str) -> None:
    scripted, index = index_of(recipe=recipe)
    with pytest.raises(IndexOutdatedError, match="chapterverse ingest --fresh"):
        await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index)
    assert not scripted.asked
    for usable in ("", OLDEST_RECIPE, RECIPE, "another tool's"):
        await retrieve(RetrievalRequest(query="x"), EMBEDDER, index_of(recipe=usable)[1])


async def test_unavailable_index_is_retried() -> None:
    scripted, index = index_of(faults=[IndexUnavailable("gone"), IndexTimeout("slow")], hits=[])
    await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index)
    assert len(scripted.asked) == 3
    scripted, index = index_of(faults=[IndexUnavailable("gone")] * 9)
    with pytest.raises(IndexUnavailable):
        await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index)
    assert len(scripted.asked) == 1 + RETRIES


async def test_missing_index_is_not_retried() -> None:
    scripted, index = index_of(faults=[IndexMissing("no book")])
    with pytest.raises(IndexMissing):
        await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index)
    assert len(scripted.asked) == 1


async def test_failed_embedding_raises_embedding_error() -> None:
    class Broken(HashEmbedder):
        async def embed_query(self, text: str) -> Any:
            raise EmbeddingError("down")

    _, index = index_of()
    with pytest.raises(EmbeddingError):
        await retrieve_with_retry(RetrievalRequest(query="x"), Broken(), index)


async def test_hung_index_raises_a_timeout() -> None:
    _, index = index_of(hang=True)
    started = time.monotonic()
    with pytest.raises(IndexTimeout, match="longer than"):
        await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index, seconds=0.1)
    assert time.monotonic() - started < 4


async def test_retries_end_at_the_time_limit() -> None:
    _, index = index_of(faults=[IndexUnavailable("gone", retry_after=60)] * 9)
    with pytest.raises(IndexTimeout):
        await retrieve_with_retry(RetrievalRequest(query="x"), EMBEDDER, index, seconds=0.2)


async def test_search_returns_only_word_matches_and_similar_passages() -> None:
    far, worded = Hit(chunk("far"), 0.2, 0.9), Hit(chunk("worded"), 0.1, 0.8, by_words=True)
    request = RetrievalRequest(query="q")
    found = await find_passages(request, EMBEDDER, index_of(hits=[far, worded])[1])
    assert [(one.chunk_id, one.rank) for one in found.results] == [("worded", 1)]
    near = Hit(chunk("near"), 0.6, 0.9)
    assert [one.chunk_id for one in (await find_passages(request, EMBEDDER, index_of(hits=[near])[1])).results] == [
        "near"
    ]
    every = await retrieve_with_retry(request, EMBEDDER, index_of(hits=[far, worded])[1])
    assert [one.chunk_id for one in every.results] == ["far", "worded"], "answers filter passages themselves"


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("How do I shuffle an array?", ["guide", "notes", "other"]),
        ("What changed in shuffle?", ["notes", "guide", "other"]),
        ("shuffle in 1.20", ["notes", "guide", "other"]),
    ],
)
async def test_changelog_ranks_lower_unless_asked_for(question: str, order: list[str]) -> None:
    notes = replace(chunk("notes"), page_kind="changes")
    hits = [Hit(notes, 0.8, 1.5, (1.0,)), Hit(chunk("guide"), 0.7, 1.2, (1.0,)), Hit(chunk("other"), 0.5, 0.9, (1.0,))]
    _, index = index_of(hits=hits)
    found = await retrieve(RetrievalRequest(query=question, top_k=3), EMBEDDER, index)
    assert [one.chunk_id for one in found.results] == order
    assert [one.rank for one in found.results] == [1, 2, 3]
