"""Cuts an excerpt out of a section: from a unit that can be understood alone to one that announces nothing more.

An excerpt is a run of units around those that answer, about 120 words and one code block at most. What introduces it
comes along: the lead-in of a list or of code, the header of a table, the first of numbered steps. Where a list or a
table goes on after it, the excerpt ends in "…".
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

MOST_WORDS: Final = 120  # of an excerpt, code aside
CODE_LINES: Final = 40  # a longer block is cut
SHORT_CODE: Final = 20  # lines of all blocks together, where more than one is shown
BELOW_BEST: Final = 1.0  # logits below the best unit that a unit may lie and still answer
LEAST: Final = -2.0  # logit of a unit that answers beside the best one
UNKNOWN: Final = -3.0  # logit that a unit beside the passages read is taken to have
AROUND: Final = 25  # units on each side of the best one that are looked at

_ANNOUNCES = re.compile(r"(?::|\b(?:as follows|(?:see|shown) below|the following)\W{0,8})\s{0,8}$", re.IGNORECASE)
_NUMBERED = re.compile(r"\(?(\d{1,4})[.)]\s")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")


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
    """The excerpt of a section that answers best, by the logits of its units; None if there is none. It has more
    than what answers, as far as there is room, if it is to be filled; but units that begin at `seen` places, which the
    reader has seen, fill nothing."""
    units = passage.units
    numbers = {unit.ref.unit for unit in units}
    last = [unit.ref.unit + 1 not in numbers for unit in units]
    known = [  # what announces something that is not there, such as an image, is no answer
        UNREAD if ends and announces(unit.text) else scores.get(unit.start, UNREAD)
        for unit, ends in zip(units, last, strict=True)
    ]
    if max(known, default=UNREAD) <= UNREAD:
        return None
    best = max(range(len(known)), key=lambda at: known[at])
    # Of the run in which no unit is left out, so many on each side at most.
    first = max((at + 1 for at in range(best) if last[at]), default=0)
    first, end = max(first, best - AROUND), min(last.index(True, best), best + AROUND) + 1
    cutter = _Cutter(units[first:end], known[first:end], seen, fill=fill)
    span = cutter.span()
    if announces(cutter.units[span[-1]].text):
        return None  # of what is announced nothing can be shown: an image, or the sections below
    shown = tuple(cutter.units[at] for at in span)
    lit = tuple(cutter.units[at] for at in span if at in cutter.lit)
    last_kinds = [unit.kind for unit in cutter.units[span[-1] : span[-1] + 2]]
    more = f"\n\n{MORE}" if last_kinds in (["item", "item"], ["row", "row"]) else ""  # the list or table goes on
    excerpt = Statement(f"{_excerpt_text(passage, shown, question, heading)}{more}", shape="excerpt")
    return Proven(excerpt, "quoted", shown, highlights=lit)


class _Cutter:
    """Chooses the span of units to be shown."""

    def __init__(
        self, units: tuple[IssuedUnit, ...], known: Sequence[float], seen: Collection[int], *, fill: bool
    ) -> None:
        self.units, self._fill = units, fill
        self._best = max(range(len(known)), key=lambda at: known[at])
        least = max(known[self._best] - BELOW_BEST, LEAST)
        lit = {at for at, score in enumerate(known) if score >= least} | {self._best}
        # Code belongs to the line that introduces it.
        self.lit = lit | {at + 1 for at in lit if self._kind(at + 1) == "code" and self._announces(at)}
        # Every unit is worth something, so that there is no room left; one that was seen, or that is about something
        # else than the best one, only if it answers.
        topic = units[self._best].topic
        self._worth = [
            0.0 if at not in lit and (unit.start in seen or unit.topic != topic) else _chance(max(score, UNKNOWN))
            for at, (unit, score) in enumerate(zip(units, known, strict=True))
        ]
        self._words = [0 if unit.kind == "code" else len(unit.text.split()) for unit in units]
        self._lines = [min(CODE_LINES, unit.text.count("\n") - 1) if unit.kind == "code" else 0 for unit in units]
        self._needed = [self._needed_before(at) for at in range(len(units))]

    def span(self) -> range:
        """Of the spans that fit and hold the best unit, the one with most of what seems to answer; where none fits,
        the best unit with what it needs."""
        ends = range(len(self.units)) if self._fill else sorted(self.lit)
        tried = {self._closed(first, last) for first in ends for last in ends if first <= self._best <= last}
        fitting = [span for span in tried if self._fits(span) and self._needed[span[0]] == span[0]]
        span = max(fitting, key=self._rank, default=self._closed(self._best, self._best))
        while len(span) > 1 and self._announces(span[-1]):
            span = span[:-1]
        return span

    def _rank(self, span: range) -> tuple[float, int, int]:
        return sum(self._worth[at] for at in span), -len(span), -span[0]

    def _fits(self, span: range) -> bool:
        blocks = sum(self._kind(at) == "code" and self._kind(at - 1) != "code" for at in span)
        lines = sum(self._lines[at] for at in span)
        few = lines <= (CODE_LINES if blocks <= 1 else SHORT_CODE)
        return few and sum(self._words[at] for at in span) <= MOST_WORDS

    def _closed(self, first: int, last: int) -> range:
        """The span with what its first unit needs before it and its last unit announces after it."""
        while (before := self._needed[first]) < first:
            if before < first - 1 and not self._fits(range(before, last + 1)):
                break  # a head that lies far away is written by itself
            first = before
        while last + 1 < len(self.units) and self._announces(last):
            last += 1
        return range(first, last + 1)

    def _needed_before(self, first: int) -> int:
        """The place of what a unit cannot be understood without, or its own."""
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
        """Whether a unit announces what follows: it says so, or it is half a sentence before code."""
        text = self.units[at].text
        return announces(text) or (self._kind(at) == "sentence" and self._kind(at + 1) == "code" and text[-1].isalnum())

    def _kind(self, at: int) -> str:
        return self.units[at].kind if 0 <= at < len(self.units) else ""


def _chance(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _excerpt_text(passage: IssuedPassage, units: Sequence[IssuedUnit], question: str, heading: str) -> str:
    """The text of a run of units: as it stands, with long code cut, after what introduces it."""
    pieces = [_introduction(units[0], heading)]
    place = units[0].start
    for unit in units:
        if unit.kind == "code" and unit.text.count("\n") - 1 > CODE_LINES:
            pieces += [passage.text[place - passage.offset : unit.start - passage.offset], _shortened(unit, question)]
            place = unit.end
    pieces.append(passage.text[place - passage.offset : units[-1].end - passage.offset])
    return "".join(pieces)


def _introduction(first: IssuedUnit, heading: str) -> str:
    """What has to come before the first unit and does not stand right before it."""
    if first.kind == "row" and first.head:
        return f"{first.head}\n|{' --- |' * (first.head.strip().strip('|').count('|') + 1)}\n"
    lead = f"{first.head}\n\n…\n\n" if first.head and announces(first.head) else ""
    return f"### {heading}\n\n{lead}" if heading and begins_dangling(lead or first.text) else lead


def _shortened(unit: IssuedUnit, question: str) -> str:
    """A long code block: the stretch between blank lines that has most of the question's words."""
    fence, *lines = unit.text.split("\n")
    closing = lines.pop() if lines and _FENCE.match(lines[-1]) else "```"
    starts = [0, *(at + 1 for at, line in enumerate(lines) if not line.strip())]
    asked = stems(question)
    best = max(starts, key=lambda at: len(asked & stems("\n".join(lines[at : at + CODE_LINES]))))
    shown = lines[best : best + CODE_LINES]
    last = max((at for at, line in enumerate(shown) if not line.strip()), default=0)
    if best + CODE_LINES < len(lines) and last > CODE_LINES // 2:
        shown = shown[:last]  # ends where a stretch ends, unless that leaves little
    before = ["…"] if best else []
    after = ["…"] if best + len(shown) < len(lines) else []
    return "\n".join([fence, *before, *shown, *after, closing])


def near_duplicates(one: str, two: str) -> bool:
    """Whether two excerpts say nearly the same."""
    words = [re.findall(r"\w+", text.lower()) for text in (one, two)]
    left, right = ({*zip(text, text[1:], text[2:], strict=False)} for text in words)
    return bool(left and right) and len(left & right) >= 0.5 * min(len(left), len(right))
