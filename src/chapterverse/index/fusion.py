"""Combines two rankings: a weighted sum of cosines and BM25 scores, each in standard deviations from its mean.

Pure functions over ids and scores.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import Any, Generic, NamedTuple, TypeVar

DENSE_WEIGHT = 0.65  # weight of the cosine (decision 49)
_LEAST_DEPTH = 100  # candidates taken from each branch


Id = TypeVar("Id", int, str)  # a chunk's id in an engine


class Ranked(NamedTuple, Generic[Id]):
    """A candidate with its scores."""

    id: Id
    score: float  # decides the rank
    cosine: float
    by_words: bool = False  # whether it contains a word of the question

    @property
    def similarity(self) -> float:
        """The cosine clipped to [0, 1]."""
        return clip(self.cosine)


def clip(cosine: float) -> float:
    """The cosine clipped to [0, 1]."""
    return min(1.0, max(0.0, cosine))


Fetch = Callable[[list[Id]], Mapping[Id, Mapping[str, Any]]]  # ids to payloads
Picked = tuple[Ranked[Id], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Branches(Generic[Id]):
    """The results of both searches: scores by id. `cosines` has the cosines of chunks that only words found."""

    dense: Mapping[Id, float] = field(default_factory=dict)
    sparse: Mapping[Id, float] = field(default_factory=dict)
    cosines: Mapping[Id, float] = field(default_factory=dict)


def depth(limit: int) -> int:
    """How many candidates each branch returns for `limit` results; duplicates are removed later."""
    return max(_LEAST_DEPTH, 4 * limit)


def fuse(branches: Branches[Id], weight: float) -> list[Ranked[Id]]:
    """All candidates, best first. Equal scores are sorted by id, so that the order does not depend on the engine.

    A chunk that BM25 did not return counts as one without a word of the question."""
    cosines = {**branches.cosines, **branches.dense}
    candidates = (branches.dense.keys() | branches.sparse.keys()) & cosines.keys()  # branches may cut ties differently
    sparse = branches.sparse
    by_meaning = _standardised([cosines[id_] for id_ in candidates])
    by_words = _standardised([sparse.get(id_, 0.0) for id_ in candidates])
    ranked = [
        Ranked(id_, weight * meaning + (1.0 - weight) * words, cosines[id_], id_ in sparse)
        for id_, meaning, words in zip(candidates, by_meaning, by_words, strict=True)
    ]
    return sorted(ranked, key=lambda candidate: (-candidate.score, candidate.id))


def _standardised(values: Collection[float]) -> list[float]:
    """The values in standard deviations from their mean; all 0 if they are equal."""
    mean = fsum(values) / len(values) if values else 0.0
    # Not with `statistics`: it computes in fractions and took a third of a search.
    spread = sqrt(fsum((value - mean) ** 2 for value in values) / len(values)) if values else 0.0
    if spread < 1e-12:  # equal except for rounding
        return [0.0] * len(values)
    return [(value - mean) / spread for value in values]


def pick(ranked: Sequence[Ranked[Id]], least_similarity: float, limit: int, fetch: Fetch[Id]) -> list[Picked[Id]]:
    """The best `limit` candidates that are similar enough, without duplicates, each with its payload.

    Payloads are fetched in steps of `limit`: duplicates are rare, so one step is usually enough."""
    eligible = [each for each in ranked if each.similarity >= least_similarity] if least_similarity > 0 else ranked
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
