"""How two rankings become one: a weighted sum of cosines and BM25 scores, each in standard deviations from its mean.

Pure functions over ids and scores; never talks to an engine.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import Any, Generic, NamedTuple, TypeVar

DENSE_WEIGHT = 0.65  # share of the cosine (decision 49)
_LEAST_DEPTH = 100  # candidates taken from each branch


Id = TypeVar("Id", int, str)  # as an engine knows a chunk


class Ranked(NamedTuple, Generic[Id]):
    """A candidate in its place."""

    id: Id
    score: float  # what decided the place
    cosine: float
    by_words: bool = False  # whether it has a word of the question

    @property
    def similarity(self) -> float:
        """The cosine clipped to [0, 1]."""
        return min(1.0, max(0.0, self.cosine))


Fetch = Callable[[list[Id]], Mapping[Id, Mapping[str, Any]]]  # ids to payloads
Picked = tuple[Ranked[Id], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Branches(Generic[Id]):
    """What the two searches found: scores by id. `cosines` has the true cosine of what only words found."""

    dense: Mapping[Id, float] = field(default_factory=dict)
    sparse: Mapping[Id, float] = field(default_factory=dict)
    cosines: Mapping[Id, float] = field(default_factory=dict)


def depth(limit: int) -> int:
    """How many candidates each branch brings for `limit` results; equal texts fall out later."""
    return max(_LEAST_DEPTH, 4 * limit)


def fuse(branches: Branches[Id], weight: float) -> list[Ranked[Id]]:
    """All candidates, best first; equal scores by id, so that the order never depends on an engine's.

    A chunk that BM25 did not return counts as one without the question's words."""
    cosines = {**branches.cosines, **branches.dense}
    candidates = (branches.dense.keys() | branches.sparse.keys()) & cosines.keys()  # ties at a branch's end may differ
    sparse = branches.sparse
    by_meaning = _in_spreads([cosines[id_] for id_ in candidates])
    by_words = _in_spreads([sparse.get(id_, 0.0) for id_ in candidates])
    ranked = [
        Ranked(id_, weight * meaning + (1.0 - weight) * words, cosines[id_], id_ in sparse)
        for id_, meaning, words in zip(candidates, by_meaning, by_words, strict=True)
    ]
    return sorted(ranked, key=lambda candidate: (-candidate.score, candidate.id))


def _in_spreads(values: Collection[float]) -> list[float]:
    """The values in standard deviations from their mean; equal ones tell nothing apart and all become 0."""
    mean = fsum(values) / len(values) if values else 0.0
    # By hand: `statistics` reckons in fractions, and took a third of a search.
    spread = sqrt(fsum((value - mean) ** 2 for value in values) / len(values)) if values else 0.0
    if spread < 1e-12:  # but for rounding, all the same
        return [0.0] * len(values)
    return [(value - mean) / spread for value in values]


def pick(ranked: Sequence[Ranked[Id]], least_similarity: float, limit: int, fetch: Fetch[Id]) -> list[Picked[Id]]:
    """The best `limit` of those similar enough, equal texts once, each with what `fetch` gave for its id.

    Fetches no more candidates than it needs: equal texts are rare."""
    eligible = [one for one in ranked if one.similarity >= least_similarity] if least_similarity > 0 else ranked
    picked: dict[str, Picked[Id]] = {}
    for start in range(0, len(eligible), limit):
        part = eligible[start : start + limit]
        payloads = fetch([candidate.id for candidate in part])
        for candidate in part:
            payload = payloads[candidate.id]
            picked.setdefault(payload["content_hash"], (candidate, payload))
        if len(picked) >= limit:
            break
    return list(picked.values())[:limit]
