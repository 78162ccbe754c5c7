"""Checks the Host header against `ALLOWED_HOSTS`, and takes the scheme of the address from a trusted proxy.

A website can let its own name resolve to 127.0.0.1 and then read a local server through the browser (DNS rebinding).
So a connection to a loopback address is served only under a name that no website can have, unless `ALLOWED_HOSTS`
lists others. An IP address cannot be rebound and is always allowed.
"""

import ipaddress
import socket
from collections.abc import Sequence
from functools import cache
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from chapterverse.api.access.clients import Network, parse_address
from chapterverse.api.errors import error_response, path_of
from chapterverse.api.middleware import note
from chapterverse.errors import ValidationFailed
from chapterverse.settings import Settings

_PROBES: Final = ("/livez", "/readyz")  # their responses contain no text of the book


class AllowedHosts:
    """Answers requests for hosts that are not allowed with 400. A pure ASGI wrapper."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._allowed = tuple(name.lower() for name in settings.allowed_hosts)
        self._proxies = settings.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and not self._is_allowed(scope):
            failure = ValidationFailed("This server does not serve that Host. ALLOWED_HOSTS lists those it serves.")
            note(scope, error_code=failure.code)
            await error_response(failure, scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        host = name_of(Headers(scope=scope).get("host", ""))
        if not host or path_of(scope) in _PROBES:
            return True
        if self._allowed:
            return any(_matches(host, name) for name in self._allowed)
        server = parse_address((scope.get("server") or ("",))[0])
        if server is None or not server.is_loopback or _through_proxy(scope, self._proxies):
            return True
        return _is_address(host) or host == "localhost" or host.endswith(".localhost") or host == _own_name()


class ForwardedScheme:
    """Takes the scheme from the `X-Forwarded-Proto` of a trusted proxy, so that links to this server begin with
    https:// behind TLS. A pure ASGI wrapper."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._proxies = settings.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with the scheme that the reader uses."""
        if scope["type"] == "http" and _through_proxy(scope, self._proxies):
            scheme = Headers(scope=scope).get("x-forwarded-proto", "").strip().lower()
            if scheme in ("http", "https"):
                scope = {**scope, "scheme": scheme}
        await self._app(scope, receive, send)


def _through_proxy(scope: Scope, proxies: Sequence[Network]) -> bool:
    """Whether the request came through a trusted proxy, which checks the Host itself."""
    client = parse_address((scope.get("client") or ("",))[0])
    return client is not None and any(client in network for network in proxies)


def name_of(host: str) -> str:
    """The name in a Host header, in lower case and without the port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".")


def _matches(host: str, name: str) -> bool:
    return name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:]))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@cache
def _own_name() -> str:
    return socket.gethostname().lower()
