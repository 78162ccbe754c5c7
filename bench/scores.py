"""The verifier's scores of pairs, kept on disk: a pair is scored once for each file of weights.

Owns the cache alone (`.cache/bench/verifier.sqlite`).
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.results import ROOT
from chapterverse.trained.cross_encoder import SHA256, CrossEncoder

_CACHE: Final = ROOT / ".cache" / "bench" / "verifier.sqlite"


@dataclass(frozen=True, slots=True)
class Kept:
    """A score that was computed now or earlier."""

    logit: float


class KeptScores:
    """An encoder that asks another one only about pairs that it has not met."""

    def __init__(self, encoder: CrossEncoder) -> None:
        _CACHE.parent.mkdir(parents=True, exist_ok=True)
        self._encoder = encoder
        self.asked = 0  # pairs, known or not
        self.last = 0.0  # the score given last
        self._database = sqlite3.connect(_CACHE, timeout=60)
        self._database.execute("create table if not exists scores (pair blob primary key, logit real)")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Kept]:
        """The scores in the order of the pairs."""
        self.asked += len(pairs)
        keys = [_key(pair) for pair in pairs]
        known = {key: row[0] for key in keys if (row := self._find(key))}
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
        for key, scored in zip(new, self._encoder.score(list(new.values())), strict=True):
            known[key] = scored.logit
            self._database.execute("insert or replace into scores values (?, ?)", (key, scored.logit))
        self._database.commit()
        self.last = known[keys[-1]] if keys else self.last
        return [Kept(known[key]) for key in keys]

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _find(self, key: bytes) -> tuple[float] | None:
        found: tuple[float] | None = self._database.execute(
            "select logit from scores where pair = ?", (key,)
        ).fetchone()
        return found


def _key(pair: tuple[str, str]) -> bytes:
    return hashlib.sha256("\0".join((SHA256["verifier"], *pair)).encode("utf-8", "replace")).digest()
