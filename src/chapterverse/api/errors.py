"""Error responses: every failure of a route becomes an `ErrorResponse` with its status.

Under `/v1` it is converted to OpenAI's error body, at `/mcp` to a JSON-RPC error. A stack trace is never shown.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chapterverse.api.middleware import CLIENT_GONE, note, request_id_of
from chapterverse.api.openai.schemas import in_openai_words
from chapterverse.errors import ChapterverseError, InternalError, NotFound, ValidationFailed
from chapterverse.fields import invalid, problem
from chapterverse.models import ErrorResponse

log = logging.getLogger(__name__)

_INVALID_REQUEST, _INTERNAL_ERROR = -32600, -32603  # codes of JSON-RPC

# For OpenAPI, by status: the code, its meaning, and an example of the message.
_ERRORS: dict[int, tuple[str, str, str]] = {
    400: (
        "validation_error",
        "a field, the JSON or a filter is invalid, or ALLOWED_HOSTS does not list the host; the message says what to "
        "change.",
        "query: must not be empty; write something",
    ),
    401: (
        "unauthorized",
        "API keys are configured, and no key or a wrong one was sent.",
        "An API key is needed. Send a valid one as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'.",
    ),
    404: ("not_found", "there is no such thing.", "There is nothing at /nowhere. See /docs for the routes."),
    405: (
        "validation_error",
        "the route has other methods; the header `Allow` lists them.",
        "PUT is not possible at /chat. See /docs for the routes.",
    ),
    408: ("validation_error", "the body is late.", "The body did not arrive within 10 s. Send it again."),
    413: ("validation_error", "the body is too large.", "The body is larger than 64 KiB. Send a smaller one."),
    429: (
        "rate_limited",
        "too many requests, or too many wrong keys; `Retry-After` says when the next request is accepted.",
        "More than 60 requests in 60 seconds. Ask again in 12 s.",
    ),
    500: (
        "internal_error",
        "with a request id to look up in the log.",
        "Something went wrong on our side. If it happens again, report request 5f2b.",
    ),
    503: (
        "retrieval_unavailable",
        "an engine is unavailable; also `embedding_failed`, `agent_unavailable`, `conversations_unavailable`, and "
        "`overloaded` if too many requests wait. Try again later, after `Retry-After` if it is sent.",
        "The book cannot be searched right now. Try again in a moment.",
    ),
}


def responses(*statuses: int, openai: bool = False, any_host: bool = False) -> dict[int | str, dict[str, Any]]:
    """Describe the error responses of a route for OpenAPI. `openai`: with OpenAI's error body. Some statuses are added:
    405 and 500 for every route; 400 for a host that ALLOWED_HOSTS does not list, unless `any_host`; 429 with 401,
    because wrong keys are counted; 408 with 413, because a body is read."""
    added = {405, 500} | ({408} if 413 in statuses else set()) | ({429} if 401 in statuses else set())
    return {
        status: _described(status, openai) for status in sorted({*statuses, *added} | (set() if any_host else {400}))
    }


def _described(status: int, openai: bool) -> dict[str, Any]:
    code, meaning, message = _ERRORS[status]
    wait = 12 if status in (429, 503) else None
    body = ErrorResponse(error_code=code, message=message, retry_after=wait)
    shown = in_openai_words(body, status) if openai else body
    described: dict[str, Any] = {
        "model": type(shown),
        "description": f"`{code}`: {meaning}",
        "content": {"application/json": {"example": shown.model_dump()}},
    }
    if wait:
        about = "Seconds to wait before the next try."
        described["headers"] = {"Retry-After": {"description": about, "schema": {"type": "integer"}}}
    return described


def install(app: FastAPI) -> None:
    """Install the handlers, so that every exception gets an `ErrorResponse`."""
    app.add_exception_handler(ChapterverseError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_middleware(Unexpected)


def error_response(failure: ChapterverseError, scope: Scope, headers: Mapping[str, str] | None = None) -> Response:
    """The HTTP response for one of our errors."""
    body = ErrorResponse.of(failure)
    waiting = {} if body.retry_after is None else {"Retry-After": str(body.retry_after)}
    return _json(body, failure.status, dict(headers or {}) | waiting, scope)


async def _ours(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, ChapterverseError)
    note(request.scope, error_code=failure.code)
    return error_response(failure, request.scope)


async def _invalid(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestValidationError)
    faults = [_fault(error) for error in failure.errors()]
    sent_as = request.headers.get("content-type", "")
    if [fault["field"] for fault in faults] == ["body"] and "json" not in sent_as:
        needed = f"JSON needs the header 'Content-Type: application/json'; {sent_as or 'none'} was sent"
        faults = [{"field": "body", "problem": needed}]
    return await _ours(request, invalid(faults))


async def _http(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException)
    if failure.status_code == 404:
        return await _ours(request, NotFound(f"There is nothing at {request.url.path}. See /docs for the routes."))
    if failure.status_code == 400:  # FastAPI could not read the body; the reason is the cause
        return await _ours(request, _unreadable(failure.__cause__))
    message, headers = str(failure.detail), failure.headers or {}
    if failure.status_code == 405:
        headers = {**headers, **_methods(request)}
        message = f"{request.method} is not possible at {request.url.path}. See /docs for the routes."
    body = ErrorResponse(error_code=ValidationFailed.code, message=message)
    note(request.scope, error_code=body.error_code)
    return _json(body, failure.status_code, headers, request.scope)


def _unreadable(cause: BaseException | None) -> ValidationFailed:
    """Return the error for a body that is not JSON in UTF-8."""
    fault: dict[str, Any] = {"field": "body", "problem": "cannot be read; send JSON in UTF-8"}
    if isinstance(cause, UnicodeDecodeError):
        at = cause.start
        fault = {"field": "body", "problem": f"not UTF-8 at position {at}; send JSON in UTF-8", "position": at}
    return ValidationFailed(f"body: {fault['problem']}", details={"errors": [fault]})


def _methods(request: Request) -> dict[str, str]:
    """Return an `Allow` header with all methods of the path. The router knows only those of the first matching
    route."""
    route = request.scope.get("route")  # set only for routes of FastAPI
    described = request.app.openapi()["paths"].get(route.path, ()) if route else ()
    methods = sorted([*map(str.upper, described), *(["HEAD"] if "get" in described else [])])
    return {"Allow": ", ".join(methods)} if methods else {}


async def _gone(_: Request, __: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


class Unexpected:
    """Turns unexpected exceptions into error responses. The innermost middleware, so that others add their headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on. An exception becomes an internal error with the request's id."""
        started = scope["type"] != "http"

        async def send_and_see(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_see)
        except Exception:
            if started:
                raise
            request_id = request_id_of(scope)
            log.exception("request %s failed", request_id)
            note(scope, error_code=InternalError.code)
            failure = InternalError(reported(InternalError.UNEXPECTED, scope), details={"request_id": request_id})
            await error_response(failure, scope)(scope, receive, send)


def reported(message: str, scope: Scope) -> str:
    """Return the message with the request's id, if it is that of an unexpected error."""
    unexpected = message == InternalError.UNEXPECTED
    return f"{message} If it happens again, report request {request_id_of(scope)}." if unexpected else message


def _fault(error: Mapping[str, Any]) -> dict[str, Any]:
    place: Sequence[Any] = error["loc"]
    if error["type"] == "json_invalid":
        reason = error.get("ctx", {}).get("error", "malformed")
        return {"field": "body", "problem": f"not valid JSON at position {place[-1]}: {reason}", "position": place[-1]}
    if error["type"] == "missing" and tuple(place) == ("body",):
        return {"field": "body", "problem": "must be a JSON object; none was sent"}
    name = ".".join(str(part) for part in place[1:]) or str(place[0])
    return {"field": name, "problem": problem(error)}


def _json(body: ErrorResponse, status: int, headers: Mapping[str, str], scope: Scope) -> Response:
    path = path_of(scope)
    shown: BaseModel = body
    if path.startswith("/v1/"):
        shown = in_openai_words(body, status)
    elif path == "/mcp":
        shown = in_jsonrpc_words(body, status)
    return Response(shown.model_dump_json(), status, dict(headers), "application/json")


def path_of(scope: Scope) -> str:
    """The path of a request inside this application."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class RpcFault(BaseModel):
    """What went wrong; `data` is the error body of other routes."""

    code: int
    message: str
    data: ErrorResponse


class RpcError(BaseModel):
    """A JSON-RPC error for a request that was refused before it was read."""

    jsonrpc: str = "2.0"
    id: None = None
    error: RpcFault


def in_jsonrpc_words(body: ErrorResponse, status: int) -> RpcError:
    """Convert an error body to a JSON-RPC error, for MCP clients."""
    code = _INVALID_REQUEST if status < 500 else _INTERNAL_ERROR
    return RpcError(error=RpcFault(code=code, message=body.message, data=body))
