"""Cuts an excerpt out of a section: from a unit that can be understood alone to one that announces nothing more.

An excerpt is a run of units around those that answer, with at most about 120 words and 40 lines of code, or a section
that is little longer. It includes its introduction: the lead-in of a list or of code, the header of a table, the first
of numbered steps. If a list or table continues after it, the excerpt ends with "…".
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from chapterverse.evidence.assembly import begins_dangling
from chapterverse.evidence.citations import MORE, Proven
from chapterverse.evidence.passages import IssuedPassage, IssuedUnit
from chapterverse.evidence.statement import Statement
from chapterverse.language import stems
from chapterverse.trained import UNREAD

MOST_WORDS: Final = 120  # of an excerpt, not counting code
WHOLE: Final = 160  # of an excerpt that has more only to begin or end where its section, list or table does
CODE_LINES: Final = 40  # a longer block is cut
SHORT_CODE: Final = 20  # lines of all code blocks together, if an excerpt has several
BELOW_BEST: Final = 1.0  # a unit answers if it is at most this many logits below the best one
LEAST: Final = -2.0  # minimum logit of a unit that answers, other than the best one
UNKNOWN: Final = -3.0  # minimum logit assumed for a unit, also for one that was not read
AROUND: Final = 25  # units considered on each side of the best one

_ANNOUNCES = re.compile(r"(?::|\b(?:as follows|(?:see|shown) below|the following)\W{0,8})\s{0,8}$", re.IGNORECASE)
_NUMBERED = re.compile(r"\(?(\d{1,4})[.)]\s")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_IMAGE = re.compile(r"^\[Image\]\n+", re.MULTILINE)  # an image without a text


def announces(text: str) -> bool:
    """Whether a text ends by announcing something that has to follow."""
    return _ANNOUNCES.search(text.rstrip("*_ \n")) is not None


def cut_excerpt(
    passage: IssuedPassage,
    scores: Mapping[int, float],
    question: str,
    heading: str,
    *,
    fill: bool = True,
    seen: Collection[int] = (),
) -> Proven | None:
    """Return the best excerpt of a section by the logits of its units; None if there is none. With `fill`, other units
    are added while there is room, but units that start at a place in `seen`, which the reader knows already, do not
    count as a gain."""
    units = passage.units
    numbers = {unit.ref.unit for unit in units}
    last = [unit.ref.unit + 1 not in numbers for unit in units]
    known = [  # a unit that announces something missing, such as an image, is not an answer
        UNREAD if ends and announces(unit.text) else scores.get(unit.start, UNREAD)
        for unit, ends in zip(units, last, strict=True)
    ]
    if max(known, default=UNREAD) <= UNREAD:
        return None
    best = max(range(len(known)), key=lambda at: known[at])
    # At most AROUND units on each side, within the run of units without a gap.
    first = max((at + 1 for at in range(best) if last[at]), default=0)
    first, end = max(first, best - AROUND), min(last.index(True, best), best + AROUND) + 1
    cutter = _Cutter(units[first:end], known[first:end], seen, fill=fill)
    span = cutter.span()
    if announces(cutter.units[span[-1]].text):
        return None  # what it announces cannot be shown: an image, or the sections below
    shown = tuple(cutter.units[at] for at in span)
    lit = tuple(cutter.units[at] for at in span if at in cutter.lit)
    last_kinds = [unit.kind for unit in units[first + span[-1] : first + span[-1] + 2]]
    more = f"\n\n{MORE}" if last_kinds in (["item", "item"], ["row", "row"]) else ""  # the list or table goes on
    return excerpt_of(passage, shown, question, heading, lit, more)


def excerpt_of(
    passage: IssuedPassage,
    shown: Sequence[IssuedUnit],
    question: str,
    heading: str,
    lit: Sequence[IssuedUnit] = (),
    more: str = "",
) -> Proven:
    """Return a run of units as an excerpt, with those that answer highlighted: all of them if `lit` is empty."""
    excerpt = Statement(f"{_excerpt_text(passage, shown, question, heading)}{more}", shape="excerpt")
    return Proven(excerpt, "quoted", tuple(shown), highlights=tuple(lit or shown))


class _Cutter:
    """Chooses the span of units to be shown."""

    def __init__(
        self, units: tuple[IssuedUnit, ...], known: Sequence[float], seen: Collection[int], *, fill: bool
    ) -> None:
        self.units, self._seen, self._fill = units, frozenset(seen), fill
        self._best = max(range(len(known)), key=lambda at: known[at])
        least = max(known[self._best] - BELOW_BEST, LEAST)
        lit = {at for at, score in enumerate(known) if score >= least} | {self._best}
        # Code belongs to the line that introduces it.
        self.lit = lit | {at + 1 for at in lit if self._kind(at + 1) == "code" and self._announces(at)}
        # Every unit has some value, so that the room is used. A row of a table, a unit that was seen, or one that is
        # not on the topic of the best one has value only if it answers.
        topic = units[self._best].topic
        self._worth = [
            _chance(max(score, UNKNOWN))
            if at in lit or (unit.kind != "row" and unit.start not in seen and unit.topic == topic)
            else 0.0
            for at, (unit, score) in enumerate(zip(units, known, strict=True))
        ]
        self._words = [0 if unit.kind == "code" else len(unit.text.split()) for unit in units]
        self._lines = [min(CODE_LINES, unit.text.count("\n") - 1) if unit.kind == "code" else 0 for unit in units]
        self._needed = [self._needed_before(at) for at in range(len(units))]

    def span(self) -> range:
        """Return the most valuable of the spans that fit and contain the best unit. If none fits, return the best unit
        with the units it needs."""
        ends = range(len(self.units)) if self._fill else sorted(self.lit)
        tried = {self._closed(first, last) for first in ends for last in ends if first <= self._best <= last}
        fitting = [span for span in tried if self._fits(span) and self._needed[span[0]] == span[0]]
        span = max(fitting, key=self._rank, default=self._closed(self._best, self._best))
        while len(span) > 1 and self._announces(span[-1]):
            span = span[:-1]
        return self._rounded(span) if self._fill else span

    def _rounded(self, span: range) -> range:
        """Return the span with the rest of its list or table, and the beginning and the rest of its section, each if it
        still fits. A section is not widened by units that the reader has seen."""
        list_end = end = span.stop
        first, topic = span.start, self.units[span.start].topic
        while self._kind(list_end) == self._kind(list_end - 1) in ("item", "row"):
            list_end += 1
        while first and self.units[first - 1].topic == topic and self.units[first - 1].start not in self._seen:
            first -= 1
        while end < len(self.units) and self.units[end].topic == topic and self.units[end].start not in self._seen:
            end += 1
        for start, stop in ((span.start, list_end), (first, span.stop), (first, end)):
            wider = range(min(span.start, start), max(span.stop, stop))
            if self._fits(wider, WHOLE) and not self._announces(wider[-1]):
                span = wider
        return span

    def _rank(self, span: range) -> tuple[float, int, int]:
        return sum(self._worth[at] for at in span), -len(span), -span[0]

    def _fits(self, span: range, most: int = MOST_WORDS) -> bool:
        blocks = sum(self._kind(at) == "code" and self._kind(at - 1) != "code" for at in span)
        lines = sum(self._lines[at] for at in span)
        few = lines <= (CODE_LINES if blocks <= 1 else SHORT_CODE)
        return few and sum(self._words[at] for at in span) <= most

    def _closed(self, first: int, last: int) -> range:
        """Extend a span by the units that its first unit needs before it and those that its last unit announces."""
        while (before := self._needed[first]) < first:
            if before < first - 1 and not self._fits(range(before, last + 1)):
                break  # a distant head is written separately
            first = before
        while last + 1 < len(self.units) and self._announces(last):
            last += 1
        return range(first, last + 1)

    def _needed_before(self, first: int) -> int:
        """Return the position of the unit without which this one cannot be understood, or its own."""
        unit = self.units[first]
        if unit.kind == "row" or not first:
            return first
        head = next((at for at, other in enumerate(self.units) if other.start == unit.head_start), first)
        if head < first and (unit.kind != "code" or self._announces(head) or head == first - 1):
            return head
        number = _NUMBERED.match(unit.text)
        steps = unit.kind == "item" and number is not None and int(number[1]) > 1
        dangles = begins_dangling(unit.text) or (unit.kind == "sentence" and unit.text[:1].islower())
        return first - 1 if steps or dangles or (unit.kind == "code" and self._kind(first - 1) == "sentence") else first

    def _announces(self, at: int) -> bool:
        """Whether a unit announces what follows: it says so, or it is an unfinished sentence before code."""
        text = self.units[at].text
        return announces(text) or (self._kind(at) == "sentence" and self._kind(at + 1) == "code" and text[-1].isalnum())

    def _kind(self, at: int) -> str:
        return self.units[at].kind if 0 <= at < len(self.units) else ""


def _chance(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _excerpt_text(passage: IssuedPassage, units: Sequence[IssuedUnit], question: str, heading: str) -> str:
    """Return the text of a run of units after its introduction, with long code shortened and without images."""
    pieces = [_introduction(units[0], heading)]
    place = units[0].start
    for unit in units:
        pieces.append(_IMAGE.sub("", passage.text[place - passage.offset : unit.start - passage.offset]))
        long = unit.kind == "code" and (unit.text.count("\n") - 1 > CODE_LINES or not _is_fenced(unit.text))
        pieces.append(_shortened(unit, question) if long else unit.text)
        place = unit.end
    return "".join(pieces)


def _introduction(first: IssuedUnit, heading: str) -> str:
    """Return the introduction that the first unit needs if it does not come directly before the unit."""
    if first.kind == "row" and first.head:
        return f"{first.head}\n|{' --- |' * (first.head.strip().strip('|').count('|') + 1)}\n"
    lead = f"{first.head}\n\n…\n\n" if first.head and announces(first.head) else ""
    return f"### {heading}\n\n{lead}" if heading and begins_dangling(lead or first.text) else lead


def _is_fenced(code: str) -> bool:
    lines = code.split("\n")
    return len(lines) > 1 and all(map(_FENCE.match, (lines[0], lines[-1])))


def _shortened(unit: IssuedUnit, question: str) -> str:
    """Shorten a long code block to the part after a blank line that has the most words of the question."""
    lines = unit.text.split("\n")
    fence = lines.pop(0) if _FENCE.match(lines[0]) else "```"  # a piece of a very long block may have no fences
    closing = lines.pop() if lines and _FENCE.match(lines[-1]) else "```"
    starts = [0, *(at + 1 for at, line in enumerate(lines) if not line.strip())]
    asked = stems(question)
    best = max(starts, key=lambda at: len(asked & stems("\n".join(lines[at : at + CODE_LINES]))))
    shown = lines[best : best + CODE_LINES]
    last = max((at for at, line in enumerate(shown) if not line.strip()), default=0)
    if best + CODE_LINES < len(lines) and last > CODE_LINES // 2:
        shown = shown[:last]  # end at a blank line, unless that leaves little
    before = ["…"] if best else []
    after = ["…"] if best + len(shown) < len(lines) else []
    return "\n".join([fence, *before, *shown, *after, closing])


def near_duplicates(one: str, two: str) -> bool:
    """Whether two excerpts say nearly the same: they share half of their word trigrams."""
    words = [re.findall(r"\w+", text.lower()) for text in (one, two)]
    left, right = ({*zip(text, text[1:], text[2:], strict=False)} for text in words)
    return bool(left and right) and len(left & right) >= 0.5 * min(len(left), len(right))
