"""`/editions/NAME/…`: every route once more, for one book or one version of it, but for those for operators.

A client that cannot send filters chooses a book by its base address: the reader page, an OpenAI or MCP client, the
widget. `NAME` is `book` or `book@version`, and `@version` for a book without a name. Under it a server looks as if it
had these editions alone.
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
from chapterverse.models import SearchFilters

if TYPE_CHECKING:
    from chapterverse.index import Index

_PATH: Final = re.compile(r"/editions/([^/]+)(/.*)?")
_EDITION: Final = "chapterverse.edition"
# What a proxy may keep from readers has one address each: below an edition they would be served around its rules.
_OF_THE_SERVER: Final = ("/metrics", "/health", "/livez", "/readyz")


class EditionPaths:
    """Takes the edition out of the path and remembers it. A pure ASGI wrapper, met before all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on under the path that its route has."""
        found = _PATH.fullmatch(path_of(scope)) if scope["type"] == "http" else None
        if found is None or found[2] in _OF_THE_SERVER:
            await self._app(scope, receive, send)
        elif found[2] is None:  # what the page asks for is relative to its folder
            await RedirectResponse(f"./{quote(found[1], safe='@')}/")(scope, receive, send)
        else:
            path = scope.get("root_path", "") + found[2]
            inside = {**scope, "path": path, "raw_path": path.encode(), _EDITION: found[1]}
            await self._app(inside, receive, send)


def edition_of(scope: Scope) -> SearchFilters | None:
    """The edition that the path names, as filters; None: it names none."""
    if _EDITION not in scope:
        return None
    book, at, version = scope[_EDITION].partition("@")
    return SearchFilters(book=[book], version=[version] if at else None)


class EditionView:
    """An index as if it had one book, or one version of it, alone."""

    def __init__(self, inside: "Index", edition: SearchFilters) -> None:
        self._inside, self._edition = inside, edition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)

    async def manifest(self) -> Manifest:
        """That of the index, with these editions alone."""
        manifest = await self._inside.manifest()
        books, versions = self._edition.book or (), self._edition.version or ()
        named = scope_of(manifest.shelf, books, versions)
        held = named if versions else [edition for edition in manifest.shelf if edition.book in books]
        return replace(manifest, editions=tuple(held))

    async def pages(self) -> list[Page]:
        """Those of these editions."""
        keys = {edition.key for edition in (await self.manifest()).shelf}
        return [page for page in await self._inside.pages() if page.edition in keys]
