"""Splits a page into chunks: the passages that can be found and cited.

A chunk is a sequence of complete units (`units.py`) of one section and fits into the embedding model's window. A single
unit that is longer than the window is not split. A section that fits is one chunk, unless it describes several
parameters or terms. Each of these is a separate chunk; its breadcrumb ends with the name of the parameter or term, also
if the description continues in further chunks. A longer section is split where the cost is lowest: uneven sizes and
cuts between units that belong together have a cost.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from chapterverse.book import Block, Chunk, Page, PageKind, Section, Unit, chunk_id_for, text_hash
from chapterverse.ingestion.prompt_injection import flags_of
from chapterverse.units import BAR, cells_of, cut_units, definitions

VERSION = re.compile(r"\bv?\d{1,4}\.\d{1,4}(?:\.\w{1,10}){0,3}\b|\b(?:19|20)\d\d\b")  # a version number or a year
_LISTING = 0.5  # above this share of version headings, or of link text, a page is a list of changes, or of links
SMALLEST_BUDGET = 16  # tokens; with less, a heading leaves no room for text
_OVERLAP = 0.15  # maximum share of the budget for a repeated sentence
_BREADCRUMB = 1 / 3  # maximum share of the budget for the breadcrumb
_LEAD = 1 / 3  # maximum share of the budget for a table's header or a list's lead-in from another chunk
_WIDEST = 12  # assumed maximum characters per token, because the tokenizer counts a very long word as one token
_LIKELY = 6  # characters per token, seldom exceeded; a section with more is split, its tokens are not counted first

# The cost of a cut before a unit; each chunk costs 1.
_AFTER_HEADING = 20.0  # only if the next unit does not fit together with its heading
_AFTER_LEAD = 5.0  # before the list, code or row that the previous unit introduces
_FIELD = -1.0  # before a parameter or term: cancels the cost of the chunk, because each should be a chunk
_INSIDE = {"sentence": 0.1, "item": 0.05, "row": 0.2, "field": 0.0, "code": 0.1}  # by the kind of the next unit
_NESTED_ITEM = 0.3

Count = Callable[[str], int]


class _Atom(NamedTuple):
    """A unit, or a heading or image, which are not units but are kept in the text."""

    start: int
    end: int
    size: int
    cost: float  # of a cut before it
    unit: Unit | None
    lead: str  # its lead-in, for a chunk that does not contain it
    lead_size: int  # tokens of the lead-in and of the name of the field that the unit continues
    lead_start: int  # -1 if it has no lead-in
    field: Block | None  # the parameter or term that it describes


@dataclass(frozen=True, slots=True)
class _Ruler:
    """The page's text and the token counts of its parts."""

    text: str
    count: Count
    budget: int
    frame: int  # tokens that the tokenizer adds to every text

    def size(self, text: str) -> int:
        return max(self.count(text), math.ceil(len(text) / _WIDEST))

    def part(self, text: str) -> int:
        """The number of tokens of a text, without those that the tokenizer adds."""
        return max(self.size(text) - self.frame, 1)

    def name(self, field: Block) -> str:
        """The name of a parameter or term."""
        return self.text[field.start : field.end].partition("\n")[0].replace("`", "")

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
    only_headings, kind = not units, kind_of(page)
    chunks: list[Chunk] = []
    at = 0
    for section, inside in zip(page.sections, blocks, strict=True):
        first, end = at, inside[-1].end if inside else 0
        while at < len(units) and units[at].start < end:
            at += 1
        if not inside or (first == at and not only_headings):
            continue
        crumbs = _Crumbs(page, section, ruler)
        atoms = list(_atoms(inside, units[first:at], ruler))
        for start, stop in _spans(atoms, crumbs):
            taken = atoms[start:stop]
            chunk = _chunk(page, section, crumbs.above(taken), len(chunks), taken)
            chunks.append(replace(chunk, page_kind=kind) if kind else chunk)
    return chunks


@dataclass(frozen=True, slots=True)
class _Crumbs:
    """The breadcrumbs of the chunks of a section."""

    page: Page
    section: Section
    ruler: _Ruler
    _made: dict[str, str] = field(default_factory=dict)

    def above(self, atoms: Sequence[_Atom]) -> str:
        """The breadcrumb of a chunk. If the chunk is about one parameter or term, it ends with that name."""
        units = [atom for atom in atoms if atom.unit]
        fields = {atom.field for atom in units if atom.field}
        if len(fields) != 1 or not any(atom.field for atom in units[:2]):
            return self.of()  # about none or several
        about = fields.pop()
        name = self.ruler.name(about)
        if about.start < atoms[0].start:
            return self.of(name)  # a continuation: the name is not in the chunk itself
        named = f"{self.of()} › {name}"
        fits = self.ruler.fits(named, atoms[0].start, atoms[-1].end) or len(units) == 1
        return named if fits and self.ruler.size(named) <= self.ruler.budget * _BREADCRUMB else self.of()

    def of(self, name: str = "") -> str:
        """The breadcrumb with a name at its end, shortened to its share of the budget."""
        if name not in self._made:
            self._made[name] = self._joined(name)
        return self._made[name]

    def _joined(self, last: str) -> str:
        headings = (self.page.title, *self.section.breadcrumb, self.section.heading, last)
        names = [name for name in dict.fromkeys(" ".join(heading.split()) for heading in headings) if name]
        chapters = [name for name in dict.fromkeys(self.page.chapters) if name not in names]
        longest, size = int(self.ruler.budget * _BREADCRUMB), self.ruler.size
        for kept in ([*chapters, *names], names, [*names[:1], "…", *names[-1:]], names[-1:]):
            breadcrumb = " › ".join(kept)
            if size(breadcrumb) <= longest:
                return breadcrumb
        return _shortened(breadcrumb, longest, size)


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
        flags=flags_of(f"{breadcrumb}\n\n{text}"),  # the model sees both
        units=tuple(atom.unit for atom in atoms if atom.unit),
        lead=first.lead if 0 <= first.lead_start < start else "",
        edition=page.edition,
    )


def _shortened(text: str, longest: int, size: Count) -> str:
    """The beginning of a text with an ellipsis, at most `longest` tokens long."""
    while text and size(f"{text}…") > longest:
        text = text[: len(text) * 3 // 4].rstrip()
    return f"{text}…" if text else ""


def _atoms(blocks: Sequence[Block], units: Sequence[Unit], ruler: _Ruler) -> Iterator[_Atom]:
    """Units in order, with the headings and images between them."""
    others = [block for block in blocks if block.kind in ("heading", "image")]
    above: _Atom | None = None
    paragraphs = {
        block.start
        for before, block in zip([None, *blocks], blocks, strict=False)
        if not block.inside and not (before and before.inside and block.kind == "list")  # a list that continues
    }
    fields = list(definitions(blocks))
    at = -1
    pieces: list[Block | Unit] = [*others, *units]
    for piece in sorted(pieces, key=lambda one: one.start):
        while at + 1 < len(blocks) and blocks[at + 1].start <= piece.start:
            at += 1
        if isinstance(piece, Block):
            size, cost = ruler.part(ruler.text[piece.start : piece.end]), 0.0
            above = _Atom(piece.start, piece.end, size, cost, None, "", 0, -1, None)
        else:
            cost = _cost(piece, above, piece.start in paragraphs)
            above = _atom(piece, above, fields[at], cost, ruler)
        yield above


def _atom(unit: Unit, above: _Atom | None, field: Block | None, cost: float, ruler: _Ruler) -> _Atom:
    start, lead = unit.start, ""
    if unit.kind == "row" and unit.has_head and (above is None or above.end <= unit.head_start):
        start = unit.head_start  # the first row of a table includes the header
    elif unit.has_head:
        lead = _lead(unit, ruler)
    lead_size = ruler.part(lead) if lead else 0
    if field and field.start < start:
        lead_size += ruler.part(ruler.name(field))
    size = ruler.part(ruler.text[start : unit.end])
    return _Atom(start, unit.end, size, cost, unit, lead, lead_size, unit.head_start, field)


def _lead(unit: Unit, ruler: _Ruler) -> str:
    """The lead-in of a unit. In a long table header, the names are shortened, so that no column is lost."""
    lead, longest = ruler.text[unit.head_start : unit.head_end], int(ruler.budget * _LEAD)
    if ruler.part(lead) <= longest:
        return lead
    if unit.kind != "row":
        return _shortened(lead, longest, ruler.part)
    names = cells_of(lead)
    characters = max(map(len, names))
    while ruler.part(lead) > longest and characters > 1:
        characters = characters * 3 // 4
        cut = (name if len(name) <= characters else f"{name[:characters].rstrip()}…" for name in names)
        lead = f"| {' | '.join(name.replace('|', BAR) for name in cut)} |"
    return lead


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


def _spans(atoms: Sequence[_Atom], crumbs: _Crumbs) -> Iterator[tuple[int, int]]:
    """The chunks of one section, as ranges of its atoms."""
    start, end, ruler = atoms[0].start, atoms[-1].end, crumbs.ruler
    fields = sum(atom.unit is not None and atom.unit.kind == "field" for atom in atoms)
    if fields < 2 and end - start <= ruler.budget * _LIKELY and ruler.fits(crumbs.of(), start, end):
        yield 0, len(atoms)
        return
    room = max(ruler.budget - ruler.size(f"{crumbs.of()}\n"), 1)
    overlap = int(ruler.budget * _OVERLAP)
    before = 0  # the atom that the previous chunk begins with
    for first, last in _groups(atoms, room, overlap):
        if last < len(atoms) and all(atom.unit is None for atom in atoms[first:last]):
            continue  # the heading is in the breadcrumb of the next chunk
        if first - 1 > before and _repeats(atoms, first, overlap) and _fits(atoms[first - 1 : last], crumbs):
            yield first - 1, last
            before = first
        else:
            for before, stop in _fitting(atoms, first, last, crumbs):
                yield before, stop


def _fits(atoms: Sequence[_Atom], crumbs: _Crumbs) -> bool:
    first, breadcrumb = atoms[0], crumbs.above(atoms)
    lead = first.lead if 0 <= first.lead_start < first.start else ""
    return crumbs.ruler.fits(f"{breadcrumb}\n{lead}" if lead else breadcrumb, first.start, atoms[-1].end)


def _fitting(atoms: Sequence[_Atom], first: int, last: int, crumbs: _Crumbs) -> Iterator[tuple[int, int]]:
    """The range, halved until each part fits: joined atoms may have more tokens than the sum of their sizes."""
    units = sum(atom.unit is not None for atom in atoms[first:last])
    if units < 2 or _fits(atoms[first:last], crumbs):
        yield first, last
        return
    middle = (first + last) // 2
    for left, right in ((first, middle), (middle, last)):
        if any(atom.unit for atom in atoms[left:right]):
            yield from _fitting(atoms, left, right, crumbs)


def _repeats(atoms: Sequence[_Atom], first: int, overlap: int) -> bool:
    """Whether the unit before a chunk is repeated at its start: a short sentence about the same thing."""
    if not first:
        return False
    before, after = atoms[first - 1], atoms[first]
    if not before.unit or not after.unit or before.field != after.field:  # a heading or another field is between them
        return False
    return before.unit.kind == "sentence" and before.size <= overlap


def _groups(atoms: Sequence[_Atom], room: int, overlap: int) -> list[tuple[int, int]]:
    """Group atoms into chunks at the lowest cost: each chunk costs 1, the square of its fill level, and its cut."""
    best = [0.0] + [math.inf] * len(atoms)  # lowest cost for the atoms before an index
    begin = [0] * (len(atoms) + 1)  # start of the last chunk in that solution
    for first in range(len(atoms)):
        size = atoms[first].lead_size
        if _repeats(atoms, first, overlap):
            size = atoms[first - 1].size + atoms[first - 1].lead_size
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


def kind_of(page: Page) -> PageKind:
    """The kind of a page: `changes` if its title or most of its headings name versions or dates, `index` if most of its
    text is links."""
    headings = [section.heading for section in page.sections[1:]]
    named = sum(VERSION.search(heading) is not None for heading in headings)
    if VERSION.search(page.title) or (len(headings) > 1 and named > _LISTING * len(headings)):
        return "changes"
    text = sum(block.end - block.start for block in page.blocks if block.kind not in ("heading", "image"))
    linked = sum(mark.end - mark.start for mark in page.marks if mark.kind == "link")
    return "index" if linked > _LISTING * text else ""
