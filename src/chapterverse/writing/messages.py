"""Builds the messages for a model: the question, numbered passages and earlier turns.

Passages are sent in one of two ways: as the result of a search call attributed to the model, which large models know
best, or in the user message, which small models understand better. Further lines of a unit are indented, so that no
text in a passage can imitate a unit number (`[2.3]`) or the heading of a passage.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from chapterverse.conversations.turns import Turn
from chapterverse.evidence.citations import without_markers
from chapterverse.evidence.passages import IssuedPassage, fitting, without_orders

Place = Literal["tool", "message", "selection"]  # where passages are; `selection`: the reader's own text, in a message
Item = dict[str, Any]  # an item of a conversation for the Agents SDK

SEARCH: Final = "search_documentation"
PASSAGE_TOKENS: Final = 6000
HISTORY_TOKENS: Final = 8000  # SPEC 6

# Gemini rejects tool calls that it did not make, unless they have this value, which it documents for this purpose.
_SIGNATURE = {"thought_signature": "skip_thought_signature_validator"}


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for four bytes. Cheap, and an overestimate for scripts beyond Latin."""
    return len(text.encode("utf-8", "replace")) // 4 + 1


def render_history(history: Sequence[Turn], budget: int = HISTORY_TOKENS) -> list[Item]:
    """Return the latest turns that fit. Citation markers are removed, because they refer to other passages."""
    items: list[Item] = []
    for turn in reversed(history):
        answer = without_markers(turn.response)
        budget -= estimate_tokens(turn.query) + estimate_tokens(answer)
        if budget < 0:
            break
        items[:0] = [{"role": "user", "content": turn.query}, {"role": "assistant", "content": answer}]
    return items


def render_question(question: str, passages: Sequence[IssuedPassage], place: Place) -> list[Item]:
    """Return the question with as many passages as fit, best first, or with the reader's selection."""
    if place == "tool":
        return [{"role": "user", "content": question}, *render_search("first_search", question, passages)]
    head = "The selected text:" if place == "selection" else "Passages of the book:"
    shown = ["\n".join(passage.lines()) for passage in _fitting(passages)]
    return [{"role": "user", "content": "\n\n".join([head, *shown, f"Question: {question}"])}]


def render_search(call_id: str, query: str, passages: Sequence[IssuedPassage]) -> list[Item]:
    """Return a search as a call and its result, which must stay together."""
    call = {
        "type": "function_call",
        "call_id": call_id,
        "name": SEARCH,
        "arguments": json.dumps({"query": query}, ensure_ascii=False),
        "provider_data": _SIGNATURE,
    }
    return [call, {"type": "function_call_output", "call_id": call_id, "output": tool_response(query, passages)}]


def tool_response(query: str, passages: Sequence[IssuedPassage]) -> str:
    """Return the result of the search tool. The `chunk_text` of a passage holds its numbered units."""
    results = [_result(passage, rank) for rank, passage in enumerate(_fitting(passages), start=1)]
    return json.dumps({"results": results, "total_results": len(results), "query": query}, ensure_ascii=False)


def tool_error(query: str, message: str) -> str:
    """Return the result of the search tool for a failed search."""
    return json.dumps({"error": message, "query": query}, ensure_ascii=False)


def _fitting(passages: Sequence[IssuedPassage]) -> Sequence[IssuedPassage]:
    return fitting(passages, lambda passage: estimate_tokens(passage.text), PASSAGE_TOKENS)


def _result(passage: IssuedPassage, rank: int) -> dict[str, object]:
    place, *units = passage.lines()
    chunk = passage.chunk
    assert chunk is not None, "a selection is not searched"
    return {
        "passage": passage.number,
        "place": place,
        "chunk_text": "\n".join(units),
        "page_title": without_orders(chunk.page_title, chunk),
        "section_heading": without_orders(chunk.section_heading, chunk) or None,
        "source_url": chunk.source_url,
        "similarity_score": round(chunk.similarity_score, 3),
        "rank": rank,
    }
