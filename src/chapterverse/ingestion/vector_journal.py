"""Stores unpublished vectors on disk, so that a crash or Ctrl-C loses no paid work.

It is one SQLite file next to the index, with the embedding model and a hash of the text as the key. It is removed after
publishing, because the index then has the vectors.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from chapterverse.book import Fingerprint, text_hash
from chapterverse.embeddings import Embedder, Vectors
from chapterverse.errors import IngestionError

_DIGEST = 8  # bytes of a vector's checksum


class VectorJournal:
    """Embeds passages, each at most once until the next publish."""

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self._path = path
        self._embedder = embedder
        self._model = _model_key(embedder.fingerprint)
        with _failures_translated():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # WAL and NORMAL survive a killed process; a power cut may lose the last batch, which is embedded again.
            self._database.executescript(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                "CREATE TABLE IF NOT EXISTS vectors"
                " (model TEXT, text TEXT, vector BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID;"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    async def embed(self, passages: Sequence[str]) -> tuple[Vectors, int]:
        """The vectors of the passages in their order, and the number of different passages that had to be embedded."""
        keys = [text_hash(passage) for passage in passages]
        found = {key: vector for key in set(keys) if (vector := self._find(key)) is not None}
        missing = {key: passage for key, passage in zip(keys, passages, strict=True) if key not in found}
        if missing:
            fresh = await self._embedder.embed_passages(list(missing.values()))
            found.update(zip(missing, fresh, strict=True))
            self._keep(list(missing), fresh)
        dimension = self._embedder.fingerprint.dimension
        return np.array([found[key] for key in keys], np.float32).reshape(-1, dimension), len(missing)

    def forget(self) -> None:
        """Remove the file: all its vectors are published."""
        self._database.close()
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _find(self, key: str) -> Vectors | None:
        try:
            row = self._database.execute(
                "SELECT vector FROM vectors WHERE model=? AND text=?", (self._model, key)
            ).fetchone()
        except sqlite3.DatabaseError:
            return None
        packed: bytes = row[0] if row else b""
        data, digest = packed[:-_DIGEST], packed[-_DIGEST:]
        if not data or digest != _digest(key, data):  # missing, or damaged on disk
            return None
        return np.frombuffer(data, np.float32)

    def _keep(self, keys: Sequence[str], vectors: Vectors) -> None:
        packed = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        rows = [(self._model, key, data + _digest(key, data)) for key, data in packed]
        with _failures_translated():
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?,?,?)", rows)
            self._database.execute("COMMIT")


def _digest(key: str, data: bytes) -> bytes:
    """A checksum of a vector, so that a damaged one is not published."""
    return hashlib.sha256(key.encode() + data).digest()[:_DIGEST]


@contextlib.contextmanager
def _failures_translated() -> Iterator[None]:
    """Translate errors of SQLite, such as a full disk."""
    try:
        yield
    except (sqlite3.Error, OSError) as failure:
        raise IngestionError(f"the vectors of this run cannot be stored: {failure}") from failure


def _model_key(fingerprint: Fingerprint) -> str:
    return f"{fingerprint.model}/{fingerprint.dimension}/{fingerprint.digest}"
