"""Code blocks and tables of an answer, which must stand in a passage line by line.

Owns that comparison. Never runs, parses or repairs code, and never reads a cell without its head: what a row says
depends on the table that it stands in. White space at the ends of a line and between its words does
not count, so what is shown is the passage's own lines: an indentation that the model changed would be another program.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from chapterverse.grounding.passages import Evidence, Passage

_LINE = re.compile(r"[^\n]*\S[^\n]*")
_ROW = re.compile(r"^[ \t]*\|[^\n]*", re.MULTILINE)
_RULE = re.compile(r"[ \t]*\|[|:\-\s]*")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})")


def find_code(block: str, passages: Sequence[Passage]) -> Evidence | None:
    """The lines of a passage that a fenced block repeats: the first passage that has them all, one after another."""
    wanted = [" ".join(line.split()) for line in block.splitlines() if line.strip() and not _FENCE.match(line)]
    if not any(re.search(r"\w", line) for line in wanted):
        return None
    for passage in passages:
        lines = [match.span() for match in _LINE.finditer(passage.text) if not _FENCE.match(match[0])]
        theirs = [" ".join(passage.text[start:end].split()) for start, end in lines]
        for at in range(len(theirs) - len(wanted) + 1):
            if theirs[at : at + len(wanted)] == wanted:
                start, end = lines[at][0], lines[at + len(wanted) - 1][1]
                if not any(left < end and start < right for left, right in passage.barred):
                    return Evidence(passage, start, end)
    return None


def find_head(row: str, passages: Sequence[Passage]) -> Evidence | None:
    """The head of a passage's table that a row repeats."""
    for passage in passages:
        rows = list(_ROW.finditer(passage.text))
        for one, other in pairwise(rows):
            if cells(one[0]) == cells(row) and _RULE.fullmatch(other[0]) and one.end() + 1 == other.start():
                return Evidence(passage, one.start(), one.end())
    return None


def find_row(row: str, head: Evidence) -> Evidence | None:
    """The row under a table's head that a row repeats, cell by cell."""
    text = head.passage.text
    at = head.end + 1
    while found := _ROW.match(text, at):
        if cells(found[0]) == cells(row) and not _RULE.fullmatch(found[0]):
            return Evidence(head.passage, found.start(), found.end())
        at = found.end() + 1
    return None


def cells(row: str) -> list[str]:
    """The cells of a row, without what sets them apart."""
    return [" ".join(re.sub(r"[*_`]", "", cell).split()) for cell in row.strip().strip("|").split("|")]


def language_of(block: str) -> str:
    """The word behind the opening fence, such as `python`."""
    match = re.match(r"[ \t]*(?:`{3,}|~{3,})[ \t]*([\w+#.-]*)", block)
    return match[1] if match else ""
