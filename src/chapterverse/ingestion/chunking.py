"""Cuts a page into chunks: the passages that can be found and cited.

A chunk is a run of whole units (`units.py`) of one section and fits the embedding model's window. A single unit that is
longer than the window is kept whole. A section that fits is one chunk, unless it describes several parameters or terms:
each of these is a chunk of its own, whose breadcrumb ends with its name. A longer section is cut where the sum of two
costs is least: uneven sizes, and cuts that separate what belongs together.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chapterverse.book import Block, Chunk, Page, Section, Unit, chunk_id_for, text_hash
from chapterverse.ingestion.prompt_injection import flags_of
from chapterverse.units import cut_units

SMALLEST_BUDGET = 16  # tokens; below it a heading leaves no room for text
_OVERLAP = 0.15  # of the budget, at most
_BREADCRUMB = 1 / 3  # of the budget, at most
_LEAD = 1 / 3  # of the budget, at most, for a table's header or a list's lead-in that lies in another chunk
_WIDEST = 12  # characters a token may stand for: a word too long for a tokenizer counts as one token however long
_LIKELY = 6  # characters a token seldom exceeds: a longer section is not counted as a whole first

# What it costs to cut before a unit, where one more chunk costs 1.
_AFTER_HEADING = 20.0  # only where what follows fits alone and not with its heading
_AFTER_LEAD = 5.0  # before the list, code or row that the unit above introduces
_FIELD = -1.0  # before a parameter or term, which answers a question of its own: one more chunk costs nothing
_INSIDE = {"sentence": 0.1, "item": 0.05, "row": 0.2, "field": 0.0, "code": 0.1}  # by the unit that follows
_NESTED_ITEM = 0.3

Count = Callable[[str], int]


class _Atom(NamedTuple):
    """A unit, or a heading or image, which are no units but are kept in the text."""

    start: int
    end: int
    size: int
    cost: float  # of a cut before it
    unit: Unit | None
    lead: str  # what introduces it, where that lies outside
    lead_size: int
    lead_start: int  # -1: nothing introduces it


@dataclass(frozen=True, slots=True)
class _Ruler:
    """The page's text and how long stretches of it are."""

    text: str
    count: Count
    budget: int
    frame: int  # tokens that the tokenizer puts around any text

    def size(self, text: str) -> int:
        return max(self.count(text), math.ceil(len(text) / _WIDEST))

    def part(self, text: str) -> int:
        """How much a text adds to what it is a part of."""
        return max(self.size(text) - self.frame, 1)

    def fits(self, breadcrumb: str, start: int, end: int) -> bool:
        return self.size(f"{breadcrumb}\n{self.text[start:end]}") <= self.budget


def cut(page: Page, count_tokens: Count, budget: int) -> list[Chunk]:
    """The chunks of a page in order."""
    if budget < SMALLEST_BUDGET:
        raise ValueError(f"a budget of {budget} tokens is too small, at least {SMALLEST_BUDGET} are needed")
    ruler = _Ruler(page.text, count_tokens, budget, count_tokens(""))
    blocks: list[list[Block]] = [[] for _ in page.sections]
    for block in page.blocks:
        blocks[block.section].append(block)
    units = cut_units(page.text, page.blocks)
    only_headings = not units
    chunks: list[Chunk] = []
    at = 0
    for section, inside in zip(page.sections, blocks, strict=True):
        first, end = at, inside[-1].end if inside else 0
        while at < len(units) and units[at].start < end:
            at += 1
        if not inside or (first == at and not only_headings):
            continue
        breadcrumb = _breadcrumb(page, section, ruler)
        atoms = list(_atoms(inside, units[first:at], ruler))
        for start, stop in _spans(atoms, breadcrumb, ruler):
            taken = atoms[start:stop]
            chunks.append(_chunk(page, section, _with_field(breadcrumb, taken, ruler), len(chunks), taken))
    return chunks


def _with_field(breadcrumb: str, atoms: Sequence[_Atom], ruler: _Ruler) -> str:
    """The breadcrumb, with the name of the parameter or term that a chunk is about, as if that were a heading."""
    units = [atom.unit for atom in atoms if atom.unit]
    fields = [unit for unit in units if unit.kind == "field"]
    if len(fields) != 1 or fields[0] not in units[:2]:  # before it may stand what introduces it
        return breadcrumb
    name = ruler.text[fields[0].start : fields[0].end].partition("\n")[0].replace("`", "")
    named = f"{breadcrumb} › {name}"
    fits = ruler.fits(named, atoms[0].start, atoms[-1].end) or len(units) == 1
    return named if fits and ruler.size(named) <= ruler.budget * _BREADCRUMB else breadcrumb


def _chunk(page: Page, section: Section, breadcrumb: str, index: int, atoms: Sequence[_Atom]) -> Chunk:
    start, end = atoms[0].start, atoms[-1].end
    text = page.text[start:end]
    content_hash = text_hash(" ".join(text.split()))
    first = next((atom for atom in atoms if atom.unit), atoms[0])
    return Chunk(
        chunk_id=chunk_id_for(page.page_id, content_hash, index),
        page_id=page.page_id,
        page_url=page.url,
        source_url=f"{page.url}#{section.anchor}" if section.anchor else page.url,
        page_title=page.title,
        section_heading=section.heading,
        breadcrumb=breadcrumb,
        module=page.module,
        chunk_index=index,
        start=start,
        end=end,
        text=text,
        content_hash=content_hash,
        flags=flags_of(f"{breadcrumb}\n\n{text}"),  # the model is shown both
        units=tuple(atom.unit for atom in atoms if atom.unit),
        lead=first.lead if 0 <= first.lead_start < start else "",
        edition=page.edition,
    )


def _breadcrumb(page: Page, section: Section, ruler: _Ruler) -> str:
    said = (" ".join(name.split()) for name in (page.title, *section.breadcrumb, section.heading))
    names = [name for name in dict.fromkeys(said) if name]
    chapters = [name for name in dict.fromkeys(page.chapters) if name not in names]
    longest = int(ruler.budget * _BREADCRUMB)
    for kept in ([*chapters, *names], names, [*names[:1], "…", *names[-1:]], names[-1:]):
        breadcrumb = " › ".join(kept)
        if ruler.size(breadcrumb) <= longest:
            return breadcrumb
    while breadcrumb and ruler.size(f"{breadcrumb}…") > longest:
        breadcrumb = breadcrumb[: len(breadcrumb) * 3 // 4].rstrip()
    return f"{breadcrumb}…" if breadcrumb else ""


def _atoms(blocks: Sequence[Block], units: Sequence[Unit], ruler: _Ruler) -> Iterator[_Atom]:
    """Units in order, with the headings and images between them."""
    others = [block for block in blocks if block.kind in ("heading", "image")]
    above: _Atom | None = None
    paragraphs = {
        block.start
        for before, block in zip([None, *blocks], blocks, strict=False)
        if not block.inside and not (before and before.inside and block.kind == "list")  # a list that goes on
    }
    pieces: list[Block | Unit] = [*others, *units]
    for piece in sorted(pieces, key=lambda one: one.start):
        if isinstance(piece, Block):
            size, cost = ruler.part(ruler.text[piece.start : piece.end]), 0.0
            above = _Atom(piece.start, piece.end, size, cost, None, "", 0, -1)
        else:
            above = _atom(piece, above, piece.start in paragraphs, ruler)
        yield above


def _atom(unit: Unit, above: _Atom | None, begins_block: bool, ruler: _Ruler) -> _Atom:
    lead, text = ruler.text[unit.head_start : unit.head_end] if unit.has_head else "", ruler.text
    start = unit.start
    if unit.kind == "row" and unit.has_head and (above is None or above.end <= unit.head_start):
        start = unit.head_start  # the first row of a table takes the header along
    lead_size = ruler.part(lead) if lead and start == unit.start else 0
    if lead_size > ruler.budget * _LEAD:
        lead, lead_size = "", 0
    return _Atom(
        start, unit.end, ruler.part(text[start : unit.end]), _cost(unit, above, begins_block), unit, lead, lead_size,
        unit.head_start,
    )  # fmt: skip


def _cost(unit: Unit, above: _Atom | None, begins_block: bool) -> float:
    if above is None:
        return 0.0
    if above.unit is None:
        return _AFTER_HEADING
    if unit.kind == "field":
        return _FIELD
    if unit.has_head and (unit.head_start, unit.head_end) == (above.unit.start, above.unit.end):
        return _NESTED_ITEM if above.unit.kind == "item" and unit.kind == "item" else _AFTER_LEAD
    return 0.0 if begins_block else _INSIDE[unit.kind]


def _spans(atoms: Sequence[_Atom], breadcrumb: str, ruler: _Ruler) -> Iterator[tuple[int, int]]:
    """Where to cut one section, as ranges of its atoms."""
    start, end = atoms[0].start, atoms[-1].end
    fields = sum(atom.unit is not None and atom.unit.kind == "field" for atom in atoms)
    if fields < 2 and end - start <= ruler.budget * _LIKELY and ruler.fits(breadcrumb, start, end):
        yield 0, len(atoms)
        return
    room = max(ruler.budget - ruler.size(f"{breadcrumb}\n"), 1)
    overlap = int(ruler.budget * _OVERLAP)
    before = 0  # where the chunk before this one begins
    for first, last in _groups(atoms, room, overlap):
        if last < len(atoms) and all(atom.unit is None for atom in atoms[first:last]):
            continue  # the breadcrumb of the next chunk says it
        if first - 1 > before and _repeats(atoms, first, overlap) and _fits(atoms[first - 1 : last], breadcrumb, ruler):
            yield first - 1, last
        else:
            yield from _fitting(atoms, first, last, breadcrumb, ruler)
        before = first


def _fits(atoms: Sequence[_Atom], breadcrumb: str, ruler: _Ruler) -> bool:
    first = atoms[0]
    lead = first.lead if 0 <= first.lead_start < first.start else ""
    return ruler.fits(f"{breadcrumb}\n{lead}" if lead else breadcrumb, first.start, atoms[-1].end)


def _fitting(
    atoms: Sequence[_Atom], first: int, last: int, breadcrumb: str, ruler: _Ruler
) -> Iterator[tuple[int, int]]:
    """The range, or halves of it: parts together may count more tokens than their sum."""
    units = sum(atom.unit is not None for atom in atoms[first:last])
    if units < 2 or _fits(atoms[first:last], breadcrumb, ruler):
        yield first, last
        return
    middle = (first + last) // 2
    for left, right in ((first, middle), (middle, last)):
        if any(atom.unit for atom in atoms[left:right]):
            yield from _fitting(atoms, left, right, breadcrumb, ruler)


def _repeats(atoms: Sequence[_Atom], first: int, overlap: int) -> bool:
    """Whether the unit before a chunk is said again at its start: a short sentence of prose."""
    before = atoms[first - 1] if first else None
    return bool(before and before.unit and before.unit.kind == "sentence" and before.size <= overlap)


def _groups(atoms: Sequence[_Atom], room: int, overlap: int) -> list[tuple[int, int]]:
    """Atoms into chunks at the least cost: 1 a chunk, the square of how full each is, and the cuts themselves."""
    best = [0.0] + [math.inf] * len(atoms)  # cheapest way to place the atoms before an index
    begin = [0] * (len(atoms) + 1)  # where the last chunk of that way begins
    for first in range(len(atoms)):
        size = atoms[first - 1].size if _repeats(atoms, first, overlap) else atoms[first].lead_size
        cost = best[first] + 1 + (atoms[first].cost if first else 0.0)
        for last in range(first + 1, len(atoms) + 1):
            size += atoms[last - 1].size
            if size > room and last > first + 1:
                break
            total = cost + min(size / room, 2.0) ** 2
            if total < best[last]:
                best[last], begin[last] = total, first
    groups: list[tuple[int, int]] = []
    last = len(atoms)
    while last:
        groups.append((begin[last], last))
        last = begin[last]
    return groups[::-1]
