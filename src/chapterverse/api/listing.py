"""The pages that the reader page and `llms.txt` list, with the titles of their books.

Under `/editions/NAME/` these are the pages of one book or version.
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

NAME: Final = "Chapterverse"  # title of a server whose books have none
_NAMED: Final = 3  # books that are listed in the title of a server with several
_NO_BOOKS: Final = BookList(books=[], default=[])


@dataclass(frozen=True)
class ShownPages:
    """The listed pages. `given`: the configured title; `is_edition`: the address names a book or a version."""

    given: str = ""
    is_edition: bool = False
    pages: tuple[PageSummary, ...] = ()  # in reading order
    books: BookList = _NO_BOOKS  # all books of this server
    held: tuple[BookSummary, ...] = ()  # the books that are shown

    @cached_property
    def editions(self) -> set[tuple[str, str]]:
        """Book and version of the listed pages."""
        return {(page.book, page.version) for page in self.pages}

    @property
    def several(self) -> bool:
        """Whether pages of several books are listed."""
        return len(self.editions) > 1

    @cached_property
    def _ids(self) -> dict[tuple[str, str, str], str]:
        return {(page.book, page.version, _bare(page.url)): page.page_id for page in self.pages}

    def page_at(self, url: str, page: PageSummary) -> str | None:
        """Return the id of the page at an address, in the same edition as `page`; None if there is none."""
        return self._ids.get((page.book, page.version, _bare(url)))

    @cached_property
    def title(self) -> str:
        """The title of the server; under the address of a book, the title of that book."""
        own = self.held[0].title if len(self.held) == 1 else ""
        named = own or self.given if self.is_edition else self.given or own
        return named or _in_words([self.title_of(book.name) for book in self.held]) or NAME

    def title_of(self, book: str) -> str:
        """The title of a book; if it has none, a name made from the address of its pages."""
        given = next((summary.title for summary in self.held if summary.name == book), "")
        return given or _name_of([page for page in self.pages if page.book == book])

    def by_edition(self) -> list[tuple[str, str, list[PageSummary]]]:
        """The editions that are shown: key, name for readers, and pages."""
        editions: dict[tuple[str, str], list[PageSummary]] = {}
        for page in self.pages:
            editions.setdefault((page.book, page.version), []).append(page)
        return [
            (edition_key(book, version), edition_label(self.title_of(book), version), pages)
            for (book, version), pages in editions.items()
        ]


async def list_for(request: Request, services: Services) -> ShownPages:
    """Return the pages to list for the address of a request."""
    server: Services = request.app.state.services  # with all books, even under `/editions/NAME/`
    contents: Contents = request.app.state.contents
    return ShownPages(
        given=services.settings.book_title or "",
        is_edition=edition_of(request.scope) is not None,
        pages=tuple((await contents.read(services.index)).pages),
        books=list_books((await server.index.manifest()).shelf),
        held=tuple(list_books((await services.index.manifest()).shelf).books),
    )


def by_module(pages: Iterable[PageSummary]) -> list[list[PageSummary]]:
    """The pages grouped by module and category, in the order of the first page of each."""
    modules: dict[tuple[str, str], list[PageSummary]] = {}
    for page in pages:
        modules.setdefault((page.module, page.category), []).append(page)
    return list(modules.values())


def _bare(url: str) -> str:
    """An address without `/index.html` or a slash at its end."""
    return url.removesuffix("/index.html").removesuffix("/")


def _name_of(pages: list[PageSummary]) -> str:
    """The name of a book from the address of its first page: `my-handbook/start.md` gives "My handbook", a website its
    host name."""
    address = pages[0].url if pages else ""
    return urlsplit(address).netloc or title_of_path(address.partition("/")[0])


def _in_words(titles: list[str]) -> str:
    """The titles of several books as one phrase."""
    shown = titles if len(titles) <= _NAMED else [*titles[: _NAMED - 1], f"{len(titles) - _NAMED + 1} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
