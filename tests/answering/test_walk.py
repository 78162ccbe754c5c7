"""The walk of one question through the modules in ARCHITECTURE.md is compared with a trace."""

import inspect
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
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
from tests.llm_stub import LlmStub, Replies

PACKAGE = Path(chapterverse.__file__).parent
WALKED = ("answering", "writing", "evidence", "trained")
ARCHITECTURE = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text("utf-8")
ON_FAILURE = {"answering/refusals.py"}  # not used for a question that is answered
VALUES = {"evidence/statement.py", "answering/scope.py", "writing/__init__.py"}  # types that other modules pass on
IN_A_THREAD = {"trained/section_reader.py"}  # threads are not traced
MOST_NESTED = 4
TRACED: ContextVar["Trace | None"] = ContextVar("TRACED", default=None)

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


@dataclass
class Trace:
    """The files in the order in which they were first entered, and the deepest nesting of async generators of ours."""

    files: dict[str, None] = field(default_factory=dict)
    nested: list[str] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        # A task of an earlier question may still run, so only calls of this question are traced.
        if event != "call" or TRACED.get() is not self or not _is_ours(frame):
            return
        if frame.f_code.co_name != "__init__":  # creating an object is no step of the walk
            self.files.setdefault(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))
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
    token = TRACED.set(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        TRACED.reset(token)


async def traced(services: Services) -> Trace:
    with tracing() as trace:
        prepared = await prepare(ChatRequest(query="What is a ROS 2 node?"), services, turns=())
        events = [event async for event in stream(prepared, services)]
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].status == "answered"
    return trace


def documented(heading: str) -> list[str]:
    """The files of a documented walk, in order."""
    walk = ARCHITECTURE.partition(heading)[2].partition("\n### ")[0].partition("\n## ")[0]
    return re.findall(r"\*\*`([\w/]+\.py)`\*\*", walk)


def compare(trace: Trace, walk: list[str]) -> None:
    entered = [name for name in trace.files if name.split("/")[0] in WALKED and name not in VALUES | ON_FAILURE]
    assert len(walk) == len(set(walk)), "the documented walk has a file twice"
    assert entered == [name for name in walk if name not in ON_FAILURE | IN_A_THREAD], (
        "the traced order differs from the documented one"
    )
    assert len(trace.nested) <= MOST_NESTED, trace.nested


async def test_documented_walk_with_a_language_model_and_a_judge(asking_llm: Services, llm: LlmStub) -> None:
    llm.usual = Replies("A node is one program among several that talk to each other [1.1].")  # a paraphrase
    llm.judge.mode = "gullible"
    await traced(asking_llm)  # warm up: objects that are created once
    compare(await traced(asking_llm), documented("### With a language model and a judge"))


async def test_documented_walk_with_a_language_model_without_a_judge(asking_llm: Services, llm: LlmStub) -> None:
    llm.usual = Replies("A node is one program among several that talk to each other [1.1].")
    alone = replace(asking_llm, judge=None)
    await traced(alone)
    compare(await traced(alone), documented("### With a language model and without a judge"))


async def test_stream_over_http_nests_at_most_four_generators(asking_llm: Services, llm: LlmStub) -> None:
    llm.usual = Replies("A node is one program among several that talk to each other [1.1].")
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
    assert trace.nested[-1] == "_observed", "the generator of the route is not in the trace"
    assert len(trace.nested) <= MOST_NESTED, trace.nested


async def test_documented_walk_without_a_language_model(keyless: Services) -> None:
    await traced(keyless)
    compare(await traced(keyless), documented("### Without a language model"))
