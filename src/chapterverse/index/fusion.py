"""How two rankings become one: a weighted sum of cosines and BM25 scores, each stretched to [0, 1].

Owns the arithmetic of the rank. Pure functions over ids and scores; never talks to an engine.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DENSE_WEIGHT = 0.45  # share of the cosine; .4 to .5 was best on every set tried, and better than rank fusion
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


def fuse(branches: Branches, weight: float, depth: int) -> list[Ranked]:
    """All candidates, best first; equal scores by id, so that the order never depends on an engine's.

    What BM25 did not return scores what its last hit did at most: that score if the branch is full, else 0,
    because then all chunks with any of the words are in it."""
    cosines = {**branches.cosines, **branches.dense}
    candidates = (branches.dense.keys() | branches.sparse.keys()) & cosines.keys()  # ties at a branch's end may differ
    floor = min(branches.sparse.values()) if len(branches.sparse) >= depth else 0.0
    by_meaning = _stretch([cosines[id_] for id_ in candidates])
    by_words = _stretch([floor, *branches.sparse.values()])
    ranked = [
        Ranked(
            id=id_,
            score=weight * by_meaning(cosines[id_]) + (1.0 - weight) * by_words(branches.sparse.get(id_, floor)),
            cosine=cosines[id_],
        )
        for id_ in candidates
    ]
    return sorted(ranked, key=lambda candidate: (-candidate.score, candidate.id))


def _stretch(values: Collection[float]) -> Callable[[float], float]:
    """The map of [least, greatest] to [0, 1]; equal values tell nothing apart and all become 1."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high <= low:
        return lambda _: 1.0
    return lambda value: (value - low) / (high - low)


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
