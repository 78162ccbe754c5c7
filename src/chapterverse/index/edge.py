"""The embedded index: Qdrant Edge in a child process, one per server process and generation.

The engine runs in the child only: its calls hold the GIL and would stop the event loop.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chapterverse.book import Hit, Manifest, Page
from chapterverse.errors import ChapterverseError, IndexDamaged, IndexTimeout
from chapterverse.index import HybridQuery, IndexWriter, Vectors, frames
from chapterverse.index.edge_child import EdgeChild
from chapterverse.index.generations import current_name, damage_of_current, refusal
from chapterverse.index.points import chunk_from_payload, page_from_payload

_LOG = logging.getLogger(__name__)
_LOOK_EVERY = 0.5  # seconds between looks at the pointer
_LOADING = 5.0  # seconds that a call waits for a process that loads the book
# Seconds for one answer, which takes milliseconds. It is less than the time limit of a health probe and half of that of
# a search, so that a hung process is replaced in time for the same search.
_ANSWER = 2.0


class EdgeIndex:
    """A book in a directory. Switches to a newly published generation while it serves, without an interruption."""

    def __init__(self, directory: Path, *, timeout: float = _ANSWER, loading: float = _LOADING) -> None:
        self._directory = directory
        self._timeout = timeout  # seconds for one answer
        self._loading = loading  # seconds to wait for a process that starts
        self._child: EdgeChild | None = None
        self._start: asyncio.Task[EdgeChild] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._looked = 0.0

    @property
    def engine(self) -> str:
        """The engine and its location, for people."""
        return f"Qdrant Edge, embedded, in {self._directory}"

    async def search(self, query: HybridQuery) -> list[Hit]:
        """The best chunks, best first."""
        child = await self._serving()
        async with child:
            rows = await child.call("search", _request(query), timeout=self._timeout)
        with self._reopening_if_damaged(child):
            return [_hit(row) for row in rows]

    async def recall(self, chunk_ids: Sequence[str], vector: Vectors) -> list[Hit]:
        """Chunks by their ids, the most similar first."""
        child = await self._serving()
        async with child:
            rows = await child.call("recall", list(chunk_ids), vector.tolist(), timeout=self._timeout)
        with self._reopening_if_damaged(child):
            return [_hit(row) for row in rows]

    async def missing(self, words: Sequence[str], editions: Sequence[str] = ()) -> list[str]:
        """The words that occur in no chunk of these editions."""
        child = await self._serving()
        async with child:
            found: list[str] = await child.call("missing", list(words), list(editions), timeout=self._timeout)
        return found

    async def manifest(self) -> Manifest:
        """The manifest of the served generation."""
        return (await self._serving()).manifest

    async def modules(self, editions: Sequence[str] = ()) -> list[str]:
        """The modules of these editions, or of all, sorted."""
        child = await self._serving()
        if child.modules is None:
            child.modules = {(page.edition, page.module) for page in await self.pages() if page.module}
        return sorted({module for edition, module in child.modules if not editions or edition in editions})

    async def pages(self) -> list[Page]:
        """All pages without their text and blocks, in reading order."""
        pages: list[Page] = []
        offset: str | None = None
        child = await self._serving()
        async with child:
            while True:
                rows, offset = await child.call("pages", offset, timeout=self._timeout)
                with self._reopening_if_damaged(child):
                    pages.extend(page_from_payload(row) for row in rows)
                if offset is None:
                    return sorted(pages, key=lambda page: page.place)

    async def page(self, page_id: str) -> Page | None:
        """One page with its text."""
        child = await self._serving()
        async with child:
            row = await child.call("page", page_id, timeout=self._timeout)
        with self._reopening_if_damaged(child):
            return None if row is None else page_from_payload(row)

    async def probe(self) -> str | None:
        """Raise if the engine cannot be used. Return a warning if it can be used, but something is wrong."""
        child = await self._serving()
        async with child:
            await child.call("ping", timeout=self._timeout)
        if not (self._directory / "CURRENT").exists():
            return f"The folder of the index is missing: {self._directory}. The loaded book is still served."
        if not os.access(self._directory, os.W_OK):
            return (
                f"The folder of the index is read-only: {self._directory}. The book is served, but cannot be changed."
            )
        if child.damage:
            return f"{refusal(child.damage)} The generation before it is served meanwhile."
        return None

    async def verify(self) -> str | None:
        """What is damaged on disk and how to repair it; None if nothing is."""
        damage = await asyncio.to_thread(damage_of_current, self._directory)
        return refusal(damage) if damage else None

    @asynccontextmanager
    async def writer(self, *, fresh: bool = False) -> AsyncIterator[IndexWriter]:
        """Build the next generation in a directory next to the current one. If it was published, this index serves it
        on return; other processes switch to it within a second."""
        from chapterverse.index.edge_writer import open_writer

        async with open_writer(self._directory, fresh=fresh) as writer:
            yield writer
        if self._child is not None and self._child.current != current_name(self._directory):
            await self._start_child()

    async def close(self) -> None:
        """End the child processes."""
        if self._start is not None:
            self._start.cancel()
            await asyncio.wait([self._start])
            self._start = None
        self._retire(self._child)
        self._child = None
        await asyncio.gather(*self._leaving)

    async def _serving(self) -> EdgeChild:
        """The process that serves the current generation, or the previous one while the new one loads."""
        child = self._child
        if child is not None and child.alive:
            self._check_pointer(child)
            return child
        try:
            async with asyncio.timeout(self._loading):
                return await asyncio.shield(self._start_child())
        except TimeoutError as error:
            raise IndexTimeout("The embedded vector engine is still loading the book") from error

    def _check_pointer(self, child: EdgeChild) -> None:
        """Check from time to time whether another generation was published; if so, load it in the background."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY:
            return
        self._looked = now
        try:
            name = current_name(self._directory)
        except OSError as error:
            _LOG.warning("the pointer to the current generation cannot be read: %s", error)
            return
        if name not in (None, child.current):
            self._start_child().add_done_callback(_warn)

    def _start_child(self) -> "asyncio.Task[EdgeChild]":
        """Start a process on the current generation. Concurrent callers share the same start."""
        if self._start is None:
            self._start = asyncio.create_task(self._replace())
        return self._start

    async def _replace(self) -> EdgeChild:
        try:
            child = await EdgeChild.start(self._directory)
        finally:
            self._start = None
        self._retire(self._child)
        self._child = child
        return child

    @contextmanager
    def _reopening_if_damaged(self, child: EdgeChild) -> Iterator[None]:
        """Open the book again, which verifies it, if something in it is damaged."""
        try:
            yield
        except IndexDamaged:
            if self._child is child:
                self._child = None
                self._retire(child)
            raise

    def _retire(self, child: EdgeChild | None) -> None:
        """End a process after it has answered its pending requests."""
        if child is not None:
            task = asyncio.create_task(child.close())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


def _warn(start: "asyncio.Task[EdgeChild]") -> None:
    """Log why a new generation is not served yet. The old one still is, and the next check tries again."""
    if not start.cancelled() and (error := start.exception()) is not None:
        reason = error.message if isinstance(error, ChapterverseError) else repr(error)
        _LOG.warning("the new generation of the book could not be loaded: %s", reason)


def _request(query: HybridQuery) -> dict[str, Any]:
    return {
        "text": query.text,
        "vector": query.vector.tolist(),
        "limit": query.limit,
        "filters": asdict(query.filters),
        "min_similarity": query.min_similarity,
        "with_vectors": query.with_vectors,
        "dense_weight": query.dense_weight,
    }


def _hit(row: dict[str, Any]) -> Hit:
    vector = row["vector"]
    return Hit(
        chunk=chunk_from_payload(row["payload"]),
        similarity=row["similarity"],
        score=row["score"],
        vector=None if vector is None else frames.read_vector(vector),
        by_words=row["by_words"],
    )
