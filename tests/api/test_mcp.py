"""MCP with the SDK's own client, over real stdio and real HTTP, with the current and the older protocol version."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent, TextResourceContents

from chapterverse.answering.refusals import NOT_IN_BOOK
from chapterverse.api.mcp import tools
from chapterverse.api.pages import PageText
from chapterverse.models import ChatResponse, SearchResult
from chapterverse.settings import Settings
from tests.scripted import Scripted, wait_until, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

DOCS = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
SELECTION = "🤖 Kestrel is a drone.\r\nThe winch of the Kestrel lifts 12 kg.\r\nIt is painted red."
TOOLS = ["search_documentation", "ask_book", "read_page", "list_books", "rate_answer"]


@pytest.fixture(scope="module")
def server(example_home: Path, postgres_url: str) -> Iterator[Served]:
    settings = Settings.load(chapterverse_home=example_home, database_url=postgres_url, api_rate_limit=100_000)
    with serve(settings) as served:
        yield served


def started(home: Path, **environment: str) -> StdioServerParameters:
    """How a client starts the command. Clients pass on little of their own environment."""
    env = {"CHAPTERVERSE_HOME": str(home), **environment}
    return StdioServerParameters(command=sys.executable, args=["-m", "chapterverse.cli", "mcp"], env=env)


@asynccontextmanager
async def with_headers(url: str, **headers: str) -> AsyncIterator[Client]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=named, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode="2026-07-28") as client,
    ):
        yield client


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def refused(result: CallToolResult, code: str) -> dict[str, Any]:
    """The body of a tool's error."""
    assert result.is_error
    body: dict[str, Any] = result.structured_content
    assert body["error_code"] == code
    assert texts(result) == [f"{code}: {body['message']}"]
    return body


async def use_everything(client: Client) -> None:
    """Uses every tool and resource. The client checks results against the schemas that the server listed."""
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    found = await client.call_tool("search_documentation", {"query": "What is ROS 2?", "top_k": 3})
    passages = SearchResult.model_validate(found.structured_content).results
    assert len(passages) == len(found.content) == 3
    assert passages[0].chunk_text in texts(found)[0] and passages[0].source_url in texts(found)[0]

    asked_book = await client.call_tool("ask_book", {"question": "What is ROS 2?", "filters": {"module": "ros2"}})
    answer = ChatResponse.model_validate(asked_book.structured_content)
    assert answer.status == "answered" and answer.metadata.stored and "[1]" in answer.answer
    assert texts(asked_book)[0] == answer.answer
    assert all(source.quote in texts(asked_book)[-1] and source.module == "ros2" for source in answer.sources)
    again = await client.call_tool("ask_book", {"question": "Who maintains it?", "session_id": answer.session_id})
    assert again.structured_content["session_id"] == answer.session_id

    rated = await client.call_tool("rate_answer", {"turn_id": answer.turn_id, "rating": "down", "reason": "unclear"})
    assert rated.structured_content["session_id"] == answer.session_id
    assert texts(rated) == ["Stored: down, unclear."]
    unknown = {"turn_id": str(uuid4()), "rating": "up"}
    refused(await client.call_tool("rate_answer", unknown), "not_found")
    refused(await client.call_tool("rate_answer", unknown | {"reason": "wrong"}), BAD)

    silent = await client.call_tool("ask_book", {"question": "Which yeast makes the best sourdough bread?"})
    refusal, advice = texts(silent)
    assert not silent.is_error and refusal == NOT_IN_BOOK
    assert silent.structured_content["status"] == "refused"
    assert silent.structured_content["advice"] == advice and 1 <= len(silent.structured_content["nearest"]) <= 3
    within = {"question": "How much does the winch of the Kestrel lift?", "selected_text": SELECTION}
    source = (await client.call_tool("ask_book", within)).structured_content["sources"][0]
    assert SELECTION[source["char_start"] : source["char_end"]] == source["quote"]
    assert "12 kg" in source["quote"]

    cited = answer.sources[0]
    for arguments in ({"page_id": cited.page_id}, {"url": cited.source_url}, {"url": passages[0].source_url}):
        page = PageText.model_validate((await client.call_tool("read_page", arguments)).structured_content)
        assert page.page_id in (cited.page_id, passages[0].page_id)
        if page.page_id == cited.page_id:
            assert page.text[cited.quote_start : cited.quote_end] == cited.quote
    titles = {resource.uri: resource.title for resource in (await client.list_resources()).resources}
    assert len(titles) == 22
    uri = f"chapterverse://pages/{cited.page_id}"
    assert titles[uri] == cited.page_title
    content = (await client.read_resource(uri)).contents[0]
    assert isinstance(content, TextResourceContents)
    assert content.text[cited.quote_start : cited.quote_end] == cited.quote
    template = (await client.list_resource_templates()).resource_templates[0]
    assert template.uri_template == "chapterverse://pages/{page_id}"
    await make_invalid_calls(client)


async def make_invalid_calls(client: Client) -> None:
    """Makes invalid calls."""
    body = refused(await client.call_tool("search_documentation", {"query": "x", "filters": {"colour": "red"}}), BAD)
    assert body["details"]["errors"][0]["field"] == "filters.colour"
    assert "question" in refused(await client.call_tool("ask_book", {"question": " "}), BAD)["message"]
    refused(await client.call_tool("ask_book", {"question": "What?", "selected_text": " \n"}), BAD)
    refused(await client.call_tool("ask_book", {"question": "What?", "session_id": "mine"}), BAD)
    refused(await client.call_tool("read_page", {}), BAD)
    lost = refused(await client.call_tool("read_page", {"url": "nowhere.md"}), "not_found")
    assert lost["message"] == "There is no page nowhere.md in the book.", "the message has the URL as it was sent"
    with pytest.raises(MCPError, match="no tool write_page"):
        await client.call_tool("write_page", {})
    for uri in ("chapterverse://pages/none", "file:///etc/passwd"):
        with pytest.raises(MCPError) as failure:
            await client.read_resource(uri)
        assert failure.value.data["error_code"] == "not_found"


BAD = "validation_error"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_tool_and_resource_works_over_http(server: Served, mode: str) -> None:
    async with Client(f"{server.url}/mcp", mode=mode) as client:
        await use_everything(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_tool_and_resource_works_over_stdio(example_home: Path, database_url: str, mode: str) -> None:
    async with Client(started(example_home, DATABASE_URL=database_url), mode=mode) as client:
        await use_everything(client)


async def test_calls_without_a_book_report_retrieval_unavailable(tmp_path: Path) -> None:
    async with Client(started(tmp_path)) as client:
        body = refused(await client.call_tool("search_documentation", {"query": "x"}), "retrieval_unavailable")
        assert "chapterverse ingest" in body["message"]
        refused(await client.call_tool("ask_book", {"question": "What is ROS 2?"}), "retrieval_unavailable")
        with pytest.raises(MCPError) as failure:
            await client.list_resources()
        assert failure.value.data["error_code"] == "retrieval_unavailable"


async def test_resources_are_listed_in_pages(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "LISTED", 10)
    async with Client(f"{server.url}/mcp") as client:
        seen, cursor, sizes = set[str](), None, []
        while cursor is not None or not seen:
            part = await client.list_resources(cursor=cursor)
            seen |= {resource.uri for resource in part.resources}
            sizes.append(len(part.resources))
            cursor = part.next_cursor
        assert sizes == [10, 10, 2] and len(seen) == 22
        for invalid in ("next", "9" * 5000):
            with pytest.raises(MCPError, match="is not a cursor"):
                await client.list_resources(cursor=invalid)


# ── stdio ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def command(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "chapterverse.cli", "-v", "mcp"],
        env=os.environ | {"CHAPTERVERSE_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_stdio_writes_only_the_protocol_to_stdout_and_exits_at_the_end_of_stdin(example_home: Path) -> None:
    with command(example_home) as process:
        asked_book, _ = process.communicate('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\nnot JSON\n', timeout=60)
    assert process.returncode == 0
    assert [json.loads(line)["jsonrpc"] for line in asked_book.splitlines()] == ["2.0"]


def test_ctrl_c_stops_stdio_while_it_waits_for_input(example_home: Path) -> None:
    with command(example_home) as process:
        assert process.stdin and process.stdout
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stdout.read() == ""


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_wrong_key_is_unauthorized() -> None:
    settings = Settings.load(api_keys="right-key")
    with serve(settings, opening=without_engines(), answering=Scripted()) as served:
        async with with_headers(served.url, authorization="Bearer right-key") as client:
            assert not (await client.call_tool("ask_book", {"question": "answer"})).is_error
        async with with_headers(served.url, x_api_key="wrong-key") as client:
            with pytest.raises(MCPError, match="An API key is needed") as failure:
                await client.list_tools()
        assert failure.value.data["error_code"] == "unauthorized"


async def test_requests_over_the_rate_limit_are_refused() -> None:
    settings = Settings.load(api_rate_limit=3)
    with serve(settings, opening=without_engines(), answering=Scripted()) as served:
        async with Client(f"{served.url}/mcp", mode="2026-07-28") as client:
            for _ in range(3):
                await client.list_tools()
            with pytest.raises(MCPError, match="More than 3 requests") as failure:
                await client.call_tool("ask_book", {"question": "answer"})
            assert failure.value.data["error_code"] == "rate_limited"
            assert failure.value.data["retry_after"] > 0


async def test_calls_take_slots_and_errors_keep_their_codes() -> None:
    script = Scripted()
    settings = Settings.load(max_concurrent_requests=2)
    with serve(settings, opening=without_engines(), answering=script) as served:
        async with Client(f"{served.url}/mcp") as client:
            pauses = [client.call_tool("ask_book", {"question": "prepare pause 0.1"}) for _ in range(6)]
            assert [result.is_error for result in await asyncio.gather(*pauses)] == [False] * 6
            assert script.most_preparing == 2
            body = refused(await client.call_tool("ask_book", {"question": "prepare fail"}), "retrieval_unavailable")
            assert body["retry_after"] == 2
            broken = await client.call_tool("search_documentation", {"query": "no engine is there"})
            assert "went wrong" in refused(broken, "internal_error")["message"]
        metrics = served.http.get("/metrics").text
        assert 'route="/mcp"' in metrics
        assert 'code="retrieval_unavailable"' in metrics and 'code="internal_error"' in metrics


async def test_client_disconnect_cancels_the_call() -> None:
    script = Scripted()
    with serve(Settings.load(), opening=without_engines(), answering=script) as served:
        call = {"name": "ask_book", "arguments": {"question": "pause 60"}}
        for headers in ({}, {"mcp-protocol-version": "2025-11-25"}):
            script.closed.clear()
            with pytest.raises(httpx2.ReadTimeout):
                served.http.post(
                    "/mcp",
                    json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
                    headers={"accept": "application/json, text/event-stream", **headers},
                    timeout=0.5,
                )
            wait_until(lambda: script.closed == ["pause 60"], seconds=30)


def test_foreign_origins_other_methods_and_large_bodies_are_refused() -> None:
    settings = Settings.load(cors_origins="https://docs.example.com")
    with serve(settings, opening=without_engines(), answering=Scripted()) as served:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"accept": "application/json, text/event-stream"}
        assert served.http.post("/mcp", json=ping, headers=accept).json()["result"] == {}
        allowed = accept | {"origin": "https://docs.example.com"}
        assert served.http.post("/mcp", json=ping, headers=allowed).status_code == 200
        rebound = served.http.post("/mcp", json=ping, headers=accept | {"origin": "http://evil.example"})
        assert rebound.status_code == 403
        assert "CORS_ORIGINS" in rebound.json()["error"]["message"]
        for method in ("GET", "DELETE"):
            answer = served.http.request(method, "/mcp", headers=accept)
            assert answer.status_code == 405 and answer.headers["allow"] == "POST"
        large = served.http.post("/mcp", content=b" " * 70_000, headers=accept | {"content-type": "application/json"})
        assert large.status_code == 413
        assert large.json()["error"]["data"]["error_code"] == BAD


# ── the documentation ────────────────────────────────────────────────────────────────────────────────────────────────


def section() -> str:
    return DOCS.split("\n## MCP\n")[1].split("\n## ")[0]


def test_the_documented_client_gets_a_cited_answer(server: Served) -> None:
    snippet = re.findall(r"```python\n(.*?)```", section(), re.S)[0]
    assert len([line for line in snippet.splitlines() if line]) < 10
    script = snippet.replace("http://localhost:8000", server.url)
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "ROS 2" in shown.stdout and "[1]" in shown.stdout and "book/ros2/" in shown.stdout


async def test_the_documented_registration_starts_the_server(example_home: Path) -> None:
    registered = json.loads(re.findall(r"```json\n(.*?)```", section(), re.S)[0])["mcpServers"]["book"]
    assert registered["command"] == "chapterverse"
    registered["command"] = str(Path(sys.executable).with_name("chapterverse"))
    registered["env"] = {"CHAPTERVERSE_HOME": str(example_home)}
    async with Client(StdioServerParameters(**registered)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS


def test_every_tool_and_resource_is_documented() -> None:
    for name in (*TOOLS, "chapterverse://pages/{page_id}"):
        assert f"`{name}" in section()
