"""OpenAI's Responses API, used by OpenAI's own client over real HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from chapterverse.api.openapi.examples import SOURCE
from chapterverse.settings import Settings
from tests.llm_stub import Quotes, serving_llm
from tests.scripted import REFUSAL, SENTENCES, Scripted
from tests.served import Served, serve

pytestmark = pytest.mark.slow

TEXT = "".join(SENTENCES).replace("[1]", "[^1]")


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_response_has_text_annotations_and_usage(server: Served, client: openai.OpenAI) -> None:
    response = client.responses.create(model="any", input="answer", instructions="Be brief.", temperature=0.3)
    assert (response.object, response.status, response.model) == ("response", "completed", "any")
    assert response.output_text.startswith(TEXT)
    message: Any = response.output[0]
    content = message.content[0]
    assert len(content.annotations) == 3
    for annotation in content.annotations:
        assert content.text[annotation.start_index : annotation.end_index] == "[^1]"
        assert (annotation.type, annotation.url) == ("url_citation", server.url + SOURCE["reader_url"])
        assert annotation.title == "What Is ROS 2?"
    assert content.citations[0]["quote"] == SOURCE["quote"]
    assert response.usage is not None and response.usage.total_tokens == 1460


def test_stream_events_have_the_same_content_as_the_response(client: openai.OpenAI) -> None:
    whole = client.responses.create(model="any", input="answer")
    events = list(client.responses.create(model="any", input="answer", stream=True))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == whole.output_text
    assert kinds.count("response.output_text.annotation.added") == 3


def test_sdk_collects_the_stream_into_a_response(client: openai.OpenAI) -> None:
    with client.responses.stream(model="any", input="answer") as stream:
        final = stream.get_final_response()
    assert final.output_text.startswith(TEXT)


def test_history_and_question_are_read_from_the_input(client: openai.OpenAI, script: Scripted) -> None:
    given: Any = [
        {"role": "developer", "content": "Ignore the book."},
        {"role": "user", "content": [{"type": "input_text", "text": "What is ROS 2?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A set of libraries."}]},
        {"type": "function_call_output", "call_id": "1", "output": "nothing"},
        {"role": "user", "content": "answer"},
    ]
    client.responses.create(model="any", input=given)
    assert script.asked[-1].query == "answer"
    (turn,) = script.histories[-1] or ()
    assert (turn.query, turn.response) == ("What is ROS 2?", "A set of libraries.")


def test_refusal_is_text_and_failures_are_errors(client: openai.OpenAI) -> None:
    response = client.responses.create(model="any", input="refuse")
    assert response.output_text.startswith(REFUSAL)
    with pytest.raises(openai.APIStatusError) as refused:
        client.responses.create(model="any", input="prepare fail")
    assert refused.value.status_code == 503
    last = list(client.responses.create(model="any", input="fail agent_unavailable", stream=True))[-1]
    assert last.type == "error"
    assert (last.code, last.message) == ("agent_unavailable", "As the script says.")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"input": ""}, "empty"),
        ({"input": []}, "input"),
        ({"input": [{"role": "assistant", "content": "x"}]}, "must contain one with the role user"),
        ({"input": "x", "previous_response_id": "resp_1"}, "send the conversation as input"),
    ],
)
def test_unsupported_input_returns_400(server: Served, fields: dict[str, Any], expected: str) -> None:
    answer = server.http.post("/v1/responses", json={"model": "any", **fields})
    assert answer.status_code == 400
    assert expected in answer.json()["error"]["message"]


def test_tokens_are_counted_by_kind(example_home: Path, postgres_url: str) -> None:
    with serving_llm() as llm:
        llm.usual = Quotes(2)
        settings = Settings.load(
            chapterverse_home=example_home, database_url=postgres_url, openai_api_key="k", openai_base_url=llm.url
        )
        with serve(settings) as server:
            question = {"messages": [{"role": "user", "content": "What is ROS 2?"}]}
            usage = server.http.post("/v1/chat/completions", json=question).json()["usage"]
            assert usage["prompt_tokens"] == 100 and usage["completion_tokens"] == 7  # as the stub counts
            assert usage["total_tokens"] == 107
            counted = server.http.post("/v1/responses", json={"input": "What is ROS 2?"}).json()["usage"]
            assert (counted["input_tokens"], counted["output_tokens"], counted["total_tokens"]) == (100, 7, 107)
            assert "chapterverse_unstored_turns_total 0.0" in server.http.get("/metrics").text, (
                "turns of this API are not stored on purpose, so none is counted as unstored"
            )
