"""The writer that asks a language model through the Agents SDK.

The first search is made in code, and its results are sent with the question, so that most questions need one call; the
model may search again. Its text is parsed into statements as it streams. Nothing is proven here.

The SDK runs the model and its searches. `_Progress` implements the SDK's `Model`: it returns whole replies to the SDK
and passes their text on while it arrives. As SDK events, each token took 0.15 ms more.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

from agents import (
    Agent,
    AgentsException,
    FunctionTool,
    MaxTurnsExceeded,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Tool,
    TResponseInputItem,
    Usage,
)
from agents.models.chatcmpl_converter import Converter
from agents.tool_context import ToolContext
from openai.types.chat import ChatCompletionMessage

from chapterverse.conversations.turns import Turn
from chapterverse.errors import AgentUnavailable, ChapterverseError, ConfigurationError
from chapterverse.evidence.chat_model import FAULTS, ChatModel, ModelReply, is_openai, request_fields
from chapterverse.fields import MAX_TOP_K
from chapterverse.models import RetrievalRequest, SearchFilters
from chapterverse.writing import Finished, Stopped, Task, WriterEvent, prompts
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

RETRIES: Final = 2  # after the first try, and only while nothing has been written
FIRST_PAUSE: Final = 0.2  # seconds before the first retry; doubled each time, up to half of it random
REWRITE_SECONDS: Final = 3.0  # a reader waits for it before anything else happens
LONGEST_QUESTION: Final = 300  # characters; a longer reply is not a question
REWRITE_HISTORY_TOKENS: Final = 2000

log = logging.getLogger(__name__)

_CONFIG = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")

# Plain types only: servers differ in how much of JSON Schema they support.
_VALUES = {"type": "array", "items": {"type": "string"}}
# Without the edition filters: the reader chooses the editions.
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


class _Progress(Model):
    """The model that the SDK runs. It returns whole replies to the SDK and passes their text on while it arrives. It
    also keeps the state of a task over all tries and the usage of its calls."""

    def __init__(self, model: ChatModel, task: Task) -> None:
        self.model, self.task = model, task
        self.said: asyncio.Queue[str | None] = asyncio.Queue()  # the text of this try; None: end of the text
        self.searched: list[Item] = []  # the model's own searches with their results
        self.replies: list[ModelReply] = []  # including those of failed calls
        self.wrote = False

    async def get_response(  # type: ignore[override]
        self,
        system_instructions: str | None,
        input: list[TResponseInputItem],  # noqa: A002 - the SDK's name for it
        model_settings: object,
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """Return the whole reply."""
        reply = ModelReply()
        self.replies.append(reply)
        asked = Converter.items_to_messages(input, model=self.model.name, base_url=self.model.base_url)
        messages: list[Any] = [{"role": "system", "content": system_instructions}, *asked]
        offered = [Converter.tool_to_openai(tool) for tool in tools] or None
        async with aclosing(self.model.stream(messages, reply, tools=offered)) as texts:
            async for text in texts:
                if text:
                    self.said.put_nowait(text)
        if reply.message["content"] and not reply.cut_off:
            self.said.put_nowait("")  # ends the last block, so that it can be judged at once
        whole = ChatCompletionMessage.model_validate(reply.message | {"tool_calls": [*reply.calls.values()] or None})
        return ModelResponse(Converter.message_to_output_items(whole), Usage(), None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not implemented: the SDK's own events are not used."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """Options for writing that are the same for every model."""

    max_calls: int = 4
    temperature: float = 0.0
    max_tokens: int | None = None
    prompt: str = prompts.ANSWER


@dataclass(eq=False)
class AgentWriter(ChatModel):
    """Writes answers with a language model."""

    engine: str = ""
    place: Place = "message"  # where the model expects the passages
    options: WritingOptions = WritingOptions()
    needs_readings: bool = False  # reading first did not improve the first five passages (docs/benchmarks)

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """Yield the model's text as statements. A model that fails before its first word is asked again."""
        now = asyncio.get_running_loop().time
        end = now() + task.seconds
        progress = _Progress(self, task)
        pause = FIRST_PAUSE
        for tries_left in range(RETRIES, -1, -1):
            try:
                async with aclosing(self._try(progress, end)) as events:
                    async for event in events:
                        yield event
                self.last.worked()
                return
            except AgentUnavailable as failure:
                wait = max(failure.retry_after or 0.0, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads calls
                if progress.wrote or not failure.retryable or not tries_left or now() + wait >= end:
                    self.last.failed(f"The last answer failed: {failure.message}")
                    raise
            await asyncio.sleep(wait)
            pause *= 2

    async def rewrite(self, question: str, history: Sequence[Turn]) -> tuple[str, Finished]:
        """Ask the model once for a standalone question. Returns an empty one if that fails."""
        items = [*render_history(history, REWRITE_HISTORY_TOKENS), {"role": "user", "content": question}]
        said, took = await self._ask_once(prompts.STANDALONE, items)
        return said if len(said) <= LONGEST_QUESTION else "", took

    async def ask(self, instructions: str, text: str) -> str:
        """Ask the model once."""
        return (await self._ask_once(instructions, [{"role": "user", "content": text}]))[0]

    async def _ask_once(self, instructions: str, items: Sequence[Item]) -> tuple[str, Finished]:
        """Return one line from the model, empty if it fails or is late, and the usage."""
        reply = ModelReply()
        messages = [{"role": "system", "content": instructions}, *items]
        try:
            async with asyncio.timeout(REWRITE_SECONDS), aclosing(self.stream(messages, reply)) as texts:
                said = "".join([text async for text in texts])
        except (TimeoutError, AgentUnavailable) as fault:
            log.info("the model was asked for one line and did not answer: %s", type(fault).__name__)
            return "", Finished(llm_calls=1)
        self.last.worked()
        return " ".join(said.split()).strip("\"'“”"), Finished(reply.tokens(), reply.tokens("completion"), 1)

    async def _try(self, progress: _Progress, end: float) -> AsyncGenerator[WriterEvent, None]:
        """Run the agent once, with the searches of earlier tries. SDK errors are raised as `AgentUnavailable`."""
        parser = MarkdownParser()
        stopped: Stopped = ""
        said = progress.said = asyncio.Queue()
        run = asyncio.create_task(self._run(progress))
        run.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while True:
                async with asyncio.timeout_at(end):
                    text = await said.get()
                if text is None:
                    break
                progress.wrote = progress.wrote or bool(text)
                for statement in parser.feed(text) if text else [*parser.feed("\n\n"), *parser.finish()]:
                    yield statement
            await run
        except MaxTurnsExceeded:
            stopped = "max_calls"
        except TimeoutError:
            stopped = "length"
        except (AgentsException, *FAULTS) as fault:
            raise self.explain(fault) from fault
        finally:
            run.cancel()  # closes the call; has no effect if it has ended
            await asyncio.gather(run, return_exceptions=True)
        if not progress.wrote and stopped != "max_calls":
            raise self.failure("did not answer in time" if stopped else "gave an empty answer")
        if progress.replies[-1].cut_off:
            stopped = "length"
        last = parser.finish()
        for statement in last[:-1] if stopped == "length" else last:  # the last one was cut off
            yield statement
        tokens, written = (sum(reply.tokens(kind) for reply in progress.replies) for kind in ("total", "completion"))
        yield Finished(tokens, written, len(progress.replies), stopped)

    async def _run(self, progress: _Progress) -> None:
        task = progress.task
        instructions = prompts.filled(self.options.prompt if task.search else prompts.SELECTION, task.refusal)
        # With only one call allowed there is none left for a search, so no tool is offered.
        tools: list[Tool] = [_SEARCH_TOOL] if task.search and self.options.max_calls > 1 else []
        agent = Agent[_Progress]("chapterverse", instructions=instructions, tools=tools, model=progress)
        asked = render_question(task.question, task.passages, self.place if task.search else "selection")
        items = cast(list[TResponseInputItem], [*render_history(task.history), *asked, *progress.searched])
        await Runner.run(agent, items, context=progress, max_turns=self.options.max_calls, run_config=_CONFIG)


async def _search(context: ToolContext[_Progress], arguments: str) -> str:
    """Run the search tool. Errors are returned to the model, which can then answer from the passages it has."""
    progress = context.context
    assert progress.task.search, "without a search there is no tool"
    asked = ""
    try:
        given = {key: value for key, value in json.loads(arguments).items() if value not in (None, {})}
        asked = str(given.get("query", ""))
        request = RetrievalRequest.model_validate(given)
    except (ValueError, AttributeError):
        return tool_error(asked, f"query must be a text, top_k a number from 1 to {MAX_TOP_K}, filters known fields")
    try:
        passages = await progress.task.search(request)
    except ChapterverseError as failure:
        return tool_error(request.query, failure.message)
    call, result = render_search(f"again_{len(progress.searched)}", request.query, passages)
    progress.searched += [call, result]
    return str(result["output"])


_SEARCH_TOOL: Final = FunctionTool(SEARCH, prompts.SEARCH_TOOL, _PARAMETERS, _search, strict_json_schema=False)


def open_model(
    provider: Literal["gemini", "openai"],
    api_key: str,
    model: str,
    base_url: str,
    options: WritingOptions = WritingOptions(),  # noqa: B008 - it is frozen
) -> AgentWriter:
    """Return a writer for Gemini's OpenAI-compatible endpoint, or for OpenAI and compatible servers (Ollama, vLLM,
    llama.cpp …). It connects when the first question is asked."""
    host, settings = urlsplit(base_url).hostname, provider.upper()
    known = provider == "gemini" or is_openai(base_url)
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{settings}_API_KEY: must be plain printable characters")
    return AgentWriter(
        model,
        base_url,
        key,
        fields={**request_fields(model, base_url, options.temperature), "max_tokens": options.max_tokens},
        service={"gemini": "Gemini", "openai": "OpenAI"}[provider] if known else f"The language model server at {host}",
        settings=settings,
        engine=f"{model} at {host}",
        place="tool" if known else "message",
        options=options,
    )
