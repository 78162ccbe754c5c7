"""Tells the operator which sites tried to use this server and were not allowed to.

A browser withholds the answer from a page whose origin `CORS_ORIGINS` does not list, and tells only its own console. So
the server logs the origin and the setting that would allow it, once for each origin. A pure ASGI wrapper.
"""

import logging
import re
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger("chapterverse.cors")

_MOST: Final = 100  # origins that are remembered; anybody can send another one
_ORIGIN: Final = re.compile(r"https?://(?:[\w.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\])(?::\d{1,5})?")


class RefusedOrigins:
    """Logs each origin that is not allowed; passes every request on."""

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...]) -> None:
        self._app = app
        self._allowed = allowed
        self._told: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log if need be, then pass the request on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if (origin := headers.get("origin")) and self._is_refused(origin, headers):
                self._tell(origin)
        await self._app(scope, receive, send)

    def _is_refused(self, origin: str, headers: Headers) -> bool:
        if "*" in self._allowed or origin in self._allowed or headers.get("sec-fetch-site") == "same-origin":
            return False
        return urlsplit(origin).netloc != headers.get("host") if _ORIGIN.fullmatch(origin) else origin == "null"

    def _tell(self, origin: str) -> None:
        if origin in self._told or len(self._told) >= _MOST:
            return
        self._told.add(origin)
        if origin == "null":
            log.warning(
                "A page without an origin (a file, or a sandboxed frame) asked, and its browser withholds the answer. "
                "Serve the page over HTTP and add its origin to CORS_ORIGINS; only CORS_ORIGINS=* allows it as it is.",
                extra={"origin": origin},
            )
            return
        setting = "CORS_ORIGINS=" + ",".join((*self._allowed, origin))
        log.warning(
            f"A page of {origin} asked, and its browser withholds the answer, because CORS_ORIGINS does not list that "
            f"origin. To allow it: {setting}",
            extra={"origin": origin, "setting": setting},
        )
