"""The embedded engine: all-MiniLM-L6-v2, trained further on questions (decision 49), as ONNX on the CPU.

It needs no network. Weights are stored as int8 and run as float32. Each text runs on one thread, several in parallel:
that is faster than padded batches, and onnxruntime releases the interpreter lock.
"""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import onnxruntime as ort

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Vectors
from chapterverse.embeddings.onnx_models import Unusable, shared_model
from chapterverse.embeddings.wordpiece import WEIGHTS, WINDOW, tokenizer
from chapterverse.errors import EmbeddingError

MODEL: Final = "all-MiniLM-L6-v2-questions"
DIMENSION: Final = 384
SHA256: Final = "82556a99003f030c975c421eb8ed3fb300ee54f5f780c8604b5c54bfdb328758"  # of weights/minilm.onnx
VECTORS: Final = "82556a99003f030c"  # identifies them: an index with other vectors is refused


class LocalEmbedder:
    """Embeds on the cores of this machine."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1
        try:
            self._model = shared_model(WEIGHTS / "minilm.onnx", SHA256)
        except Unusable as failure:
            raise EmbeddingError(f"The embedding model cannot be used: {failure}") from failure
        self._tokenizer = tokenizer()
        self._passages = ThreadPoolExecutor(self._threads, "embed-passages")
        # Separate threads, so that a question never waits for an ingest in the same process.
        self._queries = ThreadPoolExecutor(max(2, self._threads), "embed-query")

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the bundled model."""
        return Fingerprint(MODEL, DIMENSION, VECTORS)

    @property
    def window(self) -> int:
        """256 tokens."""
        return WINDOW

    @property
    def engine(self) -> str:
        """The engine, for people."""
        return f"{MODEL} on the CPU (onnxruntime {ort.__version__}, {self._threads} threads)"

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        return await asyncio.get_running_loop().run_in_executor(self._queries, self._embed, text)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in their order."""
        loop = asyncio.get_running_loop()
        rows = await asyncio.gather(*(loop.run_in_executor(self._passages, self._embed, text) for text in texts))
        return np.stack(rows) if rows else np.empty((0, DIMENSION), np.float32)

    async def probe(self) -> None:
        """Embed one word."""
        await self.embed_query("probe")

    async def close(self) -> None:
        """Stop the threads; pending texts are dropped."""
        self._passages.shutdown(wait=False, cancel_futures=True)
        self._queries.shutdown(wait=False, cancel_futures=True)

    def _embed(self, text: str) -> Vectors:
        ids = np.array([self._tokenizer.encode(text)], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        try:
            vector: Vectors = self._model.run(inputs)[0][0]
        except Exception as failure:  # onnxruntime's errors have no common base class
            raise EmbeddingError("The local embedding model failed.", details={"engine": MODEL}) from failure
        return vector
