"""How good a ranking is, and how sure one can be of it.

Owns pure functions from ranked document ids to numbers. Never reads a file and never searches.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_RESAMPLES: Final = 2000
_SEED: Final = 20251115  # the same resamples in every run
_TAILS: Final = (2.5, 97.5)  # percentiles of a 95 % interval


def ndcg(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Discounted gain of the first `depth` over that of the best possible order; linear in the grade, as in BEIR."""
    ideal = _discounted(sorted(grades.values(), reverse=True)[:depth])
    return _discounted([grades.get(name, 0.0) for name in ranked[:depth]]) / ideal if ideal else 0.0


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """One over the rank of the first right document, 0 if it is not among the first `depth`."""
    return next((1 / rank for rank, name in enumerate(ranked[:depth], 1) if grades.get(name, 0.0) > 0), 0.0)


def hit(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """1 if a right document is among the first `depth`, else 0."""
    return float(any(grades.get(name, 0.0) > 0 for name in ranked[:depth]))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean. Of a difference, when the values are paired differences."""
    sample: NDArray[np.float64] = np.asarray(values, np.float64)
    if not len(sample):
        raise ValueError("no values to resample")
    draws = np.random.default_rng(_SEED).integers(0, len(sample), (_RESAMPLES, len(sample)))
    low, high = np.percentile(sample[draws].mean(axis=1), _TAILS)
    return float(low), float(high)


def gain_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean difference on the same questions (paired bootstrap)."""
    return interval([mine - other for mine, other in zip(ours, theirs, strict=True)])


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
