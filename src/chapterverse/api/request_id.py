"""A request id for every request: in the answer's `X-Request-ID`, in logs and in internal errors.

A pure ASGI wrapper, so that streams pass through untouched. A client's own id is taken over when it is short and plain.
"""

import re
import uuid
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Gives each HTTP request its id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its id, and put the id into the answer's headers."""
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
    """The id of the request; empty outside of one."""
    return str(scope.get("chapterverse.request_id", ""))
