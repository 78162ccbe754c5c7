"""One error body everywhere: every failure of a route becomes an `ErrorResponse` with its status.

Under `/v1`, where OpenAI's clients ask, it says the same in OpenAI's words, and at `/mcp` in those of JSON-RPC.

A stack trace is never shown.
"""

import logging
import math
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
from chapterverse.models import ErrorResponse

log = logging.getLogger(__name__)

_INVALID_REQUEST, _INTERNAL_ERROR = -32600, -32603  # codes of JSON-RPC

# For OpenAPI: by status, the code, what it means, and a message as it is sent.
_ERRORS: dict[int, tuple[str, str, str]] = {
    400: (
        "validation_error",
        "a field, the JSON or a filter is not usable, or ALLOWED_HOSTS does not list the name that was asked for; the "
        "message says what to change.",
        "query: must not be empty; write something",
    ),
    401: (
        "unauthorized",
        "API keys are configured, and none or a wrong one was sent.",
        "An API key is needed. Send a valid one as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'.",
    ),
    404: ("not_found", "no such thing.", "There is nothing at /nowhere. See /docs for the routes."),
    405: (
        "validation_error",
        "the route takes other methods; the header `Allow` names them.",
        "PUT is not possible at /chat. See /docs for the routes.",
    ),
    408: ("validation_error", "the body did not come in time.", "The body did not come within 10 s. Send it again."),
    413: ("validation_error", "the body is too large.", "The body is larger than 64 KiB. Send a smaller one."),
    429: (
        "rate_limited",
        "asked too often, or too many wrong keys were sent; `Retry-After` says when the next request is taken.",
        "More than 60 requests in 60 seconds. Ask again in 12 s.",
    ),
    500: (
        "internal_error",
        "with a request id to look up in the log.",
        "Something went wrong on our side. If it happens again, report request 5f2b.",
    ),
    503: (
        "retrieval_unavailable",
        "an engine cannot be used now; also `embedding_failed`, `agent_unavailable`, `conversations_unavailable`, and "
        "`overloaded` when too many requests wait. Try again later, after `Retry-After` where it is sent.",
        "The book cannot be searched right now. Try again in a moment.",
    ),
}


def responses(*statuses: int, openai: bool = False, any_host: bool = False) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for OpenAPI; `openai`: in OpenAI's words. What follows from others is added: 405
    and 500 of any route; 400 for a name that ALLOWED_HOSTS does not list, unless the route answers to `any_host`; 429
    where a key may be guessed, which 401 tells; 408 where a body is read, which 413 tells."""
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
        about = "Seconds to wait before another try."
        described["headers"] = {"Retry-After": {"description": about, "schema": {"type": "integer"}}}
    return described


def install(app: FastAPI) -> None:
    """Have every exception answered in the one shape."""
    app.add_exception_handler(ChapterverseError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_middleware(Unexpected)


def error_response(failure: ChapterverseError, scope: Scope, headers: Mapping[str, str] | None = None) -> Response:
    """The HTTP answer to a request that ended in one of our errors."""
    wait = math.ceil(failure.retry_after) if failure.retry_after is not None else None
    body = ErrorResponse(error_code=failure.code, message=failure.message, details=failure.details, retry_after=wait)
    all_headers = dict(headers or {}) | ({"Retry-After": str(wait)} if wait is not None else {})
    return _json(body, failure.status, all_headers, scope)


async def _ours(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, ChapterverseError)
    note(request.scope, error_code=failure.code)
    return error_response(failure, request.scope)


async def _invalid(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestValidationError)
    faults = [_fault(error) for error in failure.errors()]
    sent_as = request.headers.get("content-type", "")
    if [fault["field"] for fault in faults] == ["body"] and "json" not in sent_as:
        wanted = f"JSON is read only with the header 'Content-Type: application/json'; {sent_as or 'none'} was sent"
        faults = [{"field": "body", "problem": wanted}]
    message = "; ".join(f"{fault['field']}: {fault['problem']}" for fault in faults)
    return await _ours(request, ValidationFailed(message, details={"errors": faults}))


async def _http(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException)
    if failure.status_code == 404:
        return await _ours(request, NotFound(f"There is nothing at {request.url.path}. See /docs for the routes."))
    message, headers = str(failure.detail), failure.headers or {}
    if failure.status_code == 405:
        headers = {**headers, **_methods(request)}
        message = f"{request.method} is not possible at {request.url.path}. See /docs for the routes."
    body = ErrorResponse(error_code=ValidationFailed.code, message=message)
    note(request.scope, error_code=body.error_code)
    return _json(body, failure.status_code, headers, request.scope)


def _methods(request: Request) -> dict[str, str]:
    """All methods of a described path; the router knows only those of the route it came upon first."""
    route = request.scope.get("route")  # only those of FastAPI's own kind are noted there
    described = request.app.openapi()["paths"].get(route.path) if route else None
    return {"Allow": ", ".join(sorted(method.upper() for method in described))} if described else {}


async def _gone(_: Request, __: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


class Unexpected:
    """Answers unexpected errors: the innermost middleware, so that the answer has the headers of the others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; a failure becomes an internal error with the request's id."""
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
            message = f"Something went wrong on our side. If it happens again, report request {request_id}."
            note(scope, error_code=InternalError.code)
            failure = InternalError(message, details={"request_id": request_id})
            await error_response(failure, scope)(scope, receive, send)


def _fault(error: Mapping[str, Any]) -> dict[str, Any]:
    place: Sequence[Any] = error["loc"]
    if error["type"] == "json_invalid":
        reason = error.get("ctx", {}).get("error", "malformed")
        return {"field": "body", "problem": f"not valid JSON at position {place[-1]}: {reason}", "position": place[-1]}
    name = ".".join(str(part) for part in place[1:]) or str(place[0])
    return {"field": name, "problem": problem(error)}


def problem(error: Mapping[str, Any]) -> str:
    """What is wrong with a field and, for the faults that readers make, what to do."""
    match error["type"], error.get("ctx"):
        case "string_too_short", {"min_length": 1}:
            return "must not be empty; write something"
        case "string_too_long", {"max_length": most}:
            return f"has {len(error['input']):,} characters; shorten it to {most:,} or fewer"
    return str(error["msg"]).removeprefix("Value error, ")


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
    """What went wrong; `data` is the body that other routes send."""

    code: int
    message: str
    data: ErrorResponse


class RpcError(BaseModel):
    """An answer to a request that was not read."""

    jsonrpc: str = "2.0"
    id: None = None
    error: RpcFault


def in_jsonrpc_words(body: ErrorResponse, status: int) -> RpcError:
    """The same error for a client of MCP."""
    code = _INVALID_REQUEST if status < 500 else _INTERNAL_ERROR
    return RpcError(error=RpcFault(code=code, message=body.message, data=body))
