"""Shared by the commands: exit codes, error messages, and the options of a search."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click

from chapterverse.errors import (
    AgentUnavailable,
    ChapterverseError,
    ConversationsUnavailable,
    EmbeddingError,
    IndexDamaged,
    IndexMissing,
    IndexTimeout,
    IndexUnavailable,
    InternalError,
    ValidationFailed,
)

if TYPE_CHECKING:
    from chapterverse.models import SearchFilters

P = ParamSpec("P")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

REFUSED = 20  # exit code of a refusal; those of errors are lower
WORSE = 21  # exit code if a comparison found something worse
INTERRUPTED = 130  # exit code after Ctrl-C, as in shells


def reported(run: Callable[P, int]) -> Callable[P, None]:
    """Exit with the result of the command. Our errors become a message, a hint and their exit code."""

    @wraps(run)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        from chapterverse import terminal

        try:
            sys.exit(run(*args, **kwargs))
        except ChapterverseError as failure:
            terminal.show_error(failure.message, hint_for(failure))
            sys.exit(failure.exit_code)
        except KeyboardInterrupt:
            terminal.err.print("Interrupted.")
            sys.exit(INTERRUPTED)

    return wrapped


_ENGINE_FAILED: Final = (
    *(IndexDamaged, IndexTimeout, IndexUnavailable),
    *(AgentUnavailable, ConversationsUnavailable, EmbeddingError),
)


def hint_for(failure: ChapterverseError) -> str:
    """Return a hint to print after an error; empty if the message is enough."""
    if isinstance(failure, InternalError):
        return "Run `chapterverse -v …` to see the cause."
    if isinstance(failure, IndexMissing):
        from chapterverse.settings import Settings

        settings = Settings.load()
        if settings.qdrant_url:
            return f"The collection is {settings.qdrant_collection_name} at {settings.qdrant_url}."
        return f"The home is {settings.chapterverse_home}; set CHAPTERVERSE_HOME for another folder."
    return "`chapterverse doctor` shows each engine and what to do." if isinstance(failure, _ENGINE_FAILED) else ""


def command(run: Callable[P, Coroutine[Any, Any, int]]) -> Callable[P, None]:
    """Like `reported`, for an async command."""

    @wraps(run)
    def waited(*args: P.args, **kwargs: P.kwargs) -> int:
        return asyncio.run(run(*args, **kwargs))

    return reported(waited)


EDITION_OPTIONS = (
    click.option("--book", multiple=True, metavar="NAME", help="Only this book; default: all. May be repeated."),
    click.option("--version", multiple=True, metavar="V", help="This version; default: the latest of each book."),
)


def edition_options(decorated: Decorated) -> Decorated:
    """Add the options `--book` and `--version`, for `edition_filters`."""
    for option in reversed(EDITION_OPTIONS):
        decorated = option(decorated)
    return decorated


def edition_filters(book: tuple[str, ...], version: tuple[str, ...]) -> "SearchFilters | None":
    """Return the filters for these editions; None for the latest version of each book."""
    from chapterverse.fields import read_request
    from chapterverse.models import SearchFilters

    return (
        read_request(SearchFilters, book=list(book) or None, version=list(version) or None) if book or version else None
    )


def search_options(decorated: Decorated) -> Decorated:
    """Add `--top-k`, `--threshold`, `--filter`, `--book` and `--version`, for `search_fields`."""
    options = (
        click.option(
            "-k",
            "--top-k",
            type=click.IntRange(1, 20),
            help="Passages to use; default 5, or AGENT_TOP_K for answers.",
        ),
        click.option("--threshold", type=click.FloatRange(0, 1), help="Minimum relevance of a passage."),
        click.option(
            "-f",
            "--filter",
            "filters",
            multiple=True,
            metavar="KEY=VALUE",
            help="source_url, source_url_prefix, page_title, section_heading, module, book, version; may be repeated.",
        ),
        *EDITION_OPTIONS,
    )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def search_fields(
    top_k: int | None,
    threshold: float | None,
    filters: tuple[str, ...],
    book: tuple[str, ...] = (),
    version: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the request fields for the options of `search_options`."""
    wanted: dict[str, Any] = {}
    named = [f"{key}={value}" for key, values in (("book", book), ("version", version)) for value in values]
    for given in (*filters, *named):
        key, equals, value = given.partition("=")
        if not equals:
            raise ValidationFailed(f"--filter {given}: write it as KEY=VALUE, for example module=ros2")
        if key == "source_url_prefix":
            wanted[key] = value
        else:
            wanted.setdefault(key, []).append(value)
    return {"top_k": top_k, "score_threshold": threshold, "filters": wanted or None}
