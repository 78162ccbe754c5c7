"""One log line and one count per request, when its last byte is sent or its client is gone.

A pure ASGI wrapper, so that streams pass through untouched. Logs the route's template, never the query string, a header
or a body. What inner layers know, such as the error's code, they `note`.
"""

import asyncio
import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.api.request_id import request_id_of
from chapterverse.telemetry import Telemetry

log = logging.getLogger("chapterverse.requests")

CLIENT_GONE = 499  # as proxies log it: the client closed the connection
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # others would multiply the metrics
_QUIET = {"/livez", "/readyz", "/health", "/metrics"}  # asked every few seconds by machines


class RequestLog:
    """Logs and counts each HTTP request."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and tell of it at its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        scope["chapterverse.started"] = asyncio.get_running_loop().time()
        scope["chapterverse.notes"] = {}
        status = 0

        async def send_and_see(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_see)
        finally:
            self._tell(scope, status or CLIENT_GONE, time.perf_counter() - started)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        route, notes = _route(scope), scope["chapterverse.notes"]
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._telemetry.requests.labels(route, method, str(status)).inc()
        self._telemetry.request_seconds.labels(route).observe(seconds)
        if code := notes.get("error_code"):
            self._telemetry.errors.labels(code).inc()
        fields = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 1)}
        level = logging.DEBUG if route in _QUIET and status < 400 else logging.INFO
        log.log(level, "request", extra=fields | {"request_id": request_id_of(scope)} | notes)


def note(scope: Scope, **fields: Any) -> None:
    """Have the request's log line say this, too."""
    scope.setdefault("chapterverse.notes", {}).update(fields)


def started_at(scope: Scope) -> float:
    """When the request came, in the time of the event loop."""
    return float(scope.get("chapterverse.started") or asyncio.get_running_loop().time())


def _route(scope: Scope) -> str:
    """The template, so that ids do not multiply the metrics; whatever matches no route is one kind."""
    return str(getattr(scope.get("route"), "path", None) or scope.get("chapterverse.route") or "unmatched")
