"""From a page to the passages that can be found and cited.

Owns where a page is cut. Never changes its text: a chunk is a stretch of `Page.text`, and a table or a code block that
has to be cut is cut without repeating its head. Never knows which embedding model counts the tokens.

A section that fits is one chunk. A longer one is laid out as atoms (sentences, list items, whole tables and code
blocks) and cut where the sum of two costs is least: uneven sizes and ugly places.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chapterverse.book import Block, BlockKind, Chunk, Page, Section, chunk_id_for, text_hash
from chapterverse.ingestion.hostile import flags_of
from chapterverse.text import sentences

SMALLEST_BUDGET = 16  # tokens; below it a heading leaves no room for text
_OVERLAP = 0.15  # of the budget, at most
_PROSE = ("paragraph", "quote", "admonition")  # what may be said again at the start of the next chunk
_BREADCRUMB = 1 / 3  # of the budget, at most
_WIDEST = 12  # characters a token may stand for: a word too long for a tokenizer counts as one token however long
_LIKELY = 6  # characters a token seldom exceeds: a longer section is not counted as a whole first

# What it costs to cut before an atom, where one more chunk costs 1.
_AFTER_HEADING = 20.0  # only where what follows fits alone and not with its heading
_AFTER_COLON = 0.2  # before the list or code that the paragraph above announces
_BEFORE_ITEM = 0.05
_BEFORE_NESTED_ITEM = 0.1
_BEFORE_SENTENCE = 0.1
_BEFORE_ROW = 0.2
_BEFORE_CODE_LINE = 0.4
_BEFORE_CODE_PARAGRAPH = 0.2  # a code line after an empty one
_BEFORE_WORD = 1.0

_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s")

Count = Callable[[str], int]


class _Atom(NamedTuple):
    start: int
    end: int
    size: int
    cost: float  # of a cut before it
    kind: BlockKind


@dataclass(frozen=True, slots=True)
class _Ruler:
    """The page's text and how long stretches of it are."""

    text: str
    count: Count
    budget: int
    frame: int  # tokens that the tokenizer puts around any text

    def size(self, text: str) -> int:
        return max(self.count(text), math.ceil(len(text) / _WIDEST))

    def part(self, start: int, end: int) -> int:
        """How much a stretch adds to what it is a part of."""
        return max(self.size(self.text[start:end]) - self.frame, 1)

    def fits(self, breadcrumb: str, start: int, end: int) -> bool:
        return self.size(f"{breadcrumb}\n{self.text[start:end]}") <= self.budget


def cut(page: Page, count_tokens: Count, budget: int) -> list[Chunk]:
    """The chunks of a page in order; no passage is longer than `budget` tokens."""
    if budget < SMALLEST_BUDGET:
        raise ValueError(f"a budget of {budget} tokens is too small, at least {SMALLEST_BUDGET} are needed")
    ruler = _Ruler(page.text, count_tokens, budget, count_tokens(""))
    blocks: list[list[Block]] = [[] for _ in page.sections]
    for block in page.blocks:
        blocks[block.section].append(block)
    only_headings = all(block.kind == "heading" for block in page.blocks)
    chunks: list[Chunk] = []
    for section, inside in zip(page.sections, blocks, strict=True):
        if not inside or (not only_headings and all(block.kind == "heading" for block in inside)):
            continue
        breadcrumb = _breadcrumb(page, section, ruler)
        for start, end in _spans(inside, breadcrumb, ruler):
            chunks.append(_chunk(page, section, breadcrumb, len(chunks), (start, end)))
    return chunks


def _chunk(page: Page, section: Section, breadcrumb: str, index: int, span: tuple[int, int]) -> Chunk:
    text = page.text[span[0] : span[1]]
    content_hash = text_hash(" ".join(text.split()))
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
        start=span[0],
        end=span[1],
        text=text,
        content_hash=content_hash,
        flags=flags_of(f"{breadcrumb}\n\n{text}"),  # the model is shown both
    )


def _breadcrumb(page: Page, section: Section, ruler: _Ruler) -> str:
    said = (" ".join(name.split()) for name in (page.title, *section.breadcrumb, section.heading))
    names = [name for name in dict.fromkeys(said) if name]
    longest = int(ruler.budget * _BREADCRUMB)
    for kept in (names, [*names[:1], "…", *names[-1:]], names[-1:]):
        breadcrumb = " › ".join(kept)
        if ruler.size(breadcrumb) <= longest:
            return breadcrumb
    while breadcrumb and ruler.size(f"{breadcrumb}…") > longest:
        breadcrumb = breadcrumb[: len(breadcrumb) * 3 // 4].rstrip()
    return f"{breadcrumb}…" if breadcrumb else ""


def _spans(blocks: Sequence[Block], breadcrumb: str, ruler: _Ruler) -> Iterator[tuple[int, int]]:
    """Where to cut one section."""
    start, end = blocks[0].start, blocks[-1].end
    if end - start <= ruler.budget * _LIKELY and ruler.fits(breadcrumb, start, end):
        yield start, end
        return
    room = ruler.budget - ruler.size(f"{breadcrumb}\n")
    atoms = list(_atoms(blocks, room, ruler))
    overlap = int(ruler.budget * _OVERLAP)
    for first, last in _groups(atoms, room, overlap):
        start, end = atoms[first].start, atoms[last - 1].end
        if last < len(atoms) and all(atom.kind == "heading" for atom in atoms[first:last]):
            continue  # the breadcrumb of the next chunk says it
        repeated = _repeated(atoms, first, overlap)
        if repeated and ruler.fits(breadcrumb, repeated.start, end):
            yield repeated.start, end
        else:
            yield from _halves(breadcrumb, start, end, ruler)


def _repeated(atoms: Sequence[_Atom], first: int, overlap: int) -> _Atom | None:
    """The atom before a chunk that is said again at its start."""
    before = atoms[first - 1] if first else None
    return before if before and before.kind in _PROSE and before.size <= overlap else None


def _halves(breadcrumb: str, start: int, end: int, ruler: _Ruler) -> Iterator[tuple[int, int]]:
    """The span, or where its parts together are longer than their sum, halves of it that fit."""
    if end - start < 2 or ruler.fits(breadcrumb, start, end):
        yield start, end
        return
    middle = _gap(ruler.text, start, (start + end) // 2)
    for left, right in ((start, middle), (middle, end)):
        trimmed = _trimmed(ruler.text, left, right)
        if trimmed[0] < trimmed[1]:
            yield from _halves(breadcrumb, *trimmed, ruler)


def _groups(atoms: Sequence[_Atom], room: int, overlap: int) -> list[tuple[int, int]]:
    """Atoms into chunks at the least cost: 1 a chunk, the square of how full each is, and the cuts themselves."""
    best = [0.0] + [math.inf] * len(atoms)  # cheapest way to place the atoms before an index
    begin = [0] * (len(atoms) + 1)  # where the last chunk of that way begins
    for first in range(len(atoms)):
        repeated = _repeated(atoms, first, overlap)
        size = repeated.size if repeated else 0
        cost = best[first] + 1 + (atoms[first].cost if first else 0.0)
        for last in range(first + 1, len(atoms) + 1):
            size += atoms[last - 1].size
            if size > room and last > first + 1:
                break
            total = cost + (size / room) ** 2
            if total < best[last]:
                best[last], begin[last] = total, first
    groups: list[tuple[int, int]] = []
    last = len(atoms)
    while last:
        groups.append((begin[last], last))
        last = begin[last]
    return groups[::-1]


def _atoms(blocks: Sequence[Block], room: int, ruler: _Ruler) -> Iterator[_Atom]:
    """What is not cut while it fits."""
    above: Block | None = None
    for block in blocks:
        cost = 0.0
        if above and above.kind == "heading":
            cost = _AFTER_HEADING
        elif above and block.kind in ("list", "code", "table") and ruler.text[above.end - 1] == ":":
            cost = _AFTER_COLON
        for index, atom in enumerate(_parts(block, room, ruler)):
            pieces = [atom] if atom.size <= room else _slices(atom, room, ruler)
            for place, piece in enumerate(pieces):
                yield piece if index or place else piece._replace(cost=cost)
        above = block


def _parts(block: Block, room: int, ruler: _Ruler) -> Iterator[_Atom]:
    """A block as atoms: code and tables whole where they fit, the rest by items and sentences."""
    if block.kind in ("code", "table", "heading"):
        whole = _Atom(block.start, block.end, ruler.part(block.start, block.end), 0.0, block.kind)
        if whole.size <= room or block.kind == "heading":
            yield whole
            return
    for start, end, cost in _places(block, ruler.text):
        yield _Atom(start, end, ruler.part(start, end), cost, block.kind)


def _places(block: Block, text: str) -> Iterator[tuple[int, int, float]]:
    """Spans that a block falls into, each with the cost of a cut before it."""
    if block.kind == "code":
        yield from _lines(block, text, head=2, tail=2)  # a fence stays with its neighbour
    elif block.kind == "table":
        yield from _lines(block, text, head=3, tail=1)  # so do the header and its rule
    else:
        for left, right in sentences(text[block.start : block.end]):
            start, end = block.start + left, block.start + right
            cost = _BEFORE_SENTENCE
            if block.kind == "list" and _ITEM.match(text, start, end):
                cost = _BEFORE_ITEM if text[start - 1] == "\n" else _BEFORE_NESTED_ITEM
            yield start, end, cost


def _lines(block: Block, text: str, head: int, tail: int) -> Iterator[tuple[int, int, float]]:
    """Lines that hold something; the first `head` of them are one, and the last `tail`."""
    lines = [
        (block.start + line.start(), block.start + line.end())
        for line in re.finditer(r"[^\n]+", text[block.start : block.end])
        if line[0].strip()
    ]
    if len(lines) > head + tail:
        lines = [(lines[0][0], lines[head - 1][1]), *lines[head:-tail], (lines[-tail][0], lines[-1][1])]
    for start, end in lines:
        if block.kind == "table":
            cost = _BEFORE_ROW
        else:
            cost = _BEFORE_CODE_PARAGRAPH if text[max(0, start - 2) : start] == "\n\n" else _BEFORE_CODE_LINE
        yield start, end, cost


def _slices(atom: _Atom, room: int, ruler: _Ruler) -> Iterator[_Atom]:
    """An atom that is too long, cut between words or, where there are none, anywhere."""
    step = max(1, (atom.end - atom.start) * room // (atom.size * 4))  # quarters leave room to even out
    start, cost = atom.start, atom.cost
    while start < atom.end:
        end = atom.end if atom.end - start <= step else _gap(ruler.text, start, start + step)
        left, right = _trimmed(ruler.text, start, end)
        if left < right:
            piece = _Atom(left, right, ruler.part(left, right), cost, atom.kind)
            if piece.size > room and right - left > 1:
                yield from _slices(piece, room, ruler)
            else:
                yield piece
            cost = _BEFORE_WORD
        start = end


def _gap(text: str, start: int, near: int) -> int:
    """The last gap between words in the half before `near`, or `near` itself."""
    low = start + (near - start) // 2
    found = max(text.rfind(" ", low, near), text.rfind("\n", low, near))
    return found + 1 if found > start else near


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
