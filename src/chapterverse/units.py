"""Splits a text into units: sentences, list items, table rows, fields and code blocks, with exact offsets.

The same text and blocks always give the same units. The blocks of a page come from ingestion; those of a selected text
are detected (`blocks_of_text`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from chapterverse.book import CONTENTS, Block, BlockKind, Unit, UnitKind
from chapterverse.language import sentences

MAX_UNIT_CHARS: Final = 3000  # a longer unit is split
LONG_ITEM_CHARS: Final = 600  # a longer list item is split into sentences
BAR: Final = "\\|"  # a vertical bar in a cell of a table

_FENCE = re.compile(r"[ \t]*(`{3,}+(?!.*`)|~{3,})")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•]|\(?\d{1,4}[.)])[ \t]+(?=\S)")
_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(r"#{1,6}[ \t]")
_RULE = re.compile(r"[|\s:-]+")
_CELL_BAR = re.compile(r"(?<!\\)\|")

Span = tuple[int, int]


def cut_units(text: str, blocks: Sequence[Block]) -> tuple[Unit, ...]:
    """The units of a text, in order."""
    units: list[Unit] = []
    lead: Span | None = None  # the text unit right before the block, which may introduce it
    lists: list[tuple[int, Span | None]] = []  # lists around the block: depth and lead-in of each
    section = -1
    for block in blocks:
        if block.section != section or block.kind == "heading":
            lead, section = None, block.section
            lists.clear()
        if block.kind in ("heading", "image") or block.info == CONTENTS:
            continue
        while lists and lists[-1][0] >= block.inside + (block.kind == "list"):
            lists.pop()
        if block.kind == "list":
            if lists and lists[-1][0] == block.inside:
                lead = lists[-1][1]  # the list continues after a block inside of one of its items
            else:
                lists.append((block.inside, lead))
        found = [piece for unit in _units_of(text, block, lead) for piece in _pieces(text, unit)]
        units.extend(found)
        if found and block.kind != "code":  # consecutive code blocks have the same lead-in
            last = found[-1]
            lead = (last.start, last.end) if last.kind in ("sentence", "item") else None
    return tuple(units)


def units_of_text(text: str) -> tuple[Unit, ...]:
    """The units of a plain text."""
    return cut_units(text, blocks_of_text(text))


def definitions(blocks: Sequence[Block]) -> Iterator[Block | None]:
    """For each block the parameter, term or object that it describes: itself, or the innermost one around it."""
    around: list[Block] = []
    for block in blocks:
        while around and around[-1].inside >= block.inside:
            around.pop()
        if block.kind == "field":
            around.append(block)
        yield around[-1] if around else None


def unit_text(text: str, unit: Unit) -> str:
    """The text of a unit; a table row with the names of its columns."""
    own = text[unit.start : unit.end]
    return row_text(text[unit.head_start : unit.head_end], own) if unit.kind == "row" and unit.has_head else own


def row_text(head: str, row: str) -> str:
    """A table row with the names of its columns, also of empty ones, if the header has as many cells."""
    names, values = cells_of(head), cells_of(row)
    if len(names) != len(values):
        names = [""] * len(values)
    cells = (f"{name}: {value or '–'}" if name else value for name, value in zip(names, values, strict=True))
    return " | ".join(filter(None, cells))


def cells_of(line: str) -> list[str]:
    """The cells of one line of a pipe table."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(BAR, "|") for cell in _CELL_BAR.split(inner)]


def blocks_of_text(text: str) -> tuple[Block, ...]:
    """The blocks of a plain text: fenced code, tables, lists, headings and paragraphs."""
    blocks: list[Block] = []
    current: BlockKind | None = None  # kind of the block that the next line may belong to
    section, fence = 0, ""
    for line in re.finditer(r"^.*$", text, re.MULTILINE):
        body = line[0]
        if fence:
            blocks[-1] = replace(blocks[-1], end=line.end())
            if body.strip().startswith(fence):
                fence, current = "", None
        elif not body.strip():
            current = current if current == "list" else None  # a blank line between two items does not end the list
        else:
            kind = _kind_of_line(body, current)
            section += kind == "heading"
            start, end = line.start() + len(body) - len(body.lstrip()), line.start() + len(body.rstrip())
            if kind == current != "heading":
                blocks[-1] = replace(blocks[-1], end=end)
            else:
                blocks.append(Block(kind, start, end, section))
            mark, current = _FENCE.match(body), kind
            fence = mark[1] if mark else ""
    return tuple(blocks)


def _kind_of_line(line: str, current: BlockKind | None) -> BlockKind:
    if _FENCE.match(line):
        return "code"
    if _HEADING.match(line):
        return "heading"
    if line.lstrip().startswith("|"):
        return "table"
    if _ITEM.match(line) or (current == "list" and line[0] in " \t"):
        return "list"
    return "paragraph"


def _units_of(text: str, block: Block, lead: Span | None) -> Iterator[Unit]:
    match block.kind:
        case "code":
            yield _unit("code", block.start, block.end, lead)
        case "field":
            yield _unit("field", block.start, block.end, None)
        case "table":
            yield from _rows(text, block)
        case "list":
            yield from _items(text, block, lead if lead and text[lead[1] - 1] == ":" else None)
        case _:
            for start, end in sentences(text[block.start : block.end]):
                kind: UnitKind = "item" if _ITEM.match(text, block.start + start, block.end) else "sentence"
                yield Unit(kind, block.start + start, block.start + end)


def _rows(text: str, block: Block) -> Iterator[Unit]:
    found = re.compile(r"[^\n]+").finditer(text, block.start, block.end)
    lines = [line.span() for line in found if line[0].strip()]
    ruled = len(lines) > 1 and _RULE.fullmatch(text, *lines[1]) is not None
    head = lines[0] if ruled else None
    for start, end in lines[2:] if ruled else lines:
        yield _unit("row", start, end, head)
    if ruled and len(lines) == 2:
        yield _unit("row", *lines[0], None)


def _items(text: str, block: Block, lead: Span | None) -> Iterator[Unit]:
    """Each item with its continuation lines. The head of a nested item is the item around it."""
    above: list[tuple[int, Span]] = []  # indent and span of the items around the current one
    for start, end, indent in _item_spans(text, block):
        while above and above[-1][0] >= indent:
            above.pop()
        head = above[-1][1] if above else lead
        above.append((indent, (start, end)))
        if end - start <= LONG_ITEM_CHARS:
            yield _unit("item", start, end, head)
            continue
        first: Span | None = None
        for left, right in sentences(text[start:end]):
            span = (start + left, start + right)
            yield _unit("sentence" if first else "item", *span, first or head)
            first = first or span


def _item_spans(text: str, block: Block) -> list[tuple[int, int, int]]:
    """Start, end and indent of each item; a line without a mark belongs to the item before it."""
    spans: list[tuple[int, int, int]] = []
    for line in _LINE.finditer(text, block.start, block.end):
        start, end = line.start(), line.start() + len(line[0].rstrip())
        if start == end:
            continue  # a blank line
        mark = _ITEM.match(text, start, end)
        if mark or not spans:
            indent = len(mark["indent"]) if mark else 0
            spans.append((start + indent, end, indent))
        else:
            spans[-1] = (spans[-1][0], end, spans[-1][2])
    return spans


def _unit(kind: UnitKind, start: int, end: int, head: Span | None) -> Unit:
    return Unit(kind, start, end, *(head or (-1, -1)))


def _pieces(text: str, unit: Unit) -> Iterator[Unit]:
    """The unit or, if it is very long, pieces of it that end at a line break or between words."""
    start = unit.start
    while unit.end - start > MAX_UNIT_CHARS:
        near = start + MAX_UNIT_CHARS
        cut = text.rfind("\n", start + 1, near)
        cut = cut if cut > start else text.rfind(" ", start + 1, near)
        cut = cut if cut > start else near
        if text[start:cut].strip():
            yield Unit(unit.kind, start, cut, unit.head_start, unit.head_end)
        start = cut
        while start < unit.end and text[start].isspace():
            start += 1
    if start < unit.end:
        yield Unit(unit.kind, start, unit.end, unit.head_start, unit.head_end)
