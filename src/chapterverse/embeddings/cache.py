"""Wraps an embedder and caches its vectors, so that a repeated question is embedded once.

Only for answering: an ingest embeds each passage once and keeps a journal.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from chapterverse.embeddings import Embedder, EmbedderWrapper, Vectors

QUESTIONS: Final = 1024
SENTENCES: Final = 4096  # 1.5 kB each with the local model


class CachingEmbedder(EmbedderWrapper):
    """Caches the most recent vectors. Failures are not cached."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._questions: OrderedDict[str, Vectors] = OrderedDict()
        self._sentences: OrderedDict[str, Vectors] = OrderedDict()

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        cached = _recall(self._questions, text)
        if cached is not None:
            return cached
        return _keep(self._questions, text, await self._embedder.embed_query(text), QUESTIONS)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order; only the new ones are computed."""
        missing = [text for text in dict.fromkeys(texts) if _recall(self._sentences, text) is None]
        vectors = {text: self._sentences[text] for text in texts if text in self._sentences}
        for text, vector in zip(missing, await self._embedder.embed_passages(missing) if missing else (), strict=True):
            vectors[text] = _keep(
                self._sentences, text, vector.copy(), SENTENCES
            )  # a view would keep the whole array in memory
        rows = [vectors[text] for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.fingerprint.dimension), np.float32)


def _recall(memory: "OrderedDict[str, Vectors]", text: str) -> Vectors | None:
    if text in memory:
        memory.move_to_end(text)
    return memory.get(text)


def _keep(memory: "OrderedDict[str, Vectors]", text: str, vector: Vectors, most: int) -> Vectors:
    vector.flags.writeable = False  # callers share it
    memory[text] = vector
    memory.move_to_end(text)
    if len(memory) > most:
        memory.popitem(last=False)
    return vector
