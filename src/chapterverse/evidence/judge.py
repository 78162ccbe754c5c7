"""The judge: a language model decides which claims the evidence supports.

Any OpenAI-compatible model can be used. A call is limited in time and in size. A reply is read while it arrives, so
that the first verdicts need not wait for the last. A claim without a readable verdict is not proven. Replies are not
trusted: only the numbers of claims that were asked and of units that were shown count.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from chapterverse.errors import AgentUnavailable
from chapterverse.evidence.chat_model import ChatModel, ModelReply

log = logging.getLogger(__name__)

JUDGE_SECONDS: Final = 8.0  # one call
MAX_REPLY_BYTES: Final = 256 * 1024
PROMPT: Final = Path(__file__).with_name("judge.md").read_text("utf-8").strip()


def _object(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


_TEXT: Final = {"type": "string"}
_VERDICT: Final = _object(
    claim={"type": "integer"}, supported={"type": "boolean"}, units={"type": "array", "items": _TEXT}, reason=_TEXT
)
_REPLY: Final = _object(verdicts={"type": "array", "items": _VERDICT})  # SPEC 4.5
_FORMAT: Final = {"type": "json_schema", "json_schema": {"name": "verdicts", "strict": True, "schema": _REPLY}}
_FORMAT_REFUSED: Final = (400, 404, 415, 422, 501)

_BEGUN = re.compile(r'"claim"\s*:\s*"?(\d{1,4})"?\s*,\s*"supported"\s*:\s*(true|false)')
_OBJECT = re.compile(r'\{(?=\s*"(?:claim|supported|units|reason)")(?:[^{}"]|"(?:[^"\\]|\\.)*+")*+\}', re.DOTALL)
_UNIT = re.compile(r"\d{1,3}(?:\.\d{1,4})?")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of the judge on one claim. Claims are counted from 1."""

    claim: int
    supported: bool
    units: tuple[str, ...] = ()
    reason: str = ""
    complete: bool = True  # False: the units are still being written


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """The content of one call: claims, the evidence for them, and the text before each claim."""

    evidence: Sequence[str]  # lines `[2.3] text` under their breadcrumbs
    claims: Sequence[str]  # one that introduces code has that code below it, between fences
    question: str = ""
    before: Sequence[str] = ()  # the text before each claim, to resolve "it"; empty if that text is a claim itself

    def message(self) -> str:
        """Build the user message (SPEC 4.5)."""
        context = [f"Question: {_line(self.question)}"] if self.question else []
        before = enumerate(map(_line, self.before), start=1)
        context += [f"Text before claim {number}: {text}" for number, text in before if text]
        claims = [f"{number}. {_lines(claim)}" for number, claim in enumerate(self.claims, start=1)]
        return "\n".join([*context, "Evidence", *self.evidence, "", "Claims", *claims])


@dataclass(slots=True)
class JudgeUsage:
    """The calls and tokens of the judge."""

    calls: int = 0
    tokens: int = 0


class Judge(Protocol):
    """Decides which claims the evidence supports."""

    @property
    def name(self) -> str:
        """The model's name for people."""

    def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        """Yield the verdicts as they arrive, in any order, possibly first without their units. A claim without a
        verdict is not proven. Raises `AgentUnavailable` if the call fails or gives no verdict at all."""


@dataclass(eq=False)
class ModelJudge(ChatModel):
    """A judge behind an OpenAI-compatible API."""

    service: str = "The judge"
    settings: str = "JUDGE"
    seconds: float = JUDGE_SECONDS
    max_bytes: int = MAX_REPLY_BYTES
    _structured: bool = field(default=True, init=False)  # False once the model refused `response_format`

    async def verdicts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[Verdict, None]:
        """Ask once. Any failure is recorded as a failure of the last call."""
        usage.calls += 1
        reader = VerdictReader(len(case.claims))
        try:
            async with asyncio.timeout(self.seconds), aclosing(self._texts(case, usage)) as texts:
                async for text in texts:
                    for verdict in reader.read(text):
                        yield verdict
            for verdict in reader.finish():
                yield verdict
            if not reader.said:
                raise self.failure("gave no verdict that can be read")
            self.last.worked()
        except (AgentUnavailable, TimeoutError) as fault:
            failure = fault if isinstance(fault, AgentUnavailable) else self.explain(fault)
            self.last.failed(f"The last check of an answer failed: {failure.message}")
            raise failure from fault

    async def _texts(self, case: JudgeRequest, usage: JudgeUsage) -> AsyncGenerator[str, None]:
        """Yield the text of the reply. If the model refuses `response_format`, ask without it. Tokens are estimated
        until the server has counted them."""
        message, reply = case.message(), ModelReply()
        messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": message}]
        chars = len(PROMPT) + len(message)
        noted = chars // 4  # tokens of this call that `usage` includes so far
        usage.tokens += noted
        for structured in (True, False) if self._structured else (False,):
            asked = self.stream(messages, reply, temperature=0, response_format=_FORMAT if structured else None)
            try:
                async with aclosing(asked) as texts:
                    async for text in texts:
                        self._structured = structured
                        chars += len(text)
                        tokens = reply.tokens() or chars // 4
                        usage.tokens, noted = usage.tokens + tokens - noted, tokens
                        yield text
                return
            except AgentUnavailable as failure:
                if not structured or (failure.details or {}).get("status") not in _FORMAT_REFUSED:
                    raise


class VerdictReader:
    """Reads the verdicts in a reply. A claim with two different verdicts is not supported.

    A reply that is JSON from its first character is read while it arrives: each verdict comes first without its units,
    then complete. Any other reply may quote the prompt, so it is read to its end before a verdict counts."""

    def __init__(self, claims: int) -> None:
        self.said: dict[int, Verdict] = {}  # the complete ones
        self._claims, self._text = range(1, claims + 1), ""
        self._at = 0  # where the last whole verdict ends

    def read(self, piece: str) -> list[Verdict]:
        """Add the next piece of the text, and return the verdicts that are new."""
        self._text += piece
        news: list[Verdict] = []
        while "}" in piece and (whole := _OBJECT.search(self._text, self._at)) is not None:
            self._at = whole.end()
            verdict = _verdict(whole[0])
            before = verdict and self.said.get(verdict.claim)
            if verdict and verdict.claim in self._claims and (not before or before.supported > verdict.supported):
                self.said[verdict.claim] = verdict
                news.append(verdict)
        if not self._streams():
            return []
        begun = _BEGUN.search(self._text, self._at)
        if begun and (claim := int(begun[1])) in self._claims and claim not in self.said:
            news.append(Verdict(claim, begun[2] == "true", complete=False))
        return news

    def finish(self) -> list[Verdict]:
        """Return the verdicts of a reply that had to be read to its end."""
        return [] if self._streams() else [*self.said.values()]

    def _streams(self) -> bool:
        return self._text.lstrip().startswith("{")


def _verdict(text: str) -> Verdict | None:
    """Parse a JSON object as a verdict; None if it is not one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    claim, supported, units = value.get("claim"), value.get("supported"), value.get("units") or []
    if isinstance(claim, str) and claim.isdigit():
        claim = int(claim)
    if type(claim) is not int or type(supported) is not bool or not isinstance(units, list):
        return None
    named = tuple(number for unit in units for number in _UNIT.findall(str(unit)))
    return Verdict(claim, supported, named, str(value.get("reason") or "")[:300])


def _line(text: str) -> str:
    """Put a text on one line, so that nothing in it can imitate a line of the prompt."""
    return " ".join(text.split())


def _lines(text: str) -> str:
    """Indent the lines of a text after the first, for the same reason."""
    return "\n    ".join(filter(None, map(_line, text.splitlines())))
