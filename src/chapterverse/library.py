"""The interface for Python programs: ingest, search and ask a book in the same process.

Requests and answers are those of the HTTP API. There are no limits. Engines are opened on first use and closed by
`close`.
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
    """Options of `SyncBook.ingest`."""

    options: SourceOptions
    fresh: bool
    book: str
    version: str
    title: str


class Search(TypedDict, total=False):
    """Options of `search`."""

    top_k: int
    score_threshold: float
    filters: SearchFilters | Mapping[str, str | list[str]]


class AskOptions(Search, total=False):
    """Options of `ask`: a session, or a selected text."""

    session_id: str
    selected_text: str


class Book:
    """A book. Use `async with Book.open(home) as book`, or call `close` at the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._services: Services | None = None
        self._opening = asyncio.Lock()
        self._held = AsyncExitStack()

    @classmethod
    def open(cls, home: str | Path | None = None, **settings: Any) -> Self:
        """The book in a folder, which may not exist yet; default: `CHAPTERVERSE_HOME`.

        Settings are read from the environment and `.env`, unless they are given here by their names in lower case.
        Raises ConfigurationError if a setting is invalid."""
        return cls(_settings(home, settings))

    async def ingest(
        self,
        *sources: str | Path,
        options: SourceOptions | None = None,
        fresh: bool = False,
        book: str = "",
        version: str = "",
        title: str = "",
    ) -> Ledger:
        """Update the book from folders, files and websites; `fresh` starts from nothing.

        `book` and `version` name the edition, if a home has several; other editions are not changed. The ledger has the
        outcome of every page."""
        into = Edition(book, version, title)
        require_names(into.book, into.version)
        opened = [open_source(str(source), options or SourceOptions()) for source in sources]
        if not opened:
            raise ValidationFailed("Name at least one source: a folder, a file or a website.")
        services = await self._open()
        workshop = pipeline.Workshop(services.index, services.embedder, self._settings.chapterverse_home)
        return await pipeline.ingest(opened, workshop, into=into, fresh=fresh)

    async def search(self, query: str, **wanted: Unpack[Search]) -> SearchResult:
        """Find passages. No language model is used."""
        request = read_request(RetrievalRequest, query=query, **wanted)
        services = await self._open()
        return await find_passages(request, services.embedder, services.index)

    async def ask(self, question: str, **asking: Unpack[AskOptions]) -> ChatResponse:
        """A verified answer with its sources, or a refusal. Raises an error if answering fails."""
        async with aclosing(self.stream(question, **asking)) as events:
            return await answering.fold(events)

    async def stream(self, question: str, **asking: Unpack[AskOptions]) -> AsyncGenerator[Event, None]:
        """The answer as events, each sentence as soon as it is verified; the last event is `done` or `error`.

        Raises errors that occur before the first event. Closing the generator cancels the model's run."""
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
        """Store feedback on an answer, by its `turn_id`. It replaces earlier feedback.

        Raises NotFound if there is no such turn."""
        given = read_request(FeedbackRequest, turn_id=turn_id, rating=rating, reason=reason, comment=comment)
        kept = await (await self._open()).conversations.rate(given)
        if kept is None:
            raise NotFound(f"There is no turn {turn_id}. Use the turn_id of a stored answer.")
        return kept

    async def close(self) -> None:
        """Close the engines. Using the book again opens them again."""
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
    """A book without `await`, for programs without an event loop and for notebooks. Use `with SyncBook.open(home) as
    book`, or call `close` at the end.

    The engines run on a separate thread. Ctrl-C, and closing a stream, cancel the work."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._book = Book(settings)
        self._starting = threading.Lock()
        self._thread: _LoopThread | None = None

    @classmethod
    def open(cls, home: str | Path | None = None, **settings: Any) -> Self:
        """As `Book.open`."""
        return cls(_settings(home, settings))

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
        """As `Book.stream`. Answering continues while the caller handles an event."""
        events: SimpleQueue[Event | None] = SimpleQueue()

        async def pump() -> None:  # in one task, because a timeout must be entered and left in the same task
            try:
                async with aclosing(self._book.stream(question, **asking)) as stream:
                    async for event in stream:
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
        """Close the engines and end the thread. Using the book again starts them again."""
        with self._starting:
            (thread, self._thread), book = (self._thread, None), self._book
            self._book = Book(self._settings)  # asyncio locks cannot be used in another event loop
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
            future.cancel()  # after Ctrl-C it is still running


def _settings(home: str | Path | None, settings: dict[str, Any]) -> Settings:
    place = {} if home is None else {"chapterverse_home": Path(home)}
    return Settings.load(**place, **settings)


class _LoopThread:
    """An event loop on a daemon thread."""

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
