"""The passages issued for one answer, cut into numbered units: what may be read, cited and proven with.

Numbers are issued per answer. A passage that is found again keeps its number; a number that was not issued names
nothing. Text that addresses the assistant is left out: no model sees it, and nothing is proven with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from chapterverse.book import Page, Unit, UnitKind
from chapterverse.evidence.statement import UnitRef
from chapterverse.ingestion.hostile import orders_in
from chapterverse.models import ChunkResult
from chapterverse.units import blocks_of_text, cut_units, unit_text

OMITTED: Final = "(…)"  # stands for what a breadcrumb says to the model
_CONTINUED: Final = "\n    "  # lines of a unit after its first: only numbers and places begin a line


@dataclass(frozen=True, slots=True)
class IssuedUnit:
    """A unit under its number. Offsets count into the page, or into the reader's selection."""

    ref: UnitRef
    kind: UnitKind
    text: str  # word for word
    told: str  # as it is shown to a model: a table row with the names of its columns
    start: int
    end: int
    head: str = ""  # what introduces it: the header of its table, the line before its list or code
    head_start: int = -1


@dataclass(frozen=True)
class IssuedPassage:
    """A chunk, or the reader's whole selection, under its number."""

    number: int
    breadcrumb: str
    text: str
    offset: int  # of the text in the page
    units: tuple[IssuedUnit, ...]  # without those that address the assistant
    lead: str = ""  # introduces the first units and lies outside of the text
    chunk: ChunkResult | None = None  # None: the reader's selection

    @cached_property
    def by_number(self) -> dict[int, int]:
        """The place of each unit in `units` by its number."""
        return {unit.ref.unit: at for at, unit in enumerate(self.units)}

    def lines(self, wanted: Iterable[IssuedUnit] | None = None) -> Iterator[str]:
        """The passage as a model reads it: its place in the book, then `[2.3] text` for each unit."""
        shown = self.units if wanted is None else sorted(wanted, key=lambda unit: unit.ref)
        yield f"Passage {self.number}: {' '.join(self.breadcrumb.split())}".rstrip()
        lead = ""
        for unit in shown:
            if unit.head_start < 0 and unit.head and unit.kind != "row" and unit.head != lead:
                lead = unit.head
                yield f"({' '.join(lead.split())})"
            yield f"[{unit.ref}] {unit.told.replace(chr(10), _CONTINUED)}"


@dataclass(slots=True)
class Evidence:
    """All passages issued for one answer."""

    question: str = ""
    passages: list[IssuedPassage] = field(default_factory=list)

    def issue(self, chunks: Iterable[ChunkResult]) -> list[IssuedPassage]:
        """Give each chunk its number; one that was issued before keeps it."""
        known = {passage.chunk.chunk_id: passage for passage in self.passages if passage.chunk}
        issued = []
        for chunk in chunks:
            if chunk.chunk_id not in known:
                known[chunk.chunk_id] = _from_chunk(chunk, len(self.passages) + 1)
                self.passages.append(known[chunk.chunk_id])
            issued.append(known[chunk.chunk_id])
        return issued

    def issue_text(self, text: str, breadcrumb: str = "") -> IssuedPassage:
        """Issue a text that is no chunk: the reader's selection."""
        number = len(self.passages) + 1
        units = tuple(_units(text, cut_units(text, blocks_of_text(text)), number, orders_in(text)))
        self.passages.append(IssuedPassage(number, breadcrumb, text, 0, units))
        return self.passages[-1]

    def widen(self, passage: IssuedPassage, page: Page) -> IssuedPassage:
        """The passage with all of its section, as the page has it. It keeps its number; its units get new ones."""
        chunk = passage.chunk
        assert chunk is not None
        section = next((one for one in page.sections if one.start <= chunk.char_start < one.end), None)
        if section is None or page.text[chunk.char_start : chunk.char_end] != chunk.chunk_text:
            return passage  # the book has changed meanwhile
        start, end = min(section.start, chunk.char_start), max(section.end, chunk.char_end)
        blocks = [block for block in page.blocks if start <= block.start and block.end <= end]
        text = page.text[start:end]
        barred = [(left + start, right + start) for left, right in orders_in(text)] if page.flags else []
        units = tuple(_units(page.text, cut_units(page.text, blocks), passage.number, barred))
        wider = IssuedPassage(passage.number, passage.breadcrumb, text, start, units, chunk=chunk)
        self.passages[passage.number - 1] = wider
        return wider

    def passage(self, number: int) -> IssuedPassage | None:
        """The passage of a number, if it was issued."""
        return self.passages[number - 1] if 0 < number <= len(self.passages) else None

    def units_of(self, refs: Iterable[UnitRef]) -> list[IssuedUnit]:
        """The units that these numbers name, in their order. A passage's number names all of its units."""
        found: dict[UnitRef, IssuedUnit] = {}
        for ref in refs:
            passage = self.passage(ref.passage)
            if passage is None:
                continue
            if not ref.unit:
                found.update((unit.ref, unit) for unit in passage.units)
            elif (at := passage.by_number.get(ref.unit)) is not None:
                found[ref] = passage.units[at]
        return list(found.values())

    def all_units(self) -> list[IssuedUnit]:
        """Every unit that was issued."""
        return [unit for passage in self.passages for unit in passage.units]

    def around(self, units: Iterable[IssuedUnit]) -> list[IssuedUnit]:
        """The units with their neighbours and with what introduces them."""
        wanted: dict[UnitRef, IssuedUnit] = {}
        for unit in units:
            passage = self.passages[unit.ref.passage - 1]
            at = passage.by_number[unit.ref.unit]
            near = passage.units[max(0, at - 1) : at + 2]
            heads = [other for other in passage.units if other.start == unit.head_start]
            wanted.update((one.ref, one) for one in (*near, *heads))
        return list(wanted.values())

    def before(self, unit: IssuedUnit) -> IssuedUnit | None:
        """The unit before this one in its passage."""
        passage = self.passages[unit.ref.passage - 1]
        at = passage.by_number[unit.ref.unit]
        return passage.units[at - 1] if at else None

    def lines(self, units: Iterable[IssuedUnit]) -> Iterator[str]:
        """Some units as a model reads them, under their places in the book."""
        grouped: dict[int, list[IssuedUnit]] = {}
        for unit in units:
            grouped.setdefault(unit.ref.passage, []).append(unit)
        for number in sorted(grouped):
            yield from self.passages[number - 1].lines(grouped[number])


def _from_chunk(chunk: ChunkResult, number: int) -> IssuedPassage:
    text, offset = chunk.chunk_text, chunk.char_start
    barred = orders_in(text) if chunk.flags else ()
    breadcrumb = _without(chunk.breadcrumb, orders_in(chunk.breadcrumb)) if chunk.flags else chunk.breadcrumb
    lead = chunk.lead if not (chunk.flags and orders_in(chunk.lead)) else ""
    led = next((unit.head_start for unit in chunk.units if 0 <= unit.head_start < offset), -1)
    cut: Sequence[Unit] = [
        Unit(unit.kind, unit.start - offset, unit.end - offset, unit.head_start - offset, unit.head_end - offset)
        if unit.head_start >= offset
        else Unit(unit.kind, unit.start - offset, unit.end - offset)
        for unit in chunk.units
    ] or cut_units(text, blocks_of_text(text))  # a collection of another tool has no units
    issued = [*_units(text, cut, number, barred)]
    outside = {at for at, unit in enumerate(chunk.units, start=1) if lead and 0 <= led == unit.head_start}
    units = (_led(unit, lead) if unit.ref.unit in outside else unit for unit in issued)
    moved = (replace(one, start=one.start + offset, end=one.end + offset) for one in units)
    placed = (replace(one, head_start=one.head_start + offset) if one.head_start >= 0 else one for one in moved)
    return IssuedPassage(number, breadcrumb, text, offset, tuple(placed), lead, chunk)


def _units(text: str, units: Sequence[Unit], number: int, barred: Sequence[tuple[int, int]]) -> Iterator[IssuedUnit]:
    """The units that do not address the assistant. Each keeps its number, whatever is left out before it."""
    for at, unit in enumerate(units, start=1):
        if any(start < unit.end and unit.start < end for start, end in barred):
            continue
        led = unit.has_head and not any(start < unit.head_end and unit.head_start < end for start, end in barred)
        said = text[unit.start : unit.end]
        yield IssuedUnit(
            ref=UnitRef(number, at),
            kind=unit.kind,
            text=said,
            told=unit_text(text, unit) if led else said,
            start=unit.start,
            end=unit.end,
            head=text[unit.head_start : unit.head_end] if led else "",
            head_start=unit.head_start if led else -1,
        )


def _led(unit: IssuedUnit, lead: str) -> IssuedUnit:
    """A unit whose head lies outside of its passage."""
    if unit.kind != "row":
        return replace(unit, head=lead)
    table = f"{lead}\n{unit.text}"
    return replace(unit, head=lead, told=unit_text(table, Unit("row", len(lead) + 1, len(table), 0, len(lead))))


def _without(text: str, barred: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(barred):
        text = f"{text[:start]}{OMITTED}{text[end:]}"
    return text
