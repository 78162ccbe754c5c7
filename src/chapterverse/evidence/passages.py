"""The passages issued for one answer, cut into numbered units, which can be read, cited and used as proof.

Numbers are issued per answer. A passage that is found again keeps its number; a number that was not issued is ignored.
Text that addresses the assistant is left out: no model sees it, and it proves nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, TypeVar

from chapterverse.book import Block, Page, Unit, UnitKind
from chapterverse.editions import edition_label
from chapterverse.evidence.statement import UnitRef
from chapterverse.ingestion.prompt_injection import orders_in
from chapterverse.models import ChunkResult, PassageUnit
from chapterverse.units import cut_units, definitions, row_text, units_of_text

OMITTED: Final = "(…)"  # replaces text of a breadcrumb that addresses the model
_ASIDES: Final = ("versionadded", "versionchanged", "versionremoved", "deprecated", "seealso")  # kinds of a note
_Item = TypeVar("_Item")
_CONTINUED: Final = "\n    "  # joins the lines of a unit, so that only unit numbers and places begin a line


@dataclass(frozen=True, slots=True)
class IssuedUnit:
    """A unit with its number. Offsets count from the start of the page, or of the reader's selection."""

    ref: UnitRef
    kind: UnitKind
    text: str  # verbatim
    model_text: str  # as shown to a model: a table row with the names of its columns
    start: int
    end: int
    head: str = ""  # what introduces it: the header of its table, the line before its list or code
    head_start: int = -1
    topic: int = -1  # start of its definition, or of the note on versions or links that it belongs to; -1: neither


@dataclass(frozen=True)
class IssuedPassage:
    """A chunk, or the reader's whole selection, with its number."""

    number: int
    breadcrumb: str
    text: str
    offset: int  # of the text in the page
    units: tuple[IssuedUnit, ...] = ()  # without those that address the assistant
    lead: str = ""  # introduces the first units; lies outside the text
    chunk: ChunkResult | None = None  # None: the reader's selection

    @property
    def place(self) -> str:
        """The place in the book: its edition, if it has a name, and the breadcrumb."""
        edition = edition_label(self.chunk.book, self.chunk.version) if self.chunk else ""
        return " › ".join(filter(None, (edition, " ".join(self.breadcrumb.split()))))

    def lines(self, wanted: Iterable[IssuedUnit] | None = None) -> Iterator[str]:
        """Yield the passage as a model reads it: its place in the book, then `[2.3] text` for each unit."""
        yield f"Passage {self.number}: {self.place}".rstrip()
        lead = ""
        for unit in self.units if wanted is None else sorted(wanted, key=lambda unit: unit.ref):
            if unit.head_start < 0 and unit.head and unit.kind != "row" and unit.head != lead:
                lead = unit.head
                yield f"({' '.join(lead.split())})"
            yield f"[{unit.ref}] {unit.model_text.replace(chr(10), _CONTINUED)}"


@dataclass(slots=True)
class Evidence:
    """All passages issued for one answer."""

    question: str = ""
    passages: list[IssuedPassage] = field(default_factory=list)

    def issue(self, chunks: Sequence[ChunkResult]) -> list[IssuedPassage]:
        """Give each chunk its number; one that was issued before keeps it."""
        known = {passage.chunk.chunk_id: passage for passage in self.passages if passage.chunk}
        for chunk in chunks:
            if chunk.chunk_id not in known:
                known[chunk.chunk_id] = _from_chunk(chunk, len(self.passages) + 1)
                self.passages.append(known[chunk.chunk_id])
        return [known[chunk.chunk_id] for chunk in chunks]

    def issue_text(self, text: str, breadcrumb: str = "") -> IssuedPassage:
        """Issue a text that is not a chunk: the reader's selection."""
        passage = IssuedPassage(len(self.passages) + 1, breadcrumb, text, 0)
        self.passages.append(replace(passage, units=_units(passage, units_of_text(text), orders_in(text))))
        return self.passages[-1]

    def widen(self, passage: IssuedPassage, page: Page, room: int | None = None) -> IssuedPassage:
        """Extend a passage to its section or, with `room`, by at most that many characters on each side that no other
        passage has. It keeps its number; its units get new ones."""
        chunk = passage.chunk
        assert chunk is not None
        section = next((one for one in page.sections if one.start <= chunk.char_start < one.end), None)
        if section is None or page.text[chunk.char_start : chunk.char_end] != chunk.chunk_text:
            return passage  # the book has changed meanwhile
        start, end = min(section.start, chunk.char_start), max(section.end, chunk.char_end)
        blocks = [one for one in page.blocks if start <= one.start and one.end <= end]
        units = cut_units(page.text, blocks)
        if room is not None:
            first, last = self._free(chunk, max(start, chunk.char_start - room), min(end, chunk.char_end + room))
            units = tuple(unit for unit in units if first <= unit.start and unit.end <= last)
            start = min([chunk.char_start, *(unit.start for unit in units)])
            end = max([chunk.char_end, *(unit.end for unit in units)])
        text, lead = page.text[start:end], next((unit for unit in units if 0 <= unit.head_start < start), None)
        before = page.text[lead.head_start : lead.head_end] if lead else ""
        wider = replace(passage, text=text, offset=start, lead=before)
        issued = _units(wider, units, orders_in(text) if page.flags else ())
        self.passages[passage.number - 1] = replace(wider, units=_with_topics(issued, blocks))
        return self.passages[passage.number - 1]

    def _free(self, own: ChunkResult, start: int, end: int) -> tuple[int, int]:
        """Return a span around a chunk without the parts that other passages of its page have."""
        for other in self.passages:
            if other.chunk and other.chunk is not own and other.chunk.page_id == own.page_id:
                if other.offset < own.char_start:
                    start = max(start, min(own.char_start, other.offset + len(other.text)))
                else:
                    end = min(end, max(own.char_end, other.offset))
        return start, end

    def all_units(self) -> list[IssuedUnit]:
        """Return every unit that was issued."""
        return [unit for passage in self.passages for unit in passage.units]

    def units_of(self, refs: Iterable[UnitRef]) -> list[IssuedUnit]:
        """Return the units with these numbers, in order. The number of a passage stands for all of its units."""
        units = self.all_units()
        named = (unit for ref in refs for unit in units if ref in (unit.ref, (unit.ref.passage, 0)))
        return list(dict.fromkeys(named))

    def around(self, units: Iterable[IssuedUnit]) -> list[IssuedUnit]:
        """Return the units with their neighbours and their lead-ins."""
        wanted: dict[UnitRef, IssuedUnit] = {}
        for unit in units:
            for one in self.passages[unit.ref.passage - 1].units:
                if abs(one.ref.unit - unit.ref.unit) <= 1 or one.start == unit.head_start:
                    wanted[one.ref] = one
        return list(wanted.values())

    def lines(self, units: Collection[IssuedUnit]) -> Iterator[str]:
        """Yield units as a model reads them, under their places in the book."""
        for passage in self.passages:
            if wanted := [unit for unit in units if unit.ref.passage == passage.number]:
                yield from passage.lines(wanted)


def fitting(items: Sequence[_Item], size: Callable[[_Item], int], budget: int) -> Sequence[_Item]:
    """Return the first items that fit into a budget together; at least one."""
    sizes = accumulate(map(size, items))
    return [item for item, used in zip(items, sizes, strict=True) if used <= budget] or items[:1]


def _from_chunk(chunk: ChunkResult, number: int) -> IssuedPassage:
    text, lead = chunk.chunk_text, "" if chunk.flags and orders_in(chunk.lead) else chunk.lead
    barred = orders_in(text) if chunk.flags else ()
    breadcrumb = without_orders(chunk.breadcrumb, chunk)
    passage = IssuedPassage(number, breadcrumb, text, chunk.char_start, (), lead, chunk)
    return replace(passage, units=_units(passage, chunk.units, barred))


def without_orders(heading: str, chunk: ChunkResult) -> str:
    """Replace the text of a chunk's heading that addresses the model."""
    for start, end in reversed(orders_in(heading) if chunk.flags else ()):
        heading = f"{heading[:start]}{OMITTED}{heading[end:]}"
    return heading


def _units(
    passage: IssuedPassage, units: Sequence[Unit | PassageUnit], barred: Sequence[tuple[int, int]]
) -> tuple[IssuedUnit, ...]:
    """Return the units that do not address the assistant. Each keeps its number, whatever is left out before it."""
    text, offset = passage.text, passage.offset
    outside = next((unit.head_start for unit in units if 0 <= unit.head_start < offset), -1)  # start of the lead
    issued = []
    for at, unit in enumerate(units, start=1):
        said, head_start, head = text[unit.start - offset : unit.end - offset], -1, ""
        if _overlaps(unit.start - offset, unit.end - offset, barred):
            continue
        if unit.head_start >= 0 and not _overlaps(unit.head_start - offset, unit.head_end - offset, barred):
            if unit.head_start >= offset:
                head_start, head = unit.head_start, text[unit.head_start - offset : unit.head_end - offset]
            elif unit.head_start == outside:
                head = passage.lead
        shown = row_text(head, said) if unit.kind == "row" and head else said
        ref = UnitRef(passage.number, at)
        issued.append(IssuedUnit(ref, unit.kind, said, shown, unit.start, unit.end, head, head_start))
    return tuple(issued)


def _with_topics(units: Sequence[IssuedUnit], blocks: Sequence[Block]) -> tuple[IssuedUnit, ...]:
    """Return the units with their topics."""
    described = zip(blocks, definitions(blocks), strict=True)
    topics = [block if block.info in _ASIDES else definition for block, definition in described]
    starts = [block.start for block in blocks]
    own = [topics[bisect_right(starts, unit.start) - 1] for unit in units]
    return tuple(replace(unit, topic=topic.start) if topic else unit for unit, topic in zip(units, own, strict=True))


def _overlaps(start: int, end: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(left < end and start < right for left, right in spans)
