"""Middleware for every request: request ids, the request log, safe headers, and a warning about refused origins.

All are pure ASGI wrappers, so that streams pass through untouched. `Guard` and `AllowedHosts`, which refuse requests,
are in `access/`.
"""

import asyncio
import logging
import re
import time
import uuid
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.telemetry import Telemetry

log = logging.getLogger("chapterverse.requests")
cors_log = logging.getLogger("chapterverse.cors")

CLIENT_GONE = 499  # as proxies log it: the client closed the connection
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")  # an id sent by the client is used if it is short and plain
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # others would multiply the metrics
_QUIET = {"/livez", "/readyz", "/health", "/metrics"}  # polled every few seconds
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_MOST: Final = 100  # origins that are remembered; a client can send any number
_ORIGIN: Final = re.compile(r"https?://(?:[\w.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\])(?::\d{1,5})?")


class RequestLog:
    """Logs and counts each HTTP request when it ends.

    Logs the route's template, never the query string, a header or a body. Inner layers add fields, such as the error's
    code, with `note`.
    """

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log it at its end."""
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
            self._log(scope, status or CLIENT_GONE, time.perf_counter() - started)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
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
    """Add fields to the request's log line."""
    scope.setdefault("chapterverse.notes", {}).update(fields)


def started_at(scope: Scope) -> float:
    """When the request arrived, in the time of the event loop."""
    return float(scope.get("chapterverse.started") or asyncio.get_running_loop().time())


def _route(scope: Scope) -> str:
    """The route's template, so that ids do not multiply the metrics."""
    return str(getattr(scope.get("route"), "path", None) or scope.get("chapterverse.route") or "unmatched")


class RequestIds:
    """Gives each HTTP request an id, which is in `X-Request-ID` of the response, in logs and in internal errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its id, and add the id to the headers of the response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _PLAIN.fullmatch(given) else uuid.uuid4().hex
        scope["chapterverse.request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        await self._app(scope, receive, send_with_id)


def request_id_of(scope: Any) -> str:
    """The id of the request; empty if it has none."""
    return str(scope.get("chapterverse.request_id", ""))


class SafeHeaders:
    """Adds headers that stop browsers from guessing content types and from sending referrers to other sites."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class HeadRequests:
    """Answers HEAD as GET without its body, which is not produced: the request ends at its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as GET if it is HEAD."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send(message)
            await send({"type": "http.response.body"})
            raise _HeadSent

        inner_scope = {**scope, "method": "GET"}
        try:
            await self._app(inner_scope, receive, send_head)
        except _HeadSent:
            scope["route"] = inner_scope.get("route")  # for the log


class _HeadSent(Exception):
    pass


class RefusedOrigins:
    """Logs each origin that is not allowed, once. Every request is passed on.

    A browser withholds the response from a page whose origin `CORS_ORIGINS` does not list, and says so only on its own
    console. The log names the origin and the setting that would allow it.
    """

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...]) -> None:
        self._app = app
        self._allowed = allowed
        self._warned: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log the origin if it is refused, then pass the request on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if (origin := headers.get("origin")) and self._is_refused(origin, headers):
                self._warn(origin)
        await self._app(scope, receive, send)

    def _is_refused(self, origin: str, headers: Headers) -> bool:
        if "*" in self._allowed or origin in self._allowed or headers.get("sec-fetch-site") == "same-origin":
            return False
        return urlsplit(origin).netloc != headers.get("host") if _ORIGIN.fullmatch(origin) else origin == "null"

    def _warn(self, origin: str) -> None:
        if origin in self._warned or len(self._warned) >= _MOST:
            return
        self._warned.add(origin)
        if origin == "null":
            cors_log.warning(
                "A page without an origin (a file or sandboxed frame) asked. Its browser withholds the response. "
                "Serve the page over HTTP and add its origin to CORS_ORIGINS. Only CORS_ORIGINS=* allows no origin.",
                extra={"origin": origin},
            )
            return
        setting = "CORS_ORIGINS=" + ",".join((*self._allowed, origin))
        cors_log.warning(
            f"A page of {origin} asked. Its browser withholds the response, because CORS_ORIGINS does not list that "
            f"origin. To allow it: {setting}",
            extra={"origin": origin, "setting": setting},
        )
