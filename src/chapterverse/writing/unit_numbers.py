"""Reads the unit numbers in a model's text: `[2.3]`, `[2.3, 2.4]`, `[2.3][3.1]`, `[1]`, `[^1]`, `[1-3]`, `【1】`.

What stands between backticks is code, and a bracket that belongs to a link or to an index of code is no number.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from chapterverse.evidence.statement import UnitRef

_ONE = r"\^?\d{1,3}(?:\.\d{1,4})?(?:†[^\]】\n]{0,20})?"
_LABEL = r"(?:(?:source|passage|unit|ref|doc)s?\s*+:?\s*+)?"
_LIST = rf"{_LABEL}{_ONE}(?:\s*+(?:[,;–—-]|and|&)\s*+{_LABEL}{_ONE})*"
_NUMBERS = re.compile(rf"(?:\[\s*+{_LIST}\s*+\]|【\s*+{_LIST}\s*+】)(?![(\w])", re.IGNORECASE)
_INDEXED = re.compile(r"(?<![\w.])[^\W\d][\w.]{0,80}+(?:\(\))?$")  # `a.b[0]` without backticks
_HALF = re.compile(r"[\[【][^\]】\n]{0,60}$")
_CODE = re.compile(r"(?<!`)(`++).*?(?<!`)\1(?!`)", re.DOTALL)
_PART = re.compile(r"(\d{1,3})(?:\.(\d{1,4}))?(?:†[^,;\]】]*)?\s*([–—-])?")
_WIDEST = 50  # numbers of one range; a wider one is a slip, and its ends are taken

LOOK_AHEAD = 64  # characters that may stand between the first bracket and its end


class Numbers(NamedTuple):
    """One bracket and what it names: `text[start:end]`."""

    start: int
    end: int
    refs: tuple[UnitRef, ...]


def find_numbers(text: str) -> list[Numbers]:
    """The brackets with unit numbers, in order."""
    if "[" not in text and "【" not in text:
        return []
    code = [match.span() for match in _CODE.finditer(text)]
    return [
        Numbers(match.start(), match.end(), tuple(_refs(match[0])))
        for match in _NUMBERS.finditer(text)
        if not any(start <= match.start() < end for start, end in code)
        and not _is_indexed(text[max(0, match.start() - 80) : match.start()])
    ]


def without_numbers(text: str) -> tuple[str, tuple[UnitRef, ...]]:
    """A text without its unit numbers, and the numbers in order, each once."""
    found = find_numbers(text)
    pieces: list[str] = []
    last = 0
    for numbers in found:
        pieces.append(text[last : numbers.start].rstrip(" \t\n"))
        last = numbers.end
    pieces.append(text[last:])
    return "".join(pieces).strip(), tuple(dict.fromkeys(ref for numbers in found for ref in numbers.refs))


def mask_numbers(text: str) -> str:
    """A text of the same length in which no number stands between a sentence and its full stop."""
    masked = list(text)
    for numbers in find_numbers(text):
        before_stop = bool(re.match(r"\s*[.!?…。！？:]", text[numbers.end :]))
        masked[numbers.start : numbers.end] = ("\u00a4" if before_stop else " ") * (numbers.end - numbers.start)
    return "".join(masked)


def open_bracket(text: str) -> int:
    """Where a bracket that may still become a number was left open, or the end of the text."""
    match = _HALF.search(text)
    return match.start() if match else len(text)


def _refs(bracket: str) -> Iterator[UnitRef]:
    """Each number, and those between the ends of a range."""
    first: UnitRef | None = None
    for part in _PART.finditer(bracket):
        ref = UnitRef(int(part[1]), int(part[2] or 0))
        if first is not None:
            yield from _between(first, ref)
        yield ref
        first = ref if part[3] else None


def _between(first: UnitRef, last: UnitRef) -> Iterator[UnitRef]:
    if first.unit and first.passage == last.passage and first.unit < last.unit <= first.unit + _WIDEST:
        yield from (UnitRef(first.passage, unit) for unit in range(first.unit + 1, last.unit))
    elif not first.unit and not last.unit and first.passage < last.passage <= first.passage + _WIDEST:
        yield from (UnitRef(passage) for passage in range(first.passage + 1, last.passage))


def _is_indexed(before: str) -> bool:
    """Whether a bracket that follows belongs to code: it stands right after a name with a dot, underscore or call."""
    name = _INDEXED.search(before)
    return name is not None and name[0][-1] != "." and any(sign in name[0] for sign in "_.(")
