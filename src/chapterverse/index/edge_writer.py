"""The writer of the embedded index: copies the current generation, changes the copy, publishes it.

A published generation is never changed. If an ingest is killed, the last complete generation is still served.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import qdrant_edge as qe

from chapterverse.book import Chunk, Manifest, Page, PageRecord
from chapterverse.errors import IndexDamaged, IngestionError
from chapterverse.index import Vectors, generations, points
from chapterverse.index.bm25 import EDGE_DEFAULTS, EdgeWords
from chapterverse.index.edge_shard import dense_of, engine_errors, of_kind, read_manifest, scroll
from chapterverse.index.generation_writer import GenerationWriter, to_the_end

log = logging.getLogger(__name__)

_BATCH = 128  # points of one update; the engine holds the GIL for about 20 ms
_NEVER = 1_000_000_000  # kB: a segment never gets large enough for the engine to build a graph


@asynccontextmanager
async def open_writer(directory: Path, *, fresh: bool) -> AsyncIterator["EdgeWriter"]:
    """The only writer of a directory, on a copy of the current generation or on nothing."""
    with generations.writer_lock(directory):
        await asyncio.to_thread(generations.sweep_generations, directory)
        writer = EdgeWriter(directory)
        try:
            if not fresh and (generations.current_name(directory) or generations.published(directory)):
                await asyncio.to_thread(writer.start_from_current)
            yield writer
        finally:
            await asyncio.to_thread(writer.close)
            await asyncio.to_thread(generations.sweep_generations, directory)


class EdgeWriter(GenerationWriter):
    """The next generation of an index in a directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(EDGE_DEFAULTS)
        self._directory = directory
        self._path = generations.generation_path(directory, self._name)
        self._shard: qe.EdgeShard | None = None
        self._weights = EdgeWords(EDGE_DEFAULTS)

    def start_from_current(self) -> None:
        """Copy the current generation and read its manifest and records."""
        name = generations.current_name(self._directory)
        if damage := generations.damage_of_current(self._directory):
            name = generations.last_good(self._directory)
            if name is None:
                raise IndexDamaged(generations.refusal(damage))
            log.warning("The index is damaged: %s. This run starts from the generation before it.", damage)
        assert name is not None
        with engine_errors(IngestionError):
            generations.copy_shard(generations.generation_path(self._directory, name), self._path, share=False)
        with engine_errors(IndexDamaged):
            self._shard = qe.EdgeShard.load(str(self._path))
            manifest = read_manifest(self._shard)
            if not manifest.editions:  # an older version made it, without an index of this field
                self._shard.update(qe.UpdateOperation.create_field_index("edition", qe.PayloadSchemaType.Keyword))
            batches = scroll(self._shard, "page", list(points.PAGE_RECORD))
            self._start_from(
                manifest, (points.record_from_payload(stored.payload or {}) for batch in batches for stored in batch)
            )
        self._weights = EdgeWords(manifest.bm25)

    async def put(self, page: Page, record: PageRecord, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Add a page, or replace the one with the same id."""
        self._check(page, record, chunks, vectors)
        async with self._turn:
            if page.page_id in self._present:
                await self._delete([page.page_id])
            await self._open(vectors.shape[1])
            for start in range(0, len(chunks), _BATCH):
                stop = start + _BATCH
                await asyncio.to_thread(self._upsert_chunks, chunks[start:stop], vectors[start:stop])
            await asyncio.to_thread(self._upsert, [qe.Point(page.page_id, {}, points.page_to_payload(page, record))])
            self._present.add(page.page_id)

    async def put_record(self, page: Page, record: PageRecord) -> None:
        """Replace the record of a stored page."""
        async with self._turn:
            await asyncio.to_thread(self._upsert, [qe.Point(page.page_id, {}, points.page_to_payload(page, record))])

    async def remove(self, page_ids: Sequence[str]) -> None:
        """Remove pages and their chunks."""
        async with self._turn:
            present = [page_id for page_id in page_ids if page_id in self._present]
            if present:
                await self._delete(present)

    async def vectors(self) -> AsyncIterator[tuple[Chunk, Vectors]]:
        """All chunks of the new generation with their vectors."""
        if self._shard is None:
            return
        batches = scroll(self._shard, "chunk", True, vectors=True)
        while batch := await asyncio.to_thread(next, batches, None):
            for stored in batch:
                vector = np.asarray(dense_of(stored), dtype=np.float32)
                yield points.chunk_from_payload(stored.payload or {}), vector

    async def publish(self, manifest: Manifest) -> Manifest:
        """Make the new generation the current one."""
        self._check_dimension(manifest.fingerprint.dimension)
        async with self._turn:
            await self._open(manifest.fingerprint.dimension)
            return await to_the_end(asyncio.to_thread(self._finish, manifest))

    def close(self) -> None:
        """Close the shard. If it was not published, its directory is removed later."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            with engine_errors(IngestionError):
                shard.close()

    async def _open(self, dimension: int) -> None:
        """Create the shard, if there is none yet; the dimension of its vectors is known now."""
        if self._shard is None:
            self._shard = await asyncio.to_thread(_create, self._path, dimension)
            self._dimension = dimension

    async def _delete(self, page_ids: list[str]) -> None:
        matching = qe.Filter(must=[qe.FieldCondition("page_id", qe.MatchAny(page_ids))])
        await asyncio.to_thread(self._update, qe.UpdateOperation.delete_points_by_filter(matching))
        self._present.difference_update(page_ids)

    def _upsert_chunks(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        stored: list[qe.Point] = []
        for chunk, vector in zip(chunks, vectors, strict=True):
            named: dict[str, qe.NamedVector] = {points.DENSE: vector.tolist()}
            if (words := self._weights.document(chunk.passage)) is not None:
                named[points.SPARSE] = words
            stored.append(qe.Point(chunk.chunk_id, named, points.chunk_to_payload(chunk)))
        self._upsert(stored)

    def _upsert(self, stored: list[qe.Point]) -> None:
        self._update(qe.UpdateOperation.upsert_points(stored))

    def _update(self, operation: qe.UpdateOperation) -> None:
        assert self._shard is not None
        with engine_errors(IngestionError):
            self._shard.update(operation)

    def _finish(self, manifest: Manifest) -> Manifest:
        """Write the manifest, reclaim the space of deleted points, flush everything to disk, and publish it."""
        shard = self._shard
        assert shard is not None
        with engine_errors(IngestionError):
            pages, chunks = (shard.count(qe.CountRequest(filter=of_kind(kind))) for kind in ("page", "chunk"))
            complete = self._completed(manifest, pages, chunks)
            self._upsert([qe.Point(points.MANIFEST_ID, {}, points.manifest_to_payload(complete))])
            shard.optimize()
            shard.flush()
        self.close()
        with engine_errors(IngestionError):
            generations.publish(self._directory, self._name)
        return complete


def _create(path: Path, dimension: int) -> qe.EdgeShard:
    """Create a shard without a graph: exact search is fast enough for 100,000 chunks."""
    config = qe.EdgeConfig(
        vectors={points.DENSE: qe.EdgeVectorParams(size=dimension, distance=qe.Distance.Cosine)},
        sparse_vectors={points.SPARSE: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        hnsw_config=qe.HnswIndexConfig(m=0, ef_construct=64, full_scan_threshold=10_000),
        optimizers=qe.EdgeOptimizersConfig(
            default_segment_number=1, max_segment_size=_NEVER, indexing_threshold=_NEVER
        ),
        wal_enabled=False,  # an unpublished generation is discarded, a published one does not change
    )
    with engine_errors(IngestionError):
        shard = qe.EdgeShard.create(str(path), config)
        for field in points.KEYWORDS:
            shard.update(qe.UpdateOperation.create_field_index(field, qe.PayloadSchemaType.Keyword))
    return shard
