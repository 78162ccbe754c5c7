"""The caching embedder: same vectors, each computed once, limited size."""

from collections.abc import Sequence

import numpy as np
import pytest

from chapterverse.embeddings import EmbedderWrapper, Vectors, cache
from chapterverse.embeddings.cache import CachingEmbedder
from chapterverse.errors import EmbeddingError
from chapterverse.testing import HashEmbedder


class Counting(EmbedderWrapper):
    """Records what is embedded."""

    def __init__(self) -> None:
        super().__init__(HashEmbedder())
        self.asked: list[str] = []
        self.fails = False

    async def embed_query(self, text: str) -> Vectors:
        if self.fails:
            raise EmbeddingError("down")
        self.asked.append(text)
        return await super().embed_query(text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        return await super().embed_passages(texts)


async def test_question_is_embedded_once() -> None:
    inner = Counting()
    embedder = CachingEmbedder(inner)
    first, again = await embedder.embed_query("what?"), await embedder.embed_query("what?")
    assert np.array_equal(first, again)
    assert np.array_equal(first, await HashEmbedder().embed_query("what?"))
    assert inner.asked == ["what?"]


async def test_passages_keep_their_order_and_only_new_ones_are_computed() -> None:
    inner = Counting()
    embedder = CachingEmbedder(inner)
    await embedder.embed_passages(["a", "b"])
    vectors = await embedder.embed_passages(["c", "b", "a", "c"])
    assert np.array_equal(vectors, await HashEmbedder().embed_passages(["c", "b", "a", "c"]))
    assert inner.asked == ["a", "b", "c"]
    assert (await embedder.embed_passages([])).shape == (0, inner.fingerprint.dimension)


async def test_questions_and_passages_are_cached_separately() -> None:
    inner = Counting()
    embedder = CachingEmbedder(inner)
    await embedder.embed_query("a")
    await embedder.embed_passages(["a"])
    assert inner.asked == ["a", "a"]


async def test_failure_is_not_cached() -> None:
    inner = Counting()
    embedder = CachingEmbedder(inner)
    inner.fails = True
    with pytest.raises(EmbeddingError):
        await embedder.embed_query("what?")
    inner.fails = False
    assert (await embedder.embed_query("what?")).shape == (inner.fingerprint.dimension,)


async def test_least_recently_used_vectors_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "QUESTIONS", 2)
    monkeypatch.setattr(cache, "SENTENCES", 2)
    inner = Counting()
    embedder = CachingEmbedder(inner)
    for question in ("a", "b", "a", "c", "a", "b"):
        await embedder.embed_query(question)
    assert inner.asked == ["a", "b", "c", "b"]
    inner.asked.clear()
    vectors = await embedder.embed_passages(["a", "b", "c", "d"])  # more than the cache can hold
    assert np.array_equal(vectors, await HashEmbedder().embed_passages(["a", "b", "c", "d"]))
    await embedder.embed_passages(["c", "d"])
    assert inner.asked == ["a", "b", "c", "d"]


async def test_cached_vectors_are_read_only() -> None:
    embedder = CachingEmbedder(Counting())
    vector = await embedder.embed_query("what?")
    with pytest.raises(ValueError, match="read-only"):
        vector += 1
