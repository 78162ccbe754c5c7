"""The OpenAPI description is complete: routes, fields, errors, events and examples."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from chapterverse.api.chat.seed_names import ChatBody, RunBody, RunResponse
from chapterverse.api.mcp.tools import _TOOLS
from chapterverse.api.openai.schemas import Completion, CompletionChunk, CompletionError, CompletionRequest
from chapterverse.api.openapi.examples import (
    CHUNKS,
    COMPLETED,
    CONVERSATIONS,
    EVENTS,
    QUESTIONS,
    RESPONSE,
    RUN_RESPONSE,
)
from chapterverse.main import create_app
from chapterverse.models import ChatRequest, ChatResponse, ErrorResponse, Event
from chapterverse.settings import Settings
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

_ANY = {"400", "405", "500"}  # statuses of every route
_KEYED = _ANY | {"401", "429"}  # statuses of routes that need a key
_ASKED = _KEYED | {"200", "408", "413", "503"}
ROUTES = {
    ("post", "/chat"): _ASKED,
    ("post", "/chat/run"): _ASKED,
    ("post", "/chat/stream"): _ASKED,
    ("post", "/v1/chat/completions"): _ASKED,
    ("post", "/v1/responses"): _ASKED,
    ("get", "/v1/models"): _KEYED | {"200"},
    ("post", "/search"): _ASKED,
    ("post", "/mcp"): _ASKED | {"202", "403", "406"},
    ("get", "/books"): _KEYED | {"200", "503"},
    ("get", "/pages"): _KEYED | {"200", "503"},
    ("get", "/pages/{page_id}"): _KEYED | {"200", "404", "503"},
    ("get", "/pages/{page_id}.md"): _KEYED | {"200", "304", "404", "503"},
    ("get", "/llms.txt"): _KEYED | {"200", "304", "503"},
    ("get", "/llms-full.txt"): _KEYED | {"200", "304", "503"},
    ("get", "/images/{name}"): _KEYED | {"200", "404"},
    ("get", "/suggestions"): _KEYED | {"200", "503"},
    ("get", "/sessions/{session_id}"): _KEYED | {"200", "404", "503"},
    ("delete", "/sessions/{session_id}"): _KEYED | {"204", "404", "503"},
    ("post", "/feedback"): _ASKED | {"404"},
    ("get", "/health"): _ANY | {"200", "429", "503"},
    ("get", "/livez"): {"200", "405", "500"},
    ("get", "/readyz"): {"200", "405", "500", "503"},
    ("get", "/metrics"): _ANY | {"200"},
    ("get", "/"): _ANY | {"200", "304", "404"},
    ("get", "/read/{page_id}"): _ANY | {"200", "304", "307", "404"},
    ("get", "/contents/{state}"): _ANY | {"200", "304", "503"},
    ("get", "/logo"): _ANY | {"200", "404"},
    ("get", "/widget.js"): _ANY | {"200", "304"},
    ("get", "/assets/{wanted}/{name}"): _ANY | {"200", "304", "404"},
    ("get", "/docs"): _ANY | {"200"},
    ("get", "/docs/{name}"): _ANY | {"200", "404"},
    ("get", "/openapi.json"): _ANY | {"200"},
}
Route = tuple[str, str]


def served(router: Any) -> Iterator[Route]:
    """Every route of the application, also those that are not in the description."""
    for route in router.routes:
        if inner := getattr(route, "original_router", None):
            yield from served(inner)
        else:
            yield from ((method.lower(), route.path) for method in route.methods)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return create_app(Settings.load(), without_engines(), Scripted()).openapi()


def test_description_lists_every_route_and_status(schema: dict[str, Any]) -> None:
    described = {
        (method, path): set(operation["responses"])
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    }
    assert set(described) == set(served(create_app(Settings.load(), without_engines(), Scripted())))
    assert described == ROUTES


def status_of(server: Served, route: Route, **headers: str) -> int:
    path = re.sub(r"\{\w+\}", "5f2b7c1e-0d9a-4a58-8a52-0a1f6b3f5c77", route[1])
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.http.request(route[0], path, headers=named).status_code


def test_disallowed_host_returns_400_on_exactly_the_routes_described_so() -> None:
    with serve(Settings.load(allowed_hosts="book.test"), opening=without_engines(), answering=Scripted()) as server:
        for route, statuses in ROUTES.items():
            assert (status_of(server, route, host="else.test") == 400) == ("400" in statuses), route


@pytest.mark.parametrize("route", [route for route, statuses in ROUTES.items() if "429" in statuses])
def test_repeated_wrong_key_returns_429_on_the_routes_described_so(route: Route) -> None:
    settings = Settings.load(api_keys="sesame", api_rate_limit=1)
    with serve(settings, opening=without_engines(), answering=Scripted()) as server:
        assert [status_of(server, route, x_api_key="wrong") for _ in range(2)] == [
            200 if "401" not in ROUTES[route] else 401,
            429,
        ]


def test_errors_have_a_schema_and_a_valid_example(schema: dict[str, Any]) -> None:
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if status[0] in "23" or (path, status) == ("/health", "503") or path == "/mcp":
                    continue
                if path in ("/", "/read/{page_id}") and status == "404":  # an HTML page for browsers
                    assert set(answer["content"]) == {"text/html"}
                    continue
                content = answer["content"]["application/json"]
                if path.startswith("/v1/"):
                    assert content["schema"] == {"$ref": "#/components/schemas/CompletionError"}
                    CompletionError.model_validate(content["example"])
                else:
                    assert content["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}
                    example = ErrorResponse.model_validate(content["example"])
                    assert f"`{example.error_code}`" in answer["description"]
                assert ("Retry-After" in answer.get("headers", {})) == (status in ("429", "503"))


def test_every_schema_reference_exists(schema: dict[str, Any]) -> None:
    names = set(re.findall(r"#/components/schemas/(\w+)", str(schema)))
    assert names <= set(schema["components"]["schemas"])
    assert not {"HTTPValidationError", "ValidationError"} & set(schema["components"]["schemas"])


def test_schemas_have_every_field_of_requests_and_responses(schema: dict[str, Any]) -> None:
    for model in (ChatBody, RunBody, ChatResponse, RunResponse, CompletionRequest, Completion, CompletionChunk):
        assert set(schema["components"]["schemas"][model.__name__]["properties"]) == set(model.model_fields)


def test_streams_are_described_by_their_events(schema: dict[str, Any]) -> None:
    for path in ("/chat", "/chat/run", "/chat/stream"):
        content = schema["paths"][path]["post"]["responses"]["200"]["content"]
        events = content["text/event-stream"]["schema"]["properties"]["data"]["contentSchema"]["oneOf"]
        assert len(events) == 5
        assert content["text/event-stream"]["example"].count("data: ") == len(EVENTS)
        assert ("application/json" in content) == (path != "/chat/stream")


def test_examples_are_valid() -> None:
    assert {ChatRequest.model_validate(question["value"]).mode for question in QUESTIONS.values()} == {
        "general",
        "selected_text",
    }
    ChatResponse.model_validate(RESPONSE)
    RunResponse.model_validate(RUN_RESPONSE)
    events = [TypeAdapter[Event](Event).validate_python(event) for event in EVENTS]
    assert [event.type for event in events] == ["retrieved", "chunk", "sources", "done"]
    for conversation in CONVERSATIONS.values():
        CompletionRequest.model_validate(conversation["value"])
    whole = Completion.model_validate(COMPLETED).choices[0].message.content
    chunks = [CompletionChunk.model_validate(chunk).choices[0].delta for chunk in CHUNKS]
    assert "".join(delta.content or "" for delta in chunks) == whole


def test_no_route_requires_a_key_if_none_is_configured(schema: dict[str, Any]) -> None:
    assert schema["components"]["securitySchemes"].keys() == {"Bearer", "X-API-Key"}
    for operations in schema["paths"].values():
        for operation in operations.values():
            assert {} in operation.get("security", [{}])


def test_routes_require_a_key_if_keys_are_configured() -> None:
    paths = create_app(Settings.load(api_keys="k"), without_engines(), Scripted()).openapi()["paths"]
    required = {
        path for path, operations in paths.items() for one in operations.values() if {} not in one.get("security", [{}])
    }
    assert required >= {"/chat", "/search", "/pages", "/sessions/{session_id}", "/v1/responses", "/mcp"}
    assert not required & {"/health", "/livez", "/metrics"}


def test_mcp_description_names_every_tool(schema: dict[str, Any]) -> None:
    operation = schema["paths"]["/mcp"]["post"]
    for tool in _TOOLS:
        assert f"`{tool}`" in operation["description"]
