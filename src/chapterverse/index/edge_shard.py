"""A Qdrant Edge shard as this index uses it: its shape, its filters and its errors.

Only reads. Each call holds the GIL until it is done, so servers make them in a child process (`edge_process.py`).
"""

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import qdrant_edge as qe

from chapterverse.book import Manifest
from chapterverse.errors import ChapterverseError, EmbeddingMismatchError, RetrievalUnavailable
from chapterverse.index import Filters, frames, fusion
from chapterverse.index.bm25 import EdgeWords
from chapterverse.index.filters import Clause, Match, exact_clauses, prefix_clause, prefix_scope
from chapterverse.index.points import DENSE, MANIFEST_ID, PAGE_BODY, SPARSE, Payload, is_point_id, manifest_from_payload

_ALL_VALUES = 10_000_000  # a facet's limit that no book reaches


@contextlib.contextmanager
def engine_errors(kind: type[ChapterverseError] = RetrievalUnavailable) -> Iterator[None]:
    """Translate the errors of engine and disk. The engine raises plain `Exception`: nothing narrower
    can be caught."""
    try:
        yield
    except ChapterverseError:
        raise
    except Exception as error:
        raise kind(f"The embedded index failed: {error}") from error


def render(clauses: Iterable[Clause]) -> qe.Filter | None:
    """A filter in the engine's words; None when everything may match."""
    must: list[qe.ConditionType] = [
        qe.Filter(should=[condition for match in clause for condition in _conditions(match)])
        for clause in clauses
        if clause
    ]
    return qe.Filter(must=must) if must else None


def _conditions(match: Match) -> "Iterator[qe.ConditionType]":
    yield qe.FieldCondition(match.field, qe.MatchAny(list(match.values)))
    if "" in match.values:
        yield qe.IsEmptyCondition(match.field)


def of_kind(kind: str) -> qe.Filter:
    """All points of one kind."""
    return qe.Filter(must=[qe.FieldCondition("kind", qe.MatchValue(kind))])


def scroll(
    shard: qe.EdgeShard, kind: str, payload: bool | list[str], *, vectors: bool = False, step: int = 256
) -> Iterator[list[qe.Record]]:
    """All points of one kind, some at a time."""
    offset: qe.PointId | None = None
    while True:
        records, offset = shard.scroll(
            qe.ScrollRequest(
                offset=offset,
                limit=step,
                filter=of_kind(kind),
                with_payload=payload,
                with_vector=[DENSE] if vectors else False,
            )
        )
        yield records
        if offset is None:
            return


def read_manifest(shard: qe.EdgeShard) -> Manifest:
    """What the shard says of itself."""
    found = shard.retrieve([MANIFEST_ID], True, False)
    if not found or found[0].payload is None:
        raise RetrievalUnavailable("The index is damaged: it has no manifest")
    return manifest_from_payload(found[0].payload)


class ShardReader:
    """A loaded shard that answers the questions of `EdgeIndex` in plain JSON values."""

    def __init__(self, path: Path) -> None:
        with engine_errors():
            self._shard = qe.EdgeShard.load(str(path))
            self.manifest = read_manifest(self._shard)
        self._weights = EdgeWords(self.manifest.bm25)

    def search(self, query: Mapping[str, Any]) -> list[Payload]:
        """Hits for a query as `edge.py` sends it."""
        vector: list[float] = query["vector"]
        self._check_dimension(vector)
        limit: int = query["limit"]
        weight = fusion.DENSE_WEIGHT if query["dense_weight"] is None else float(query["dense_weight"])
        depth = fusion.depth(limit)
        filter_ = render(self._clauses(Filters(**query["filters"])))
        words = self._weights.question(query["text"]) if weight < 1 else None
        ranked = fusion.fuse(self._branches(vector, weight, words, depth, filter_), weight)
        vectors: dict[int, str] = {}

        def fetch(ids: Sequence[int]) -> dict[int, Payload]:
            wanted: list[int | uuid.UUID | str] = [uuid.UUID(int=id_) for id_ in ids]
            records = self._shard.retrieve(wanted, True, [DENSE] if query["with_vectors"] else False)
            if query["with_vectors"]:
                vectors.update((_number(record.id), frames.pack_vector(dense_of(record))) for record in records)
            return {_number(record.id): dict(record.payload or {}) for record in records}

        return [
            {
                "payload": payload,
                "similarity": candidate.similarity,
                "score": candidate.score,
                "vector": vectors.get(candidate.id),
                "by_words": candidate.by_words,
            }
            for candidate, payload in fusion.pick(ranked, query["min_similarity"], limit, fetch)
        ]

    def recall(self, chunk_ids: Sequence[str], vector: list[float]) -> list[Payload]:
        """Chunks by their ids, the most similar first; only chunks have a vector to be similar by."""
        ids: set[int | uuid.UUID | str] = {uuid.UUID(chunk_id) for chunk_id in chunk_ids if is_point_id(chunk_id)}
        self._check_dimension(vector)
        if not ids:
            return []
        request = qe.QueryRequest(
            limit=len(ids),
            query=qe.Query.Nearest(vector, using=DENSE),
            filter=qe.Filter(must=[qe.HasIdCondition(ids)]),
            with_payload=True,
        )
        found = [
            (fusion.Ranked(str(point.id), point.score, point.score), point) for point in self._shard.query(request)
        ]
        return [
            {
                "payload": dict(point.payload or {}),
                "similarity": one.similarity,
                "score": one.score,
                "vector": None,
                "by_words": False,
            }
            for one, point in found
        ]

    def missing(self, words: Sequence[str], editions: Sequence[str]) -> list[str]:
        """Those of the words of which a term stands in no chunk."""
        terms = {word: self._weights.terms(word) for word in words}
        within = render(exact_clauses(Filters(edition=tuple(editions)), self.manifest.shelf))
        known = {term: self._stands(term, within) for found in terms.values() for term in found}
        return [word for word, found in terms.items() if not all(known[term] for term in found)]

    def _stands(self, term: int, within: qe.Filter | None) -> bool:
        words = qe.Query.Nearest(qe.SparseVector([term], [1.0]), using=SPARSE)
        return bool(self._shard.query(qe.QueryRequest(limit=1, query=words, filter=within)))

    def pages(self, offset: str | None) -> tuple[list[Payload], str | None]:
        """Some pages without their bodies, and where the next ones start."""
        records, following = self._shard.scroll(
            qe.ScrollRequest(
                offset=offset,
                limit=64,  # bodies are read to be left out, some 30 kB each: keep the wait of searches short
                filter=of_kind("page"),
                with_payload=qe.PayloadSelector.Exclude(list(PAGE_BODY)),
            )
        )
        return [dict(record.payload or {}) for record in records], None if following is None else str(following)

    def page(self, page_id: str) -> Payload | None:
        """One page with its body."""
        found = self._payloads([page_id]) if is_point_id(page_id) else {}
        return next((payload for payload in found.values() if payload["kind"] == "page"), None)

    def _check_dimension(self, vector: list[float]) -> None:
        dimension = self.manifest.fingerprint.dimension
        if len(vector) != dimension:
            raise EmbeddingMismatchError(f"The index holds vectors of {dimension} numbers, not {len(vector)}")

    def _branches(
        self,
        vector: list[float],
        weight: float,
        words: qe.SparseVector | None,
        depth: int,
        filter_: qe.Filter | None,
    ) -> fusion.Branches[int]:
        """Search by meaning, by words or by both, in one batch, with true cosines for what words found."""
        requests: list[qe.QueryRequest] = []
        by_meaning = qe.Query.Nearest(vector, using=DENSE)
        if weight > 0:
            requests.append(qe.QueryRequest(limit=depth, query=by_meaning, filter=filter_))
        if words is not None:
            by_words = qe.Query.Nearest(words, using=SPARSE)
            prefetch = qe.Prefetch(limit=depth, query=by_words, filter=filter_)
            requests.append(qe.QueryRequest(limit=depth, query=by_words, filter=filter_))
            requests.append(qe.QueryRequest(limit=depth, query=by_meaning, prefetches=[prefetch]))
        if not requests:
            return fusion.Branches()
        found = [
            {_number(point.id): point.score for point in points}
            for points in self._shard.query_batch(qe.QueryBatchRequest(requests))
        ]
        sparse, cosines = found[-2:] if words is not None else ({}, {})
        return fusion.Branches(found[0] if weight > 0 else {}, sparse, cosines)

    def _clauses(self, filters: Filters) -> list[Clause]:
        clauses = exact_clauses(filters, self.manifest.shelf)
        prefix = filters.source_url_prefix
        if prefix:
            scope = prefix_scope(prefix)
            values = self._values(scope.field, render([scope.within])) if scope.field else ()
            clauses.append(prefix_clause(prefix, scope, values))
        return clauses

    def _values(self, field: str, filter_: qe.Filter | None) -> list[str]:
        request = qe.FacetRequest(field, limit=_ALL_VALUES, exact=True, filter=filter_)
        return [str(hit.value) for hit in self._shard.facet(request).hits]

    def _payloads(self, ids: Sequence[str]) -> dict[str, Payload]:
        return {str(record.id): dict(record.payload or {}) for record in self._shard.retrieve(list(ids), True, False)}


def _number(id_: "qe.PointId") -> int:
    """A point's id as what is fastest to look up. All our ids are UUIDs; they order as their texts do."""
    return id_.int if isinstance(id_, uuid.UUID) else int(id_)


def dense_of(record: qe.Record) -> Any:
    """A record's dense vector."""
    assert isinstance(record.vector, dict)
    return record.vector[DENSE]
