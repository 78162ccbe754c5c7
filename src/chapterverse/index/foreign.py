"""Reads a collection on a Qdrant server that another tool made, as a book. It is never written to.

Its points have a vector and a payload with a text and its address. The names of these fields are detected once.
Searches are only by meaning, because there are no word weights. The text of a page is its passages, joined.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from qdrant_client import AsyncQdrantClient, models

from chapterverse.book import (
    RECIPE,
    Block,
    Chunk,
    Fingerprint,
    Hit,
    Manifest,
    Page,
    Section,
    page_id_for,
    text_hash,
)
from chapterverse.errors import IndexTimeout, IngestionError, RetrievalUnavailable
from chapterverse.index import Filters, HybridQuery, IndexWriter, Vectors
from chapterverse.index.server import NotOurs, QdrantIndex
from chapterverse.index.server_errors import server_errors
from chapterverse.units import blocks_of_text, cut_units

# Field names that a payload may have, as in the seeds and common tools.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "url": ("source_url", "url", "page_url"),
    "text": ("chunk_text", "text", "content"),
    "title": ("page_title", "title", "chapter"),
    "section": ("section_heading", "section", "heading"),
    "module": ("module", "module_name"),
    "index": ("chunk_index",),
}
NEEDED: Final = ("url", "text")

_SAMPLE: Final = 50  # points that are read to detect the names
_BATCH: Final = 1000  # points of one scroll
_WAIT: Final = 5.0  # seconds that a call waits for the contents of the collection
_LOOK_EVERY: Final = 30.0  # seconds between checks whether the collection has changed
_PAGES: Final = 200  # pages whose text is cached, as long as the contents

PointId = int | str | UUID


@dataclass(frozen=True, slots=True)
class CollectionPage:
    """A page in the list of contents, with all addresses that differ only in their anchor."""

    title: str
    module: str
    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CollectionContents:
    """The contents of a collection without its texts."""

    points: int
    vector: str | None  # its name, if vectors have names
    names: Mapping[str, str]  # field names of the payload, by meaning
    pages: Mapping[str, CollectionPage]  # by address without anchor
    digest: str  # of the ids of all points, and of their addresses, titles and modules

    @property
    def generation(self) -> str:
        """Changes when points are added, removed or replaced by others, not when only their texts are."""
        return f"points-{self.points}-{self.digest}"


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page made from its passages."""

    page: Page
    chunks: Mapping[PointId, Chunk]
    read_at: float


class ForeignCollection:
    """Reads a collection that another tool made."""

    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        fingerprint: Fingerprint,
        flags_of: Callable[[str], tuple[str, ...]] = lambda text: (),
    ) -> None:
        self._client = client
        self._name = collection
        self._fingerprint = (
            fingerprint  # of the configured embedder; the collection does not say which model made its vectors
        )
        self._flags_of = flags_of
        self._contents: CollectionContents | None = None
        self._reading: asyncio.Task[CollectionContents] | None = None
        self._look_at = 0.0
        self._changed = False  # whether a search has found other points than those that were read
        self._pages: OrderedDict[tuple[str, str], ReadPage] = OrderedDict()

    # ── contents of the collection ───────────────────────────────────────────────────────────────────────────────────

    async def contents(self) -> CollectionContents:
        """The contents of the collection, cached; read again in the background after a change."""
        now = time.monotonic()
        if self._contents is not None:
            if now > self._look_at:
                self._look_at = now + _LOOK_EVERY
                self._read_again()
            return self._contents
        try:
            async with asyncio.timeout(_WAIT):
                return await asyncio.shield(self._read_again())
        except TimeoutError:
            raise IndexTimeout(f"The contents of the collection {self._name} are still being read") from None

    def _read_again(self) -> "asyncio.Task[CollectionContents]":
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_contents())
            self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._reading

    async def _read_contents(self) -> CollectionContents:
        with server_errors(self._name):
            info = await self._client.get_collection(self._name)
            earlier = self._contents
            if earlier is not None and earlier.points == info.points_count and not self._changed:
                return earlier
            self._changed = False
            vector = self._vector_in(info.config.params.vectors)
            names = await self._learn_names()
            pages, digest = await self._list_pages(names)
        self._contents = CollectionContents(info.points_count or 0, vector, names, pages, digest)
        self._look_at = time.monotonic() + _LOOK_EVERY
        return self._contents

    def _vector_in(self, vectors: Any) -> str | None:
        """The name of the vector that fits the embedder; None if the vector has no name. Raise if none fits."""
        named = vectors if isinstance(vectors, dict) else {None: vectors} if vectors else {}
        wanted = self._fingerprint
        fitting = [name for name, params in named.items() if params.size == wanted.dimension]
        if not fitting:
            sizes = ", ".join(str(params.size) for params in named.values()) or "no"
            raise self._refused(
                f"its vectors have {sizes} numbers, and {wanted.model}, which embeds the questions, gives "
                f"{wanted.dimension}. Configure the embedding model that made the collection (COHERE_API_KEY, "
                "OPENAI_API_KEY, EMBEDDINGS)"
            )
        cosine = [name for name in fitting if named[name].distance == models.Distance.COSINE]
        if not cosine:
            raise self._refused(f"its vectors are compared by {named[fitting[0]].distance}, not by Cosine")
        return cosine[0]

    async def _learn_names(self) -> dict[str, str]:
        records, _ = await self._client.scroll(self._name, limit=_SAMPLE, with_payload=True)
        payloads = [record.payload or {} for record in records]
        names: dict[str, str] = {}
        for meaning, choices in NAMES.items():
            kinds = int if meaning == "index" else str
            for name in choices:
                if any(isinstance(payload.get(name), kinds) for payload in payloads):
                    names.setdefault(meaning, name)
        if missing := [meaning for meaning in NEEDED if meaning not in names]:
            wanted = " and ".join(f"no {meaning} (under {' or '.join(NAMES[meaning])})" for meaning in missing)
            found = ", ".join(sorted({name for payload in payloads for name in payload})) or "nothing"
            raise self._refused(f"its payload has {wanted}; it has: {found}")
        return names

    async def _list_pages(self, names: Mapping[str, str]) -> tuple[dict[str, CollectionPage], str]:
        wanted = [names[meaning] for meaning in ("url", "title", "module") if meaning in names]
        urls: dict[str, dict[str, None]] = defaultdict(dict)
        about: dict[str, tuple[str, str]] = {}
        digest = hashlib.sha256()
        async for record in self._scroll(None, wanted):
            payload = record.payload or {}
            digest.update(repr((record.id, [payload.get(name) for name in wanted])).encode())
            if url := _text(payload, names, "url"):
                page = url.partition("#")[0]
                urls[page][url] = None
                about.setdefault(page, (_text(payload, names, "title") or page, _text(payload, names, "module")))
        pages = {page: CollectionPage(*about[page], tuple(all_)) for page, all_ in urls.items()}
        return pages, digest.hexdigest()[:16]

    async def _scroll(self, filter_: models.Filter | None, payload: Any) -> AsyncIterator[models.Record]:
        offset: Any = None
        while True:
            records, offset = await self._client.scroll(
                self._name, scroll_filter=filter_, limit=_BATCH, offset=offset, with_payload=payload
            )
            for record in records:
                yield record
            if offset is None:
                return

    def _refused(self, reason: str) -> RetrievalUnavailable:
        return RetrievalUnavailable(
            f"The collection {self._name} was made by another tool and cannot be served: {reason}."
        )

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def manifest(self) -> Manifest:
        """A manifest for the collection. Its model is assumed to be the configured one, which has the same
        dimension."""
        contents = await self.contents()
        return Manifest(
            fingerprint=self._fingerprint,
            generation=contents.generation,
            created_at="unknown",
            pages=len(contents.pages),
            chunks=contents.points,
            recipe=RECIPE,
        )

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of the book, sorted."""
        return sorted({entry.module for entry in (await self.contents()).pages.values() if entry.module})

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The most similar passages, without duplicates."""
        contents = await self.contents()
        filter_ = _filter(query.filters, contents)
        if filter_ is None:
            return []
        return await self._find(contents, query.vector, filter_, query.limit, query.with_vectors)

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Passages by their ids, the most similar first."""
        ids: list[Any] = [int(chunk_id) if chunk_id.isdecimal() else chunk_id for chunk_id in chunk_ids]
        filter_ = models.Filter(must=[models.HasIdCondition(has_id=ids)])
        return await self._find(await self.contents(), vector, filter_, len(ids), False) if ids else []

    async def pages(self) -> list[Page]:
        """All pages, without text and sections, in the order of their addresses."""
        contents = await self.contents()
        return [self._page_of(url, entry) for url, entry in sorted(contents.pages.items())]

    async def page(self, page_id: str) -> Page | None:
        """One page with its text."""
        contents = await self.contents()
        url = next((url for url in contents.pages if page_id_for(url) == page_id), None)
        return None if url is None else (await self._read_page(url, contents)).page

    async def _find(
        self, contents: CollectionContents, vector: Vectors, filter_: models.Filter, limit: int, with_vectors: bool
    ) -> list[Hit]:
        with server_errors(self._name):
            found = await self._client.query_points(
                self._name,
                query=vector.tolist(),
                using=contents.vector,
                query_filter=filter_,
                limit=2 * limit,  # some may be duplicates
                with_payload=[contents.names["url"], contents.names["text"]],
                with_vectors=([contents.vector] if contents.vector else True) if with_vectors else False,
            )
        hits: dict[str, Hit] = {}
        for point in found.points:
            url = _text(point.payload or {}, contents.names, "url").partition("#")[0]
            text = _text(point.payload or {}, contents.names, "text")
            if not url or not text.strip():
                continue
            chunk = await self._chunk(point.id, url, text, contents)
            if chunk is not None:
                cosine = min(1.0, max(0.0, point.score))
                hits.setdefault(chunk.content_hash, Hit(chunk, cosine, point.score, _dense(point, contents.vector)))
        return list(hits.values())[:limit]

    async def _chunk(self, point: PointId, url: str, text: str, contents: CollectionContents) -> Chunk | None:
        """The chunk of a point with this text. If the cached page has another one, the page is read again."""
        chunk = (await self._read_page(url, contents)).chunks.get(point) if url in contents.pages else None
        if chunk is None or chunk.text != text:
            self._changed = True
            if url not in contents.pages:
                return None
            self._pages.pop((contents.generation, url), None)
            chunk = (await self._read_page(url, contents)).chunks.get(point)
        return chunk if chunk and chunk.text == text else None

    async def _read_page(self, url: str, contents: CollectionContents) -> ReadPage:
        key = contents.generation, url
        cached = self._pages.get(key)
        if cached is None or time.monotonic() - cached.read_at > _LOOK_EVERY:
            entry = contents.pages[url]
            match = models.MatchAny(any=list(entry.urls))
            within = models.Filter(must=[models.FieldCondition(key=contents.names["url"], match=match)])
            with server_errors(self._name):
                records = [record async for record in self._scroll(within, True)]
            self._pages[key] = self._compose(url, entry, records, contents.names)
            while len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        self._pages.move_to_end(key)
        return self._pages[key]

    def _compose(
        self, url: str, entry: CollectionPage, records: Iterable[models.Record], names: Mapping[str, str]
    ) -> ReadPage:
        """Join the passages to a page, with blank lines between them."""
        passages = [(record.id, record.payload or {}) for record in records]
        if "index" in names:
            passages.sort(key=lambda passage: _number(passage[1].get(names["index"])))
        text = ""
        sections: list[Section] = []
        blocks: list[Block] = []
        chunks: dict[PointId, Chunk] = {}
        for place, (point_id, payload) in enumerate(passages):
            passage_text = _text(payload, names, "text")
            if not passage_text.strip():
                continue
            heading = _text(payload, names, "section") or entry.title
            text += "\n\n" if text else ""
            start, end = len(text), len(text) + len(passage_text)
            text += passage_text
            if sections and sections[-1].heading == heading:
                sections[-1] = replace(sections[-1], end=end)
            else:
                anchor = _text(payload, names, "url").partition("#")[2]
                level = 1 if heading == entry.title else 2
                sections.append(Section(heading, level, anchor, start, end, ()))
            own = [
                replace(block, start=block.start + start, end=block.end + start, section=len(sections) - 1)
                for block in blocks_of_text(passage_text)
            ]
            blocks += own
            chunks[point_id] = Chunk(
                chunk_id=str(point_id),
                page_id=page_id_for(url),
                page_url=url,
                source_url=_text(payload, names, "url"),
                page_title=entry.title,
                section_heading=heading,
                breadcrumb=" › ".join(dict.fromkeys((entry.title, heading))),
                module=_text(payload, names, "module"),
                chunk_index=place,
                start=start,
                end=end,
                text=passage_text,
                content_hash=text_hash(passage_text),
                flags=self._flags_of(passage_text),
                units=cut_units(text, own),
            )
        page = replace(
            self._page_of(url, entry),
            text=text,
            sections=tuple(sections),
            blocks=tuple(blocks),
            flags=tuple(dict.fromkeys(flag for chunk in chunks.values() for flag in chunk.flags)),
        )
        return ReadPage(page, chunks, time.monotonic())

    def _page_of(self, url: str, entry: CollectionPage) -> Page:
        return Page(page_id_for(url), url, entry.title, entry.module, self._name, "", (), (), order=url)


def _filter(filters: Filters, contents: CollectionContents) -> models.Filter | None:
    """A filter in the collection's field names; None if nothing can match."""
    must: list[models.Condition] = []
    for meaning, values in (
        ("title", filters.page_title),
        ("section", filters.section_heading),
        ("module", filters.module),
    ):
        if values and meaning not in contents.names:
            return None
        if values:
            must.append(models.FieldCondition(key=contents.names[meaning], match=models.MatchAny(any=list(values))))
    if filters.source_url or filters.source_url_prefix:
        urls = [
            url
            for page, entry in contents.pages.items()
            for url in entry.urls
            if (not filters.source_url or url in filters.source_url or page in filters.source_url)
            and url.startswith(filters.source_url_prefix)
        ]
        if not urls:
            return None
        must.append(models.FieldCondition(key=contents.names["url"], match=models.MatchAny(any=urls)))
    return models.Filter(must=must)


def _text(payload: Mapping[str, Any], names: Mapping[str, str], meaning: str) -> str:
    value = payload.get(names.get(meaning, ""))
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    """A payload's value as a number; 0 if it is none."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _dense(point: models.ScoredPoint, name: str | None) -> tuple[float, ...] | None:
    vector: Any = point.vector
    if vector is None:
        return None
    return tuple(vector[name] if name else vector)


class ServerIndex:
    """A collection on a server: our own is read and written, that of another tool is only read."""

    def __init__(self, own: QdrantIndex, foreign: ForeignCollection) -> None:
        self._own = own
        self._foreign = foreign
        self._is_foreign_until = 0.0

    @property
    def engine(self) -> str:
        """The engine and its location, for people."""
        return self._own.engine

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The best chunks, best first."""
        return await (await self._reader()).search(query)

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Chunks by their ids, the most similar first."""
        return await (await self._reader()).recall(chunk_ids, vector)

    async def missing(self, words: Sequence[str], editions: Sequence[str] = ()) -> list[str]:
        """The words that occur in no chunk; none for another tool's collection, where that is unknown."""
        return await self._own.missing(words, editions) if await self._reader() is self._own else []

    async def manifest(self) -> Manifest:
        """The manifest of the book."""
        return await (await self._reader()).manifest()

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of these editions, or of all, sorted."""
        return await (await self._reader()).modules(editions)

    async def pages(self) -> list[Page]:
        """All pages without their text."""
        return await (await self._reader()).pages()

    async def page(self, page_id: str) -> Page | None:
        """One page with its text."""
        return await (await self._reader()).page(page_id)

    async def probe(self) -> None:
        """Raise if the server cannot be used."""
        self._is_foreign_until = 0.0
        await (await self._reader(fresh=True)).manifest()

    async def verify(self) -> str | None:
        """Not checked: the server verifies its own files."""
        return None

    @asynccontextmanager
    async def writer(self, *, fresh: bool = False) -> AsyncIterator[IndexWriter]:
        """Build the next generation of our own collection."""
        try:
            await self._own.probe()
        except NotOurs as refusal:
            raise IngestionError(
                f"{refusal.message}, so it is only read. Name another one with QDRANT_COLLECTION_NAME."
            ) from None
        except RetrievalUnavailable:
            pass  # there is no book yet; the writer reports other problems
        async with self._own.writer(fresh=fresh) as writer:
            yield writer

    async def close(self) -> None:
        """Close the connections."""
        await self._own.close()

    async def _reader(self, *, fresh: bool = False) -> QdrantIndex | ForeignCollection:
        if time.monotonic() < self._is_foreign_until:
            return self._foreign
        try:
            await (self._own.probe() if fresh else self._own.manifest())
        except NotOurs:
            self._is_foreign_until = time.monotonic() + _LOOK_EVERY
            return self._foreign
        return self._own
