"""The extractive model as the Agents SDK knows models: it reads its input and answers with sentences of it.

Owns the wording of its answers (markers, refusals) and their streaming. Never chooses a sentence: a `SentencePicker`
does.
"""

import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, cast

from agents import Model, ModelResponse, TResponseInputItem, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from chapterverse.extractive.picking import Pick, SentencePicker
from chapterverse.refusals import NOT_FOUND, NOT_IN_BOOK, not_in_selection, topic_of_question
from chapterverse.transcript import Reading, estimate_tokens, read

NAME: Final = "extractive"

_WORD = re.compile(r"\s*\S+")
_STOP = re.compile(r"[.!?]$")
_COLON = re.compile(r":$")


class ExtractiveModel(Model):
    """Answers with the book's own sentences, or refuses. It never calls a tool."""

    def __init__(self, picker: SentencePicker) -> None:
        self._picker = picker

    async def answer(self, items: str | Sequence[Mapping[str, Any]]) -> str:
        """The answer to the last question of a conversation."""
        reading = read(items)
        passages = reading.passages
        picks = await self._picker.pick(reading.question, passages, selected=reading.selected, said=reading.said)
        return write(picks) or refusal(reading)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK names it so
        *settings: Any,
        **more: Any,
    ) -> ModelResponse:
        """The whole answer at once. It reads its input alone: instructions, tools and settings change nothing."""
        items = cast(str | list[Mapping[str, Any]], input)
        text = await self.answer(items)
        usage = _usage(items, text)
        counted = Usage(1, usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.total_tokens)
        return ModelResponse(output=[_message(text)], usage=counted, response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK names it so
        *settings: Any,
        **more: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """The answer word by word."""
        items = cast(str | list[Mapping[str, Any]], input)
        text = await self.answer(items)
        words = _WORD.findall(text)
        for number, word in enumerate(words):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                item_id=NAME,
                output_index=0,
                content_index=0,
                delta=word,
                logprobs=[],
                sequence_number=number,
            )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=len(words), response=_response(text, _usage(items, text))
        )


def write(picks: Sequence[Pick]) -> str:
    """The sentences with their markers. Rows, items and code, which end without a full stop, are paragraphs."""
    text, alone = "", False
    for pick in picks:
        was_alone, alone = alone, pick.is_code or not _STOP.search(pick.text)
        joint = "\n\n" if alone or was_alone else " "
        text += (joint if text else "") + (pick.text if pick.is_code else _marked(pick))
    return text


def refusal(reading: Reading) -> str:
    """What is said when no sentence answers."""
    if reading.selected:
        return not_in_selection(topic_of_question(reading.question))
    return NOT_IN_BOOK if reading.passages else NOT_FOUND


def _marked(pick: Pick) -> str:
    marker = f"[{pick.number}]"
    stop = _STOP.search(pick.text) or _COLON.search(pick.text)
    return f"{pick.text[: stop.start()]} {marker}{stop[0]}" if stop else f"{pick.text} {marker}"


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(id=NAME, type="message", role="assistant", status="completed", content=[content])


def _usage(items: str | Sequence[Mapping[str, Any]], text: str) -> ResponseUsage:
    """Read and written tokens, estimated: they cost nothing, but records should show what was worked on."""
    taken, given = estimate_tokens(str(items)), estimate_tokens(text)
    return ResponseUsage(
        input_tokens=taken,
        output_tokens=given,
        total_tokens=taken + given,
        input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
    )


def _response(text: str, usage: ResponseUsage) -> Response:
    return Response(
        id=NAME,
        created_at=time.time(),
        model=NAME,
        object="response",
        output=[_message(text)],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=False,
        usage=usage,
    )
