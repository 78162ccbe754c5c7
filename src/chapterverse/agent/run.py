"""One run of the agent: ask, let the model search again if it wants to, pass on what it writes, end in time.

Owns the retries, the deadline and the cancelling of the model's call. Never judges what was written.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, cast

from agents import (
    Agent,
    FunctionTool,
    MaxTurnsExceeded,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunResultStreaming,
    TResponseInputItem,
    set_tracing_disabled,
)
from agents.tool_context import ToolContext
from pydantic import Field, ValidationError

from chapterverse.agent.failures import VENDOR_FAULTS
from chapterverse.agent.task import Finished, LanguageModel, Search, Searched, Stopped, Task, Wrote
from chapterverse.errors import AgentUnavailable, ChapterverseError
from chapterverse.models import MAX_TOP_K, Query, SearchFilters, Strict
from chapterverse.prompts import SEARCH_TOOL, answer_prompt, selection_prompt
from chapterverse.refusals import NOT_IN_BOOK, not_in_selection, topic_of_question
from chapterverse.transcript import (
    SEARCH,
    Item,
    fitting,
    render_history,
    render_question,
    render_search,
    render_selection,
    tool_error,
    tool_response,
)

RETRIES: Final = 2  # after the first try, and only while nothing has been written
FIRST_PAUSE: Final = 0.2  # seconds before the first retry; doubled each time, half of it by chance
DEFAULT_TOP_K: Final = 5

# The SDK would send every run to OpenAI. Off for the whole process, whatever else runs in it.
set_tracing_disabled(True)
_CONFIG = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")

Event = Wrote | Searched | Finished

# Plain types only: servers differ in what else of JSON Schema they take.
_VALUES = {"type": "array", "items": {"type": "string"}}
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "The question or topic to search for."},
        "top_k": {"type": "integer", "description": f"How many passages, at most {MAX_TOP_K}."},
        "filters": {
            "type": "object",
            "description": "Which passages may be found. Leave out unless the reader asks for it.",
            "properties": {
                "source_url": _VALUES,
                "page_title": _VALUES,
                "section_heading": _VALUES,
                "module": _VALUES,
                "source_url_prefix": {"type": "string"},
            },
        },
    },
    "required": ["query"],
}


class _SearchCall(Strict):
    """What the model asks the tool for."""

    query: Query
    top_k: int = Field(DEFAULT_TOP_K, ge=1, le=MAX_TOP_K)
    filters: SearchFilters | None = None


@dataclass(slots=True)
class _Course:
    """How far a question has come, over all tries."""

    search: Search | None
    searches: list[Searched] = field(default_factory=list)
    told: int = 0  # of the searches, how many were passed on
    wrote: bool = False
    calls: int = 0
    tokens: int = 0
    written: int = 0  # of the tokens

    def finished(self, stopped: Stopped = "") -> Finished:
        return Finished(self.tokens, self.calls, stopped, self.written)

    def news(self) -> list[Searched]:
        fresh, self.told = self.searches[self.told :], len(self.searches)
        return fresh


class _Calls(RunHooks[_Course]):
    """Counts the model's calls, those that fail too."""

    async def on_llm_start(
        self,
        context: RunContextWrapper[_Course],
        agent: Agent[_Course],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        context.context.calls += 1


async def run_agent(task: Task, model: LanguageModel, *, max_turns: int, seconds: float) -> AsyncGenerator[Event, None]:
    """What the model does with a task, as it happens. Close the generator early and its call is cancelled at once.

    Raises `AgentUnavailable` when the model cannot be had; text passed on before that stays passed on."""
    now = asyncio.get_running_loop().time
    end = now() + seconds
    course = _Course(task.search)
    pause = FIRST_PAUSE
    for tries_left in range(RETRIES, -1, -1):
        try:
            async with aclosing(_try(task, model, course, max_turns, end)) as events:
                async for event in events:
                    yield event
            return
        except AgentUnavailable as failure:
            wait = max(failure.retry_after or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads calls
            if course.wrote or not failure.retryable or not tries_left or now() + wait >= end:
                raise
        await asyncio.sleep(wait)
        pause *= 2


async def _try(
    task: Task, model: LanguageModel, course: _Course, max_turns: int, end: float
) -> AsyncGenerator[Event, None]:
    """One run from the start; what earlier tries found is handed over again."""
    run = Runner.run_streamed(
        # With one call for the answer there is none left to search with: then no tool is offered.
        _agent(_instructions(task), model, may_search=task.search is not None and max_turns > 1),
        cast(list[TResponseInputItem], _input(task, model, course.searches)),
        context=course,
        max_turns=max_turns,
        hooks=_Calls(),
        run_config=_CONFIG,
    )
    try:
        stopped: Stopped = ""
        async with aclosing(_written(run, model, end)) as pieces:
            async for piece in pieces:
                for search in course.news():
                    yield search
                course.wrote = True
                yield Wrote(piece)
    except MaxTurnsExceeded:
        stopped = "max_turns"
    except TimeoutError:
        stopped = "length"
    finally:
        run.cancel()  # closes the call; harmless when it is over
        course.tokens += run.context_wrapper.usage.total_tokens
        course.written += run.context_wrapper.usage.output_tokens
    for search in course.news():
        yield search
    if not course.wrote and stopped == "length":
        raise AgentUnavailable("The language model did not answer in time.", details={"model": model.name})
    if not course.wrote and not stopped:
        raise AgentUnavailable("The language model gave an empty answer.", details={"model": model.name})
    yield course.finished(stopped)


async def _written(run: RunResultStreaming, model: LanguageModel, end: float) -> AsyncGenerator[str, None]:
    """The model's text, piece by piece, until the deadline; the vendors' errors in our words."""
    stream = run.stream_events()
    while True:
        try:
            async with asyncio.timeout_at(end):
                event = await anext(stream)
        except StopAsyncIteration:
            return
        except (ChapterverseError, MaxTurnsExceeded, TimeoutError):
            raise
        except VENDOR_FAULTS as fault:
            raise model.explain(fault) from fault
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta" and event.data.delta:
            yield event.data.delta


def _instructions(task: Task) -> str:
    if task.search is None:
        return selection_prompt(not_in_selection(topic_of_question(task.question)))
    return answer_prompt(NOT_IN_BOOK)


@lru_cache(maxsize=16)
def _agent(instructions: str, model: LanguageModel, may_search: bool) -> Agent[_Course]:
    """Runs share it: the SDK never changes an agent, and takes long to make one."""
    return Agent(
        name="chapterverse",
        instructions=instructions,
        tools=[_search_tool()] if may_search else [],
        model=model.model,
        model_settings=model.settings,
    )


def _input(task: Task, model: LanguageModel, searches: Sequence[Searched]) -> list[Item]:
    history = render_history(task.history)
    if task.search is None:
        (selection,) = task.passages
        return [*history, *render_selection(task.question, selection)]
    again = [
        item
        for number, search in enumerate(searches, start=1)
        for item in render_search(f"again_{number}", search.query, fitting(search.passages))
    ]
    return [*history, *render_question(task.question, task.passages, model.passages_in), *again]


def _search_tool() -> FunctionTool:
    return FunctionTool(
        name=SEARCH,
        description=SEARCH_TOOL,
        params_json_schema=_PARAMETERS,
        on_invoke_tool=_search,
        strict_json_schema=False,
    )


async def _search(context: ToolContext[_Course], arguments: str) -> str:
    """The tool. What goes wrong is told to the model, which can then answer from what it has."""
    course = context.context
    assert course.search is not None, "without a search there is no tool"
    try:
        asked = json.loads(arguments)
        call = _SearchCall.model_validate({key: value for key, value in asked.items() if value not in (None, {})})
    except (ValueError, ValidationError, AttributeError):
        return tool_error("", f"query must be a text, top_k a number from 1 to {MAX_TOP_K}, filters known fields")
    try:
        passages = await course.search(call.query, call.top_k, call.filters)
    except ChapterverseError as failure:
        return tool_error(call.query, failure.message)
    course.searches.append(Searched(call.query, passages))
    return tool_response(call.query, fitting(passages))
