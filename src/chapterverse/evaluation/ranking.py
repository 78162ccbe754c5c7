"""How good a ranking is."""

import math
from collections.abc import Mapping, Sequence


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


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
