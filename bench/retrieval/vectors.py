"""Caches vectors of texts between runs of the bench.

One SQLite file of vectors by model and text, so that only the first run embeds them. The product does not use it.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from chapterverse.book import Fingerprint, text_hash
from chapterverse.embeddings import Embedder, Vectors

_BATCH = 256  # texts embedded between two commits; an interrupted run loses at most these


class VectorCache:
    """Embeds passages and questions, each text once per model."""

    def __init__(self, path: Path, embedder: Embedder) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._database = sqlite3.connect(path, timeout=60)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        self.embedded = 0  # number of texts that were not in the cache

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the embedding model."""
        return self._embedder.fingerprint

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._database.close()

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of passages, in order."""
        keyed = {self._key("passage", text): text for text in texts}
        missing = [key for key in keyed if not self._has(key)]
        for start in range(0, len(missing), _BATCH):
            keys = missing[start : start + _BATCH]
            self._store(keys, await self._embedder.embed_passages([keyed[key] for key in keys]))
        return np.stack([self._get(self._key("passage", text)) for text in texts])

    async def query(self, text: str) -> Vectors:
        """The vector of a question."""
        key = self._key("query", text)
        if not self._has(key):
            self._store([key], (await self._embedder.embed_query(text))[None])
        return self._get(key)

    def _key(self, kind: str, text: str) -> str:
        return f"{self._embedder.fingerprint.digest}/{kind}/{text_hash(text)}"

    def _has(self, key: str) -> bool:
        return self._database.execute("SELECT 1 FROM vectors WHERE key = ?", (key,)).fetchone() is not None

    def _get(self, key: str) -> Vectors:
        row = self._database.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return np.frombuffer(row[0], np.float32)

    def _store(self, keys: Sequence[str], vectors: Vectors) -> None:
        rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        self.embedded += len(rows)
