"""The reader page and the few files it is made of.

The files are in `web/` beside this package and are read once. No other file of the disk is served.

A file is served at `/assets/VERSION/NAME`, where the version is a hash of them all: a browser keeps it for good and
never asks again, and a new release has new addresses. A file is served with those it imports written before it, so that
it takes one request (`joined`). Whoever needs the address of a file asks `asset_path(name)`; a new file is added
to `ASSETS`.
"""

import asyncio
import gzip
import hashlib
import re
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from chapterverse.api.book_switch import SCRIPT, books_to_switch, with_switch
from chapterverse.api.errors import responses
from chapterverse.api.services import ServicesOf
from chapterverse.errors import InvalidFilterError, NotFound, RetrievalUnavailable

router = APIRouter(tags=["page"])

_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
PAGE: Final = "index.html"
ASSETS: Final[dict[str, str]] = {
    "api.js": _SCRIPT,
    "ask.css": _STYLE,
    "ask.js": _SCRIPT,
    "books.js": _SCRIPT,
    "contents.js": _SCRIPT,
    "dom.js": _SCRIPT,
    "feedback.js": _SCRIPT,
    "icon.svg": "image/svg+xml",
    "ink.css": _STYLE,
    "offsets.js": _SCRIPT,
    "reader.css": _STYLE,
    "reader.js": _SCRIPT,
    "render.js": _SCRIPT,
    "search.js": _SCRIPT,
    "selection.js": _SCRIPT,
    "theme.js": _SCRIPT,
    "turn.js": _SCRIPT,
}
# Nothing from elsewhere, nothing inline, in nobody's frame.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOR_GOOD: Final = "public, max-age=31536000, immutable"  # a year, the longest that caches honour
_PATIENCE: Final = 0.1  # seconds that the page waits for its table of contents; the rest of it needs no engine
_PLACE: Final = '<script type="application/json" id="cv-first">null</script>'
_HTML: Final[dict[str, Any]] = {
    "content": {"text/html": {"schema": {"type": "string"}}},
    "description": "The page, in HTML.",
}


_IMPORT: Final = re.compile(r'^(?:import \{.*\} from|@import) "\./(.+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent, plain and zipped."""

    plain: bytes
    zipped: bytes
    tag: str


@router.get("/", response_class=Response, responses={200: _HTML, **responses()})
async def reader(request: Request, services: ServicesOf) -> Response:
    """Read the book and ask it, in a browser. With several books: the latest version of each."""
    keyed = bool(services.settings.api_keys)  # then the table of contents is not for everybody
    brief = None if keyed else await _first(request.app.state.contents.brief(services.index))
    # It is asked for each time, so that a new release and a new state of the book are seen at once.
    page = _page(brief or "null", await _first(books_to_switch(request)) or "")
    return answer(request, page, "text/html; charset=utf-8", "no-cache")


@router.get("/assets/{wanted}/{name}", include_in_schema=False)
async def asset(wanted: str, name: str, request: Request) -> Response:
    """A script or style of the page."""
    if name not in ASSETS:
        raise NotFound(f"There is nothing at /assets/{wanted}/{name}.")
    # While a release is rolled out, the page of one server may ask another: it gets what there is, for once.
    return answer(request, _read(name), ASSETS[name], _FOR_GOOD if wanted == version() else "no-store")


def asset_path(name: str) -> str:
    """Where a file is served, relative to the root."""
    return f"assets/{version()}/{name}"


@cache
def version() -> str:
    """Twelve digits that change when any file does."""
    return hashlib.sha256("".join(map(source, ASSETS)).encode()).hexdigest()[:12]


def joined(name: str) -> str:
    """A script or style behind those it imports, each once. Scripts then share one scope: no two may declare a name."""
    parts: dict[str, str] = {}

    def add(script: str) -> None:
        text = source(script)
        for imported in _IMPORT.findall(text):
            if imported not in parts:
                add(imported)
        parts[script] = _IMPORT.sub("", text)

    add(name)
    own = parts.pop(name)
    return "".join(_EXPORT.sub("", part) for part in parts.values()) + own


def answer(request: Request, file: File, media_type: str, caching: str) -> Response:
    """The file, or 304 where the browser has it."""
    headers = {
        "Cache-Control": caching,
        "Content-Security-Policy": _POLICY,
        "ETag": file.tag,
        "Vary": "Accept-Encoding",
    }
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.zipped, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type)
    return Response(file.plain, headers=headers, media_type=media_type)


async def _first(listed: Awaitable[str]) -> str | None:
    """What the page lists first. If it is not at hand the page is shown without, asks for it and says what is wrong."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await listed
    except (TimeoutError, RetrievalUnavailable, InvalidFilterError):
        return None


@lru_cache(maxsize=4)
def _page(brief: str, books: str) -> File:
    """The page with its table of contents, the books it can switch to, and its files at the addresses of this
    version."""
    data = brief.replace("<", "\\u003c")  # in JSON only strings have it, and no tag may end or begin in them
    page = source(PAGE).replace(_PLACE, _PLACE.replace("null", data))
    return pack(with_switch(page.replace('"assets/', f'"{asset_path("")}'), books, asset_path(SCRIPT)))


@cache
def _read(name: str) -> File:
    return pack(joined(name))


def source(name: str) -> str:
    """A file of `web/`, as it is written."""
    return files("chapterverse").joinpath("web", name).read_text("utf-8")


def pack(text: str) -> File:
    """A text, ready to be sent."""
    plain = text.encode()
    return File(plain, gzip.compress(plain, mtime=0), f'W/"{hashlib.sha256(plain).hexdigest()[:24]}"')
