"""The walks of one question in ARCHITECTURE.md, compared with a trace of one."""

import inspect
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2
import pytest

import chapterverse
from chapterverse.answering import prepare, stream
from chapterverse.main import create_app
from chapterverse.models import ChatRequest, DoneEvent
from chapterverse.services import Services
from chapterverse.settings import Settings
from tests.llm_stub import LlmStub, Says

PACKAGE = Path(chapterverse.__file__).parent
WALKED = ("answering", "writing", "evidence", "trained")
ARCHITECTURE = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text("utf-8")
ON_FAILURE = {"writing/failures.py", "answering/refusals.py"}  # a question that is answered does not enter these
VALUES = {"evidence/statement.py", "answering/scope.py", "writing/__init__.py"}  # types that the others pass on
IN_A_THREAD = {"trained/section_reader.py"}  # which is not traced
MOST_NESTED = 4

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


@dataclass
class Trace:
    """The files that were entered, and the deepest nesting of async generators of ours."""

    files: set[str] = field(default_factory=set)
    nested: list[str] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        self.files.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))
        stack = [each.f_code.co_name for each in _stack(frame) if each.f_code.co_flags & inspect.CO_ASYNC_GENERATOR]
        self.nested = max(self.nested, stack, key=len)


def _is_ours(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(PACKAGE)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if _is_ours(frame):
            yield frame
        frame = frame.f_back


@contextmanager
def tracing() -> Iterator[Trace]:
    trace = Trace()
    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)


async def traced(services: Services) -> Trace:
    with tracing() as trace:
        prepared = await prepare(ChatRequest(query="What is a ROS 2 node?"), services, told=())
        events = [event async for event in stream(prepared, services)]
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].status == "answered"
    return trace


def documented(heading: str) -> set[str]:
    """The files of a walk. `as above` in the shorter one means those of the longer one."""
    walk = ARCHITECTURE.partition(heading)[2].partition("\n### ")[0].partition("\n## ")[0]
    return set(re.findall(r"\*\*`([\w/]+\.py)`\*\*", walk))


def compare(trace: Trace, walk: set[str]) -> None:
    entered = {name for name in trace.files if name.split("/")[0] in WALKED}
    assert entered - VALUES <= walk, "files that the walk leaves out"
    assert walk - ON_FAILURE - IN_A_THREAD <= entered, "files that the question did not enter"
    assert len(trace.nested) <= MOST_NESTED, trace.nested


async def test_the_walk_with_a_language_model_and_a_judge(asking_llm: Services, llm: LlmStub) -> None:
    llm.usual = Says("A node is one program among several that talk to each other [1.1].")  # not the book's words
    llm.judge.mode = "gullible"
    await traced(asking_llm)  # what is made once is made
    compare(await traced(asking_llm), documented("### With a language model and a judge"))


async def test_a_stream_over_http_nests_no_deeper(asking_llm: Services, llm: LlmStub) -> None:
    llm.usual = Says("A node is one program among several that talk to each other [1.1].")
    llm.judge.mode = "gullible"

    @asynccontextmanager
    async def opening(_: Settings) -> AsyncIterator[Services]:
        yield asking_llm

    app = create_app(asking_llm.settings, opening=opening)
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        with tracing() as trace:
            answer = await client.post("/chat/stream", json={"query": "What is a ROS 2 node?"})
    assert '"type":"done"' in answer.text
    assert trace.nested[-1] == "_seen", "the route's own generator is traced, too"
    assert len(trace.nested) <= MOST_NESTED, trace.nested


async def test_the_walk_without_a_language_model(keyless: Services) -> None:
    await traced(keyless)
    compare(await traced(keyless), documented("### Without a language model"))
