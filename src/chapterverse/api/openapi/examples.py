"""Examples for the OpenAPI description: questions, answers, events and errors.

A test parses each example with its model.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import TypeAdapter

from chapterverse.api.openai.schemas import DONE, Completion, CompletionChunk, CompletionError
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
    "page_id": "131d235f-1f0b-5102-ade4-34deb9f52f84",
    "reader_url": f"/read/131d235f-1f0b-5102-ade4-34deb9f52f84?quote=16-{16 + len(_QUOTE)}",
}

SUMMARY: Final[dict[str, Any]] = {
    "mode": "general",
    "session_id": _SESSION,
    "turn_id": "6f1d1c1e-0d9a-4a58-8a52-0a1f6b3f5c77",
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
        "judge_calls": 0,
        "judge_tokens": 0,
        "sentences_withheld": 0,
        "sentences_replaced": 0,
        "stored": True,
    },
}

RESPONSE: Final[dict[str, Any]] = {
    "answer": f"{_QUOTE[:-1]} [1].",
    "sources": [SOURCE],
    "statements": [{"start": 0, "end": len(_QUOTE) + 4, "kind": "quoted", "sources": [1]}],
    **SUMMARY,
}

_NAMES: Final[dict[str, Any]] = {
    "chapter": SOURCE["page_title"],
    "section": SOURCE["section_heading"],
    "url": SOURCE["source_url"],
    "page_url": "book/ros2/what-is-ros2.md",
    "module_name": SOURCE["module"],
    "similarity_score": SOURCE["relevance_score"],
}
RUN_RESPONSE: Final[dict[str, Any]] = {
    **RESPONSE,
    "response": RESPONSE["answer"],
    "query": "What is ROS 2?",
    "sources": [SOURCE | _NAMES],
    "citations": [{name: (SOURCE | _NAMES)[name] for name in ("page_title", "page_url", "module_name")}],
    "retrieval_time_ms": SUMMARY["metadata"]["retrieval_time_ms"],
    "generation_time_ms": SUMMARY["metadata"]["generation_time_ms"],
    "total_time_ms": SUMMARY["metadata"]["query_time_ms"],
}

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
    {"type": "chunk", "content": RESPONSE["answer"], "kind": "quoted", "cites": [1], "sources": [SOURCE]},
    {"type": "sources", "sources": [SOURCE]},
    {"type": "done", **SUMMARY},
]

CONVERSATIONS: Final[dict[str, Any]] = {
    "plain": {
        "summary": "A question",
        "value": {"model": "chapterverse", "messages": [{"role": "user", "content": "What is ROS 2?"}]},
    },
    "follow-up": {
        "summary": "A follow-up: the client sends the conversation",
        "value": {
            "model": "chapterverse",
            "messages": [
                {"role": "user", "content": "What is ROS 2?"},
                {"role": "assistant", "content": f"{_QUOTE[:-1]} [^1]."},
                {"role": "user", "content": "And how do its nodes talk?"},
            ],
            "chapterverse": {"top_k": 3, "filters": {"module": ["ros2"]}},
        },
    },
    "streaming": {
        "summary": "In chunks, with the tokens used",
        "value": {
            "model": "chapterverse",
            "messages": [{"role": "user", "content": "What is ROS 2?"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    },
}

_COMPLETION: Final[dict[str, Any]] = {"id": "chatcmpl-5f2b", "created": 1793611800, "model": "chapterverse"}
_PIECES: Final = (
    f"{_QUOTE[:-1]} [^1]. ",
    f"\n\n[^1]: {SOURCE['page_title']} — {SOURCE['source_url']}: “{_QUOTE}”",
)

_CITED: Final[dict[str, Any]] = {
    "start_index": len(_QUOTE),
    "end_index": len(_QUOTE) + len("[^1]"),
    "title": SOURCE["page_title"],
    "url": SOURCE["source_url"],
}
_ANNOTATIONS: Final = [{"type": "url_citation", "url_citation": _CITED}]

COMPLETED: Final[dict[str, Any]] = {
    **_COMPLETION,
    "choices": [
        {
            "message": {"content": "".join(_PIECES), "annotations": _ANNOTATIONS, "citations": [SOURCE]},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1400, "completion_tokens": 60, "total_tokens": 1460, "judge_tokens": 310},
}

CHUNKS: Final[list[dict[str, Any]]] = [
    {**_COMPLETION, "choices": [{"delta": {"role": "assistant", "content": ""}}]},
    *({**_COMPLETION, "choices": [{"delta": {"content": piece}}]} for piece in _PIECES),
    {
        **_COMPLETION,
        "choices": [{"delta": {"annotations": _ANNOTATIONS, "citations": [SOURCE]}, "finish_reason": "stop"}],
    },
]

_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(Event)
_CHUNK: Final[TypeAdapter[CompletionChunk | CompletionError]] = TypeAdapter(CompletionChunk | CompletionError)


def _stream(names: Sequence[str], messages: Iterable[str], end: str = "") -> dict[str, Any]:
    """Return the OpenAPI content for server-sent events: the schema of one event, whose data is JSON in a string, and
    an example. `end`: the data of the last event, if it is not JSON."""
    data: dict[str, Any] = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]},
    }
    schema = {
        "type": "object",
        "description": "One event: a line `data: {json}` and a blank line.",
        "required": ["data"],
        "properties": {"data": {"anyOf": [{"const": end}, data]} if end else data},
    }
    example = "".join(f"data: {message}\n\n" for message in (*messages, *filter(None, [end])))
    return {"text/event-stream": {"schema": schema, "example": example}}


ANSWER: Final[dict[str, Any]] = {"application/json": {"example": RESPONSE}}
RUN: Final[dict[str, Any]] = {"application/json": {"example": RUN_RESPONSE}}
STREAM: Final[dict[str, Any]] = _stream(
    ("RetrievedEvent", "ChunkEvent", "SourcesEvent", "DoneEvent", "ErrorEvent"),
    (_EVENT.validate_python(event).model_dump_json() for event in EVENTS),
)
COMPLETION: Final[dict[str, Any]] = {
    "application/json": {"example": Completion.model_validate(COMPLETED).model_dump(mode="json")}
}
COMPLETION_STREAM: Final[dict[str, Any]] = _stream(
    ("CompletionChunk", "CompletionError"),
    (_CHUNK.validate_python(chunk).model_dump_json() for chunk in CHUNKS),
    end=DONE,
)


def event_schemas() -> dict[str, Any]:
    """The schemas of all events and chunks, for the components of the description."""
    streamed = TypeAdapter(Event | CompletionChunk | CompletionError)
    schemas = streamed.json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    named: dict[str, Any] = schemas["$defs"]
    return named
