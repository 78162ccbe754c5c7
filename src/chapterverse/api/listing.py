"""The pages that an address of this server shows, with the titles of their books.

The reader page and `llms.txt` list the same pages under the same names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request

from chapterverse.api.edition_paths import edition_of
from chapterverse.api.pages import BookList, BookSummary, Contents, PageSummary, list_books
from chapterverse.book import edition_key
from chapterverse.editions import edition_label
from chapterverse.ingestion.ordering import title_of_path
from chapterverse.services import Services

NAME: Final = "Chapterverse"  # of a book that has none of its own
_NAMED: Final = 3  # books that the name of a server with several lists
_NO_BOOKS: Final = BookList(books=[], default=[])


@dataclass(frozen=True)
class ShownPages:
    """What is listed. `given` is the configured title; `is_edition`: the address names a book or a version."""

    given: str = ""
    is_edition: bool = False
    pages: tuple[PageSummary, ...] = ()  # in reading order
    books: BookList = _NO_BOOKS  # all of this server
    held: tuple[BookSummary, ...] = ()  # those that are shown here

    @cached_property
    def editions(self) -> set[tuple[str, str]]:
        """Book and version of the pages that are listed."""
        return {(one.book, one.version) for one in self.pages}

    @property
    def several(self) -> bool:
        """Whether pages of several books are listed."""
        return len(self.editions) > 1

    @cached_property
    def _ids(self) -> dict[tuple[str, str, str], str]:
        return {(one.book, one.version, _bare(one.url)): one.page_id for one in self.pages}

    def page_at(self, url: str, beside: PageSummary) -> str | None:
        """The id of the page at an address, in the edition of another page."""
        return self._ids.get((beside.book, beside.version, _bare(url)))

    @cached_property
    def title(self) -> str:
        """The title of the server, which under the address of a book is that book's own."""
        own = self.held[0].title if len(self.held) == 1 else ""
        named = own or self.given if self.is_edition else self.given or own
        return named or _in_words([self.title_of(book.name) for book in self.held]) or NAME

    def title_of(self, book: str) -> str:
        """The title of a book; the place of its pages says it, where it has none."""
        given = next((one.title for one in self.held if one.name == book), "")
        return given or _name_of([one for one in self.pages if one.book == book])

    def by_edition(self) -> list[tuple[str, str, list[PageSummary]]]:
        """The editions that are shown, each with its key, its name for readers and its pages."""
        editions: dict[tuple[str, str], list[PageSummary]] = {}
        for one in self.pages:
            editions.setdefault((one.book, one.version), []).append(one)
        return [
            (edition_key(book, version), edition_label(self.title_of(book), version), pages)
            for (book, version), pages in editions.items()
        ]


async def list_for(request: Request, services: Services) -> ShownPages:
    """What the address of a request shows."""
    whole: Services = request.app.state.services  # also under the address of one edition
    contents: Contents = request.app.state.contents
    return ShownPages(
        given=services.settings.book_title or "",
        is_edition=edition_of(request.scope) is not None,
        pages=tuple((await contents.read(services.index)).pages),
        books=list_books((await whole.index.manifest()).shelf),
        held=tuple(list_books((await services.index.manifest()).shelf).books),
    )


def by_module(pages: Iterable[PageSummary]) -> list[list[PageSummary]]:
    """The pages of each module, modules in the order of their first pages."""
    modules: dict[str, list[PageSummary]] = {}
    for one in pages:
        modules.setdefault(one.module, []).append(one)
    return list(modules.values())


def _bare(url: str) -> str:
    """An address without the slash or the name that it may end with."""
    return url.removesuffix("/index.html").removesuffix("/")


def _name_of(pages: list[PageSummary]) -> str:
    """The name of a book by where it lies: `my-handbook/start.md` is of "My handbook", a website is called as its
    host."""
    address = pages[0].url if pages else ""
    return urlsplit(address).netloc or title_of_path(address.partition("/")[0])


def _in_words(titles: list[str]) -> str:
    """The titles of several books as the name of them all."""
    shown = titles if len(titles) <= _NAMED else [*titles[: _NAMED - 1], f"{len(titles) - _NAMED + 1} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
