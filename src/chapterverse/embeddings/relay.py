"""An embedder that stands for another one.

Owns the handing on. Whoever changes one thing of an embedder inherits it and says only what is different.
"""

from collections.abc import Sequence

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Embedder, Vectors


class Relay:
    """Does all as the embedder that it stands for, and leaves the closing to whoever opened that one."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> Fingerprint:
        """Of the same model."""
        return self._embedder.fingerprint

    @property
    def window(self) -> int:
        """Of the same model."""
        return self._embedder.window

    @property
    def engine(self) -> str:
        """For people."""
        return self._embedder.engine

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        return await self._embedder.embed_query(text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order."""
        return await self._embedder.embed_passages(texts)

    async def probe(self) -> None:
        """Ask the model for real."""
        await self._embedder.probe()

    async def close(self) -> None:
        """Nothing of its own to let go of."""
