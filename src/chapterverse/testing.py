"""Doubles that ship with the product: small real things that stand in for models in tests, ours and others'.

Deterministic, and they satisfy the Protocols. A running service does not use them.
"""

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Vectors

_WORD = re.compile(r"\w+|[^\w\s]")  # a sign that belongs to no word, such as an emoji, counts as one


class HashEmbedder:
    """An embedding model without a model: texts are near when they share words, and only then."""

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
        """Always well."""

    async def close(self) -> None:
        """Holds nothing."""

    def vector(self, text: str) -> Vectors:
        """The sum of a fixed random direction for each word, at length 1."""
        words = _WORD.findall(text.lower()) or [""]
        total = np.sum([self._direction(word) for word in words], axis=0)
        return np.asarray(total / np.linalg.norm(total), dtype=np.float32)

    def _direction(self, word: str) -> NDArray[np.floating]:
        digest = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(self.fingerprint.dimension)
        return np.frombuffer(digest, dtype=np.uint8) - 127.5  # never zero, so no word is without a direction
