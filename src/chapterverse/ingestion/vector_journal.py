"""Stores unpublished vectors on disk, so that a crash or Ctrl-C loses no paid work.

It is one SQLite file next to the index, with the embedding model and a hash of the text as the key. Vectors are removed
when they are published, because the index then has them; those of other, unfinished runs are kept for a month.
"""

import contextlib
import hashlib
import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from chapterverse.book import Fingerprint, text_hash
from chapterverse.embeddings import Embedder, Vectors
from chapterverse.errors import IngestionError

_LOG = logging.getLogger(__name__)
_DIGEST = 8  # bytes of a vector's checksum
_KEPT_FOR = 30 * 24 * 3600.0  # seconds


class VectorJournal:
    """Embeds passages, each at most once until the next publish."""

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self._path = path
        self._embedder = embedder
        self._model = _model_key(embedder.fingerprint)
        self._used: set[str] = set()  # keys of this run
        with self._failures_translated():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._database = _open(path)
            except sqlite3.OperationalError:  # locked, or a full disk
                raise
            except sqlite3.DatabaseError as damage:
                _LOG.warning("%s is damaged (%s) and is made again; its vectors are computed again", path, damage)
                self._unlink()
                self._database = _open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, and remove it if it is empty."""
        empty = False
        with contextlib.suppress(sqlite3.Error):
            empty = self._database.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is None
        self._database.close()
        if empty:
            self._unlink()

    async def embed(self, passages: Sequence[str]) -> tuple[Vectors, int]:
        """The vectors of the passages in their order, and the number of different passages that had to be embedded."""
        keys = [text_hash(passage) for passage in passages]
        found = {key: vector for key in set(keys) if (vector := self._find(key)) is not None}
        missing = {key: passage for key, passage in zip(keys, passages, strict=True) if key not in found}
        if missing:
            fresh = await self._embedder.embed_passages(list(missing.values()))
            found.update(zip(missing, fresh, strict=True))
            self._keep(list(missing), fresh)
        self._used.update(keys)
        dimension = self._embedder.fingerprint.dimension
        return np.array([found[key] for key in keys], np.float32).reshape(-1, dimension), len(missing)

    def forget(self) -> None:
        """Remove the vectors of this run: they are published."""
        with contextlib.suppress(sqlite3.Error):  # then they are removed after a month
            self._database.execute("BEGIN")
            self._database.executemany(
                "DELETE FROM vectors WHERE model=? AND text=?", ((self._model, key) for key in self._used)
            )
            self._database.execute("COMMIT")

    def _unlink(self) -> None:
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
        rows = [(self._model, key, data + _digest(key, data), time.time()) for key, data in packed]
        with self._failures_translated():
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?,?,?,?)", rows)
            self._database.execute("COMMIT")

    @contextlib.contextmanager
    def _failures_translated(self) -> Iterator[None]:
        """Translate errors of SQLite, such as a full disk."""
        try:
            yield
        except (sqlite3.Error, OSError) as failure:
            raise IngestionError(f"the vectors of this run cannot be stored in {self._path}: {failure}") from failure


def _open(path: Path) -> sqlite3.Connection:
    """Open the file. Raises `sqlite3.DatabaseError` if it is damaged."""
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    try:
        # WAL and NORMAL survive a killed process; a power cut may lose the last batch, which is embedded again.
        database.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE IF NOT EXISTS vectors"
            " (model TEXT, text TEXT, vector BLOB, at REAL, PRIMARY KEY (model, text)) WITHOUT ROWID;"
        )
        (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        if "at" not in [column[1] for column in database.execute("PRAGMA table_info(vectors)")]:  # an earlier version's
            database.execute(f"ALTER TABLE vectors ADD COLUMN at REAL DEFAULT {time.time()}")
        database.execute("DELETE FROM vectors WHERE at < ?", (time.time() - _KEPT_FOR,))
    except BaseException:
        database.close()
        raise
    return database


def _digest(key: str, data: bytes) -> bytes:
    """A checksum of a vector, so that a damaged one is not published."""
    return hashlib.sha256(key.encode() + data).digest()[:_DIGEST]


def _model_key(fingerprint: Fingerprint) -> str:
    return f"{fingerprint.model}/{fingerprint.dimension}/{fingerprint.digest}"
