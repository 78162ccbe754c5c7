"""Finds faults in the form of a shown answer: gaps in lists, references to missing statements, empty announcements.

It uses only the shown text and the order of the statements, and shares no code with the assembly.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from bench.answers.replay import Replayed
from chapterverse.evidence.statement import Statement
from chapterverse.language import word_set

_NUMBERED = re.compile(r"^( *)(\d+)\. ", re.MULTILINE)
_OPENERS: Final = word_set(
    "however but also additionally therefore thus then instead otherwise this these those they it its such moreover"
)


def holes(shown: Replayed) -> Iterator[str]:
    """Yield a description of each fault, in a few words."""
    yield from _numbers(shown.text)
    yield from _announcements(shown)
    yield from _openers(shown)


def _numbers(text: str) -> Iterator[str]:
    """Find numbers of a list that are not consecutive."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    last: dict[str, int] = {}
    for found in _NUMBERED.finditer(prose):
        indent, number = found[1], int(found[2])
        if number not in (1, last.get(indent, 0) + 1):
            yield f"list number {number} after {last.get(indent, 0)}"
        last = {level: count for level, count in last.items() if len(level) <= len(indent)} | {indent: number}


def _announcements(shown: Replayed) -> Iterator[str]:
    """Find lead-ins and headings with nothing after them."""
    statements = [one.statement for one in shown.proven]
    for one, following in pairwise([*statements, None]):
        if one is None or not one.leads:
            continue
        if following is None or (one.shape == following.shape == "heading" and following.level <= one.level):
            yield f"announces nothing: {one.text}"


def _openers(shown: Replayed) -> Iterator[str]:
    """Find statements that refer to a statement that was not shown."""
    before: dict[str, Statement | None] = {}
    last: Statement | None = None
    for draft in shown.drafts:
        before[draft.text] = last
        last = draft
    shown_texts = [one.statement.text for one in shown.proven]
    for previous, one in pairwise([None, *shown.proven]):
        assert one is not None
        first = re.match(r"[*_\"“(]*(?!instead of )([a-z]+)", one.statement.text, re.IGNORECASE)
        written_before = before.get(one.statement.text)
        if one.replaced or first is None or first[1].lower() not in _OPENERS or written_before is None:
            continue
        kept = written_before.text in shown_texts or (previous is not None and previous.replaced)
        if not kept and not written_before.leads:
            yield f"dangles: {one.statement.text}"
