"""The race: its arithmetic, its stub model and its clients. No racer is started."""

import asyncio
import json
from typing import Any

import pytest
from bench.race import answers
from bench.race.client import Client
from bench.race.figures import bars, load_figures, markdown, outcome, percentile, spread, summarise
from bench.race.phases import leave
from bench.race.racers import CONTROL, FLOOR, OURS, OURS_KEYLESS, OURS_UNJUDGED, RACERS

from chapterverse.evidence.passages import Evidence
from chapterverse.writing.messages import render_question, tool_response
from tests.chunks import chunk

SENTENCES = (
    "A node is a process that performs one computation in the graph. It talks to others over topics and services."
)
_, _, PASSAGE = Evidence().issue([chunk("One."), chunk("Two."), chunk(SENTENCES, "ROS 2 › Nodes", "nodes.md", 0.8)])
TOOL = {
    "type": "function",
    "function": {"name": "search", "parameters": {"properties": {"k": {"type": "integer"}, "q": {"type": "string"}}}},
}


def asked(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "What is a node?"}, *messages], **more}


def test_stub_model_with_a_tool_searches_first_and_then_answers() -> None:
    call = answers.reply(asked(tools=[TOOL]), "ok")
    assert call == answers.Call("search", '{"q": "What is a node?"}')
    result = {"role": "tool", "content": f"[1] nodes.md\n{SENTENCES}"}
    said = answers.reply(asked(result, tools=[TOOL]), "ok")
    assert isinstance(said, answers.Answer)
    assert said.text.startswith("A node is a process that performs one computation in the graph [1].")


def test_stub_model_makes_an_invalid_tool_call_only_once() -> None:
    assert answers.reply(asked(tools=[TOOL]), "unknown_tool") == answers.Call(
        "no_such_tool", '{"q": "What is a node?"}'
    )
    broken = answers.reply(asked({"role": "tool", "content": "found before"}, tools=[TOOL]), "malformed_tool")
    assert isinstance(broken, answers.Call)
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(broken.arguments)
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": answers.CALL_ID}]}
    assert isinstance(answers.reply(asked(called, tools=[TOOL]), "malformed_tool"), answers.Answer)


@pytest.mark.parametrize(
    "text",
    [
        tool_response("What is a node?", [PASSAGE]),  # ours
        render_question("What is a node?", [PASSAGE], "message")[0]["content"],  # ours, in the message
        f"[3] nodes.md\n{SENTENCES}",
        f"# [3] nodes.md\n{SENTENCES}",
        f"Source 3:\n{SENTENCES}",
    ],
)
def test_passages_are_found_in_the_prompt_of_every_racer(text: str) -> None:
    passages = answers.shown([{"role": "user", "content": "?"}, {"role": "tool", "content": text}])
    assert {number.partition(".")[0] for number, _ in passages} == {"3"}
    assert " ".join(" ".join(text for _, text in passages).split()) == SENTENCES


def test_stub_answer_uses_sentences_of_the_passages() -> None:
    said = answers.write([("3", SENTENCES)])
    assert said.replace(" [3].", ".") == SENTENCES
    assert "[9]" in answers.write([("3", SENTENCES)], answers.BAD_MARKER)
    assert answers.write([("1", "no sentence at all")]) == "no sentence at all [1]."


def test_every_answer_has_the_same_number_of_tokens() -> None:
    for text in (SENTENCES, SENTENCES * 3):
        parts = answers.pieces(text, 60)
        assert len(parts) == 60 and "".join(parts) == text and all(parts)
    assert answers.pieces("abc", 60) == ["a", "b", "c"]


def test_prompt_text_has_messages_and_tools() -> None:
    text = answers.prompt_text(asked({"role": "tool", "content": [{"type": "text", "text": "found"}]}, tools=[TOOL]))
    assert "What is a node?" in text and "found" in text and '"search"' in text


def test_percentiles_and_load_figures() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0 and percentile([], 0.5) == float("inf")
    figures = load_figures([0.1, 0.2, 0.3], wall=2.0, cpu=0.03)
    assert figures == {"p50_ms": 200.0, "p95_ms": 300.0, "rate": 1.5, "cpu_ms": 10.0}


RESULTS: dict[str, dict[str, list[Any]]] = {
    FLOOR: {"real.p50_ms": [1500.0, 1520.0, 9000.0], "c10.rate": [60.0], "cold_s": [2.0], "c10.cpu_ms": [4.0]},
    CONTROL: {"real.p50_ms": [1550.0], "c10.rate": [66.0], "cold_s": [2.2], "c10.cpu_ms": [4.0]},
    "llamaindex": {"real.p50_ms": [1600.0], "c10.rate": [30.0], "memory_mb": [400.0], "cold_s": [5.0]},
    "haystack": {"real.p50_ms": [1700.0], "c10.rate": [25.0], "cold_s": [3.2], "fault 429": ["bare 500, 13.9 s"]},
    OURS: {
        "real.p50_ms": [1530.0],
        "c10.rate": [29.0, 35.0, 31.0],
        "real.first_event_p95_ms": [75.0],
        "memory_mb": [250.0],
        "cold_s": [1.9],
        "failed": [0, 1, 2],
    },
    OURS_UNJUDGED: {"real.p50_ms": [1530.0]},
    OURS_KEYLESS: {"cold_s": [3.1]},
}


def test_summary_has_medians_of_rounds_and_sums_of_failures() -> None:
    summary = summarise(RESULTS)
    assert summary[FLOOR]["real.p50_ms"] == 1520.0
    assert summary[OURS]["c10.rate"] == 31.0 and summary[OURS]["failed"] == 3
    assert spread(RESULTS)["c10.rate"] == 1.1


def test_bars_are_judged_by_the_figures() -> None:
    judged = {words: met for words, met, _ in bars(summarise(RESULTS))}
    assert judged["end to end with a judge within 35 % of the floor"]
    assert judged["end to end without a judge within 5 % of the floor"]
    assert judged["end to end without a judge ahead of every peer"]
    assert judged["answers/s at 10 above every peer"]
    assert not judged["first event p95 under 60 ms"]
    assert judged[f"cold start below every peer: {OURS}"] and not judged[f"cold start under 3 s: {OURS_KEYLESS}"]
    assert judged[f"memory below LlamaIndex: {OURS}"]
    assert not any("installed" in words for words in judged)  # the installed size has no bar


def test_table_shows_all_racers_except_the_control() -> None:
    table = markdown(summarise(RESULTS))
    assert CONTROL not in table and "| 10 at once: answers/s | 60.0 | 30.0 | 25.0 | 31.0 | – |" in table
    assert "| 429 | – | – | bare 500, 13.9 s |" in table


@pytest.mark.parametrize(
    ("status", "body", "complete", "end", "words"),
    [
        (0, b"", False, b"", "no reply"),
        (500, b"Internal Server Error", True, b"", "bare 500"),
        (503, b'{"error_code": "agent_unavailable"}', True, b"", "503, says why"),
        (200, b"data: text", False, b"[DONE]", "cut, no error event"),
        (200, b'data: {"type":"error"}', True, b'"type":"done"', "error event"),
        (200, b"data: [DONE]", True, b"[DONE]", "answer"),
        (200, b"{}", True, b"", "answer"),
    ],
)
def test_outcome_of_a_failure_is_described(status: int, body: bytes, complete: bool, end: bytes, words: str) -> None:
    assert outcome(status, body, complete=complete, stream_end=end, stream_error=b'"type":"error"') == words


def test_racers_have_unique_slugs_and_complete_environments() -> None:
    assert len({racer.slug for racer in RACERS}) == len(RACERS)
    for racer in RACERS:
        assert "{" not in "".join(racer.env().values())
        assert racer.env()["LLM_URL"].endswith(f"/{racer.slug}/v1")
    ours = next(racer for racer in RACERS if racer.name == OURS)
    assert ours.env()["GEMINI_BASE_URL"] == ours.env()["LLM_URL"]
    assert ours.env()["OPENAI_BASE_URL"] == ours.env()["EMBED_URL"]
    assert ours.dialect.body("Why?") == {"query": "Why?"}
    keyless = next(racer for racer in RACERS if racer.name == OURS_KEYLESS)
    assert not {"GEMINI_API_KEY", "OPENAI_API_KEY"} & keyless.env().keys()


async def test_client_reads_plain_and_chunked_bodies_and_detects_truncation() -> None:
    heads = iter(
        [
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ]
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in heads:
            await reader.readuntil(b"{}")
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        client = Client(server.sockets[0].getsockname()[1])
        whole, chunked, cut = [await client.post("/", {}) for _ in range(3)]
    assert (bytes(whole.body), whole.complete) == (b"{}", True)
    assert (bytes(chunked.body), chunked.complete) == (b"abcde", True)
    assert (cut.status, bytes(cut.body), cut.complete) == (200, b"abc", False)


async def test_reader_leaves_also_when_no_text_was_shown() -> None:
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await reader.read()  # to the end of the connection
        left.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, asyncio.timeout(5):
        await leave(server.sockets[0].getsockname()[1], {}, seconds=0.1)
        await left.wait()
