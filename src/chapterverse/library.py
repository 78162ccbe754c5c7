"""The book for programs: ingest it, search it and ask it from Python, in the same process.

Arguments become the same requests that the HTTP API takes, and the answers are the same. Nothing is limited or counted.
Engines are opened when they are first needed and closed by `close`.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

from chapterverse import answering
from chapterverse.book import Edition
from chapterverse.editions import require_names
from chapterverse.errors import NotFound, ValidationFailed
from chapterverse.fields import read_request
from chapterverse.ingestion import pipeline
from chapterverse.ingestion.ledger import Ledger
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources import open_source
from chapterverse.models import (
    ChatRequest,
    ChatResponse,
    Event,
    FeedbackKept,
    FeedbackRequest,
    Rating,
    Reason,
    RetrievalRequest,
    SearchFilters,
    SearchResult,
)
from chapterverse.retrieval import find_passages
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services

T = TypeVar("T")


class Ingesting(TypedDict, total=False):
    """How sources are read, and into which edition."""

    options: SourceOptions
    fresh: bool
    book: str
    version: str
    title: str


class Search(TypedDict, total=False):
    """Which passages are wanted."""

    top_k: int
    score_threshold: float
    filters: SearchFilters | Mapping[str, str | list[str]]


class AskOptions(Search, total=False):
    """How a question is asked: in a session, or about a text of the reader's alone."""

    session_id: str
    selected_text: str


class Book:
    """A book that can be asked. `async with Book.open(home) as book` closes it; else call `close`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._services: Services | None = None
        self._opening = asyncio.Lock()
        self._held = AsyncExitStack()

    @classmethod
    def open(cls, home: str | Path | None = None, **settings: Any) -> Self:
        """The book in a folder, which need not exist yet; without one, that of `CHAPTERVERSE_HOME`.

        Settings are those of the environment and `.env`, unless they are given here by their names in lower case.
        Raises ConfigurationError when one of them cannot work."""
        place = {} if home is None else {"chapterverse_home": Path(home)}
        return cls(Settings.load(**place, **settings))

    async def ingest(self, *sources: str | Path, **how: Unpack[Ingesting]) -> Ledger:
        """Bring the book up to date with folders, files and websites; `fresh` forgets what was there.

        `book` and `version` name the edition that they belong to, where a home holds several; the others stay as they
        are. The ledger says what became of every page."""
        into = Edition(how.get("book", ""), how.get("version", ""), how.get("title", ""))
        require_names(into.book, into.version)
        options = how.get("options")
        opened = [open_source(str(source), options or SourceOptions()) for source in sources]
        if not opened:
            raise ValidationFailed("Name at least one source: a folder, a file or a website.")
        services = await self._open()
        workshop = pipeline.Workshop(services.index, services.embedder, self._settings.chapterverse_home)
        return await pipeline.ingest(opened, workshop, into=into, fresh=how.get("fresh", False))

    async def search(self, query: str, **wanted: Unpack[Search]) -> SearchResult:
        """Find passages. No language model is asked."""
        request = read_request(RetrievalRequest, query=query, **wanted)
        services = await self._open()
        return await find_passages(request, services.embedder, services.index)

    async def ask(self, question: str, **asking: Unpack[AskOptions]) -> ChatResponse:
        """A verified answer with its sources, or a refusal. Raises the error that the answer ends in."""
        async with aclosing(self.stream(question, **asking)) as events:
            return await answering.fold(events)

    async def stream(self, question: str, **asking: Unpack[AskOptions]) -> AsyncGenerator[Event, None]:
        """The answer as events, each sentence when it has been verified; the last one is `done` or `error`.

        Raises what fails before the first of them. Closing the generator cancels the model's run."""
        mode = "selected_text" if asking.get("selected_text") is not None else "general"
        request = read_request(ChatRequest, query=question, mode=mode, **asking)
        services = await self._open()
        prepared = await answering.prepare(request, services)
        async with aclosing(answering.stream(prepared, services)) as events:
            async for event in events:
                yield event

    async def rate(
        self, turn_id: str | None, rating: Rating, *, reason: Reason | None = None, comment: str = ""
    ) -> FeedbackKept:
        """Keep what a reader thinks of an answer, by its `turn_id`. Rating again replaces what was kept.

        Raises NotFound when no such turn is kept."""
        given = read_request(FeedbackRequest, turn_id=turn_id, rating=rating, reason=reason, comment=comment)
        kept = await (await self._open()).conversations.rate(given)
        if kept is None:
            raise NotFound(f"There is no turn {turn_id}. Rate an answer that was kept, by its turn_id.")
        return kept

    async def close(self) -> None:
        """Close the engines. The book opens them again when it is used again."""
        async with self._opening:
            self._services = None
            await self._held.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> Services:
        async with self._opening:
            if self._services is None:
                self._services = await self._held.enter_async_context(open_services(self._settings))
            return self._services


class SyncBook:
    """The same book without `await`, for programs that have no event loop, and for notebooks, which have one that is
    taken. `with SyncBook.open(home) as book` closes it; else call `close`.

    The engines live on one thread of their own. Ctrl-C, and closing a stream, cancel what is under way."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._book = Book(settings)
        self._starting = threading.Lock()
        self._thread: _LoopThread | None = None

    @classmethod
    def open(cls, home: str | Path | None = None, **settings: Any) -> Self:
        """As `Book.open`."""
        place = {} if home is None else {"chapterverse_home": Path(home)}
        return cls(Settings.load(**place, **settings))

    def ingest(self, *sources: str | Path, **how: Unpack[Ingesting]) -> Ledger:
        """As `Book.ingest`."""
        return self._run(self._book.ingest(*sources, **how))

    def search(self, query: str, **wanted: Unpack[Search]) -> SearchResult:
        """As `Book.search`."""
        return self._run(self._book.search(query, **wanted))

    def ask(self, question: str, **asking: Unpack[AskOptions]) -> ChatResponse:
        """As `Book.ask`."""
        return self._run(self._book.ask(question, **asking))

    def stream(self, question: str, **asking: Unpack[AskOptions]) -> Generator[Event, None, None]:
        """As `Book.stream`. The answer is written on while the caller looks at an event."""
        events: SimpleQueue[Event | None] = SimpleQueue()

        async def pump() -> None:  # in one task, because time limits belong to the task that they began in
            try:
                async with aclosing(self._book.stream(question, **asking)) as told:
                    async for event in told:
                        events.put(event)
            finally:
                events.put(None)

        pumping = self._submit(pump())
        try:
            while (event := events.get()) is not None:
                yield event
            pumping.result()
        finally:
            pumping.cancel()

    def rate(
        self, turn_id: str | None, rating: Rating, *, reason: Reason | None = None, comment: str = ""
    ) -> FeedbackKept:
        """As `Book.rate`."""
        return self._run(self._book.rate(turn_id, rating, reason=reason, comment=comment))

    def close(self) -> None:
        """Close the engines and end the thread. The book starts them again when it is used again."""
        with self._starting:
            (thread, self._thread), book = (self._thread, None), self._book
            self._book = Book(self._settings)  # for the next loop: a lock knows the one that it was used in
        if thread is not None:
            thread.submit(book.close()).result()
            thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._starting:
            self._thread = self._thread or _LoopThread()
            return self._thread.submit(work)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._submit(work)
        try:
            return future.result()
        finally:
            future.cancel()  # after Ctrl-C it is still under way


class _LoopThread:
    """An event loop on a thread of its own. The thread ends with the program, at the latest."""

    def __init__(self) -> None:
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=asyncio.run, args=[self._live()], name="chapterverse", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop.result())

    def end(self) -> None:
        self._loop.result().call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _live(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        await self._over.wait()
