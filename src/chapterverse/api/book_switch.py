"""What lets readers of the page switch to another book or version: the books, and the script that shows them.

It stands in the page's header, at `<span id="book-switch"></span>`, where there are several editions.
"""

from html import escape
from typing import Final

from fastapi import Request

from chapterverse.api.pages import list_books
from chapterverse.services import Services

PLACE: Final = '<span id="book-switch"></span>'
SCRIPT: Final = "books.js"


async def books_to_switch(request: Request) -> str:
    """The books between which a reader may switch, as JSON; empty where there is one edition, or where the list is not
    for everybody."""
    services: Services = request.app.state.services  # also under the address of one edition
    if services.settings.api_keys:
        return ""
    shelf = (await services.index.manifest()).shelf
    return list_books(shelf).model_dump_json() if len(shelf) > 1 else ""


def with_switch(page: str, books: str, script: str) -> str:
    """The page with its switch; `script` is where `books.js` is."""
    if not books:
        return page
    switch = PLACE.replace(">", f' data-books="{escape(books)}">', 1)
    return page.replace(PLACE, f'{switch}<script type="module" src="{escape(script)}"></script>')
