"""The index on a Qdrant server, cluster or Cloud. Import it only when one is configured: the client is heavy.

This is the reading side. The collection's name is an alias; every state of the book is a collection of its own behind
it, so a reader that knows its name sees one complete state, whatever is published meanwhile.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx
from qdrant_client import AsyncQdrantClient, models

from chapterverse.book import Edition, Hit, Manifest, Page
from chapterverse.errors import EmbeddingMismatchError, IndexMissing, RetrievalUnavailable
from chapterverse.index import Filters, HybridQuery, IndexWriter, Vectors, fusion
from chapterverse.index.bm25 import EdgeWords, ServerWords, weights_of
from chapterverse.index.filters import Clause, Match, exact_clauses, prefix_clause, prefix_scope
from chapterverse.index.generations import NO_BOOK
from chapterverse.index.points import (
    DENSE,
    MANIFEST_ID,
    PAGE_BODY,
    SPARSE,
    chunk_from_payload,
    is_point_id,
    manifest_from_payload,
    page_from_payload,
)
from chapterverse.index.server_errors import server_errors

_KNOWN_FOR = 1.0  # seconds a manifest is taken as current; the state before stays readable for longer than that
_ALL_VALUES = 1_000_000  # a facet's limit that no book reaches
_ROUNDS: Final = 4  # through all nodes; a cluster that lost its leader needs seconds to choose another
_FIRST_PAUSE: Final = 0.2  # seconds after the first round; doubled after each
# The node is gone, or went away with the request. All our requests can be repeated: points have fixed ids.
_LOST: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
_PAGES = 256  # pages of one scroll
_LIST_TIMEOUT = 60.0  # seconds for a list of all pages, which takes many requests
_WRITE_TIMEOUT = 60.0  # seconds for one request of a writer

T = TypeVar("T")


class NotOurs(RetrievalUnavailable):
    """The collection exists, but another tool made it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a new collection is laid out over the nodes of a cluster; a single server holds one of each."""

    shards: int = 1
    replicas: int = 1


class QdrantIndex:
    """A book on a server."""

    def __init__(
        self,
        *,
        url: str,
        api_key: str | None = None,
        collection: str,
        timeout: float = 5.0,
        spread: Spread = Spread(),  # noqa: B008 - it is frozen
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._alias = collection
        self._timeout = timeout  # seconds for one answer
        self._spread = spread
        self.client = self._client = self._connect(timeout)
        self._known: tuple[float, Manifest] | None = None  # until when, what
        self._modules: dict[tuple[str, ...], list[str]] = {}  # by generation and editions
        self._weights: tuple[Mapping[str, Any], ServerWords | EdgeWords] | None = None

    @property
    def engine(self) -> str:
        """A few words for people."""
        return f"Qdrant server at {self._url}, collection {self._alias}"

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The best chunks, best first; one request, and one more for vectors or for a prefix inside a name."""

        async def find(manifest: Manifest) -> list[Hit]:
            return await self._search(query, manifest)

        return await self._read(find, self._timeout)

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Chunks by their ids, the most similar first; only chunks have a vector to be similar by."""
        ids = [chunk_id for chunk_id in chunk_ids if is_point_id(chunk_id)]

        async def fetch(manifest: Manifest) -> list[Hit]:
            _check_dimension(vector, manifest)
            found = await self._client.query_points(
                collection_of(self._alias, manifest.generation),
                query=vector.tolist(),
                using=DENSE,
                query_filter=models.Filter(must=[models.HasIdCondition(has_id=list(ids))]),
                limit=len(ids),
            )
            ranked = [(fusion.Ranked(str(point.id), point.score, point.score), point) for point in found.points]
            return [Hit(chunk_from_payload(point.payload or {}), one.similarity, one.score) for one, point in ranked]

        return await self._read(fetch, self._timeout) if ids else []

    async def missing(self, words: Sequence[str], editions: Sequence[str] = ()) -> list[str]:
        """Those of the words of which a term stands in no chunk of these editions."""

        async def look(manifest: Manifest) -> list[str]:
            within = render(exact_clauses(Filters(edition=tuple(editions)), manifest.shelf))
            terms = {word: self._word_weights(manifest).terms(word) for word in words}
            wanted = list(dict.fromkeys(term for found in terms.values() for term in found))
            if not wanted:
                return []
            answers = await self._client.query_batch_points(
                collection_of(self._alias, manifest.generation),
                [
                    models.QueryRequest(
                        query=models.SparseVector(indices=[term], values=[1.0]), using=SPARSE, limit=1, filter=within
                    )
                    for term in wanted
                ],
            )
            known = {term for term, answer in zip(wanted, answers, strict=True) if answer.points}
            return [word for word, found in terms.items() if not known.issuperset(found)]

        return await self._read(look, self._timeout)

    async def manifest(self) -> Manifest:
        """What the current state says of itself, as of the last second."""
        known = self._known
        if known is None or known[0] < time.monotonic():
            async with self._limits(self._timeout):
                found = await self._client.retrieve(self._alias, [MANIFEST_ID])
            if not found or found[0].payload is None:
                raise NotOurs(f"The collection {self._alias} was not made by Chapterverse")
            known = self._known = time.monotonic() + _KNOWN_FOR, manifest_from_payload(found[0].payload)
        return known[1]

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of these editions, or of all, sorted."""
        pages = (Match("kind", ("page",)),)

        async def count(manifest: Manifest) -> list[str]:
            known = (manifest.generation, *editions)
            if known not in self._modules:
                facet = await self._client.facet(
                    collection_of(self._alias, manifest.generation),
                    "module",
                    facet_filter=render([pages, *exact_clauses(Filters(edition=tuple(editions)), manifest.shelf)]),
                    limit=_ALL_VALUES,
                    exact=True,
                )
                self._modules = {at: found for at, found in self._modules.items() if at[0] == manifest.generation}
                self._modules[known] = sorted(str(hit.value) for hit in facet.hits if hit.value)
            return self._modules[known]

        return await self._read(count, self._timeout)

    async def pages(self) -> list[Page]:
        """All pages without their text and blocks, in reading order."""

        async def scroll(manifest: Manifest) -> list[Page]:
            pages: list[Page] = []
            offset: Any = None
            while True:
                records, offset = await self._client.scroll(
                    collection_of(self._alias, manifest.generation),
                    scroll_filter=of_kind("page"),
                    limit=_PAGES,
                    offset=offset,
                    with_payload=models.PayloadSelectorExclude(exclude=list(PAGE_BODY)),
                )
                pages.extend(page_from_payload(record.payload or {}) for record in records)
                if offset is None:
                    return sorted(pages, key=lambda page: page.place)

        return await self._read(scroll, _LIST_TIMEOUT)

    async def page(self, page_id: str) -> Page | None:
        """One page with its text."""

        async def fetch(manifest: Manifest) -> Page | None:
            ids = [page_id] if is_point_id(page_id) else []
            found = await self._client.retrieve(collection_of(self._alias, manifest.generation), ids)
            payload = found[0].payload if found else None
            return page_from_payload(payload) if payload and payload["kind"] == "page" else None

        return await self._read(fetch, self._timeout)

    async def probe(self) -> None:
        """Raise if the server cannot be used now."""
        self._known = None
        await self.manifest()

    async def verify(self) -> str | None:
        """Nothing: a server keeps its own files. Each text is checked against its checksum when it is read."""
        return None

    @asynccontextmanager
    async def writer(self, *, fresh: bool = False) -> AsyncIterator[IndexWriter]:
        """Build the next state in a collection beside the current one; this index serves it on return."""
        from chapterverse.index.server_writer import open_writer

        client = self._connect(_WRITE_TIMEOUT)
        try:
            async with open_writer(client, self._alias, fresh=fresh, spread=self._spread) as writer:
                yield writer
        finally:
            self._known = None
            await client.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _connect(self, timeout: float) -> AsyncQdrantClient:
        nodes = nodes_of(self._url)
        cluster: dict[str, Any] = {"transport": ClusterTransport(nodes)} if len(nodes) > 1 else {}
        return AsyncQdrantClient(
            url=nodes[0],
            # As a header: given as a key, the client prints a warning of its own when the address is not https.
            headers={"api-key": self._api_key} if self._api_key else None,
            timeout=math.ceil(timeout),
            check_compatibility=False,  # it would ask the server from inside the constructor, blocking
            **cluster,
        )

    async def _read(self, read: Callable[[Manifest], Awaitable[T]], seconds: float) -> T:
        """Read one state whole. If it is gone, because much was published in a moment, read the one that is there."""
        manifest = await self.manifest()
        try:
            async with self._limits(seconds):
                return await read(manifest)
        except IndexMissing:
            self._known = None
            manifest = await self.manifest()
            async with self._limits(seconds):
                return await read(manifest)

    @asynccontextmanager
    async def _limits(self, seconds: float) -> AsyncIterator[None]:
        """The time one read may take, and the translation of what goes wrong."""
        try:
            with server_errors(self._alias):
                async with asyncio.timeout(seconds):
                    yield
        except IndexMissing as error:
            raise IndexMissing(NO_BOOK) from error

    async def _search(self, query: HybridQuery, manifest: Manifest) -> list[Hit]:
        _check_dimension(query.vector, manifest)
        collection = collection_of(self._alias, manifest.generation)
        weight = fusion.DENSE_WEIGHT if query.dense_weight is None else query.dense_weight
        filter_ = render(await self._clauses(collection, query.filters, manifest.shelf))
        depth = fusion.depth(query.limit)
        requests = self._requests(query, weight, depth, filter_, self._words(query, weight, manifest))
        if not requests:
            return []
        answers = await self._client.query_batch_points(collection, list(requests.values()))
        found = dict(zip(requests, (answer.points for answer in answers), strict=True))
        scores = {branch: {str(point.id): point.score for point in points} for branch, points in found.items()}
        payloads = {str(point.id): point.payload for points in found.values() for point in points if point.payload}
        ranked = fusion.fuse(fusion.Branches(**scores), weight)
        picked = fusion.pick(ranked, query.min_similarity, query.limit, lambda _: payloads)
        ids = [candidate.id for candidate, _ in picked] if query.with_vectors else []
        vectors = await self._vectors(collection, ids)
        return [
            Hit(
                chunk_from_payload(payload),
                candidate.similarity,
                candidate.score,
                vectors.get(candidate.id),
                candidate.by_words,
            )
            for candidate, payload in picked
        ]

    def _words(self, query: HybridQuery, weight: float, manifest: Manifest) -> models.SparseVector | None:
        if weight >= 1:
            return None
        words = self._word_weights(manifest).question(query.text)
        return None if words is None else models.SparseVector(indices=words.indices, values=words.values)

    def _word_weights(self, manifest: Manifest) -> ServerWords | EdgeWords:
        if self._weights is None or self._weights[0] != manifest.bm25:
            self._weights = manifest.bm25, weights_of(manifest.bm25)
        return self._weights[1]

    @staticmethod
    def _requests(
        query: HybridQuery,
        weight: float,
        depth: int,
        filter_: models.Filter | None,
        words: models.SparseVector | None,
    ) -> dict[str, models.QueryRequest]:
        """The searches of one batch by branch. They return payloads, which saves a second request."""
        by_meaning = models.NearestQuery(nearest=query.vector.tolist())
        requests: dict[str, models.QueryRequest] = {}
        if weight > 0:
            requests["dense"] = models.QueryRequest(
                query=by_meaning, using=DENSE, limit=depth, filter=filter_, with_payload=True
            )
        if words is not None:
            by_words = models.NearestQuery(nearest=words)
            requests["sparse"] = models.QueryRequest(
                query=by_words, using=SPARSE, limit=depth, filter=filter_, with_payload=True
            )
            candidates = models.Prefetch(query=by_words, using=SPARSE, limit=depth, filter=filter_)
            requests["cosines"] = models.QueryRequest(query=by_meaning, using=DENSE, limit=depth, prefetch=candidates)
        return requests

    async def _clauses(self, collection: str, filters: Filters, shelf: Sequence[Edition]) -> list[Clause]:
        clauses = exact_clauses(filters, shelf)
        prefix = filters.source_url_prefix
        if prefix:
            scope = prefix_scope(prefix)
            values: list[str] = []
            if scope.field:
                facet = await self._client.facet(
                    collection, scope.field, facet_filter=render([scope.within]), limit=_ALL_VALUES, exact=True
                )
                values = [str(hit.value) for hit in facet.hits]
            clauses.append(prefix_clause(prefix, scope, values))
        return clauses

    async def _vectors(self, collection: str, ids: Sequence[str]) -> dict[str, tuple[float, ...]]:
        if not ids:
            return {}
        records = await self._client.retrieve(collection, ids, with_payload=False, with_vectors=[DENSE])
        return {str(record.id): tuple(dense_of(record)) for record in records}


def _check_dimension(vector: Vectors, manifest: Manifest) -> None:
    dimension = manifest.fingerprint.dimension
    if vector.shape != (dimension,):
        raise EmbeddingMismatchError(f"The index holds vectors of {dimension} numbers, not {vector.size}")


def collection_of(alias: str, generation: str) -> str:
    """The name of the collection that holds one state."""
    return f"{alias}__{generation}"


def of_kind(kind: str) -> models.Filter:
    """All points of one kind."""
    return models.Filter(must=[models.FieldCondition(key="kind", match=models.MatchValue(value=kind))])


def dense_of(record: models.Record) -> list[float]:
    """A record's dense vector."""
    assert isinstance(record.vector, dict)
    vector: Any = record.vector[DENSE]
    return list(vector)


def render(clauses: Sequence[Clause]) -> models.Filter | None:
    """A filter in the server's words; None when everything may match."""
    must: list[models.Condition] = [
        models.Filter(should=[condition for match in clause for condition in _conditions(match)])
        for clause in clauses
        if clause
    ]
    return models.Filter(must=must) if must else None


def _conditions(match: Match) -> Iterator[models.Condition]:
    yield models.FieldCondition(key=match.field, match=models.MatchAny(any=list(match.values)))
    if "" in match.values:
        yield models.IsEmptyCondition(is_empty=models.PayloadField(key=match.field))


def nodes_of(url: str) -> list[str]:
    """The nodes that a setting names, separated by commas."""
    return [node.strip() for node in url.split(",") if node.strip()]


class ClusterTransport(httpx.AsyncBaseTransport):
    """Sends requests to the node that answered last. One that cannot be reached or fails is followed by the next, for
    some rounds; how long that may take is up to the caller's time limit."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = [httpx.URL(node) for node in nodes]
        self._at = 0
        self._wire = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None, keepalive_expiry=30))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the first node that has one."""
        count, path = len(self._nodes), request.url.raw_path
        for turn in range(_ROUNDS * count):
            if turn and turn % count == 0:
                await asyncio.sleep(_FIRST_PAUSE * 2 ** (turn // count - 1))
            at, last = (self._at + turn) % count, turn == _ROUNDS * count - 1
            node = self._nodes[at]
            request.url = node.copy_with(raw_path=path)
            request.headers["Host"] = node.netloc.decode("ascii")
            try:
                answer = await self._wire.handle_async_request(request)
            except _LOST:
                if last:
                    raise
                continue
            if answer.status_code < 500 or last:
                self._at = at
                return answer
            await answer.aclose()
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()
