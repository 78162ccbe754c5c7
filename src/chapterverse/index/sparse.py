"""Word weights of the embedded index: BM25 as sparse vectors; the engine adds the IDF."""

from collections.abc import Mapping
from typing import Any

from qdrant_edge import Bm25, Bm25Config, SparseVector

# Written into the manifest of a new index. `avg_len` is in words after stop words; it only has to be near.
DEFAULTS: Mapping[str, Any] = {"language": "english", "k": 1.2, "b": 0.75, "avg_len": 128.0}


class WordWeights:
    """Turns texts into sparse vectors with the parameters that an index was made with."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._model = Bm25(Bm25Config(**parameters))

    def document(self, text: str) -> SparseVector | None:
        """The weights of a passage; None if it holds no word to search for."""
        return _unless_empty(self._model.embed_document(text))

    def question(self, text: str) -> SparseVector | None:
        """The words of a question; None if it holds none but stop words."""
        return _unless_empty(self._model.embed_query(text))

    def terms(self, text: str) -> list[int]:
        """The terms of a text that are searched for, stop words left out."""
        return [int(term) for term in self._model.embed_query(text).indices]


def _unless_empty(vector: SparseVector) -> SparseVector | None:
    return vector if vector.indices else None
