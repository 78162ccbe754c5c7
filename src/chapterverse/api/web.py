"""The reader page and the few files it is made of.

Owns which files are served, their types, caching and what the page may load. They lie beside this package in `web/`
and are read once. Never serves anything else of the disk.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from chapterverse.api.errors import responses
from chapterverse.errors import NotFound

router = APIRouter(tags=["page"])

_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
PAGE: Final = "index.html"
ASSETS: Final[dict[str, str]] = {
    "api.js": _SCRIPT,
    "ask.css": _STYLE,
    "ask.js": _SCRIPT,
    "contents.js": _SCRIPT,
    "dom.js": _SCRIPT,
    "icon.svg": "image/svg+xml",
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
_HTML: Final[dict[str, Any]] = {
    "content": {"text/html": {"schema": {"type": "string"}}},
    "description": "The page, in HTML.",
}


@dataclass(frozen=True, slots=True)
class _File:
    plain: bytes
    zipped: bytes
    tag: str


@router.get("/", response_class=Response, responses={200: _HTML, **responses()})
async def reader(request: Request) -> Response:
    """Read the book and ask it, in a browser."""
    return _answer(request, PAGE, "text/html; charset=utf-8")


@router.get("/assets/{name}", include_in_schema=False)
async def asset(name: str, request: Request) -> Response:
    """A script or style of the page."""
    if name not in ASSETS:
        raise NotFound(f"There is nothing at /assets/{name}.")
    return _answer(request, name, ASSETS[name])


def _answer(request: Request, name: str, media_type: str) -> Response:
    """The file, or 304 where the browser has it. It asks each time, so a new release is seen at once."""
    file = _read(name)
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _POLICY,
        "ETag": file.tag,
        "Vary": "Accept-Encoding",
    }
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.zipped, headers=headers | {"Content-Encoding": "gzip"}, media_type=media_type)
    return Response(file.plain, headers=headers, media_type=media_type)


@cache
def _read(name: str) -> _File:
    plain = files("chapterverse").joinpath("web", name).read_bytes()
    return _File(plain, gzip.compress(plain, mtime=0), f'W/"{hashlib.sha256(plain).hexdigest()[:24]}"')
