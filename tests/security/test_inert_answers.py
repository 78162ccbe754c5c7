"""Images, HTML and links in a book are inert in the replies of `/v1` and MCP."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines
from tests.api.test_inert import active
from tests.served import Served, serve

pytestmark = pytest.mark.slow

IMAGE = "!\\[x](https://evil.example/p.png)"
PAGE = f"""# Kestrel {IMAGE} \\<img src=https://evil.example/t.png>

The Kestrel drone weighs 12 kg, {IMAGE} says \\<script>alert(1)\\</script> the maker \\[here](https://evil.example/l).

## Winch {IMAGE}

The winch of the Kestrel lifts 30 kg \\<iframe src=https://evil.example>, see https://evil.example/b, www.evil.example.
"""
QUESTIONS = ("How heavy is the Kestrel drone?", "How much does the winch of the Kestrel lift?", "Who baked the bread?")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("hostile")
    (place / "book").mkdir()
    (place / "book" / "kestrel.md").write_text(PAGE)
    settings = Settings.load(chapterverse_home=place, database_url=postgres_url, api_rate_limit=10_000)

    async def fill() -> None:
        async with open_engines(settings) as engines:
            source = open_source(str(place / "book"), SourceOptions(base_url="https://book.example/docs"))
            await ingest([source], Workshop(engines.index, engines.embedder, place))

    asyncio.run(fill())
    with serve(settings) as served:
        yield served


def assert_inert(text: str) -> None:
    """Only addresses of the book's own site may become links."""
    shown = text.replace("https://book.example/", "")
    assert not active(shown), shown


@pytest.mark.parametrize("question", QUESTIONS)
def test_completions_are_inert(server: Served, question: str) -> None:
    body = {"messages": [{"role": "user", "content": question}]}
    content = server.http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    assert_inert(content)
    plain = server.http.post("/chat", json={"query": question}).json()
    if plain["status"] == "answered":
        assert "https://book.example/docs" in content
    lines = server.http.post("/v1/chat/completions", json=body | {"stream": True}).text.split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    streamed = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert streamed == content


async def test_mcp_is_inert(server: Served, tmp_path: Path) -> None:
    async with Client(streamable_http_client(f"{server.url}/mcp"), mode="2026-07-28") as client:
        calls = [
            ("search_documentation", {"query": "Kestrel winch"}),
            ("read_page", {"url": "https://book.example/docs/kestrel.md"}),
        ]
        calls += [("ask_book", {"question": question}) for question in QUESTIONS]
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            texts = [block.text for block in result.content if isinstance(block, TextContent)]
            assert texts
            for text in texts:
                assert_inert(text)
        (page,) = (await client.list_resources()).resources
        assert page.mime_type == "text/plain"
