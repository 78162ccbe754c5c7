"""A model's text, as it arrives in pieces, cut into what is checked one by one.

Owns the cut: sentences, list items, headings, table rows and whole code blocks, each with the markers that belong to
it. A unit is released when nothing that may still arrive can change where it ends, so the units never depend on how
the text was split on its way. Never judges.
"""

import re
from dataclasses import dataclass
from typing import Literal

from chapterverse.grounding import markers
from chapterverse.text import sentences

UnitKind = Literal["sentence", "heading", "row", "code", "too long"]

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[^\n]*")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_ROW = re.compile(r"[ \t]*\|")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<bullet>[-*+•]|\d{1,3}[.)])[ \t]+")
_QUOTE = re.compile(r"[ \t]*>[ \t]?")
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_MAY_END = re.compile(r"[.!?…。！？｡\n]")
_NEXT_WORD = re.compile(r"\s*[\"'“‘«(\[*_]*\w*")
_TICKS = re.compile(r"`+")
_ENOUGH = 8  # characters of a line that tell what it is
_LONGEST = 4000  # characters of a sentence; what is longer is none


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of the answer without its markers, and the numbers that they named."""

    kind: UnitKind
    text: str
    numbers: tuple[int, ...] = ()
    opens: bool = False  # begins a paragraph, an item, a row or a block
    bullet: str = ""  # of the item that it begins, with its indentation


class Cutter:
    """Takes text in any pieces and gives units."""

    def __init__(self) -> None:
        self._text = ""  # what has arrived and is not yet in a unit
        self._inside = False  # a paragraph or an item has begun
        self._opens = False
        self._bullet = ""

    def feed(self, delta: str) -> list[Unit]:
        """The units that this piece completes."""
        self._text += delta.replace("\r", "")
        return self._drain(final=False)

    def finish(self) -> list[Unit]:
        """The units that the end of the text completes."""
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> list[Unit]:
        units: list[Unit] = []
        while True:
            before = len(self._text), self._inside
            unit = self._sentence(final) if self._inside else self._block(final)
            if unit and (unit.text or unit.numbers):
                units.append(unit)
            if before == (len(self._text), self._inside):
                return units

    def _block(self, final: bool) -> Unit | None:
        """Begin a block, or take one that is a unit as a whole."""
        blank = re.match(r"(?:[ \t]*\n)+", self._text)
        if blank:
            self._text = self._text[blank.end() :]
        if not _tells(self._text, final) or not self._text.strip():
            self._text = "" if final else self._text
            return None
        if fence := _FENCE.match(self._text):
            return self._code(fence["mark"], final)
        line, feed, rest = self._text.partition("\n")
        for pattern, kind in ((_HEADING, "heading"), (_ROW, "row"), (_RULE, "heading")):
            whole = pattern.fullmatch(line) if pattern is _RULE else pattern.match(line)
            if whole and (feed or final):
                self._text = rest
                text, numbers = markers.remove(line)
                return Unit("row" if kind == "row" else "heading", text, numbers, opens=True)
            if whole and pattern is not _RULE:
                return None
        if quote := _QUOTE.match(line):
            self._text = self._text[quote.end() :]
            return None
        item = _ITEM.match(line)
        self._bullet = f"{item['indent']}{item['bullet']} " if item else ""
        self._text = self._text[item.end() :] if item else self._text
        self._inside = self._opens = True
        return None

    def _code(self, mark: str, final: bool) -> Unit | None:
        close = re.compile(rf"\n[ \t]*{re.escape(mark)}{mark[0]}*[ \t]*(?:\n|\Z)").search(self._text)
        if close and (final or close[0].endswith("\n")):
            text, self._text = self._text[: close.end()], self._text[close.end() :]
        elif final:
            text, self._text = self._text, ""
        else:
            return None
        return Unit("code", text.strip("\n"), opens=True)

    def _sentence(self, final: bool) -> Unit | None:
        """Take the first sentence of the block if its end is certain."""
        view = self._text[: _LONGEST + markers.LOOK_AHEAD]
        cut_off = len(view) < len(self._text)
        if not (final or cut_off or _MAY_END.search(view)):
            return None
        end, ended = _block_end(view, final and not cut_off)
        block = view[:end].replace("\n", " ")
        stop = _first_end(block, ended)
        if stop is None and not cut_off:
            return None
        if stop is None or stop > _LONGEST:
            unit = Unit("too long", block[:_LONGEST], opens=self._opens, bullet=self._bullet)
            self._text = self._text[_LONGEST:]
        else:
            text, numbers = markers.remove(block[:stop])
            unit = Unit("sentence", text, numbers, opens=self._opens, bullet=self._bullet)
            self._text = self._text[stop:]
            if ended and stop == len(block):
                self._inside = False
        self._opens, self._bullet = False, ""
        return unit


def _tells(text: str, final: bool) -> bool:
    """Whether enough of a line has arrived to tell what kind it is."""
    line, feed, _ = text.partition("\n")
    return final or bool(feed) or len(line.lstrip(" \t")) >= _ENOUGH


def _block_end(text: str, final: bool) -> tuple[int, bool]:
    """How far the block reaches for certain, and whether that is its end."""
    for feed in re.finditer(r"\n", text):
        following = text[feed.end() :]
        if not _tells(following, final):
            return feed.start(), False
        line = following.partition("\n")[0]
        if (
            not line.strip()
            or any(pattern.match(line) for pattern in (_FENCE, _HEADING, _ROW, _ITEM, _QUOTE))
            or _RULE.fullmatch(line)
        ):
            return feed.start(), True
    return len(text), final


def _first_end(block: str, ended: bool) -> int | None:
    """Where the first sentence of a block ends, with the markers behind it; None while that is not certain."""
    known = len(block) if ended else markers.half(block)
    masked = markers.mask(block[:known])
    spans = sentences(masked)
    if len(spans) < 2:
        return len(block) if ended else None
    start = spans[1][0]
    if not ended and (_open_code(masked[:start]) or _NEXT_WORD.fullmatch(masked, start)):
        return None
    return start


def _open_code(text: str) -> bool:
    """Whether a backtick waits for its partner."""
    waiting = ""
    for ticks in _TICKS.findall(text):
        if not waiting:
            waiting = ticks
        elif ticks == waiting:
            waiting = ""
    return bool(waiting)
