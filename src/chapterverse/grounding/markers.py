"""Citation markers in a model's text: `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `【1】`, before or after the full stop.

Owns how they are read and written. Never knows which numbers were issued. What stands between backticks is code, and a
bracket that belongs to a link or to an index of code is no marker.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_NUMBER = r"\^?\d{1,4}(?:†[^\]】\n]{0,20})?"
_LABEL = r"(?:(?:source|passage|ref|doc)s?\s*:?\s*)?"
_LIST = rf"{_LABEL}{_NUMBER}(?:\s*(?:[,;–—-]|and|&)\s*{_LABEL}{_NUMBER})*"
_MARKER = re.compile(rf"(?:\[\s*{_LIST}\s*\]|【\s*{_LIST}\s*】)(?![(\w])", re.IGNORECASE)
_INDEXED = re.compile(r"[^\W\d]\w*(?:_\w+|\.\w+|\(\))$|_$")  # `a.b[0]` without backticks
_HALF = re.compile(r"[\[【][^\]】\n]{0,40}$")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_PART = re.compile(r"(\d{1,4})(?:†[^,;\]】]*)?\s*([–—-])?")
_STOP = re.compile(r"[.!?…。！？]+[\"'”’)»*_]*\s*$")
_WIDEST = 50  # numbers of one range; a wider one is a slip, and its ends are taken

LOOK_AHEAD = 44  # characters that may stand between the first bracket of a marker and its end


class Marker(NamedTuple):
    """A marker and the numbers that it names: `text[start:end]`."""

    start: int
    end: int
    numbers: tuple[int, ...]


def find(text: str) -> list[Marker]:
    """The markers of a text, in order."""
    code = [match.span() for match in _CODE.finditer(text)]
    return [
        Marker(match.start(), match.end(), tuple(_numbers(match[0])))
        for match in _MARKER.finditer(text)
        if not any(start <= match.start() < end for start, end in code)
        and not _INDEXED.search(text, max(0, match.start() - 80), match.start())
    ]


def half(text: str) -> int:
    """Where a bracket that may become a marker has been left open, or the end of the text."""
    match = _HALF.search(text)
    return match.start() if match else len(text)


def remove(text: str) -> tuple[str, tuple[int, ...]]:
    """A text without its markers, and their numbers in order, each once."""
    found = find(text)
    pieces: list[str] = []
    last = 0
    for marker in found:
        pieces.append(text[last : marker.start].rstrip(" \t\n"))
        last = marker.end
    pieces.append(text[last:])
    return "".join(pieces).strip(), tuple(dict.fromkeys(number for marker in found for number in marker.numbers))


def mask(text: str) -> str:
    """A text of the same length in which no marker stands between a sentence and its full stop."""
    masked = list(text)
    for marker in find(text):
        before_stop = bool(re.match(r"\s*[.!?…。！？]", text[marker.end :]))
        masked[marker.start : marker.end] = ("\u00a4" if before_stop else " ") * (marker.end - marker.start)
    return "".join(masked)


def place(text: str, numbers: Sequence[int]) -> str:
    """A text with its markers before the full stop."""
    if not numbers:
        return text
    stop = _STOP.search(text)
    at = stop.start() if stop else len(text)
    return f"{text[:at].rstrip()} {''.join(f'[{number}]' for number in numbers)}{text[at:]}"


def _numbers(marker: str) -> Iterator[int]:
    first: int | None = None
    for part in _PART.finditer(marker):
        number = int(part[1])
        if first is not None and first < number <= first + _WIDEST:
            yield from range(first + 1, number)
        yield number
        first = number if part[2] else None
