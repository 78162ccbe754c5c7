"""`/widget.js`: the ask box for other sites, as one script.

The module `web/widget.js`, its imports and its styles are joined into one script with its own scope. A site needs only
a script tag and a Content-Security-Policy that allows scripts and connections of this server. `CORS_ORIGINS` decides
which sites may ask.
"""

import json
from functools import cache
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from chapterverse.api import web
from chapterverse.api.errors import responses

router = APIRouter(tags=["page"])

_PLACE: Final = '"the styles are put here by the server"'
# Browsers cache the script for five minutes. After that they use it once more while they refresh it.
_CACHING: Final = "public, max-age=300, stale-while-revalidate=86400"
_SCRIPT: Final[dict[str, Any]] = {
    "content": {"text/javascript": {"schema": {"type": "string"}}},
    "description": "The widget, in JavaScript.",
}


@router.get("/widget.js", response_class=Response, responses={200: _SCRIPT, 304: web.NOT_CHANGED, **responses()})
async def widget(request: Request) -> Response:
    """The ask box for other sites: `<script src="…/widget.js" async></script>`."""
    answer = web.answer(request, _script(), "text/javascript; charset=utf-8", _CACHING)
    answer.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return answer


@cache
def _script() -> web.File:
    styles = json.dumps(web.joined("widget.css"))
    return web.pack(f'"use strict";(() => {{\n{web.joined("widget.js").replace(_PLACE, styles)}}})();\n'.encode())
