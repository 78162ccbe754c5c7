"""The writer that asks a language model through the Agents SDK.

The first search is made by code and handed over as the result of `search_documentation`, so that most questions need
one call; the model may search again. What it writes is parsed into statements as it streams. Nothing is proven here.

The SDK runs the model and its searches. It is given each reply as a whole, by a model of ours (`_StreamedModel`) that
hands the text on while it arrives: as the SDK's own events, each token took 0.15 ms more.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from agents import (
    Agent,
    FunctionTool,
    MaxTurnsExceeded,
    Model,
    ModelResponse,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    Tool,
    TResponseInputItem,
    Usage,
)
from agents.models.chatcmpl_converter import Converter
from agents.tool_context import ToolContext
from openai import AsyncOpenAI, AsyncStream, NotFoundError
from openai.types.chat import ChatCompletionMessage
from openai.types.shared import Reasoning

from chapterverse.conversations.turns import Turn
from chapterverse.errors import AgentUnavailable, ChapterverseError, ConfigurationError
from chapterverse.fields import MAX_TOP_K
from chapterverse.health import LastCall
from chapterverse.models import RetrievalRequest, SearchFilters
from chapterverse.settings import GENERATION_SECONDS
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
    said: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)  # the text of this try; None: its end
    searched: list[Item] = field(default_factory=list)  # the model's own searches with what they found
    wrote: bool = False
    calls: int = 0
    tokens: int = 0
    written: int = 0  # of the tokens

    def say(self, text: str) -> None:
        """Hand on what the model writes."""
        self.wrote = True
        self.said.put_nowait(text)


class _Calls(RunHooks[_Course]):
    """Counts the model's calls, those that fail too, and what they took."""

    async def on_llm_start(self, context: RunContextWrapper[_Course], *_: Any, **__: Any) -> None:
        context.context.calls += 1

    async def on_llm_end(
        self, context: RunContextWrapper[_Course], agent: Agent[_Course], response: ModelResponse
    ) -> None:
        context.context.tokens += response.usage.total_tokens
        context.context.written += response.usage.output_tokens


@dataclass(slots=True)
class _Reply:
    """A streamed chat completion, put together. Servers send anything: what has another form raises built-in errors."""

    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant"})
    calls: dict[Any, dict[str, Any]] = field(default_factory=dict)  # of tools, by their numbers
    usage: Mapping[str, Any] = field(default_factory=dict)

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Take the next piece; its text."""
        self.usage = chunk.get("usage") or self.usage
        choices = [one for one in chunk.get("choices") or () if not one.get("index")]
        delta = choices[0].get("delta") or {} if choices else {}
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            if said := delta.get(name):
                self.message[name] = self.message.get(name, "") + said
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        return delta.get("content") or ""

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        """A tool's call comes in pieces with the same index; without one it comes whole."""
        number = piece.get("index")
        number = len(self.calls) if number is None else number
        known = self.calls.setdefault(number, {"id": f"call_{number}", "type": "function"})
        function = {"name": "", "arguments": "", **known.get("function", {})}
        said = piece.get("function") or {}
        function["name"] = said.get("name") or function["name"]
        function["arguments"] += said.get("arguments") or ""
        known.update({name: value for name, value in piece.items() if value and name not in ("index", "function")})
        known["function"] = function

    def response(self) -> ModelResponse:
        """As the SDK wants it."""
        whole = {"content": None, **self.message, "tool_calls": [*self.calls.values()] or None}
        items = Converter.message_to_output_items(ChatCompletionMessage.model_validate(whole))
        read, written, total = (
            int(self.usage.get(f"{kind}_tokens") or 0) for kind in ("prompt", "completion", "total")
        )
        return ModelResponse(items, Usage(1, input_tokens=read, output_tokens=written, total_tokens=total), None)


class _StreamedModel(Model):
    """Asks an OpenAI-compatible server for a streamed chat completion. `say` is given the text while it arrives."""

    def __init__(self, name: str, client: AsyncOpenAI, say: Callable[[str], None]) -> None:
        self.name, self.client, self.say = name, client, say

    async def get_response(  # type: ignore[override]
        self,
        system_instructions: str | None,
        input: list[TResponseInputItem],  # noqa: A002 - the SDK calls it so
        model_settings: ModelSettings,
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """The whole reply."""
        messages = Converter.items_to_messages(input, model=self.name, base_url=str(self.client.base_url))
        body = {
            "model": self.name,
            "messages": [{"role": "system", "content": system_instructions}, *messages],
            "tools": [Converter.tool_to_openai(tool) for tool in tools] or None,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": model_settings.temperature,
            "max_tokens": model_settings.max_tokens,
            "store": model_settings.store,
            "reasoning_effort": model_settings.reasoning.effort if model_settings.reasoning else None,
        }
        given = {name: value for name, value in body.items() if value is not None}
        stream = await self.client.post(
            "/chat/completions", body=given, cast_to=object, stream=True, stream_cls=AsyncStream[object]
        )
        reply = _Reply()
        async for chunk in stream:
            if text := reply.add(cast(Mapping[str, Any], chunk)):
                self.say(text)
        if "content" in reply.message:
            self.say("\n\n")  # nothing goes on with its last sentence, which can be judged at once
        return reply.response()

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Nobody asks for the SDK's own events."""
        raise NotImplementedError


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
                agent = self._agent(instructions, lambda _: None)
                run = await Runner.run(agent, cast(_Items, [*items]), max_turns=1, run_config=_CONFIG)
        except (TimeoutError, *VENDOR_FAULTS) as fault:
            log.info("the model was asked for one line and did not answer: %s", type(fault).__name__)
            return "", Finished(llm_calls=1)
        self.last.worked()
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
        await self.client.close()

    async def _try(self, course: _Course, end: float) -> AsyncGenerator[WriterEvent, None]:
        """One run from the start; what earlier tries found is handed over again."""
        task = course.task
        instructions = prompts.filled(self.options.prompt if task.search else prompts.SELECTION, task.refusal)
        # With one call for the answer there is none left to search with: then no tool is offered.
        may_search = task.search is not None and self.options.max_calls > 1
        agent = self._agent(instructions, course.say, [_SEARCH_TOOL] if may_search else ())
        parser = MarkdownParser()
        stopped: Stopped = ""
        try:
            async with aclosing(self._written(agent, course, end)) as pieces:
                async for piece in pieces:
                    for statement in parser.feed(piece):
                        yield statement
        except MaxTurnsExceeded:
            stopped = "max_calls"
        except TimeoutError:
            stopped = "length"
        if not course.wrote and stopped != "max_calls":
            did = "did not answer in time" if stopped else "gave an empty answer"
            raise self.service.failure(f"The language model {did}.")
        last = parser.finish()
        for statement in last[:-1] if stopped == "length" else last:  # what was cut off is half a sentence
            yield statement
        yield Finished(course.tokens, course.written, course.calls, stopped)

    async def _written(self, agent: Agent[Any], course: _Course, end: float) -> AsyncGenerator[str, None]:
        """The model's text, piece by piece, until the deadline; the vendors' errors in our words."""
        said = course.said = asyncio.Queue()
        limits: dict[str, Any] = {"context": course, "max_turns": self.options.max_calls, "hooks": _Calls()}
        run = asyncio.create_task(Runner.run(agent, cast(_Items, self._input(course)), run_config=_CONFIG, **limits))
        run.add_done_callback(lambda _: said.put_nowait(None))
        try:
            over = False
            while not over:
                async with asyncio.timeout_at(end):
                    pieces = [await said.get()]
                while not said.empty():  # what came meanwhile is taken together
                    pieces.append(said.get_nowait())
                over = pieces[-1] is None
                yield "".join(filter(None, pieces))
            await run
        except (ChapterverseError, MaxTurnsExceeded, TimeoutError):
            raise
        except VENDOR_FAULTS as fault:
            raise self.service.explain(fault) from fault
        finally:
            run.cancel()  # closes the call; harmless when it is over
            await asyncio.gather(run, return_exceptions=True)

    def _agent(self, instructions: str, say: Callable[[str], None], tools: Sequence[FunctionTool] = ()) -> Agent[Any]:
        how: dict[str, Any] = {"instructions": instructions, "tools": [*tools], "model_settings": self.settings}
        return Agent("chapterverse", model=_StreamedModel(self.name, self.client, say), **how)

    def _input(self, course: _Course) -> list[Item]:
        task = course.task
        asked = render_question(task.question, task.passages, self.place if task.search else "selection")
        return [*render_history(task.history), *asked, *course.searched]


async def _search(context: ToolContext[_Course], arguments: str) -> str:
    """The tool. What goes wrong is told to the model, which can then answer from what it has."""
    course = context.context
    assert course.task.search is not None, "without a search there is no tool"
    asked = ""
    try:
        given = {key: value for key, value in json.loads(arguments).items() if value not in (None, {})}
        asked = str(given.get("query", ""))
        request = RetrievalRequest.model_validate(given)
    except (ValueError, AttributeError):
        return tool_error(asked, f"query must be a text, top_k a number from 1 to {MAX_TOP_K}, filters known fields")
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
    settings = ModelSettings(max_tokens=options.max_tokens, reasoning=reasoning, **fields)
    return AgentWriter(service, client, settings, place, options)
