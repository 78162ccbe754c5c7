"""The Protocol of an embedding model. One file per engine beside it; vendors stop there."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from chapterverse.book import Fingerprint

Vectors = NDArray[np.float32]  # shape (texts, dimension), rows of length 1


class Embedder(Protocol):
    """Turns texts into unit vectors. Questions and passages have distinct verbs, because some models need to know.

    Every failure is an `EmbeddingError`; engines retry inside, twice, within `deadline` seconds.
    """

    @property
    def fingerprint(self) -> Fingerprint:
        """Name, dimension and digest of the model."""
        ...

    @property
    def window(self) -> int:
        """The most tokens of one text that the model reads; what is longer would be cut."""
        ...

    @property
    def engine(self) -> str:
        """A few words for people: which engine this is."""
        ...

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question, shape (dimension,)."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order; any number of them, batched inside."""
        ...

    async def probe(self) -> None:
        """Raise `EmbeddingError` if the model cannot be used now. Costs no paid tokens."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads."""
        ...


class EmbedderWrapper:
    """Wraps another embedder, which its owner closes. A subclass changes one thing and inherits the rest."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> Fingerprint:
        """Of the wrapped embedder."""
        return self._embedder.fingerprint

    @property
    def window(self) -> int:
        """Of the wrapped embedder."""
        return self._embedder.window

    @property
    def engine(self) -> str:
        """Of the wrapped embedder."""
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
