"""The real server still sends the stream that was recorded, and that the widget's tests replay."""

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from chapterverse.models import Event
from tests.api.stream_snapshot import QUESTION, SNAPSHOT, events_of, handbook_server

RECORDED = SNAPSHOT.read_text("utf-8")
OF_THIS_RUN = {
    "session_id",
    "turn_id",
    "timestamp",
    "query_time_ms",
    "retrieval_time_ms",
    "generation_time_ms",
    "tokens_used",
    "stored",
}


def alike(recorded: Any, sent: Any) -> bool:
    """Equal, but for what belongs to one run; scores are the same on every processor, rounding aside."""
    if isinstance(recorded, dict):
        return recorded.keys() == sent.keys() and all(
            name in OF_THIS_RUN or alike(value, sent[name]) for name, value in recorded.items()
        )
    if isinstance(recorded, list):
        return len(recorded) == len(sent) and all(map(alike, recorded, sent))
    if isinstance(recorded, float):
        return math.isclose(recorded, sent, abs_tol=0.001)
    return bool(recorded == sent)


@pytest.mark.slow
def test_the_server_sends_what_was_recorded(tmp_path: Path) -> None:
    with handbook_server(tmp_path) as server:
        sent = events_of(server.http.post("/chat/stream", json=QUESTION).text)
    recorded = events_of(RECORDED)
    assert [event["type"] for event in sent] == [event["type"] for event in recorded]
    for before, now in zip(recorded, sent, strict=True):
        assert alike(before, now), f"{before} is now {now}; if so it shall be: python -m tests.api.stream_snapshot"


def test_the_record_has_every_kind_of_event_that_an_answer_has() -> None:
    events = events_of(RECORDED)
    assert {event["type"] for event in events} == {"retrieved", "chunk", "sources", "done"}
    for event in events:
        TypeAdapter[Any](Event).validate_python(event)
