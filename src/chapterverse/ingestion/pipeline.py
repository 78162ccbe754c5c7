"""One ingest run: fetch, read, chunk, embed, and publish the next generation of the book.

Decides which pages have changed and records the outcome of each. After an error, Ctrl-C or kill -9 the book is
unchanged.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from chapterverse.book import RECIPE, Chunk, Edition, Manifest, Page, PageRecord
from chapterverse.calibration import calibrate
from chapterverse.embeddings import Embedder
from chapterverse.embeddings.wordpiece import WINDOW, count_tokens
from chapterverse.errors import (
    EmbeddingMismatchError,
    IndexDamaged,
    IndexMissing,
    IndexTimeout,
    IngestionError,
)
from chapterverse.index import Index, IndexWriter
from chapterverse.ingestion.chunking import cut
from chapterverse.ingestion.document import Document, Failed, Fetched, NothingToRead, Skipped, Unchanged, Unreadable
from chapterverse.ingestion.images import keep_images
from chapterverse.ingestion.ledger import ORDER_CHARS, Ledger, Order, Outcome, Row
from chapterverse.ingestion.prompt_injection import orders_in
from chapterverse.ingestion.sources import Source
from chapterverse.ingestion.vector_journal import VectorJournal
from chapterverse.ingestion.worker_limits import ReadLimits
from chapterverse.ingestion.workers import DocumentReader

UNNAMED: Final = Edition()
LOOKS: Final = 12  # tries for an index that is still loading: about a minute
BATCH: Final = 64  # passages embedded together: a few seconds of work, so that a killed process loses little


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run, for progress bars."""

    pages: int  # finished so far
    expected: int | None  # total number of pages, if known
    passages: int  # embedded so far
    doing: str


Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """The engines and folders of a run."""

    index: Index
    embedder: Embedder
    home: Path  # folder of ledgers and unpublished vectors
    watch: Watch = lambda _: None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A page that was read and chunked and waits to be embedded."""

    page: Page
    record: PageRecord
    chunks: list[Chunk]
    outcome: Outcome


async def ingest(
    sources: Sequence[Source], workshop: Workshop, *, into: Edition = UNNAMED, fresh: bool = False
) -> Ledger:
    """Update an edition from its sources; with `fresh`, ingest it from scratch. Other editions are not changed."""
    sources = list({(source.key, source.place): source for source in sources}.values())
    ledger = Ledger(tuple(source.key for source in sources), into.key, places=tuple(source.place for source in sources))
    before, shelf = await pages_before(workshop.index, into) if fresh else ([], ())
    alone = fresh and all(edition.key == into.key or not edition.pages for edition in shelf)
    async with _run(workshop, ledger, fresh=alone) as run:
        require_same_model(run.writer.manifest, workshop.embedder)
        named = next((source.title for source in sources if source.title), "")
        run.shelf.update((edition.key, edition) for edition in shelf)
        run.begin(into, named, fresh=fresh)
        if run.writer.manifest is None:
            run.reader.prepare()  # every document will be read
        for source in sources:
            await run.take(source)
        await run.remove_vanished(sources)
        if ledger.changed_anything():
            await run.forget_rest(before)
            await run.publish()
        elif run.retitled:
            await run.publish()
    return ledger


async def forget(keys: Collection[str], workshop: Workshop, editions: Collection[str] | None = None) -> Ledger:
    """Remove all pages of these sources from these editions; None: from all editions."""
    await _require_book(workshop.index)
    ledger = Ledger(tuple(keys))
    async with _run(workshop, ledger, fresh=False) as run:
        records = (record for record in run.held.values() if editions is None or record.edition in editions)
        await run.remove([record for record in records if record.source in keys], "forgotten")
        if ledger.changed_anything():
            await run.publish()
    return ledger


async def reembed(workshop: Workshop) -> Ledger:
    """Rebuild the index from its stored pages with the configured embedding model."""
    ledger = Ledger(("the stored book",))
    await _require_book(workshop.index)
    async with workshop.index.writer() as current:
        records, manifest = dict(current.records), current.manifest
    async with _run(workshop, ledger, fresh=True) as run:
        run.expected = len(records)
        run.shelf = {edition.key: edition for edition in manifest.shelf} if manifest else {}
        for record in records.values():
            page = await workshop.index.page(record.page_id)
            assert page is not None, "only this run writes"
            await run.queue(page, record, await asyncio.to_thread(run.cut, page), "changed")
        await run.publish()
    return ledger


async def recalibrate(
    workshop: Workshop, false_answers: float | None = None, editions: Collection[str] | None = None
) -> Manifest:
    """Fit the map from cosine to relevance again, for these editions (None: all). `false_answers`: the accepted share
    of unanswerable questions that are answered without a key; None keeps the current value."""
    await _require_book(workshop.index)
    ledger = Ledger(("the stored book",))
    async with _run(workshop, ledger, fresh=False) as run:
        require_same_model(run.writer.manifest, workshop.embedder)
        run.touched.update(run.shelf if editions is None else editions)
        return await run.publish(false_answers)


def require_same_model(manifest: Manifest | None, embedder: Embedder) -> None:
    """Refuse to mix vectors of two models in one index."""
    if manifest is not None and manifest.fingerprint != embedder.fingerprint:
        raise EmbeddingMismatchError(
            f"The book was embedded with {manifest.fingerprint.model}, the settings say {embedder.fingerprint.model}. "
            "Re-embed it first with: chapterverse ingest --reembed"
        )


async def pages_before(index: Index, edition: Edition) -> tuple[list[PageRecord], Sequence[Edition]]:
    """The pages that a fresh start of an edition will remove, and all editions of the book. Nothing if there is no book
    or it is damaged. A writer reads them, so that a fresh start works although the engine for searches does not."""
    try:
        async with index.writer() as current:
            records = [record for record in current.records.values() if record.edition == edition.key]
            return records, current.manifest.shelf if current.manifest else ()
    except (IndexDamaged, IndexMissing):
        return [], ()


async def _require_book(index: Index) -> None:
    """Raise if there is no book. Tries again while the index is still loading, for longer than a search does."""
    for _ in range(LOOKS - 1):
        with suppress(IndexTimeout):
            await index.manifest()
            return
    await index.manifest()


@asynccontextmanager
async def _run(workshop: Workshop, ledger: Ledger, *, fresh: bool) -> AsyncIterator["_Run"]:
    started = time.perf_counter()
    async with workshop.index.writer(fresh=fresh) as writer:
        with VectorJournal(workshop.home / "unpublished-vectors.sqlite", workshop.embedder) as journal:
            run = _Run(workshop, writer, journal, ledger, DocumentReader(ReadLimits()))
            run.held = dict(writer.records)
            run.shelf = {edition.key: edition for edition in writer.manifest.shelf} if writer.manifest else {}
            try:
                yield run
            finally:
                await run.stop()
            if ledger.generation:
                journal.forget()
    ledger.seconds = time.perf_counter() - started
    try:
        ledger.save(workshop.home / "ledgers")
    except OSError as failure:
        raise IngestionError(f"the book is up to date, but its ledger cannot be written: {failure}") from failure


@dataclass(slots=True)
class _Run:
    """The state of one run."""

    workshop: Workshop
    writer: IndexWriter
    journal: VectorJournal
    ledger: Ledger
    reader: DocumentReader
    expected: int | None = None
    held: dict[str, PageRecord] = field(default_factory=dict)  # all pages of the new generation, by id
    shelf: dict[str, Edition] = field(default_factory=dict)  # all editions before the run, by key
    touched: set[str] = field(default_factory=set)  # keys of the editions that have changed
    edition: str = ""  # key of the edition that is ingested
    retitled: bool = False  # whether its stored title is another one
    _known: dict[str, PageRecord] = field(default_factory=dict)  # earlier pages of the edition; empty if fresh
    _reread: list[PageRecord] = field(default_factory=list)  # of pages with a new hash that are the same
    _waiting: list[_Ready] = field(default_factory=list)
    _embedding: asyncio.Task[None] | None = None  # of the previous batch; the next one is read meanwhile
    _seen: set[str] = field(default_factory=set)  # page ids of this run
    _gone: dict[str, str] = field(default_factory=dict)  # document → why its pages are not wanted
    _find_image: Callable[[str], Path | None] = lambda _: None  # of the current source

    def begin(self, into: Edition, named: str, *, fresh: bool) -> None:
        """Set the edition to ingest. A title given by the user or an earlier run takes precedence over `named`."""
        old = self.shelf.get(into.key, into)
        new = self.shelf[into.key] = replace(old, title=into.title or old.title or named)
        self.edition = into.key
        stored = self.writer.manifest.shelf if self.writer.manifest else ()
        self.retitled = any(edition.key == new.key and edition.title != new.title for edition in stored)
        if not fresh:
            self._known = {at: record for at, record in self.held.items() if record.edition == into.key}

    async def take(self, source: Source) -> None:
        """Ingest the pages of one source."""
        known: dict[str, list[PageRecord]] = {}  # earlier pages by the address of their document
        for record in self._known.values():
            if record.source == source.key:
                known.setdefault(record.document or record.url, []).append(record)
        remembered = {url: self._remembered(records) for url, records in known.items()}
        async with aclosing(source.documents(remembered)) as documents:
            async for fetched in documents:
                self._find_image = source.image
                await self._decide(fetched, known.get(fetched.url, []))
                self.expected = source.expected
                self._report(fetched.url)
        await self._flush()

    async def remove_vanished(self, sources: Sequence[Source]) -> None:
        """Remove the earlier pages of the sources that none of them has any more. Several folders can have one key. If
        one of these was not read completely, their pages are kept."""
        keys = {source.key for source in sources}
        partly = {source.key for source in sources if not source.complete}
        unseen = [
            record for record in self._known.values() if record.source in keys and record.page_id not in self._seen
        ]
        await self.remove([record for record in unseen if record.source not in partly])
        for record in unseen:
            why = self._gone.get(record.document or record.url)
            if why and record.source in partly:
                why = f"{why} (the earlier page is kept: its source was not read completely)"
                self.ledger.write(Row(record.url, "skipped", why))

    async def forget_rest(self, before: Iterable[PageRecord]) -> None:
        """Remove the earlier pages that a fresh start has not found again, and record that in the ledger."""
        rest = [page for page in before if page.page_id not in self._seen]
        for page in rest:
            self.held.pop(page.page_id, None)
            self.ledger.write(Row(page.url, "removed", "forgotten by a fresh start"))
        await self.writer.remove([page.page_id for page in rest])

    async def queue(self, page: Page, record: PageRecord, chunks: list[Chunk], outcome: Outcome) -> None:
        """Queue a page to be embedded and stored. Starts a batch if enough passages are waiting."""
        self.held[page.page_id] = record
        self.touched.add(page.edition)
        self._waiting.append(_Ready(page, record, chunks, outcome))
        if sum(len(ready.chunks) for ready in self._waiting) >= BATCH:
            await self._embed_waiting()

    def cut(self, page: Page) -> list[Chunk]:
        """The chunks of a page, each within the embedding model's window."""
        return cut(page, count_tokens, self._window)

    def _recipe_of(self, record: PageRecord) -> str:
        """The version of readers and chunking that a page was read with. Records of older versions do not say it."""
        return record.recipe or self.shelf[record.edition].recipe

    def _is_current(self, record: PageRecord) -> bool:
        return self._recipe_of(record) == RECIPE

    def _remembered(self, records: Sequence[PageRecord]) -> PageRecord:
        """What a source is told about a document. If its pages must be read again, it must not be asked for on the
        condition that it has changed."""
        current = all(map(self._is_current, records))
        return records[0] if current else replace(records[0], etag="", last_modified="")

    @property
    def _window(self) -> int:
        return min(self.workshop.embedder.window, WINDOW)

    async def publish(self, false_answers: float | None = None) -> Manifest:
        """Publish the new generation. The rate of false answers is kept unless one is given."""
        await self._flush()
        await self._put_reread()
        self._report("calibrating")
        keys = sorted({record.edition for record in self.held.values()})
        editions = [await self._described(key, false_answers) for key in keys]
        self._report("publishing")
        published = await self.writer.publish(
            Manifest(
                fingerprint=self.workshop.embedder.fingerprint,
                generation="",
                created_at=datetime.now(UTC).isoformat(),
                pages=0,
                chunks=0,
                recipe=_oldest(edition.recipe for edition in editions),
                editions=tuple(editions),
            )
        )
        self.ledger.generation = published.generation
        return published

    async def _put_reread(self) -> None:
        """Store the new hashes of pages that were read again and are the same, so that they are not read every time."""
        for record in self._reread:
            page = await self.workshop.index.page(record.page_id)
            assert page is not None, "only this run writes"
            await self.writer.put_record(page, record)
            self.held[record.page_id] = record

    async def _described(self, key: str, false_answers: float | None) -> Edition:
        """The manifest entry of an edition. An edition that has changed is calibrated again."""
        records = [record for record in self.held.values() if record.edition == key]
        edition = replace(self.shelf[key], pages=len(records), recipe=_oldest(map(self._recipe_of, records)))
        if key not in self.touched:
            return edition
        vectors = ((chunk, vector) async for chunk, vector in self.writer.vectors() if chunk.edition == key)
        calibration: dict[str, float] = (await calibrate(self.workshop.embedder.embed_query, vectors)).to_dict()
        rate = (edition.calibration or {}).get("false_answers") if false_answers is None else false_answers
        stored = calibration if rate is None else calibration | {"false_answers": rate}
        return replace(edition, calibration=stored)

    async def stop(self) -> None:
        """Stop the worker and, after a failure, the running batch."""
        await self.reader.close()
        if self._embedding is not None and not self._embedding.done():
            self._embedding.cancel()
            await asyncio.wait([self._embedding])

    async def _decide(self, fetched: Fetched, known: list[PageRecord]) -> None:
        match fetched:
            case Unchanged():
                self._keep(known)
            case Skipped(url, why):
                self._gone[url] = why
                if not known:
                    self.ledger.write(Row(url, "skipped", why))
            case Failed(url, why):
                self._fail(url, why, known)
            case Document():
                await self._read(replace(fetched, edition=self.edition), known)

    async def _read(self, document: Document, known: list[PageRecord]) -> None:
        digest = _digest(document)
        if known and all(record.content_hash == digest for record in known):
            await self._keep_images(document, known)
            self._keep(known)
            return
        try:
            pages = await self.reader.read(document, self._window)
        except Unreadable as failure:
            self._fail(document.url, str(failure), known)
        except NothingToRead as reason:
            await self._decide(Skipped(document.url, str(reason)), known)
        else:
            for page, chunks in pages:
                await self._put(document, digest, page, chunks)

    async def _put(self, document: Document, digest: str, page: Page, chunks: list[Chunk]) -> None:
        before = self._known.get(page.page_id)
        if page.page_id in self._seen:
            self.ledger.write(Row(page.url, "failed", "another page of this run has the same address"))
            return
        if before is not None and before.source != document.source:
            why = f"its address belongs to a page of {before.source}; give this source another --base-url"
            self.ledger.write(Row(page.url, "failed", why))
            return
        record = PageRecord(
            page_id=page.page_id,
            url=page.url,
            source=document.source,
            content_hash=digest,
            chunks=len(chunks),
            etag=document.etag,
            last_modified=document.last_modified,
            document=document.url if document.url != page.url else "",
            edition=page.edition,
            recipe=RECIPE,
        )
        if before is not None and self._is_current(before) and await self.workshop.index.page(page.page_id) == page:
            await asyncio.to_thread(keep_images, self.workshop.home, page, self._find_image)
            self._keep([before])  # the page is the same: a file has changed that it might have included
            self._reread.append(record)
            return
        self._seen.add(page.page_id)
        await asyncio.to_thread(keep_images, self.workshop.home, page, self._find_image)
        await self.queue(page, record, chunks, "changed" if before else "added")

    async def _keep_images(self, document: Document, records: Iterable[PageRecord]) -> None:
        """Copy the changed images of unchanged pages. Only pages of a folder have images."""
        for record in records if document.tree else ():
            if page := await self.workshop.index.page(record.page_id):
                await asyncio.to_thread(keep_images, self.workshop.home, page, self._find_image)

    def _keep(self, records: Iterable[PageRecord]) -> None:
        for record in records:
            self._seen.add(record.page_id)
            self.ledger.write(Row(record.url, "unchanged", chunks=record.chunks))

    def _fail(self, url: str, why: str, known: list[PageRecord]) -> None:
        self._seen.update(record.page_id for record in known)  # the earlier pages are kept
        self.ledger.write(Row(url, "failed", f"{why} (the earlier page is kept)" if known else why))

    async def remove(self, records: list[PageRecord], why: str = "no longer there") -> None:
        """Remove pages and record the reasons in the ledger."""
        await self.writer.remove([record.page_id for record in records])
        for record in records:
            del self.held[record.page_id]
            self.touched.add(record.edition)
            self.ledger.write(Row(record.url, "removed", self._gone.get(record.document or record.url, why)))

    async def _flush(self) -> None:
        await self._embed_waiting()
        await self._embed_waiting()  # the first call leaves its own batch running

    async def _embed_waiting(self) -> None:
        if self._embedding is not None:
            await self._embedding
        batch, self._waiting = self._waiting, []
        self._embedding = asyncio.create_task(self._embed(batch)) if batch else None

    async def _embed(self, batch: list[_Ready]) -> None:
        started = time.perf_counter()
        passages = [chunk.passage for ready in batch for chunk in ready.chunks]
        vectors, computed = await self.journal.embed(passages)
        self.ledger.passages_embedded += computed
        self.ledger.embedding_seconds += time.perf_counter() - started
        row = 0
        for ready in batch:
            await self.writer.put(ready.page, ready.record, ready.chunks, vectors[row : row + len(ready.chunks)])
            row += len(ready.chunks)
            flags = tuple(sorted({flag for chunk in ready.chunks for flag in chunk.flags}))
            orders = tuple(order for chunk in ready.chunks if chunk.flags for order in _orders(chunk))
            refused = ready.page.refused
            why = f"does not include what is outside of the folder: {', '.join(refused)}" if refused else ""
            self.ledger.write(Row(ready.page.url, ready.outcome, why, len(ready.chunks), flags, orders))
        self._report(batch[-1].page.url)

    def _report(self, doing: str) -> None:
        self.workshop.watch(Progress(len(self.ledger.rows), self.expected, self.ledger.passages_embedded, doing))


def _oldest(recipes: Iterable[str]) -> str:
    return min(recipes, key=lambda recipe: int(recipe or 0), default=RECIPE)


def _orders(chunk: Chunk) -> list[Order]:
    """The instructions of a flagged chunk, for the ledger; its breadcrumb if they are not in the text of the chunk."""
    texts = [chunk.text[start:end] for start, end in orders_in(chunk.text)] or [chunk.breadcrumb]
    return [Order(chunk.section_heading, " ".join(text.split())[:ORDER_CHARS]) for text in texts]


def _digest(document: Document) -> str:
    """A hash of a document's content and of everything that determines how it is read."""
    read_as = (RECIPE, document.url, document.path, document.format, document.anchors, document.module)
    how = "\x1f".join((*read_as, *map(str, document.folders), document.surroundings))
    return hashlib.sha256(how.encode("utf-8", "surrogatepass") + b"\x1e" + document.data).hexdigest()
