"""Examples for the OpenAPI description: questions, answers, events and errors as they really look.

Owns no behaviour. A test parses every one of them with the model it stands for.
"""

from typing import Any, Final

from pydantic import TypeAdapter

from chapterverse.models import Event

_SESSION: Final = "0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10"
_QUOTE: Final = "ROS 2 is a set of software libraries for building robots."

QUESTIONS: Final[dict[str, Any]] = {
    "plain": {"summary": "A question", "value": {"query": "What is ROS 2?"}},
    "follow-up": {
        "summary": "A follow-up in the same session",
        "value": {"query": "And how do its nodes talk?", "session_id": _SESSION},
    },
    "filtered": {
        "summary": "From one module, with at least this similarity",
        "value": {
            "query": "How are nodes tested?",
            "top_k": 3,
            "score_threshold": 0.4,
            "filters": {"module": ["ros2"]},
        },
    },
    "selected text": {
        "summary": "About a selected passage alone",
        "value": {
            "query": "What is it for?",
            "mode": "selected_text",
            "selected_text": f"{_QUOTE} It runs on Linux, Windows and macOS.",
        },
    },
    "streaming": {"summary": "As a stream of events", "value": {"query": "What is ROS 2?", "stream": True}},
}

SOURCE: Final[dict[str, Any]] = {
    "source_url": "book/ros2/what-is-ros2.md#what-is-ros-2",
    "page_title": "What Is ROS 2?",
    "section_heading": "What Is ROS 2?",
    "chunk_text": _QUOTE,
    "relevance_score": 0.91,
    "chunk_index": 0,
    "breadcrumb": "ros2 > What Is ROS 2?",
    "module": "ros2",
    "rank": 1,
    "quote": _QUOTE,
    "quote_start": 16,
    "quote_end": 16 + len(_QUOTE),
}

SUMMARY: Final[dict[str, Any]] = {
    "mode": "general",
    "session_id": _SESSION,
    "timestamp": "2026-11-02T09:30:00Z",
    "confidence": 0.93,
    "confidence_level": "high",
    "should_answer": True,
    "status": "answered",
    "metadata": {
        "query_time_ms": 1240.5,
        "retrieval_time_ms": 18.2,
        "generation_time_ms": 1201.7,
        "chunks_retrieved": 5,
        "model": "gemini-3.8-flash",
        "tokens_used": 1460,
        "llm_calls": 1,
        "sentences_withheld": 0,
        "stored": True,
    },
}

RESPONSE: Final[dict[str, Any]] = {"answer": f"{_QUOTE[:-1]} [1].", "sources": [SOURCE], **SUMMARY}

EVENTS: Final[list[dict[str, Any]]] = [
    {
        "type": "retrieved",
        "passages": [
            {
                "page_title": SOURCE["page_title"],
                "section_heading": SOURCE["section_heading"],
                "source_url": SOURCE["source_url"],
                "score": 0.91,
            }
        ],
    },
    {"type": "chunk", "content": RESPONSE["answer"]},
    {"type": "sources", "sources": [SOURCE]},
    {"type": "done", **SUMMARY},
]

_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(Event)

ANSWER: Final[dict[str, Any]] = {"application/json": {"example": RESPONSE}}
STREAM: Final[dict[str, Any]] = {
    "text/event-stream": {
        # As OpenAPI describes server-sent events: the schema of one event, whose data is JSON in a string.
        "schema": {
            "type": "object",
            "description": "One event: a line `data: {json}` and a blank line.",
            "required": ["data"],
            "properties": {
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": {
                        "oneOf": [
                            {"$ref": f"#/components/schemas/{name}"}
                            for name in ("RetrievedEvent", "ChunkEvent", "SourcesEvent", "DoneEvent", "ErrorEvent")
                        ],
                    },
                }
            },
        },
        "example": "".join(f"data: {_EVENT.validate_python(event).model_dump_json()}\n\n" for event in EVENTS),
    }
}


def event_schemas() -> dict[str, Any]:
    """The schemas of all events, for the components of the description."""
    schemas = _EVENT.json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    named: dict[str, Any] = schemas["$defs"]
    return named
