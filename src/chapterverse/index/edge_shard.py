"""Reads a Qdrant Edge shard: searches, filters and the translation of errors.

Each call holds the GIL until it is done, so servers make the calls in a child process (`edge_process.py`).
"""

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import qdrant_edge as qe

from chapterverse.book import Manifest
from chapterverse.errors import ChapterverseError, EmbeddingMismatchError, IndexDamaged, RetrievalUnavailable
from chapterverse.index import Filters, frames, fusion
from chapterverse.index.bm25 import EdgeWords
from chapterverse.index.filters import Clause, Match, exact_clauses, prefix_clause, prefix_scope
from chapterverse.index.points import DENSE, MANIFEST_ID, PAGE_BODY, SPARSE, Payload, is_point_id, manifest_from_payload

_ALL_VALUES = 10_000_000  # a facet's limit that no book reaches


@contextlib.contextmanager
def engine_errors(kind: type[ChapterverseError] = RetrievalUnavailable) -> Iterator[None]:
    """Translate errors of the engine and the disk. The engine raises plain `Exception`."""
    try:
        yield
    except ChapterverseError:
        raise
    except Exception as error:
        raise kind(f"The embedded index failed: {error}") from error


def render(clauses: Iterable[Clause]) -> qe.Filter | None:
    """The clauses as a filter of the engine; None if there are none."""
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
    """All points of one kind, in batches."""
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
    """The manifest of a shard."""
    found = shard.retrieve([MANIFEST_ID], True, False)
    if not found or found[0].payload is None:
        raise IndexDamaged("The index is damaged: it has no manifest")
    return manifest_from_payload(found[0].payload)


class ShardReader:
    """A loaded shard. Its methods return JSON values for `EdgeIndex`."""

    def __init__(self, path: Path) -> None:
        with engine_errors():
            self._shard = qe.EdgeShard.load(str(path))
            self.manifest = read_manifest(self._shard)
        self._weights = EdgeWords(self.manifest.bm25)

    def search(self, query: Mapping[str, Any]) -> list[Payload]:
        """The hits for a query that `edge.py` sent."""
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
        """Chunks by their ids, the most similar first. Points without a vector, such as pages, are not found."""
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
        return [
            {
                "payload": dict(point.payload or {}),
                "similarity": fusion.clip(point.score),
                "score": point.score,
                "vector": None,
                "by_words": False,
            }
            for point in self._shard.query(request)
        ]

    def missing(self, words: Sequence[str], editions: Sequence[str]) -> list[str]:
        """The words with a term that occurs in no chunk."""
        terms = {word: self._weights.terms(word) for word in words}
        within = render(exact_clauses(Filters(edition=tuple(editions)), self.manifest.shelf))
        occurs = {term: self._occurs(term, within) for ids in terms.values() for term in ids}
        return [word for word, ids in terms.items() if not all(occurs[term] for term in ids)]

    def _occurs(self, term: int, within: qe.Filter | None) -> bool:
        words = qe.Query.Nearest(qe.SparseVector([term], [1.0]), using=SPARSE)
        return bool(self._shard.query(qe.QueryRequest(limit=1, query=words, filter=within)))

    def pages(self, offset: str | None) -> tuple[list[Payload], str | None]:
        """A batch of pages without their bodies, and the offset of the next batch."""
        records, following = self._shard.scroll(
            qe.ScrollRequest(
                offset=offset,
                limit=64,  # bodies are read before they are left out, about 30 kB each; searches wait meanwhile
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
            raise EmbeddingMismatchError(f"The index has vectors of {dimension} numbers, not {len(vector)}")

    def _branches(
        self,
        vector: list[float],
        weight: float,
        words: qe.SparseVector | None,
        depth: int,
        filter_: qe.Filter | None,
    ) -> fusion.Branches[int]:
        """Search by meaning, by words or by both in one batch, with the cosines of chunks that only words found."""
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
    """A point's id as a number, which is fast to look up. All ids are UUIDs; their numbers sort like their texts."""
    return id_.int if isinstance(id_, uuid.UUID) else int(id_)


def dense_of(record: qe.Record) -> Any:
    """A record's dense vector."""
    assert isinstance(record.vector, dict)
    return record.vector[DENSE]
