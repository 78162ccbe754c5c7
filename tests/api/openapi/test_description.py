"""The OpenAPI description says everything that is sent: routes, fields, errors, events, examples."""

import re
from typing import Any

import pytest
from pydantic import TypeAdapter

from chapterverse.api.chat.seed_names import ChatBody, RunBody, RunResponse
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

ROUTES = {
    ("post", "/chat"): {"200", "400", "401", "413", "429", "500", "503"},
    ("post", "/chat/run"): {"200", "400", "401", "413", "429", "500", "503"},
    ("post", "/chat/stream"): {"200", "400", "401", "413", "429", "500", "503"},
    ("post", "/v1/chat/completions"): {"200", "400", "401", "413", "429", "500", "503"},
    ("post", "/v1/responses"): {"200", "400", "401", "413", "429", "500", "503"},
    ("get", "/v1/models"): {"200", "401", "429", "500"},
    ("post", "/search"): {"200", "400", "401", "413", "429", "500", "503"},
    ("get", "/books"): {"200", "401", "500", "503"},
    ("get", "/pages"): {"200", "400", "401", "500", "503"},
    ("get", "/pages/{page_id}"): {"200", "400", "401", "404", "500", "503"},
    ("get", "/sessions/{session_id}"): {"200", "400", "401", "404", "500", "503"},
    ("delete", "/sessions/{session_id}"): {"204", "400", "401", "404", "500", "503"},
    ("post", "/feedback"): {"200", "400", "401", "404", "413", "429", "500", "503"},
    ("get", "/health"): {"200", "500", "503"},
    ("get", "/livez"): {"200", "500"},
    ("get", "/readyz"): {"200", "500", "503"},
    ("get", "/metrics"): {"200", "500"},
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return create_app(Settings.load(), without_engines(), Scripted()).openapi()


def test_every_route_with_every_status(schema: dict[str, Any]) -> None:
    described = {
        (method, path): set(operation["responses"])
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    }
    for route, statuses in ROUTES.items():
        late = {"408"} if "413" in statuses else set()
        assert described.get(route) == statuses | late | {"405"}, route


def test_errors_have_their_body_and_an_example(schema: dict[str, Any]) -> None:
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if status.startswith("2") or operation["operationId"].startswith("health") or path == "/mcp":
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


def test_every_reference_leads_somewhere(schema: dict[str, Any]) -> None:
    names = set(re.findall(r"#/components/schemas/(\w+)", str(schema)))
    assert names <= set(schema["components"]["schemas"])
    assert not {"HTTPValidationError", "ValidationError"} & set(schema["components"]["schemas"])


def test_every_field_of_a_question_and_an_answer(schema: dict[str, Any]) -> None:
    for model in (ChatBody, RunBody, ChatResponse, RunResponse, CompletionRequest, Completion, CompletionChunk):
        assert set(schema["components"]["schemas"][model.__name__]["properties"]) == set(model.model_fields)


def test_streams_are_described_by_their_events(schema: dict[str, Any]) -> None:
    for path in ("/chat", "/chat/run", "/chat/stream"):
        content = schema["paths"][path]["post"]["responses"]["200"]["content"]
        events = content["text/event-stream"]["schema"]["properties"]["data"]["contentSchema"]["oneOf"]
        assert len(events) == 5
        assert content["text/event-stream"]["example"].count("data: ") == len(EVENTS)
        assert ("application/json" in content) == (path != "/chat/stream")


def test_the_examples_are_real() -> None:
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


def test_without_keys_no_route_asks_for_one(schema: dict[str, Any]) -> None:
    assert schema["components"]["securitySchemes"].keys() == {"Bearer", "X-API-Key"}
    for operations in schema["paths"].values():
        for operation in operations.values():
            assert {} in operation.get("security", [{}])


def test_with_keys_the_routes_say_so() -> None:
    paths = create_app(Settings.load(api_keys="k"), without_engines(), Scripted()).openapi()["paths"]
    required = {
        path for path, operations in paths.items() for one in operations.values() if {} not in one.get("security", [{}])
    }
    assert required >= {"/chat", "/search", "/pages", "/sessions/{session_id}", "/v1/responses", "/mcp"}
    assert not required & {"/health", "/livez", "/metrics"}


def test_mcp_is_described(schema: dict[str, Any]) -> None:
    operation = schema["paths"]["/mcp"]["post"]
    for tool in ("search_documentation", "ask_book", "read_page", "rate_answer"):
        assert tool in operation["description"]
