"""The index on a Qdrant server, cluster or Cloud. Import it only if one is configured: the client is slow to import.

This is the reading side. The configured name is an alias. Each generation of the book is a separate collection, so a
reader sees one complete generation, even if another one is published meanwhile.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

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

_KNOWN_FOR = 1.0  # seconds that a manifest is cached; the previous generation stays readable for longer
_ALL_VALUES = 1_000_000  # a facet's limit that no book reaches
_ROUNDS: Final = 4  # tries of all nodes; a cluster that lost its leader needs seconds to elect another
_FIRST_PAUSE: Final = 0.2  # seconds after the first round; doubled after each
# The node is unreachable, or failed during the request. All requests can be repeated: points have fixed ids.
_LOST: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
_PORT: Final = 6333
_PAGES = 256  # pages of one scroll
_LIST_TIMEOUT = 60.0  # seconds for a list of all pages, which takes many requests
_WRITE_TIMEOUT = 60.0  # seconds for one request of a writer

T = TypeVar("T")


class NotOurs(RetrievalUnavailable):
    """The collection exists, but another tool made it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Shards and replicas of a new collection on a cluster."""

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
        self._known: tuple[float, Manifest] | None = None  # the manifest and until when it is valid
        self._modules: dict[tuple[str, ...], list[str]] = {}  # by generation and editions
        self._weights: tuple[Mapping[str, Any], ServerWords | EdgeWords] | None = None

    @property
    def engine(self) -> str:
        """The engine and its location, for people."""
        return f"Qdrant server at {', '.join(nodes_of(self._url))}, collection {self._alias}"

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The best chunks, best first, in one request; vectors and some prefix filters need another one."""

        async def find(manifest: Manifest) -> list[Hit]:
            return await self._search(query, manifest)

        return await self._read(find, self._timeout)

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Chunks by their ids, the most similar first. Points without a vector, such as pages, are not found."""
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
            return [
                Hit(chunk_from_payload(point.payload or {}), fusion.clip(point.score), point.score)
                for point in found.points
            ]

        return await self._read(fetch, self._timeout) if ids else []

    async def missing(self, words: Sequence[str], editions: Sequence[str] = ()) -> list[str]:
        """The words with a term that occurs in no chunk of these editions."""

        async def look(manifest: Manifest) -> list[str]:
            within = render(exact_clauses(Filters(edition=tuple(editions)), manifest.shelf))
            terms = {word: self._word_weights(manifest).terms(word) for word in words}
            wanted = list(dict.fromkeys(term for ids in terms.values() for term in ids))
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
            occurring = {term for term, answer in zip(wanted, answers, strict=True) if answer.points}
            return [word for word, ids in terms.items() if not occurring.issuperset(ids)]

        return await self._read(look, self._timeout)

    async def manifest(self) -> Manifest:
        """The manifest of the current generation, cached for a second."""
        cached = self._known
        if cached is None or cached[0] < time.monotonic():
            async with self._limits(self._timeout):
                found = await self._client.retrieve(self._alias, [MANIFEST_ID])
            if not found or found[0].payload is None:
                raise NotOurs(f"The collection {self._alias} was not made by Chapterverse")
            cached = self._known = time.monotonic() + _KNOWN_FOR, manifest_from_payload(found[0].payload)
        return cached[1]

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of these editions, or of all, sorted."""
        pages = (Match("kind", ("page",)),)

        async def count(manifest: Manifest) -> list[str]:
            key = (manifest.generation, *editions)
            if key not in self._modules:
                facet = await self._client.facet(
                    collection_of(self._alias, manifest.generation),
                    "module",
                    facet_filter=render([pages, *exact_clauses(Filters(edition=tuple(editions)), manifest.shelf)]),
                    limit=_ALL_VALUES,
                    exact=True,
                )
                self._modules = {old: found for old, found in self._modules.items() if old[0] == manifest.generation}
                self._modules[key] = sorted(str(hit.value) for hit in facet.hits if hit.value)
            return self._modules[key]

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
        """Raise if the server cannot be used."""
        self._known = None
        await self.manifest()

    async def verify(self) -> str | None:
        """Not checked: the server verifies its own files, and the checksum of each text is checked when it is read."""
        return None

    @asynccontextmanager
    async def writer(self, *, fresh: bool = False) -> AsyncIterator[IndexWriter]:
        """Build the next generation in a new collection. If it was published, this index serves it on return."""
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
            # As a header: with `api_key` the client prints a warning if the address is not https.
            headers={"api-key": self._api_key} if self._api_key else None,
            timeout=math.ceil(timeout),
            check_compatibility=False,  # it would call the server from the constructor and block
            **cluster,
        )

    async def _read(self, read: Callable[[Manifest], Awaitable[T]], seconds: float) -> T:
        """Read from one generation. If it was removed meanwhile, read from the current one."""
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
        """Limit the time of a read, and translate its errors."""
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
        """The searches of one batch, by branch. They return payloads, which saves a second request."""
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
        raise EmbeddingMismatchError(f"The index has vectors of {dimension} numbers, not {vector.size}")


def collection_of(alias: str, generation: str) -> str:
    """The name of the collection of a generation."""
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
    """The clauses as a filter of the server; None if there are none."""
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
    """The addresses of the nodes, which are separated by commas. A node without a port has Qdrant's, as in the
    client."""
    return [_with_port(node.strip()) for node in url.split(",") if node.strip()]


def _with_port(node: str) -> str:
    parts = urlsplit(node)
    return node if parts.port else urlunsplit(parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORT}"))


def _path_of(node: httpx.URL) -> bytes:
    return node.raw_path.rstrip(b"/")


class ClusterTransport(httpx.AsyncBaseTransport):
    """Sends requests to the node that answered last. If it cannot be reached or fails, the next one is tried, for
    several rounds. The caller's timeout limits how long that takes."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = [httpx.URL(node) for node in nodes]
        self._own_path = _path_of(self._nodes[0])  # the client puts it before the path of each request
        self._at = 0
        self._wire = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None, keepalive_expiry=30))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response of the first node that has one."""
        count, path = len(self._nodes), request.url.raw_path.removeprefix(self._own_path)
        for turn in range(_ROUNDS * count):
            if turn and turn % count == 0:
                await asyncio.sleep(_FIRST_PAUSE * 2 ** (turn // count - 1))
            at, last = (self._at + turn) % count, turn == _ROUNDS * count - 1
            node = self._nodes[at]
            request.url = node.copy_with(raw_path=_path_of(node) + path)
            request.headers["Host"] = node.netloc.decode("ascii")
            try:
                answer = await self._wire.handle_async_request(request)
                await answer.aread()  # here, because a node can be lost while it sends the body
            except _LOST:
                if last:
                    raise
                continue
            if answer.status_code < 500 or last:
                self._at = at
                return answer
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()
