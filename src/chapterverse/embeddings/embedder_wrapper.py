"""Wraps another embedder. A subclass changes one thing of an embedder and inherits the rest."""

from collections.abc import Sequence

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Embedder, Vectors


class EmbedderWrapper:
    """Passes every call on to the wrapped embedder, which its owner closes."""

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
