"""The writer of an index on a Qdrant server: fills a new collection, then moves the alias to it.

A lock keeps other writers out. A published collection is never changed. The previous generation is kept until the next
write, for readers that still use it.
"""

import asyncio
import math
import os
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from chapterverse.book import Chunk, Manifest, Page, PageRecord
from chapterverse.errors import ChapterverseError, ConfigurationError, IndexDamaged, IngestionError
from chapterverse.index import Vectors, points
from chapterverse.index.bm25 import SERVER_DEFAULTS, weights_of
from chapterverse.index.generation_writer import GenerationWriter, to_the_end
from chapterverse.index.server import Spread, collection_of, dense_of, of_kind
from chapterverse.index.server_errors import server_errors

_BATCH = 256  # points of one request: about 2 MB
_GENERATION = r"\d{8}T\d{6}-[0-9a-f]{8}"  # what `new_name` makes
_STALE = 900.0  # seconds without a renewal after which a writer's lock may be broken
_RENEW_EVERY = 60.0  # seconds between renewals of the lock
_NAME_SECONDS = 5.0  # after which a lock without its holder's name belongs to a writer that ended
_LOCK_ID = 1


@asynccontextmanager
async def open_writer(
    client: AsyncQdrantClient, alias: str, *, fresh: bool, spread: Spread
) -> AsyncIterator["QdrantWriter"]:
    """The only writer of an alias, on a copy of the current generation or on nothing."""
    with server_errors(alias):
        await _current(client, alias)  # refuses another tool's collection before anything is written
    async with _Lock(client, f"{alias}__lock", spread.replicas).held(alias) as lock:
        with server_errors(alias):
            current = await _current(client, alias)
            writer = QdrantWriter(client, alias, current, lock, spread)
            await _sweep(client, alias, keep=current)
            if current is not None and not fresh:
                await writer.read_current()
        try:
            yield writer
        finally:
            with server_errors(alias):
                await writer.discard()


class QdrantWriter(GenerationWriter):
    """The next generation of an index behind an alias."""

    def __init__(
        self, client: AsyncQdrantClient, alias: str, current: str | None, lock: "_Lock", spread: Spread
    ) -> None:
        super().__init__(SERVER_DEFAULTS)
        self._client = client
        self._alias = alias
        self._current = current  # collection behind the alias
        self._lock = lock
        self._spread = spread
        self._collection = collection_of(alias, self._name)
        self._created = False
        self._switched = False  # whether the server was asked to move the alias
        self._weights = weights_of(SERVER_DEFAULTS)

    async def read_current(self) -> None:
        """Read the manifest and records of the current generation. It is copied only if something changes."""
        assert self._current is not None
        found = await self._client.retrieve(self._current, [points.MANIFEST_ID])
        if not found:
            raise IndexDamaged(f"The collection {self._current} has no manifest")
        manifest = points.manifest_from_payload(found[0].payload or {})
        pages = self._scroll(self._current, of_kind("page"), list(points.PAGE_RECORD))
        self._start_from(manifest, [points.record_from_payload(stored.payload or {}) async for stored in pages])
        self._weights = weights_of(manifest.bm25)

    async def put(self, page: Page, record: PageRecord, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Add a page, or replace the one with the same id."""
        self._check(page, record, chunks, vectors)
        async with self._change(vectors.shape[1]):
            if page.page_id in self._present:
                await self._delete([page.page_id])
            stored = [self._point(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
            stored.append(models.PointStruct(id=page.page_id, vector={}, payload=points.page_to_payload(page, record)))
            await self._upsert(stored)
            self._present.add(page.page_id)

    async def put_record(self, page: Page, record: PageRecord) -> None:
        """Replace the record of a stored page."""
        async with self._change(self._dimension):
            payload = points.page_to_payload(page, record)
            await self._upsert([models.PointStruct(id=page.page_id, vector={}, payload=payload)])

    async def remove(self, page_ids: Sequence[str]) -> None:
        """Remove pages and their chunks."""
        present = [page_id for page_id in page_ids if page_id in self._present]
        if present:
            async with self._change(self._dimension):
                await self._delete(present)

    async def vectors(self) -> AsyncIterator[tuple[Chunk, Vectors]]:
        """All chunks of the new generation with their vectors."""
        source = self._collection if self._created else self._current if self._manifest else None
        if source is not None:
            with server_errors(self._alias):
                async for stored in self._scroll(source, of_kind("chunk"), True, vectors=[points.DENSE]):
                    vector = np.asarray(dense_of(stored), dtype=np.float32)
                    yield points.chunk_from_payload(stored.payload or {}), vector

    async def publish(self, manifest: Manifest) -> Manifest:
        """Make the new generation the current one."""
        self._check_dimension(manifest.fingerprint.dimension)
        async with self._change(manifest.fingerprint.dimension):
            if await _current(self._client, self._alias) != self._current:
                raise IngestionError("another ingest has published the book meanwhile; run it again")
            complete = self._completed(
                manifest,
                pages=(await self._client.count(self._collection, of_kind("page"))).count,
                chunks=(await self._client.count(self._collection, of_kind("chunk"))).count,
            )
            payload = points.manifest_to_payload(complete)
            await self._upsert([models.PointStruct(id=points.MANIFEST_ID, vector={}, payload=payload)])
            create = models.CreateAlias(collection_name=self._collection, alias_name=self._alias)
            switch: list[models.AliasOperations] = [models.CreateAliasOperation(create_alias=create)]
            if self._current is not None:
                delete = models.DeleteAlias(alias_name=self._alias)
                switch.insert(0, models.DeleteAliasOperation(delete_alias=delete))
            await to_the_end(self._switch(switch))
            return complete

    async def _switch(self, switch: list[models.AliasOperations]) -> None:
        """Move the alias. If the answer is lost, ask the server whether it was done."""
        self._switched = True
        try:
            await self._client.update_collection_aliases(switch)
        except ApiException:
            if await _current(self._client, self._alias) != self._collection:
                raise

    async def discard(self) -> None:
        """Remove the new collection, unless it is published, or may be: then the next writer removes it if it is
        not."""
        if self._created and not self._switched:
            await self._client.delete_collection(self._collection)

    @asynccontextmanager
    async def _change(self, dimension: int) -> AsyncIterator[None]:
        """Hold the right to change the new generation. The first change creates it."""
        async with self._turn:
            with server_errors(self._alias):
                if not self._created:
                    await self._create(dimension)
                await self._lock.renew()
                yield

    async def _create(self, dimension: int) -> None:
        """Create the new collection and copy the current generation into it, if the writer starts from it."""
        try:
            await self._client.create_collection(
                self._collection,
                vectors_config={points.DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)},
                sparse_vectors_config={points.SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                on_disk_payload=True,
                shard_number=self._spread.shards,
                replication_factor=self._spread.replicas,
            )
        except UnexpectedResponse as error:
            # 409: it exists. The name is unique, so an earlier try of this request created it.
            if error.status_code != 409:
                raise
        self._created = True
        self._dimension = dimension
        for field in points.KEYWORDS:
            await self._client.create_payload_index(self._collection, field, models.PayloadSchemaType.KEYWORD)
        if self._manifest is None:
            return
        assert self._current is not None
        batch: list[models.PointStruct] = []
        async for stored in self._scroll(self._current, None, True, vectors=True):
            vector: Any = stored.vector or {}
            batch.append(models.PointStruct(id=stored.id, vector=vector, payload=stored.payload))
            if len(batch) == _BATCH:
                await self._upsert(batch)
                await self._lock.renew()
                batch = []
        await self._upsert(batch)

    def _point(self, chunk: Chunk, vector: Vectors) -> models.PointStruct:
        named: dict[str, Any] = {points.DENSE: vector.tolist()}
        if (words := self._weights.document(chunk.passage)) is not None:
            named[points.SPARSE] = models.SparseVector(indices=words.indices, values=words.values)
        return models.PointStruct(id=chunk.chunk_id, vector=named, payload=points.chunk_to_payload(chunk))

    async def _upsert(self, stored: Sequence[models.PointStruct]) -> None:
        for start in range(0, len(stored), _BATCH):
            await self._client.upsert(self._collection, list(stored[start : start + _BATCH]))

    async def _delete(self, page_ids: list[str]) -> None:
        condition = models.FieldCondition(key="page_id", match=models.MatchAny(any=page_ids))
        await self._client.delete(self._collection, models.FilterSelector(filter=models.Filter(must=[condition])))
        self._present.difference_update(page_ids)

    async def _scroll(
        self,
        collection: str,
        filter_: models.Filter | None,
        payload: bool | list[str],
        vectors: bool | list[str] = False,
    ) -> AsyncIterator[models.Record]:
        offset: Any = None
        while True:
            records, offset = await self._client.scroll(
                collection, filter_, _BATCH, offset=offset, with_payload=payload, with_vectors=vectors
            )
            for record in records:
                yield record
            if offset is None:
                return


def _ended(owner: str) -> bool:
    """Whether a writer has certainly ended: it ran on this host, and its process does not exist."""
    host, _, rest = owner.partition(", pid ")
    pid = rest.partition(",")[0]
    if host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another account's process
        return False
    return False


class _Lock:
    """A collection that exists while a writer runs: creating a collection is atomic. The lock of an ended process is
    broken at once, any other after 15 minutes without a renewal."""

    def __init__(self, client: AsyncQdrantClient, name: str, replicas: int) -> None:
        self._client = client
        self._replicas = replicas
        self._name = name
        self._owner = f"{socket.gethostname()}, pid {os.getpid()}, {secrets.token_hex(4)}"
        self._shown = -math.inf

    @asynccontextmanager
    async def held(self, alias: str) -> AsyncIterator["_Lock"]:
        """Hold the lock, and renew it as long as it is held, also while nothing is written."""
        with server_errors(alias):
            await self.take()
        renewing = asyncio.create_task(self._keep())
        try:
            yield self
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            with server_errors(alias):
                await self.release()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_EVERY)
            with suppress(ChapterverseError), server_errors(self._name):  # the next change fails if the lock was lost
                await self.renew()

    async def take(self) -> None:
        """Take the lock; `IngestionError` if another process holds it."""
        if not await self._create():
            if not (held := await self._held()):
                await asyncio.sleep(_NAME_SECONDS)
                held = await self._held()
            if time.time() - held.get("at", 0.0) < _STALE and not _ended(held["owner"]):
                raise IngestionError(f"another ingest is running ({held['owner']})")
            await self._client.delete_collection(self._name)
            if not await self._create():
                raise IngestionError("another ingest has just started")
        await self.renew()

    async def renew(self) -> None:
        """Renew the lock, at most once a minute; `IngestionError` if another process has broken it."""
        if time.monotonic() - self._shown >= _RENEW_EVERY:
            if self._shown > -math.inf and (await self._held()).get("owner") != self._owner:
                raise IngestionError("another ingest has taken over, because this one did not reach the server")
            point = models.PointStruct(id=_LOCK_ID, vector={}, payload={"owner": self._owner, "at": time.time()})
            await self._client.upsert(self._name, [point])
            self._shown = time.monotonic()

    async def release(self) -> None:
        """Release the lock, unless it was broken and another process holds it."""
        if (await self._held()).get("owner") == self._owner:
            await self._client.delete_collection(self._name)

    async def _held(self) -> dict[str, Any]:
        """The holder of the lock and the time of its last renewal; empty if there is none."""
        if not await self._client.collection_exists(self._name):
            return {}
        found = await self._client.retrieve(self._name, [_LOCK_ID])
        return (found[0].payload if found else None) or {}

    async def _create(self) -> bool:
        try:
            return await self._client.create_collection(
                self._name, vectors_config={}, shard_number=1, replication_factor=self._replicas
            )
        except UnexpectedResponse as error:
            if error.status_code == 409:  # it exists
                return False
            raise


async def _current(client: AsyncQdrantClient, alias: str) -> str | None:
    """The collection behind an alias; None if there is no book yet."""
    for description in (await client.get_aliases()).aliases:
        if description.alias_name == alias:
            return description.collection_name
    if await client.collection_exists(alias):
        raise ConfigurationError(
            f"QDRANT_COLLECTION_NAME: the server already has a collection {alias} that Chapterverse did not make; "
            "choose another name or remove it"
        )
    return None


async def _sweep(client: AsyncQdrantClient, alias: str, *, keep: str | None) -> None:
    """Remove earlier generations, and collections that crashed writers left."""
    ours = re.compile(f"{re.escape(alias)}__{_GENERATION}")
    for description in (await client.get_collections()).collections:
        if ours.fullmatch(description.name) and description.name != keep:
            await client.delete_collection(description.name)
