"""BM25 weights of passages and questions as sparse vectors; the engine adds the IDF.

An index on a Qdrant server uses our own weights (`ServerWords`), which do not need the embedded engine. The embedded
index uses those of its engine (`EdgeWords`): the same method with another stemmer and other ids. An index must be
searched with the weights that it was made with; its manifest names them.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from chapterverse.language import stem
from chapterverse.language.words import word_set

if TYPE_CHECKING:
    from qdrant_edge import SparseVector


# Written into the manifest of a new index. `avg_len` is in words without stop words; an estimate is enough.
EDGE_DEFAULTS: Final[Mapping[str, Any]] = {"language": "english", "k": 1.2, "b": 0.75, "avg_len": 128.0}
SERVER_DEFAULTS: Final[Mapping[str, Any]] = {"weights": "own", "k": 1.2, "b": 0.75, "avg_len": 128.0}

_WORD = re.compile(r"[^\W_]+")
# English function words, also as parts of contractions. Words with a meaning of their own are searched for.
_STOP_WORDS: Final = word_set(
    """
    a about above after again against ain all am an and any are aren as at be because been before being below between
    both but by can couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn
    have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m ma me
    mightn more most mustn my myself needn no nor not now o of off on once only or other our ours ourselves out over own
    re s same shan she should shouldn so some such t than that the their theirs them themselves then there these they
    this those through to too under until up ve very was wasn we were weren what when where which while who whom why
    will with won wouldn y you your yours yourself yourselves
    """
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A sparse vector."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class ServerWords:
    """Turns texts into sparse vectors."""

    k: float
    b: float
    avg_len: float

    def document(self, text: str) -> Weights | None:
        """The weights of a passage; None if it has only stop words."""
        counts = Counter(_terms(text))
        length = self.k * (1 - self.b + self.b * counts.total() / self.avg_len)
        values = [count * (self.k + 1) / (count + length) for count in counts.values()]
        return Weights(list(counts), values) if counts else None

    def question(self, text: str) -> Weights | None:
        """The weights of a question; None if it has only stop words."""
        terms = self.terms(text)
        return Weights(terms, [1.0] * len(terms)) if terms else None

    def terms(self, text: str) -> list[int]:
        """The ids of the terms of a text, without stop words."""
        return list(dict.fromkeys(_terms(text)))


def _terms(text: str) -> list[int]:
    return [_term(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


@lru_cache(maxsize=65_536)
def _term(word: str) -> int:
    """The id of a word's stem: a hash. Collisions are rare and do little harm."""
    return int.from_bytes(blake2b(stem(word).encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


class EdgeWords:
    """Turns texts into sparse vectors with the embedded engine, with the parameters of an index."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        from qdrant_edge import Bm25, Bm25Config

        self._model = Bm25(Bm25Config(**parameters))

    def document(self, text: str) -> "SparseVector | None":
        """The weights of a passage; None if it has only stop words."""
        return _unless_empty(self._model.embed_document(text))

    def question(self, text: str) -> "SparseVector | None":
        """The weights of a question; None if it has only stop words."""
        return _unless_empty(self._model.embed_query(text))

    def terms(self, text: str) -> list[int]:
        """The ids of the terms of a text, without stop words."""
        return [int(term) for term in self._model.embed_query(text).indices]


def _unless_empty(vector: "SparseVector") -> "SparseVector | None":
    return vector if vector.indices else None


def weights_of(parameters: Mapping[str, Any]) -> ServerWords | EdgeWords:
    """The weights that an index was made with. An index of an older version has those of the embedded engine."""
    given = dict(parameters)
    if given.pop("weights", None) == "own":
        return ServerWords(**given)
    return EdgeWords(given)
