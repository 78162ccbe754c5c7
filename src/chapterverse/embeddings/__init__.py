"""The protocol of an embedding model. Each engine is a module of this package; only it imports its vendor's library."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from chapterverse.book import Fingerprint

Vectors = NDArray[np.float32]  # shape (texts, dimension), rows of length 1


class Embedder(Protocol):
    """Turns texts into unit vectors. Questions and passages have separate methods, because some models treat them
    differently.

    Every failure is an `EmbeddingError`. Engines retry twice within their deadline.
    """

    @property
    def fingerprint(self) -> Fingerprint:
        """Name, dimension and digest of the model."""
        ...

    @property
    def window(self) -> int:
        """The maximum number of tokens of a text; a longer text is truncated."""
        ...

    @property
    def engine(self) -> str:
        """The engine, for people."""
        ...

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question, shape (dimension,)."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of any number of passages, in their order."""
        ...

    async def probe(self) -> None:
        """Raise `EmbeddingError` if the model cannot be used. Costs no paid tokens."""
        ...

    async def close(self) -> None:
        """Close connections and threads."""
        ...


class EmbedderWrapper:
    """Wraps another embedder, which its owner closes. Subclasses override what they change."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the wrapped embedder."""
        return self._embedder.fingerprint

    @property
    def window(self) -> int:
        """That of the wrapped embedder."""
        return self._embedder.window

    @property
    def engine(self) -> str:
        """That of the wrapped embedder."""
        return self._embedder.engine

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        return await self._embedder.embed_query(text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order."""
        return await self._embedder.embed_passages(texts)

    async def probe(self) -> None:
        """Probe the wrapped embedder."""
        await self._embedder.probe()

    async def close(self) -> None:
        """Nothing to close: the wrapped embedder belongs to its owner."""
