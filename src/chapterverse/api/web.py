"""Static files of the reader page.

They are in `src/chapterverse/web/` and are read once. No other file is served.

A file is served at `/assets/VERSION/NAME`. The version is a hash of all files, so that browsers can cache a file for
good and a new release has new addresses. A script or style is served in one request, with its imports before it
(`joined`). `asset_path(name)` gives the address of a file. Add a new file to `ASSETS`, or to `RELEASED` if it is from
another project.
"""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from chapterverse.api.errors import responses
from chapterverse.errors import NotFound

router = APIRouter(tags=["page"])

NOT_CHANGED: Final[dict[str, Any]] = {"description": "Not changed since the `ETag` that was sent."}
_FILE: Final[dict[str, Any]] = {
    "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    "description": "The file.",
}
_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
ASSETS: Final[dict[str, str]] = {
    "api.js": _SCRIPT,
    "ask.css": _STYLE,
    "ask.js": _SCRIPT,
    "books.js": _SCRIPT,
    "contents.js": _SCRIPT,
    "dom.js": _SCRIPT,
    "excerpts.js": _SCRIPT,
    "feedback.js": _SCRIPT,
    "highlight.js": _SCRIPT,
    "icon.svg": "image/svg+xml",
    "ink.css": _STYLE,
    "notices.js": _SCRIPT,
    "offsets.js": _SCRIPT,
    "past.js": _SCRIPT,
    "reader.css": _STYLE,
    "reader.js": _SCRIPT,
    "render.js": _SCRIPT,
    "search.js": _SCRIPT,
    "selection.js": _SCRIPT,
    "suggestions.js": _SCRIPT,
    "theme.js": _SCRIPT,
    "turn.js": _SCRIPT,
}
# Files of other projects, in folders with their licences: name -> folder and type.
RELEASED: Final[dict[str, tuple[str, str]]] = {
    "prism.js": ("prism", _SCRIPT),
    **{
        f"{font}.woff2": ("fonts", "font/woff2")
        for font in ("inter", "inter-ext", "source-serif", "source-serif-ext", "source-serif-italic")
    },
}
# Nothing from other hosts, nothing inline, no frames. `blob:` is for images that were fetched with the API key.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FOR_GOOD: Final = "public, max-age=31536000, immutable"  # a year, the longest that caches honour
_ACCENT: Final = re.compile(r"[0-9a-f]{6}")

_IMPORT: Final = re.compile(r'^(?:import \{.*\} from|@import) "\./(.+)";\n', re.MULTILINE)
# What `joined` removes: indentation, and comments on their own lines or after code.
_COMMENT: Final = re.compile(
    r"^ {0,40}/\*.{0,2000}?\*/\n|(?<! ) {1,4}/\*[^\n]{0,200}?\*/(?=\n)"
    r"|^ {0,40}// [^\n]*\n|(?<=[;{}(,\]>]) {1,4}// [^\n]*|^ ++",
    re.MULTILINE | re.DOTALL,
)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent, plain and compressed."""

    plain: bytes
    zipped: bytes
    tag: str


@router.get(
    "/assets/{wanted}/{name}",
    response_class=Response,
    responses={200: _FILE, 304: NOT_CHANGED, **responses(404)},
)
async def asset(wanted: str, name: str, request: Request, accent: str = "") -> Response:
    """A script, style or font of the page. `accent`: the accent colour of a style, as six hexadecimal digits."""
    if name not in ASSETS and name not in RELEASED:
        raise NotFound(f"There is nothing at /assets/{wanted}/{name}.")
    media_type = ASSETS[name] if name in ASSETS else RELEASED[name][1]
    # During a rollout, a page of one release may ask a server of another: it gets the current file, uncached.
    caching = FOR_GOOD if wanted == version() else "no-store"
    file = _coloured(name, accent) if media_type == _STYLE and _ACCENT.fullmatch(accent) else _read(name)
    return answer(request, file, media_type, caching)


def asset_path(name: str) -> str:
    """The address of a file, relative to the root."""
    return f"assets/{version()}/{name}"


@cache
def version() -> str:
    """A hash of all files, as twelve hexadecimal digits."""
    digest = hashlib.sha256("".join(map(source, ASSETS)).encode())
    for name in RELEASED:
        digest.update(_released(name))
    return digest.hexdigest()[:12]


def joined(name: str) -> str:
    """Return a script or style with its imports before it, each once, without comments and indentation. The scripts
    share one scope: a name may be declared only once, and no string may span several lines."""
    parts: dict[str, str] = {}

    def add(script: str) -> None:
        text = source(script)
        for imported in _IMPORT.findall(text):
            if imported not in parts:
                add(imported)
        parts[script] = _COMMENT.sub("", _IMPORT.sub("", text))

    add(name)
    own = parts.pop(name)
    return "".join(_EXPORT.sub("", part) for part in parts.values()) + own


def answer(request: Request, file: File, media_type: str, caching: str) -> Response:
    """Return the file, or 304 if the browser has it."""
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


@cache
def _read(name: str) -> File:
    return pack(joined(name).encode() if name in ASSETS else _released(name))


@lru_cache(maxsize=4)
def _coloured(name: str, accent: str) -> File:
    return pack(f"{joined(name)}:root {{ --brand: #{accent}; }}\n".encode())


def source(name: str) -> str:
    """The text of a file of `web/`."""
    return files("chapterverse").joinpath("web", name).read_text("utf-8")


def _released(name: str) -> bytes:
    return files("chapterverse").joinpath("web", RELEASED[name][0], name).read_bytes()


def pack(plain: bytes) -> File:
    """Compress and hash a file."""
    return File(plain, gzip.compress(plain, mtime=0), f'W/"{hashlib.sha256(plain).hexdigest()[:24]}"')
