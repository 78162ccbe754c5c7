"""What a model is shown: question, numbered passages and earlier turns as messages, and the way back.

Owns how passages are written into messages and read out of them again, and how much of them fits. Never calls a model
and never looks for passages.

Passages travel in one of two ways: as the result of a search that the model seems to have made, which large models
know best, or quoted in the reader's message, which small ones understand better. Every line of a quoted passage
starts with "> ", so that nothing in it can pass for anything else.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

Place = Literal["tool", "message"]
Item = dict[str, Any]  # of a conversation, as the Agents SDK takes it

SEARCH: Final = "search_documentation"
PASSAGE_TOKENS: Final = 6000
HISTORY_TOKENS: Final = 8000  # SPEC 6
MORE: Final = "(Say what the last answer did not say.)"  # after the question of a reader who asks for more

# Gemini refuses calls that it did not make itself unless they carry this word, which it documents for the purpose.
_SIGNATURE = {"thought_signature": "skip_thought_signature_validator"}
_FIRST_SEARCH = "first_search"  # id of the call that code made before the model was asked
_CRUMB = " › "
_PASSAGES = "Passages of the book:"
_SELECTION = "The selected text:"
_QUESTION = "Question: "
_HEAD = re.compile(r"\[(\d+)\] (.*)")
_MARKERS = re.compile(r"\s*\[\d+\]")
_MORE = re.compile(
    r"(?:(?:please|can you|could you|would you|and|ok|okay|thanks)\b[\s,.!]*)*"
    r"(?:tell|say|give|show|explain)?(?: me| us)?\s*"
    r"(?:(?:a bit|a little|some|any)\s*)?(?:more|what else|anything else|go on|continue|elaborate|keep going)"
    r"(?: (?:details?|information))?(?: (?:about|on) (?:it|that|this|them))?[\s,]*(?:please)?[\s.!?…]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class IssuedPassage:
    """A passage under the number by which this answer may cite it."""

    number: int
    text: str
    breadcrumb: str  # "Title › Section › Subsection"
    source_url: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier turn."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model finds in its input."""

    question: str
    passages: tuple[IssuedPassage, ...]
    selected: bool  # the passage is the reader's selection
    said: str = ""  # the earlier answers, when the reader asks for more than that


def asks_for_more(query: str) -> bool:
    """Whether a reader only wants to hear more of the same: "tell me more", "go on"."""
    return _MORE.fullmatch(query.strip()) is not None


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes: four bytes each. Cheap, and on the safe side for scripts beyond Latin."""
    return len(text.encode("utf-8", "replace")) // 4 + 1


def render_history(history: Sequence[Exchange], budget: int = HISTORY_TOKENS) -> list[Item]:
    """The latest turns that fit. Their markers are left out, because they count into other passages."""
    items: list[Item] = []
    for exchange in reversed(history):
        answer = _MARKERS.sub("", exchange.answer)
        budget -= estimate_tokens(exchange.question) + estimate_tokens(answer)
        if budget < 0:
            break
        items[:0] = [{"role": "user", "content": exchange.question}, {"role": "assistant", "content": answer}]
    return items


def render_question(question: str, passages: Sequence[IssuedPassage], place: Place) -> list[Item]:
    """The question with the passages found for it, best first, as many as fit."""
    shown = fitting(passages)
    if place == "tool":
        return [{"role": "user", "content": question}, *render_search(_FIRST_SEARCH, question, shown)]
    return [{"role": "user", "content": _quoted(_PASSAGES, shown, question)}]


def render_selection(question: str, selection: IssuedPassage) -> list[Item]:
    """The question with the reader's selection."""
    return [{"role": "user", "content": _quoted(_SELECTION, [selection], question)}]


def render_search(call_id: str, query: str, passages: Sequence[IssuedPassage]) -> list[Item]:
    """A search as a call and its result, which always go together."""
    call = {
        "type": "function_call",
        "call_id": call_id,
        "name": SEARCH,
        "arguments": json.dumps({"query": query}, ensure_ascii=False),
        "provider_data": _SIGNATURE,
    }
    result = {"type": "function_call_output", "call_id": call_id, "output": tool_response(query, passages)}
    return [call, result]


def tool_response(query: str, passages: Sequence[IssuedPassage]) -> str:
    """The result of a search as the tool gives it."""
    results = [_result(passage, rank) for rank, passage in enumerate(passages, start=1)]
    return json.dumps({"results": results, "total_results": len(results), "query": query}, ensure_ascii=False)


def tool_error(query: str, message: str) -> str:
    """What the tool says of a search that failed."""
    return json.dumps({"error": message, "query": query}, ensure_ascii=False)


def fitting(passages: Sequence[IssuedPassage], budget: int = PASSAGE_TOKENS) -> list[IssuedPassage]:
    """The first passages that fit into the budget; one at least."""
    fit: list[IssuedPassage] = []
    for passage in passages:
        budget -= estimate_tokens(passage.text)
        if budget < 0 and fit:
            break
        fit.append(passage)
    return fit


def read(items: str | Sequence[Mapping[str, Any]]) -> Reading:
    """The question and the passages of a conversation's last turn."""
    reading = _read_last(items)
    if isinstance(items, str) or not reading.question.endswith(MORE):
        return reading
    answers = [_text(item["content"]) for item in items if item.get("role") == "assistant"]
    question = reading.question.removesuffix(MORE).rstrip()
    return replace(reading, question=question, said="\n".join(answers))


def _read_last(items: str | Sequence[Mapping[str, Any]]) -> Reading:
    if isinstance(items, str):
        return _read_message(items)
    last = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=None)
    if last is None:
        return Reading("", (), selected=False)
    message = _text(items[last].get("content", ""))
    results = [item for item in items[last:] if item.get("type") == "function_call_output"]
    searched = tuple(passage for item in results for passage in _read_response(_text(item["output"])))
    if any(item.get("call_id") == _FIRST_SEARCH for item in results):
        # The message is the question as it is, even if it looks like quoted passages.
        return Reading(message, searched, selected=False)
    reading = _read_message(message)
    return Reading(reading.question, reading.passages + searched, reading.selected)


def _quoted(head: str, passages: Sequence[IssuedPassage], question: str) -> str:
    lines = [head, ""]
    for passage in passages:
        lines.append(f"[{passage.number}] {' '.join(passage.breadcrumb.split())}")
        lines.extend(f"> {line}" for line in passage.text.split("\n"))
        lines.append("")
    return "\n".join([*lines, _QUESTION + question])


def _result(passage: IssuedPassage, rank: int) -> dict[str, object]:
    title, _, section = passage.breadcrumb.partition(_CRUMB)
    return {
        "number": passage.number,
        "chunk_text": passage.text,
        "page_title": title,
        "section_heading": section or None,
        "source_url": passage.source_url,
        "similarity_score": round(passage.similarity, 3),
        "rank": rank,
    }


def _read_message(text: str) -> Reading:
    lines = text.split("\n")
    if lines[0] not in (_PASSAGES, _SELECTION):
        return Reading(text, (), selected=False)
    passages: list[tuple[int, str, list[str]]] = []
    for at, line in enumerate(lines[1:], start=1):
        if line.startswith(_QUESTION):
            question = "\n".join(lines[at:]).removeprefix(_QUESTION)
            issued = (IssuedPassage(number, "\n".join(body), crumb, "", 1.0) for number, crumb, body in passages)
            return Reading(question, tuple(issued), selected=lines[0] == _SELECTION)
        if line.startswith("> "):
            passages[-1][2].append(line.removeprefix("> "))
        elif head := _HEAD.fullmatch(line):
            passages.append((int(head[1]), head[2], []))
    return Reading(text, (), selected=False)


def _read_response(output: str) -> list[IssuedPassage]:
    return [
        IssuedPassage(
            number=result["number"],
            text=result["chunk_text"],
            breadcrumb=_CRUMB.join(filter(None, (result["page_title"], result["section_heading"]))),
            source_url=result["source_url"],
            similarity=result["similarity_score"],
        )
        for result in json.loads(output).get("results", ())
    ]


def _text(content: Any) -> str:
    """A message's text, which the SDK may hold in parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
