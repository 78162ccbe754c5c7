"""Stores the suggested questions of a home, and makes new ones when the book or the model changes.

A server does this in the background while it is idle. Of several workers, the one that holds the lock does it, and all
of them read the file.
"""

import asyncio
import fcntl
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from chapterverse.conversations.housekeeping import in_background
from chapterverse.errors import ChapterverseError
from chapterverse.evaluation.suggesting import Suggestion, make_suggestions
from chapterverse.models import Frozen
from chapterverse.services import Services

log = logging.getLogger(__name__)

FORMAT: Final = 3  # increase it when the same book would give other questions
LOOK_SECONDS: Final = 5.0  # between two checks whether the book has changed
AGAIN_SECONDS: Final = 600.0  # pause after a failure


class StoredSuggestions(Frozen):
    """The suggestions of one state of the book."""

    format: Literal[3] = FORMAT
    book: str  # its generation
    model: str  # that answered them
    wanted: int = 0  # number for each edition
    made_at: datetime
    suggestions: list[Suggestion]


class Shelf:
    """The file with the suggestions of a home. It is read again only if it changed."""

    def __init__(self, home: Path) -> None:
        self._file = home / "suggestions.json"
        self._lock = home / "suggestions.lock"
        self._seen = 0
        self._kept: StoredSuggestions | None = None

    def read(self) -> StoredSuggestions | None:
        """The stored suggestions; None if there are none that can be used."""
        try:
            changed = self._file.stat().st_mtime_ns
            if changed != self._seen:
                self._kept, self._seen = StoredSuggestions.model_validate_json(self._file.read_bytes()), changed
        except (OSError, ValidationError):
            return None
        return self._kept

    def write(self, kept: StoredSuggestions) -> None:
        """Replace the file atomically."""
        self._file.parent.mkdir(parents=True, exist_ok=True)  # with a Qdrant server there may be no home yet
        new = self._file.with_suffix(".new")
        new.write_text(kept.model_dump_json(indent=1) + "\n", "utf-8")
        new.replace(self._file)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Hold the lock for making suggestions and yield True, or yield False if another worker holds it."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


async def up_to_date(shelf: Shelf, services: Services) -> StoredSuggestions | None:
    """Return the stored suggestions if they belong to the current book, model and number, else None."""
    kept = await asyncio.to_thread(shelf.read)
    book = (await services.index.manifest()).generation
    current = (book, services.writer.name, services.settings.suggestions)
    return kept if kept and (kept.book, kept.model, kept.wanted) == current else None


async def refresh(shelf: Shelf, services: Services, busy: Callable[[], bool] = lambda: False) -> StoredSuggestions:
    """Make the suggestions of the current book while the server is idle, and store them."""
    book = (await services.index.manifest()).generation
    wanted = services.settings.suggestions
    made = await make_suggestions(services, wanted, busy)
    kept = StoredSuggestions(
        book=book, model=services.writer.name, wanted=wanted, made_at=datetime.now(UTC), suggestions=made
    )
    await asyncio.to_thread(shelf.write, kept)
    return kept


@asynccontextmanager
async def keeping_suggestions(
    services: Services, busy: Callable[[], bool], every: float = LOOK_SECONDS
) -> AsyncIterator[None]:
    """Keep the suggestions up to date in the background until the server stops."""
    async with in_background(_again_and_again(services, busy, every)):
        yield


async def _again_and_again(services: Services, busy: Callable[[], bool], every: float) -> None:
    shelf = Shelf(services.settings.chapterverse_home)
    while services.settings.suggestions:
        await asyncio.sleep(every)
        try:
            if busy() or await up_to_date(shelf, services):
                continue
            with shelf.alone() as alone:
                if alone:
                    kept = await refresh(shelf, services, busy)
                    log.info("%d suggested questions were made", len(kept.suggestions))
        except (ChapterverseError, OSError) as failure:  # no book yet, a model that is down, a full disk
            log.info("suggested questions are not made: %s", failure)
            await asyncio.sleep(AGAIN_SECONDS)
