"""`/editions/NAME/…`: the routes for one book, or for one version of it, without the routes for operators.

The reader page, the widget, and OpenAI and MCP clients cannot send filters; they choose a book by its base address.
`NAME` is `book` or `book@version`, and `@version` for a book without a name. Under this address the server behaves as
if it had only these editions.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from chapterverse.api.errors import path_of
from chapterverse.book import Manifest, Page
from chapterverse.editions import scope_of
from chapterverse.fields import read_request
from chapterverse.models import SearchFilters

if TYPE_CHECKING:
    from chapterverse.index import Index

_PATH: Final = re.compile(r"/editions/([^/]+)(/.*)?")
_EDITION: Final = "chapterverse.edition"
# A proxy may block these paths for readers. Served under an edition, they would bypass its rules.
_OF_THE_SERVER: Final = ("/metrics", "/health", "/livez", "/readyz")


class EditionPaths:
    """Moves the edition from the path into the scope. A pure ASGI wrapper, the outermost one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with the edition removed from its path."""
        found = _PATH.fullmatch(path_of(scope)) if scope["type"] == "http" else None
        if found is None or found[2] in _OF_THE_SERVER:
            await self._app(scope, receive, send)
        elif found[2] is None:  # add the final slash: addresses in the page are relative to this folder
            await RedirectResponse(f"./{quote(found[1], safe='@')}/{_query(scope)}")(scope, receive, send)
        elif found[2].endswith("/") and found[2].strip("/"):  # FastAPI would redirect to all books
            await RedirectResponse(_without_final_slash(found[2], scope))(scope, receive, send)
        else:
            path = scope.get("root_path", "") + found[2]
            inner_scope = {**scope, "path": path, "raw_path": path.encode(), _EDITION: found[1]}
            await self._app(inner_scope, receive, send)


def _without_final_slash(path: str, scope: Scope) -> str:
    """The relative address of a path without the slashes at its end. A proxy may have removed the path's beginning."""
    shorter = path.rstrip("/")
    up = "../" * (len(path) - len(shorter))
    return f"{up}{quote(shorter.rpartition('/')[2], safe='')}{_query(scope)}"


def _query(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return query and f"?{query}"


def edition_of(scope: Scope) -> SearchFilters | None:
    """The edition that the path names, as filters; None if it names none. Raise `ValidationFailed` for a name that no
    edition can have."""
    if _EDITION not in scope:
        return None
    book, at, version = scope[_EDITION].partition("@")
    return read_request(SearchFilters, book=[book], version=[version] if at else None)


class EditionView:
    """A view of an index that shows one book, or one version of it."""

    def __init__(self, inside: "Index", edition: SearchFilters) -> None:
        self._inside, self._edition = inside, edition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)

    async def manifest(self) -> Manifest:
        """Return the manifest with only the shown editions."""
        manifest = await self._inside.manifest()
        books, versions = self._edition.book or (), self._edition.version or ()
        named = scope_of(manifest.shelf, books, versions)
        shown = named if versions else [edition for edition in manifest.shelf if edition.book in books]
        return replace(manifest, editions=tuple(shown))

    async def pages(self) -> list[Page]:
        """Return the pages of the shown editions."""
        keys = {edition.key for edition in (await self.manifest()).shelf}
        return [page for page in await self._inside.pages() if page.edition in keys]
