"""The replies of the race's model: sentences from the passages in the prompt, so that they can be verified.

Pure functions that read the prompts of any framework and write the reply.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chapterverse.language import sentences

MOST_WORDS: Final = 60
CALL_ID: Final = "call_race"
BAD_MARKER: Final = "[9]"  # no service shows nine passages

_NUMBERED = re.compile(r"(?m)^(?:# ?)?(?:\[(\d+)\]|Source (\d+):)[^\n]*\n")
_UNIT = re.compile(r"^\[(\d+\.\d+)\] (.*(?:\n    .*)*)", re.MULTILINE)
_WHOLE = re.compile(r"[A-Z][^\n|`\[\]<>{}]{30,220}[a-z]\.")

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The model writes this text, in as many pieces as it has tokens."""

    text: str
    judged: bool = False  # verdicts, with as many tokens as their text has


def reply(request: Mapping[str, Any], mode: str, *, own_words: bool = False) -> Call | Answer:
    """The reply to a request: a search if a tool is offered and was not used yet, else an answer."""
    messages, tools = request.get("messages") or [], request.get("tools") or []
    if is_judged(request):
        return Answer(judge(text_of(messages[-1])), judged=True)
    fresh = messages[_last_user(messages) :]
    if mode in ("malformed_tool", "unknown_tool"):
        searched = any(call.get("id") == CALL_ID for message in fresh for call in message.get("tool_calls") or ())
    else:
        searched = any(message.get("role") == "tool" for message in fresh)
    if tools and not searched and request.get("tool_choice") != "none":
        return _call(tools[0]["function"], text_of(fresh[0]) if fresh else "", mode)
    return Answer(write(shown(messages), BAD_MARKER if mode == "bad_citation" else "", own_words=own_words))


def shown(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return the passages of the last turn by number: those of our own tool, else numbered texts, else the whole
    text."""
    fresh = messages[_last_user(messages) :]
    results = [text_of(message) for message in fresh if message.get("role") == "tool"]
    passages = [passage for text in results for passage in _from_json(text)]
    if passages:
        return passages
    text = "\n".join(results) or "\n".join(text_of(message) for message in fresh)
    if units := _units(text):
        return units
    heads = list(_NUMBERED.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)] * bool(heads)
    return [(head[1] or head[2], text[head.end() : end]) for head, end in zip(heads, ends, strict=True)] or [
        ("1", text)
    ]


def write(passages: Sequence[tuple[str, str]], marker: str = "", *, own_words: bool = False) -> str:
    """Write whole sentences of the passages, each with its marker: at most sixty words, at least a few. With
    `own_words`, the model begins each sentence itself, so that it is not a quotation."""
    said: list[str] = []
    words = 0
    for number, text in passages:
        for start, end in sentences(text):
            sentence = " ".join(text[start:end].split())
            count = len(sentence.split()) + 1 + 2 * own_words
            if _WHOLE.fullmatch(sentence) and words + count <= MOST_WORDS:
                opening = f"In short, {sentence[0].lower()}" if own_words else sentence[0]
                said.append(f"{opening}{sentence[1:-1]} {marker or f'[{number}]'}.")
                words += count
    if said:
        return " ".join(said)
    number, text = passages[0]
    return f"{' '.join(text.split()[:30])} {marker or f'[{number}]'}."


def judge(message: str) -> str:
    """Return verdicts on the claims of a message: all are supported, each by the first unit that was shown."""
    evidence, _, claims = message.partition("\nClaims\n")
    units = [number for number, _ in _units(evidence)][:1]
    verdicts = [
        {"claim": number, "supported": True, "units": units, "reason": ""}
        for number, _ in enumerate(re.split(r"\n(?! )", claims), start=1)  # code of a claim is indented
    ]
    return json.dumps({"verdicts": verdicts})


def is_judged(request: Mapping[str, Any]) -> bool:
    """Whether a request asks for verdicts."""
    schema = (request.get("response_format") or {}).get("json_schema") or {}
    return schema.get("name") == "verdicts"


def pieces(text: str, count: int) -> list[str]:
    """Cut the text into exactly `count` pieces (at most one per character), so that all services get the same number of
    tokens."""
    count = min(count, len(text))
    return [text[len(text) * at // count : len(text) * (at + 1) // count] for at in range(count)]


def prompt_text(request: Mapping[str, Any]) -> str:
    """The whole prompt of a request."""
    messages = request.get("messages") or []
    parts = [text_of(message) for message in messages]
    parts += [json.dumps(message["tool_calls"]) for message in messages if message.get("tool_calls")]
    return "\n".join([*parts, json.dumps(request["tools"])] if request.get("tools") else parts)


def text_of(message: Message) -> str:
    """The text of a message, which may have several parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _last_user(messages: Sequence[Message]) -> int:
    return max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=0)


def _call(function: Mapping[str, Any], question: str, mode: str) -> Call:
    properties = (function.get("parameters") or {}).get("properties") or {}
    argument = next((name for name, schema in properties.items() if schema.get("type") == "string"), "query")
    if mode == "malformed_tool":
        return Call(function["name"], f'{{"{argument}": "unterminated')
    arguments = json.dumps({argument: question}, ensure_ascii=False)
    return Call("no_such_tool" if mode == "unknown_tool" else function["name"], arguments)


def _from_json(text: str) -> list[tuple[str, str]]:
    try:
        return [unit for result in json.loads(text)["results"] for unit in _units(str(result["chunk_text"]))]
    except (ValueError, TypeError, KeyError):
        return []


def _units(text: str) -> list[tuple[str, str]]:
    """Numbered units in the form that our own product uses."""
    return _UNIT.findall(text)
