"""Deterministic test doubles that implement the protocols, for our tests and those of other programs."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Vectors

_WORD = re.compile(r"\w+|[^\w\s]")  # a character outside of words, such as an emoji, counts as a word


class HashEmbedder:
    """An embedder without a model: texts are similar if they share words."""

    window = 8192
    engine = "hashed words"

    def __init__(self, dimension: int = 64) -> None:
        self.fingerprint = Fingerprint(model="hashed-words", dimension=dimension, digest=f"hashed-words-{dimension}")

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        return self.vector(text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages."""
        vectors = [self.vector(text) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(-1, self.fingerprint.dimension)

    async def probe(self) -> None:
        """Always succeeds."""

    async def close(self) -> None:
        """Nothing to close."""

    def vector(self, text: str) -> Vectors:
        """The normalised sum of a fixed random vector for each word."""
        words = _WORD.findall(text.lower()) or [""]
        total = np.sum([self._direction(word) for word in words], axis=0)
        return np.asarray(total / np.linalg.norm(total), dtype=np.float32)

    def _direction(self, word: str) -> NDArray[np.floating]:
        digest = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(self.fingerprint.dimension)
        return np.frombuffer(digest, dtype=np.uint8) - 127.5  # never zero
