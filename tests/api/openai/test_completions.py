"""The OpenAI-compatible API, called by OpenAI's own clients over real HTTP."""

import contextlib
import io
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from chapterverse.answering.refusals import NOT_IN_BOOK
from chapterverse.api.openai.completions import Footnoted, read
from chapterverse.api.openai.schemas import CompletionRequest
from chapterverse.api.openapi.examples import SOURCE
from chapterverse.conversations.turns import Turn
from chapterverse.embeddings.local import MODEL
from chapterverse.models import ChunkEvent, SourceCitation
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services
from tests.llm_stub import LlmStub, Replies, serving_llm
from tests.scripted import REFUSAL, SENTENCES, Scripted, wait_until, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

API = (Path(__file__).parents[3] / "docs" / "api.md").read_text("utf-8")
QUOTE = "ROS 2 is a set of software libraries for building robots."


def answer_of(site: str) -> str:
    """The scripted answer with its footnote."""
    note = f"\n\n[^1]: What Is ROS 2? — {site}{SOURCE['reader_url']}: “{QUOTE}”"
    return "".join(SENTENCES).replace("[1]", "[^1]") + note


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[openai.OpenAI]:
    with client_of(server) as client:
        yield client


def client_of(server: Served, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)


def messages_of(*messages: str) -> list[ChatCompletionMessageParam]:
    """Messages of user and assistant in turn, the user first."""
    roles = ("user", "assistant")
    return [cast(Any, {"role": roles[at % 2], "content": content}) for at, content in enumerate(messages)]


def ask(client: openai.OpenAI, *messages: str, **fields: Any) -> Any:
    return client.chat.completions.create(model="chapterverse", messages=messages_of(*messages), **fields)


def text_of(chunks: Sequence[ChatCompletionChunk]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def citations_of(message: Any) -> list[dict[str, Any]]:
    cited: list[dict[str, Any]] = message.model_extra["citations"]
    return cited


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_completion_has_content_citations_annotations_and_usage(server: Served, client: openai.OpenAI) -> None:
    answer = ask(client, "answer", temperature=0.7, max_tokens=5, tools=[], user="me")
    (choice,) = answer.choices
    assert (answer.object, answer.model, choice.finish_reason) == ("chat.completion", "chapterverse", "stop")
    assert (choice.message.role, choice.message.content) == ("assistant", answer_of(server.url))
    assert SourceCitation.model_validate(citations_of(choice.message)[0]).quote == QUOTE
    assert answer.usage.total_tokens == 1460
    assert len(choice.message.annotations) == 3
    for annotation in choice.message.annotations:
        cited = annotation.url_citation
        assert choice.message.content[cited.start_index : cited.end_index] == "[^1]"
        assert (cited.url, cited.title) == (server.url + SOURCE["reader_url"], "What Is ROS 2?"), "can be opened"


def test_stream_has_the_same_content_as_the_completion(client: openai.OpenAI) -> None:
    whole = ask(client, "answer")
    chunks = list(ask(client, "answer", stream=True))
    assert text_of(chunks) == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [*[None] * (len(chunks) - 1), "stop"]
    assert citations_of(chunks[-1].choices[0].delta) == citations_of(whole.choices[0].message)
    annotations = [annotation.model_dump() for annotation in whole.choices[0].message.annotations]
    assert chunks[-1].choices[0].delta.model_extra["annotations"] == annotations
    assert all(chunk.usage is None for chunk in chunks)


def test_stream_usage_is_sent_with_include_usage(client: openai.OpenAI) -> None:
    *_, finish, last = ask(client, "answer", stream=True, stream_options={"include_usage": True})
    assert finish.choices[0].finish_reason == "stop"
    assert (last.choices, last.usage.total_tokens) == ([], 1460)


@pytest.mark.parametrize("still_selected", [True, False])
def test_yes_to_the_offer_answers_from_the_book(example_server: Served, still_selected: bool) -> None:
    selected = {"chapterverse": {"selected_text": "The sky over the harbour is grey today."}}
    with client_of(example_server) as client:
        refused = ask(client, "What does tf2 keep track of?", extra_body=selected).choices[0].message.content
        assert "Would you like me to search the full documentation?" in refused
        more = {"extra_body": selected} if still_selected else {}
        answer = ask(client, "What does tf2 keep track of?", refused, "yes", **more).choices[0].message
    assert "coordinate frames" in answer.content
    assert citations_of(answer)[0]["source_url"] != "selected_text"


@pytest.mark.parametrize("content", ["\ud83d", [{"type": "text", "text": "\ud83d"}]])
def test_earlier_answer_with_half_a_character_is_invalid(server: Served, content: Any) -> None:
    """It could not be sent to the model, which was then reported as failed."""
    messages = messages_of("answer", content, "answer")
    answer = server.http.post(
        "/v1/chat/completions", content=json.dumps({"messages": messages}), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    fault = answer.json()["error"]
    assert "messages.1" in fault["message"] and "half of a character" in fault["message"]


def test_stream_headers_heartbeats_and_chunks(server: Served) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": "pause 0.3"}], "stream": True}
    answer = server.http.post("/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-store", "no")
    assert answer.text.count(": heartbeat\n\n") >= 2
    *chunks, end = (block for block in answer.text.strip().split("\n\n") if block.startswith("data: "))
    assert end == "data: [DONE]"
    first = json.loads(chunks[0].removeprefix("data: "))
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert (first["model"], "usage" in first) == ("any", False)


def test_markers_become_footnotes_but_not_brackets_of_the_book() -> None:
    form = Footnoted(CompletionRequest.model_validate({"messages": [{"role": "user", "content": "x"}]}), "")
    chunks = [
        ChunkEvent(content="See `a[1]` and b.c[2] [1][2].\n", cites=[1, 2]),
        ChunkEvent(content="```py\nx[1]\n```\n[2]\n", cites=[2]),
        ChunkEvent(content="| As Knuth says [2] [1] |\n", cites=[1]),
    ]
    shown = [one for chunk in chunks for one in form.revise(chunk)]
    assert [one.content for one in shown if isinstance(one, ChunkEvent)] == [
        "See `a[1]` and b.c\\[2\\] [^1][^2].\n",
        "```py\nx[1]\n```\n[^2]\n",
        "| As Knuth says \\[2\\] [^1] |\n",
    ]


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_history_and_question_are_read_from_the_messages(client: openai.OpenAI, script: Scripted) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "assistant", "content": "Ask me anything."},
        {"role": "user", "content": "What broke?"},
        {"role": "user", "content": [{"type": "text", "text": " What is "}, {"type": "text", "text": "ROS 2?"}]},
        {"role": "assistant", "content": answer_of("http://book.example") + "\n\n_Check it._"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "42", "tool_call_id": "x"},
        {"role": "user", "content": " answer "},
        {"role": "assistant", "content": "prefill"},
    ]
    options = {"filters": {"module": "ros2"}, "top_k": 3, "selected_text": " blanks count "}
    client.chat.completions.create(model="x", messages=messages, extra_body={"chapterverse": options})
    question = script.asked[-1]
    assert (question.query, question.session_id, question.top_k) == ("answer", None, 3)
    assert (question.mode, question.selected_text) == ("selected_text", " blanks count ")
    assert question.filters is not None and question.filters.module == ["ros2"]
    assert script.histories[-1] == [Turn(session_id="", query="What is\nROS 2?", response="".join(SENTENCES))]


def test_without_options_the_settings_apply() -> None:
    question, history = read(CompletionRequest.model_validate({"messages": messages_of("x")}))
    assert ("top_k" in question.model_fields_set, question.mode, history) == (False, "general", [])


class UnusableConversations:
    """A conversation store that fails the test when it is used."""

    async def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the conversations were asked to {name}")


@asynccontextmanager
async def without_conversations(settings: Settings) -> AsyncIterator[Services]:
    async with open_services(settings) as services:
        yield replace(services, conversations=cast(Any, UnusableConversations()))


@pytest.fixture(scope="module")
def book(example_home: Path) -> Iterator[Served]:
    """A server with real answers from the example book, whose conversation store fails the test when it is used."""
    settings = Settings.load(chapterverse_home=example_home, api_rate_limit=10_000)
    with serve(settings, opening=without_conversations) as served:
        yield served


def test_follow_up_is_resolved_from_the_messages_and_nothing_is_stored(book: Served) -> None:
    with client_of(book) as client:
        history_so_far: list[str] = []
        for question, words in (
            ("What is Tern?", "Tern"),
            ("How heavy is it?", "6 kg"),
            ("And how fast can it drive?", "0.5 m/s"),
        ):
            answer = ask(client, *history_so_far, question).choices[0].message.content
            assert words in answer
            history_so_far += question, answer


# ── the real answer ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_async_client_gets_a_cited_answer(book: Served) -> None:
    async with openai.AsyncOpenAI(base_url=f"{book.url}/v1", api_key="none", max_retries=0) as client:
        whole = await client.chat.completions.create(model="m", messages=messages_of("What is ROS 2?"))
        stream = await client.chat.completions.create(model="m", messages=messages_of("What is ROS 2?"), stream=True)
        chunks = [chunk async for chunk in stream]
        models = [model.id async for model in client.models.list()]
    message = whole.choices[0].message
    assert text_of(chunks) == message.content
    assert "[^1]" in (message.content or "")
    for number, source in enumerate(citations_of(message), start=1):
        page = book.http.get(f"/pages/{source['page_id']}").json()
        assert page["text"][source["quote_start"] : source["quote_end"]] == source["quote"]
        link = re.search(rf"^\[\^{number}\]: .* — (\S+): “.+”$", message.content or "", re.M)
        assert link is not None and link[1] == book.url + source["reader_url"], "the page has no address of its own"
        assert book.http.get(link[1]).status_code == 200
    assert citations_of(chunks[-1].choices[0].delta) == citations_of(message)
    assert models == ["chapterverse"]


def test_refusal_is_a_normal_completion_without_citations(book: Served, client: openai.OpenAI) -> None:
    with client_of(book) as asked:
        answer = ask(asked, "Which yeast makes the best sourdough bread?").choices[0]
        refusal, advice, nearest = answer.message.content.split("\n\n")
        assert (refusal, answer.finish_reason) == (NOT_IN_BOOK, "stop")
        assert advice.startswith("Searched for “Which yeast makes the best sourdough bread?”.")
        assert 1 <= len(nearest.split("\n")) <= 3
        for section in filter(lambda line: line.startswith("- "), nearest.split("\n")):
            link = section.rpartition(": ")[2]
            assert link.startswith(f"{book.url}/read/"), "the page has no address of its own"
            assert book.http.get(link).status_code == 200
        assert (citations_of(answer.message), answer.message.refusal) == ([], None)
        chunks = list(ask(asked, "Which yeast makes the best sourdough bread?", stream=True))
        assert text_of(chunks) == answer.message.content
    assert ask(client, "refuse").choices[0].message.content.startswith(REFUSAL)


def test_selected_text_is_answered_from_alone(book: Served) -> None:
    selection = "Kestrel is a drone.\nThe winch of the Kestrel lifts 12 kg."
    with client_of(book) as client:
        options = {"chapterverse": {"selected_text": selection}}
        message = ask(client, "How much does the winch lift?", extra_body=options).choices[0].message
    (source,) = citations_of(message)
    assert selection[source["char_start"] : source["char_end"]] == source["quote"]
    assert f"[^1]: User Selection: “{source['quote']}”" in message.content


@pytest.fixture(scope="module")
def liar() -> Iterator[LlmStub]:
    with serving_llm() as stub:
        yield stub


def test_only_verified_text_is_shown(example_home: Path, liar: LlmStub) -> None:
    settings = Settings.load(
        chapterverse_home=example_home, openai_api_key="key", openai_model="liar", openai_base_url=liar.url
    )
    liar.usual = Replies(
        "ROS 2 was founded by 47 penguins in Reykjavik [1]. See https://evil.example [2]. It can fly [^3]."
    )
    with serve(settings, opening=without_conversations) as server, client_of(server) as client:
        answer = ask(client, "What is ROS 2?")
        streamed = text_of(list(ask(client, "What is ROS 2?", stream=True)))
        assert client.models.list().data[0].model_extra == {"metadata": {"language_model": "liar", "embeddings": MODEL}}
    assert answer.choices[0].message.content == streamed
    assert not re.search(r"penguin|Reykjavik|evil|fly", streamed)
    assert answer.usage.total_tokens > 0


async def test_agents_sdk_can_use_the_server_as_its_model(book: Served) -> None:
    async with openai.AsyncOpenAI(base_url=f"{book.url}/v1", api_key="none") as client:
        model = OpenAIChatCompletionsModel("chapterverse", client)
        agent = Agent(name="reader", instructions="Answer from the book.", model=model)
        config = RunConfig(tracing_disabled=True)
        whole = await Runner.run(agent, "What is ROS 2?", run_config=config)
        streamed = Runner.run_streamed(
            agent, [*whole.to_input_list(), cast(Any, messages_of("Tell me more")[0])], run_config=config
        )
        async for _ in streamed.stream_events():
            pass
    assert "[^1]" in whole.final_output
    assert "[^1]" in streamed.final_output


def test_snippet_in_the_documentation_works(book: Served) -> None:
    (snippet,) = re.findall(r"```python\n(from openai import .*?)```", API, re.S)
    assert len(snippet.splitlines()) < 10
    shown = io.StringIO()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(shown):
        exec(snippet.replace("http://localhost:8000", book.url), names)
    names["book"].close()
    assert "[^1]" in shown.getvalue()


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fault_of(failure: openai.APIStatusError, kind: str, code: str) -> dict[str, Any]:
    body = failure.response.json()
    assert set(body) == {"error"}
    fault: dict[str, Any] = body["error"]
    assert set(fault) == {"message", "type", "param", "code"}
    assert (fault["type"], fault["code"], failure.code) == (kind, code, code)
    return fault


@pytest.mark.parametrize(
    ("fields", "param", "expected"),
    [
        ({"n": 2}, "n", "must be 1"),
        ({"messages": []}, "messages", "1 or more values"),
        ({"messages": [{"role": "system", "content": "x"}]}, None, "one with the role user"),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages.0.user.content.0.text", "must not be empty"),
        ({"messages": [{"role": "user", "content": "x" * 2001}]}, "messages.0.user.content.0.text", "shorten it"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 1500}] * 2}]}, "query", "shorten"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages.0.user.content.0.type",
            "text",
        ),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0", "role"),
        ({"extra_body": {"chapterverse": {"top_k": 21}}}, "chapterverse.top_k", "20"),
        ({"extra_body": {"chapterverse": {"author": "me"}}}, "chapterverse.author", "no such field"),
        ({"extra_body": {"chapterverse": {"selected_text": " "}}}, "chapterverse.selected_text", "must not be empty"),
    ],
)
def test_invalid_field_returns_400_and_is_named(
    client: openai.OpenAI, fields: dict[str, Any], param: str | None, expected: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**{"model": "m", "messages": messages_of("answer"), **fields})
    fault = fault_of(raised.value, "invalid_request_error", "validation_error")
    assert fault["param"] == param
    assert expected in fault["message"]


def test_unsupported_routes_methods_and_bodies_return_openai_errors(client: openai.OpenAI, server: Served) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        client.embeddings.create(model="m", input="x")
    fault_of(raised.value, "invalid_request_error", "not_found")
    assert server.http.get("/v1/chat/completions").json()["error"]["code"] == "validation_error"
    assert server.http.post("/v1/chat/completions", content=b"{").json()["error"]["type"] == "invalid_request_error"
    large = server.http.post("/v1/chat/completions", content=b" " * 70_000)
    assert (large.status_code, large.json()["error"]["type"]) == (413, "invalid_request_error")
    assert "error_code" in server.http.get("/nowhere").json()


def test_wrong_key_and_rate_limit_raise_the_sdk_errors(script: Scripted) -> None:
    settings = Settings.load(api_keys="right", api_key_rate_limit=2)
    with serve(settings, opening=without_engines(), answering=script) as server:
        with client_of(server, "wrong") as client, pytest.raises(openai.AuthenticationError) as wrong:
            ask(client, "answer")
        fault_of(wrong.value, "invalid_request_error", "invalid_api_key")
        with client_of(server, "right") as client:
            assert [ask(client, "answer").choices[0].finish_reason for _ in range(2)] == ["stop", "stop"]
            with pytest.raises(openai.RateLimitError) as often:
                ask(client, "answer")
        fault_of(often.value, "rate_limit_error", "rate_limit_exceeded")
        assert int(often.value.response.headers["retry-after"]) > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_before_the_first_byte_is_an_http_error(client: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.InternalServerError) as raised:
        ask(client, "prepare fail", stream=stream)
    fault_of(raised.value, "server_error", "retrieval_unavailable")
    assert (raised.value.status_code, raised.value.response.headers["retry-after"]) == (503, "2")


def test_failed_answer_returns_503(client: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as raised:
        ask(client, "fail agent_unavailable")
    fault_of(raised.value, "server_error", "agent_unavailable")


@pytest.mark.parametrize(
    ("query", "code"), [("fail agent_unavailable", "agent_unavailable"), ("break", "internal_error")]
)
def test_a_failure_inside_a_stream_is_its_last_message(
    client: openai.OpenAI, server: Served, query: str, code: str
) -> None:
    shown = []
    with pytest.raises(openai.APIError) as raised:
        shown += list(ask(client, query, stream=True))
    assert (raised.value.code, raised.value.type) == (code, "server_error")
    body = {"messages": [{"role": "user", "content": query}], "stream": True}
    *_, last = server.http.post("/v1/chat/completions", json=body).text.strip().split("\n\n")
    assert set(json.loads(last.removeprefix("data: "))) == {"error"}
    assert "secret" not in last


def test_client_disconnect_cancels_the_answer(client: openai.OpenAI, script: Scripted) -> None:
    with ask(client, "pause 61", stream=True) as chunks:
        next(chunks)
    wait_until(lambda: "pause 61" in script.closed, seconds=15)
