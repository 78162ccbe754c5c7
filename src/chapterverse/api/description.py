"""The OpenAPI description: FastAPI's own, made to say what is really sent.

Owns the differences: bad requests are 400 and never 422, events have schemas, routes that need a key say so when keys
are configured.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from chapterverse.api.examples import event_schemas
from chapterverse.api.limits import needs_key

_KEYS: dict[str, Any] = {
    "Bearer": {"type": "http", "scheme": "bearer", "description": "One of `API_KEYS`."},
    "X-API-Key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "One of `API_KEYS`."},
}


def describe(app: FastAPI, with_keys: bool) -> dict[str, Any]:
    """The description of all routes, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = schema["components"]
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                if with_keys and needs_key(path):
                    operation["security"] = [{name: []} for name in _KEYS]
        for unused in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(unused, None)
        components["schemas"] = event_schemas() | components["schemas"]
        if with_keys:
            components["securitySchemes"] = _KEYS
        app.openapi_schema = schema
    return app.openapi_schema
