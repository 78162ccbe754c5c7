"""Computes figures from the results. Pure functions."""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from chapterverse.evidence.assembly import begins_dangling
from chapterverse.writing.cutting import announces

from .asking import Asked
from .sets import shows

_FRAME = re.compile(r"^From “[^”]*”:$")
_MARKERS = re.compile(r"\s*(?:\[\d+\])+")
BINS: Final = 10


def shown_by_kind(asked: Sequence[Asked]) -> dict[str, str]:
    """Count the answerable questions whose answers show what the reader needs, by kind."""
    kinds: dict[str, list[bool]] = {}
    for one in asked:
        if one.question.answerable:
            right = one.answered and shows(one.question, one.response.answer)
            kinds.setdefault(one.question.kind, []).append(right)
            kinds.setdefault("all", []).append(right)
    return {kind: f"{sum(rights)} of {len(rights)}" for kind, rights in sorted(kinds.items())}


def book_figures(asked: Sequence[Asked], foreign: Sequence[Asked]) -> dict[str, Any]:
    """Return the shares of one book's questions that were shown and refused. `foreign`: questions about other books."""
    answerable = [one for one in asked if one.question.answerable]
    unanswerable = [one for one in asked if not one.question.answerable]
    first = [one for one in answerable if one.search]
    return {
        "shown": shown_by_kind(asked),
        "passages_read_first_five_hold_it": _rate(shows(one.question, " ".join(one.search[:5])) for one in first),
        "false_refusals": _rate(not one.answered for one in answerable),
        "unanswerable_refused": _rate(not one.answered for one in unanswerable),
        "other_books_refused": _rate(not one.answered for one in foreign),
        **confidence_figures([one for one in asked if one.answered]),
    }


def confidence_figures(answered: Sequence[Asked]) -> dict[str, Any]:
    """Expected calibration error, and the share of wrong answers with high confidence."""
    rows = [(one.response.confidence, shows(one.question, one.response.answer)) for one in answered]
    wrong = [one for one, (_, right) in zip(answered, rows, strict=True) if not right]
    return {
        "ece": round(ece(rows), 3),
        "wrong_called_high": _rate(one.response.confidence_level == "high" for one in wrong),
        "high_and_wrong_of_all": _rate(
            one.response.confidence_level == "high" and not right
            for one, (_, right) in zip(answered, rows, strict=True)
        ),
    }


def ece(rows: Sequence[tuple[float, bool]]) -> float:
    """The mean distance between confidence and accuracy, over bins of equal width."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for value, right in rows:
        bins[min(BINS - 1, int(value * BINS))].append((value, right))
    error = sum(abs(sum(value for value, _ in one) - sum(right for _, right in one)) for one in bins if one)
    return error / len(rows) if rows else 0.0


def followup_figures(dialogues: Sequence[Sequence[Asked]]) -> dict[str, Any]:
    """Count the later turns whose answers show what the reader needs, by kind, and the refusals of turns that the book
    does not answer."""
    turns = [turn for dialogue in dialogues for turn in dialogue[1:]]
    repeats = [
        one.response.answer == before.response.answer
        for dialogue in dialogues
        for before, one in pairwise(dialogue)
        if one.answered
    ]
    return {
        "followups_shown": shown_by_kind(turns),
        "followups_unanswerable_refused": _rate(not one.answered for one in turns if not one.question.answerable),
        "first_turns_shown": shown_by_kind([dialogue[0] for dialogue in dialogues]).get("all"),
        "same_answer_again": _rate(repeats),
    }


def faults(answer: str) -> list[str]:
    """Return the faults in how an answer's excerpts begin and end."""
    found = []
    for excerpt in _excerpts(answer):
        if begins_dangling(excerpt):
            found.append(f"begins: {excerpt[:60]}")
        if announces(excerpt) and not excerpt.endswith("```"):
            found.append(f"ends: {excerpt[-60:]}")
    return found


def _excerpts(answer: str) -> list[str]:
    excerpts: list[list[str]] = []
    for line in answer.split("\n"):
        if _FRAME.match(line) or not excerpts:
            excerpts.append([])
        if not _FRAME.match(line):
            excerpts[-1].append(line)
    return [text for lines in excerpts if (text := _MARKERS.sub("", "\n".join(lines)).strip())]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a given share of the values lies."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, math.ceil(share * len(ranked)) - 1)] if ranked else 0.0


def _rate(holds: Iterable[bool]) -> str:
    found = list(holds)
    return f"{sum(found)} of {len(found)}" + (f" ({sum(found) / len(found):.3f})" if found else "")
