"""The writer that asks a language model through the Agents SDK.

The first search is made by code and handed over as the result of `search_documentation`, so that most questions need
one call; the model may search again. What it writes is parsed into statements as it streams. Nothing is proven here.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from agents import (
    Agent,
    FunctionTool,
    MaxTurnsExceeded,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunResultStreaming,
    TResponseInputItem,
)
from agents.tool_context import ToolContext
from openai import AsyncOpenAI, NotFoundError
from openai.types.shared import Reasoning

from chapterverse.config import GENERATION_SECONDS
from chapterverse.errors import AgentUnavailable, ChapterverseError, ConfigurationError
from chapterverse.fields import MAX_TOP_K
from chapterverse.health import LastCall
from chapterverse.models import RetrievalRequest, SearchFilters
from chapterverse.turns import Turn
from chapterverse.writing import Finished, Stopped, Task, WriterEvent, prompts
from chapterverse.writing.failures import VENDOR_FAULTS, Service
from chapterverse.writing.markdown import MarkdownParser
from chapterverse.writing.messages import (
    SEARCH,
    Item,
    Place,
    render_history,
    render_question,
    render_search,
    tool_error,
)
from chapterverse.writing.quirks import is_openai, request_fields

RETRIES: Final = 2  # after the first try, and only while nothing has been written
FIRST_PAUSE: Final = 0.2  # seconds before the first retry; doubled each time, half of it by chance
CONNECT_SECONDS: Final = 3.0
PROBE_SECONDS: Final = 2.0
REWRITE_SECONDS: Final = 3.0  # a reader waits for it before anything else happens
LONGEST_QUESTION: Final = 300  # characters; more is no question
REWRITE_HISTORY_TOKENS: Final = 2000
NAMED_QUESTIONS: Final = 10  # of a group that a model names
LONGEST_NAME: Final = 100  # characters; a longer one is no name

log = logging.getLogger(__name__)

_Items = list[TResponseInputItem]  # the SDK's types of what we write as plain dictionaries

_CONFIG = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")

# Plain types only: servers differ in what else of JSON Schema they take.
_VALUES = {"type": "array", "items": {"type": "string"}}
# Not which editions: that is for the reader to choose.
_NARROWING = [name for name in SearchFilters.model_fields if name not in ("book", "version")]
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "The question or topic to search for."},
        "top_k": {"type": "integer", "description": f"How many passages, at most {MAX_TOP_K}."},
        "filters": {
            "type": "object",
            "description": "Which passages may be found. Leave out unless the reader asks for it.",
            "properties": dict.fromkeys(_NARROWING, _VALUES) | {"source_url_prefix": {"type": "string"}},
        },
    },
    "required": ["query"],
}


@dataclass(slots=True)
class _Course:
    """How far a task has come, over all tries."""

    task: Task
    searched: list[Item] = field(default_factory=list)  # the model's own searches with what they found
    wrote: bool = False
    calls: int = 0
    tokens: int = 0
    written: int = 0  # of the tokens


class _Calls(RunHooks[_Course]):
    """Counts the model's calls, those that fail too."""

    async def on_llm_start(self, context: RunContextWrapper[_Course], *_: Any, **__: Any) -> None:
        context.context.calls += 1


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How a model is to write, whichever it is."""

    max_calls: int = 4
    temperature: float = 0.0
    max_tokens: int | None = None
    prompt: str = prompts.ANSWER


DEFAULT: Final = WritingOptions()


@dataclass(eq=False)
class AgentWriter:
    """A language model that writes in its own words. It remembers whether its last answer failed, so that health need
    not trust a list of models."""

    service: Service
    client: AsyncOpenAI
    settings: ModelSettings
    place: Place  # where the model wants to find the passages
    options: WritingOptions
    needs_readings: bool = False  # reading first did not bring more into the first five passages (docs/benchmarks)
    last: LastCall = field(init=False)

    def __post_init__(self) -> None:
        """Its last call is watched from the start."""
        self.last = LastCall(self._ask_server)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.service.model

    @property
    def engine(self) -> str:
        """The model and its host."""
        return f"{self.name} at {self.client.base_url.host}"

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """What the model writes, as statements. A model that fails before its first word is asked again."""
        now = asyncio.get_running_loop().time
        end = now() + task.seconds
        course = _Course(task)
        pause = FIRST_PAUSE
        for tries_left in range(RETRIES, -1, -1):
            try:
                async with aclosing(self._try(course, end)) as events:
                    async for event in events:
                        yield event
                self.last.worked()
                return
            except AgentUnavailable as failure:
                wait = max(failure.retry_after or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads calls
                if course.wrote or not failure.retryable or not tries_left or now() + wait >= end:
                    self.last.failed(f"The last answer failed: {failure.message}")
                    raise
            await asyncio.sleep(wait)
            pause *= 2

    async def rewrite(self, question: str, history: Sequence[Turn]) -> tuple[str, Finished]:
        """Ask the model once for a question that stands alone; whatever goes wrong, there is just none."""
        items = [*render_history(history, REWRITE_HISTORY_TOKENS), {"role": "user", "content": question}]
        said, took = await self._ask_once(prompts.STANDALONE, items)
        return said if len(said) <= LONGEST_QUESTION else "", took

    async def name_subject(self, questions: Sequence[str]) -> str:
        """Ask the model once for a name; whatever goes wrong, there is just none."""
        listed = "\n".join(f"- {' '.join(question.split())}" for question in questions[:NAMED_QUESTIONS])
        said, _ = await self._ask_once(prompts.SUBJECT, [{"role": "user", "content": listed}])
        return said if len(said) <= LONGEST_NAME else ""

    async def _ask_once(self, instructions: str, items: Sequence[Item]) -> tuple[str, Finished]:
        """One line of the model, empty if it fails or is late, and what that took."""
        try:
            async with asyncio.timeout(REWRITE_SECONDS):
                agent = self._agent(instructions)
                run = await Runner.run(agent, cast(_Items, [*items]), max_turns=1, run_config=_CONFIG)
        except (TimeoutError, *VENDOR_FAULTS) as fault:
            log.info("the model was asked for one line and did not answer: %s", type(fault).__name__)
            return "", Finished(llm_calls=1)
        usage = run.context_wrapper.usage
        said = " ".join(str(run.final_output).split()).strip("\"'“”")
        return said, Finished(usage.total_tokens, usage.output_tokens, llm_calls=1)

    async def probe(self) -> None:
        """Raise `AgentUnavailable` if the server cannot be reached, or else if the last answer failed."""
        await self.last.probe()

    async def _ask_server(self) -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                page = await self.client.models.list()
            if not isinstance(page.data, list):
                raise TypeError("no list of models")
        except NotFoundError:
            pass  # a server without a list of its models is still a server
        except (TimeoutError, *VENDOR_FAULTS) as fault:
            raise self.service.explain(fault) from fault

    async def close(self) -> None:
        """Close the connections."""
        await self.last.close()
        await self.client.close()

    async def _try(self, course: _Course, end: float) -> AsyncGenerator[WriterEvent, None]:
        """One run from the start; what earlier tries found is handed over again."""
        task = course.task
        instructions = prompts.filled(self.options.prompt if task.search else prompts.SELECTION, task.refusal)
        # With one call for the answer there is none left to search with: then no tool is offered.
        may_search = task.search is not None and self.options.max_calls > 1
        run = Runner.run_streamed(
            self._agent(instructions, [_SEARCH_TOOL] if may_search else ()),
            cast(_Items, self._input(course)),
            context=course,
            max_turns=self.options.max_calls,
            hooks=_Calls(),
            run_config=_CONFIG,
        )
        parser = MarkdownParser()
        stopped: Stopped = ""
        try:
            async with aclosing(self._written(run, course, end)) as pieces:
                async for piece in pieces:
                    for statement in parser.feed(piece):
                        yield statement
        except MaxTurnsExceeded:
            stopped = "max_calls"
        except TimeoutError:
            stopped = "length"
        finally:
            run.cancel()  # closes the call; harmless when it is over
            course.tokens += run.context_wrapper.usage.total_tokens
            course.written += run.context_wrapper.usage.output_tokens
        if not course.wrote and stopped != "max_calls":
            did = "did not answer in time" if stopped else "gave an empty answer"
            raise self.service.failure(f"The language model {did}.")
        last = parser.finish()
        for statement in last[:-1] if stopped == "length" else last:  # what was cut off is half a sentence
            yield statement
        yield Finished(course.tokens, course.written, course.calls, stopped)

    async def _written(self, run: RunResultStreaming, course: _Course, end: float) -> AsyncGenerator[str, None]:
        """The model's text, piece by piece, until the deadline; the vendors' errors in our words."""
        stream = run.stream_events()
        call = course.calls
        while True:
            try:
                async with asyncio.timeout_at(end):
                    event = await anext(stream)
            except StopAsyncIteration:
                return
            except (ChapterverseError, MaxTurnsExceeded, TimeoutError):
                raise
            except VENDOR_FAULTS as fault:
                raise self.service.explain(fault) from fault
            if event.type != "raw_response_event" or event.data.type != "response.output_text.delta":
                continue
            if event.data.delta:
                if course.wrote and course.calls != call:
                    yield "\n\n"  # what is written after a search is no part of the sentence before it
                call, course.wrote = course.calls, True
                yield event.data.delta

    def _agent(self, instructions: str, tools: Sequence[FunctionTool] = ()) -> Agent[Any]:
        how: dict[str, Any] = {"instructions": instructions, "tools": [*tools], "model_settings": self.settings}
        return Agent("chapterverse", model=OpenAIChatCompletionsModel(self.name, self.client), **how)

    def _input(self, course: _Course) -> list[Item]:
        task = course.task
        asked = render_question(task.question, task.passages, self.place if task.search else "selection")
        return [*render_history(task.history), *asked, *course.searched]


async def _search(context: ToolContext[_Course], arguments: str) -> str:
    """The tool. What goes wrong is told to the model, which can then answer from what it has."""
    course = context.context
    assert course.task.search is not None, "without a search there is no tool"
    try:
        given = {key: value for key, value in json.loads(arguments).items() if value not in (None, {})}
        request = RetrievalRequest.model_validate(given)
    except (ValueError, AttributeError):
        return tool_error("", f"query must be a text, top_k a number from 1 to {MAX_TOP_K}, filters known fields")
    try:
        passages = await course.task.search(request)
    except ChapterverseError as failure:
        return tool_error(request.query, failure.message)
    call, result = render_search(f"again_{len(course.searched)}", request.query, passages)
    course.searched += [call, result]
    return str(result["output"])


_SEARCH_TOOL: Final = FunctionTool(SEARCH, prompts.SEARCH_TOOL, _PARAMETERS, _search, strict_json_schema=False)


def open_gemini(api_key: str, model: str, base_url: str, options: WritingOptions = DEFAULT) -> AgentWriter:
    """Gemini through its OpenAI-compatible endpoint."""
    return _open(Service("Gemini", model, "GEMINI"), api_key, base_url, "tool", options)


def open_openai(api_key: str, model: str, base_url: str, options: WritingOptions = DEFAULT) -> AgentWriter:
    """OpenAI itself, or any server that speaks as it does: Ollama, vLLM, llama.cpp …"""
    own = is_openai(base_url)
    name = "OpenAI" if own else f"The language model server at {urlsplit(base_url).hostname}"
    return _open(Service(name, model, "OPENAI"), api_key, base_url, "tool" if own else "message", options)


def _open(service: Service, api_key: str, base_url: str, place: Place, options: WritingOptions) -> AgentWriter:
    """The writer. Nothing connects before the first question."""
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{service.settings}_API_KEY: must be plain printable characters")
    # Retries are ours: they know what has been written already and when the answer is due.
    timeout = httpx2.Timeout(GENERATION_SECONDS, connect=CONNECT_SECONDS)
    client = AsyncOpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)
    fields = request_fields(service.model, base_url, options.temperature)
    effort = fields.pop("reasoning_effort")
    reasoning = Reasoning(effort=effort) if effort else None
    settings = ModelSettings(include_usage=True, max_tokens=options.max_tokens, reasoning=reasoning, **fields)
    return AgentWriter(service, client, settings, place, options)
