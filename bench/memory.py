"""An in-memory corpus with the same search as the product's index, for benches with many questions.

Computes what the engine computes: cosines, and BM25 with the engine's IDF. Word weights and fusion are the product's
own. The product does not use this module.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chapterverse.book import Chunk
from chapterverse.index import bm25, fusion

Vectors = NDArray[np.float32]


class WordIndex:
    """BM25 over texts, computed as the engine does."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        self._weights = bm25.EdgeWords(bm25.EDGE_DEFAULTS)
        postings: dict[int, list[tuple[int, float]]] = {}
        for number, text in enumerate(texts):
            if weights := self._weights.document(text):
                for word, value in zip(weights.indices, weights.values, strict=True):
                    postings.setdefault(word, []).append((number, value))
        self._postings = {word: _scored(rows, self._count) for word, rows in postings.items()}

    def scores(self, question: str) -> Vectors:
        """The score of each text."""
        scores = np.zeros(self._count, np.float32)
        if weights := self._weights.question(question):
            for word in weights.indices:
                if word in self._postings:
                    numbers, values = self._postings[word]
                    scores[numbers] += values
        return scores


class MemoryIndex:
    """Chunks with their vectors."""

    def __init__(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        self.chunks, self.vectors = chunks, vectors
        self.words = WordIndex([chunk.passage for chunk in chunks])

    def search(self, text: str, vector: Vectors, limit: int) -> list[tuple[Chunk, float]]:
        """The best chunks with their similarity, best first, without duplicates."""
        depth = fusion.depth(limit)
        cosines, words = self.vectors @ vector, self.words.scores(text)
        found = [number for number in _top(words, depth) if words[number] > 0]
        branches = fusion.Branches(
            dense={str(number): float(cosines[number]) for number in _top(cosines, depth)},
            sparse={str(number): float(words[number]) for number in found},
            cosines={str(number): float(cosines[number]) for number in found},
        )
        hits: dict[str, tuple[Chunk, float]] = {}
        for ranked in fusion.fuse(branches, fusion.DENSE_WEIGHT):
            chunk = self.chunks[int(ranked.id)]
            hits.setdefault(chunk.content_hash, (chunk, ranked.similarity))
            if len(hits) == limit:
                break
        return list(hits.values())


def _scored(rows: Sequence[tuple[int, float]], total: int) -> tuple[NDArray[np.int64], Vectors]:
    rarity = np.log((total - len(rows) + 0.5) / (len(rows) + 0.5) + 1)  # same formula as the engine's IDF
    numbers, values = zip(*rows, strict=True)
    return np.array(numbers, np.int64), np.array(values, np.float32) * np.float32(rarity)


def _top(scores: Vectors, depth: int) -> list[int]:
    best = np.argpartition(-scores, min(depth, len(scores)) - 1)[:depth]
    return [int(number) for number in best]
