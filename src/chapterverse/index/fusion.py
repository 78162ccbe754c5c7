"""How two rankings become one: a weighted sum of cosines and BM25 scores, each in standard deviations from its mean.

Owns the arithmetic of the rank. Pure functions over ids and scores; never talks to an engine.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import Any

DENSE_WEIGHT = 0.5  # share of the cosine; .45 to .65 is a plateau on the retrieval bench
_LEAST_DEPTH = 100  # candidates taken from each branch


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place."""

    id: str
    score: float  # what decided the place
    cosine: float

    @property
    def similarity(self) -> float:
        """The cosine clipped to [0, 1]."""
        return min(1.0, max(0.0, self.cosine))


Fetch = Callable[[list[str]], Mapping[str, Mapping[str, Any]]]  # ids to payloads
Picked = tuple[Ranked, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Branches:
    """What the two searches found: scores by id. `cosines` has the true cosine of what only words found."""

    dense: Mapping[str, float] = field(default_factory=dict)
    sparse: Mapping[str, float] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)


def depth(limit: int) -> int:
    """How many candidates each branch brings for `limit` results; equal texts fall out later."""
    return max(_LEAST_DEPTH, 4 * limit)


def fuse(branches: Branches, weight: float) -> list[Ranked]:
    """All candidates, best first; equal scores by id, so that the order never depends on an engine's.

    A chunk that BM25 did not return counts as one without the question's words."""
    cosines = {**branches.cosines, **branches.dense}
    candidates = (branches.dense.keys() | branches.sparse.keys()) & cosines.keys()  # ties at a branch's end may differ
    by_meaning = _in_spreads([cosines[id_] for id_ in candidates])
    by_words = _in_spreads([branches.sparse.get(id_, 0.0) for id_ in candidates])
    ranked = [
        Ranked(
            id=id_,
            score=weight * by_meaning(cosines[id_]) + (1.0 - weight) * by_words(branches.sparse.get(id_, 0.0)),
            cosine=cosines[id_],
        )
        for id_ in candidates
    ]
    return sorted(ranked, key=lambda candidate: (-candidate.score, candidate.id))


def _in_spreads(values: Collection[float]) -> Callable[[float], float]:
    """The map to standard deviations from the mean; equal values tell nothing apart and all become 0."""
    mean = fsum(values) / len(values) if values else 0.0
    # By hand: `statistics` reckons in fractions, and took a third of a search.
    spread = sqrt(fsum((value - mean) ** 2 for value in values) / len(values)) if values else 0.0
    if spread < 1e-12:  # but for rounding, all the same
        return lambda _: 0.0
    return lambda value: (value - mean) / spread


def pick(ranked: Sequence[Ranked], least_similarity: float, limit: int, fetch: Fetch) -> list[Picked]:
    """The best `limit` of those similar enough, equal texts once, each with what `fetch` gave for its id.

    Fetches no more candidates than it needs: equal texts are rare."""
    eligible = [candidate for candidate in ranked if candidate.similarity >= least_similarity]
    picked: dict[str, Picked] = {}
    for start in range(0, len(eligible), limit):
        part = eligible[start : start + limit]
        payloads = fetch([candidate.id for candidate in part])
        for candidate in part:
            payload = payloads[candidate.id]
            picked.setdefault(payload["content_hash"], (candidate, payload))
        if len(picked) >= limit:
            break
    return list(picked.values())[:limit]
