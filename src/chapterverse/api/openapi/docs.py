"""The OpenAPI page at `/docs`, served from our own files: Swagger UI as released, and a page that starts it.

The page's Content-Security-Policy forbids loading anything from other hosts.
"""

import asyncio
import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from chapterverse.api.errors import responses
from chapterverse.errors import NotFound

router = APIRouter(tags=["page"])

_FILES: Final = {
    "docs.js": "text/javascript; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}
# Swagger UI sets styles of elements inline. It runs no inline script.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def _sent(kind: str, about: str, *errors: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"schema": {}}}, "description": about}, **responses(*errors)}


@router.get("/docs", response_class=Response, responses=_sent("text/html", "The page, in HTML."))
async def page() -> Response:
    """The description of this API in a browser, with a form to try each route."""
    return _answer(_read("docs.html"), "text/html; charset=utf-8", "no-cache")


@router.get("/openapi.json", response_class=Response, responses=_sent("application/json", "An OpenAPI description."))
async def description(request: Request) -> Response:
    """This description."""
    # Making it takes a tenth of a second, so it is made once, in a thread.
    state, make = request.app.state, request.app.openapi
    if getattr(state, "description", None) is None:
        state.description = asyncio.ensure_future(asyncio.to_thread(lambda: json.dumps(make()).encode()))
    return Response(await asyncio.shield(state.description), media_type="application/json")


@router.get("/docs/{name}", response_class=Response, responses=_sent("*/*", "The file.", 404))
async def file(name: str, request: Request) -> Response:
    """A script or style of the page `/docs`."""
    if name not in _FILES:
        raise NotFound(f"There is nothing at /docs/{name}.")
    plain = _read(name)
    if f"{name}.gz" not in _packed() or "gzip" not in request.headers.get("accept-encoding", ""):
        return _answer(plain, _FILES[name], "public, max-age=86400")
    answer = _answer(_packed()[f"{name}.gz"], _FILES[name], "public, max-age=86400")
    answer.headers["Content-Encoding"] = "gzip"
    return answer


def _answer(body: bytes, media_type: str, caching: str) -> Response:
    headers = {"Cache-Control": caching, "Content-Security-Policy": _POLICY, "Vary": "Accept-Encoding"}
    return Response(body, headers=headers, media_type=media_type)


@cache
def _packed() -> dict[str, bytes]:
    folder = files("chapterverse").joinpath("web", "swagger")
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith(".gz")}


@cache
def _read(name: str) -> bytes:
    if packed := _packed().get(f"{name}.gz"):
        return gzip.decompress(packed)
    return files("chapterverse").joinpath("web", "swagger", name).read_bytes()
