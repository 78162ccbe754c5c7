"""Makes the OpenAPI description from that of FastAPI.

Differences from FastAPI's: invalid requests are 400 instead of 422, events have schemas, `/mcp` is included, and routes
that need a key say so.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from chapterverse.api.access.guard import needs_key
from chapterverse.api.openapi.examples import event_schemas

_KEYS: dict[str, Any] = {
    "Bearer": {"type": "http", "scheme": "bearer", "description": "One of `API_KEYS`."},
    "X-API-Key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "One of `API_KEYS`."},
}


_JSON_RPC: dict[str, Any] = {"jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "integer", "null"]}}
_MCP: dict[str, Any] = {
    "post": {
        "tags": ["MCP"],
        "operationId": "mcp",
        "summary": "Model Context Protocol",
        "description": "The book for assistants and editors, over streamable HTTP without sessions: the tools "
        "`search_documentation`, `ask_book`, `read_page`, `list_books` and `rate_answer`, and every page as a "
        "resource. The tools describe themselves: `tools/list`. `Accept` must name `application/json` and "
        "`text/event-stream`.",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {**_JSON_RPC, "method": {"type": "string"}, "params": {"type": "object"}},
                        "required": ["jsonrpc", "method"],
                    },
                    "example": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
                }
            },
        },
    }
}
_MCP_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        **_JSON_RPC,
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "data": {"$ref": "#/components/schemas/ErrorResponse"},
            },
        },
    },
}
_MCP_STATUSES: dict[str, str] = {
    "400": "Not a JSON-RPC request, or a host that ALLOWED_HOSTS does not list.",
    "401": "`unauthorized`",
    "403": "The request is from a website that CORS_ORIGINS does not list.",
    "405": "Only POST is possible.",
    "406": "`Accept` does not name both media types.",
    "408": "The body is late.",
    "413": "The body is too large.",
    "429": "`rate_limited`",
    "500": "`internal_error`",
    "503": "`overloaded`, or an engine is unavailable.",
}


def _mcp() -> dict[str, Any]:
    """Return the description of `/mcp`, a route that FastAPI does not know."""
    error = {"content": {"application/json": {"schema": _MCP_ERROR}}}
    responses: dict[str, Any] = {
        "200": {
            "description": "A JSON-RPC result, or an error with our error body as its `data`.",
            "content": {"application/json": {"schema": {"type": "object", "properties": _JSON_RPC}}},
        },
        "202": {"description": "A notification was accepted."},
        **{status: {"description": about, **error} for status, about in _MCP_STATUSES.items()},
    }
    return {"post": _MCP["post"] | {"responses": responses}}


def describe(app: FastAPI, with_keys: bool) -> dict[str, Any]:
    """Return the description of all routes. It is made at the first call and cached."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = schema["components"]
        schema["paths"]["/mcp"] = _mcp()
        keys: list[dict[str, Any]] = [{name: []} for name in _KEYS]
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                if needs_key(path):
                    operation["security"] = keys if with_keys else [{}, *keys]
                elif path == "/health":  # with a key it shows more
                    operation["security"] = [{}, *keys]
        for unused in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(unused, None)
        components["schemas"] = event_schemas() | components["schemas"]
        components["securitySchemes"] = _KEYS
        app.openapi_schema = schema
    return app.openapi_schema
