"""Collects the parts of a page for the readers.

Nested structure (lists, quotes, admonitions, fields, table cells) becomes a flat list of parts. Each part has the
number of list items and blocks around it (`Part.inside`). Code, a table, an image or a field is always a separate part;
the list, quote or admonition around it continues after it. Unbalanced closing calls are ignored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import Literal

from chapterverse.book import BlockKind
from chapterverse.ingestion.document import Part
from chapterverse.ingestion.inline import picture, plain
from chapterverse.ingestion.readers.cleaning import Cell, clean_inline, pipe_table, spread, visible
from chapterverse.ingestion.readers.option_list import PLAIN, options_in

_MAX_INDENT = 8  # list levels; deeper ones are written at this depth
_MAX_INSIDE = 16  # items and blocks around a part; deeper ones are shown at this depth
_MAX_FIELD = 1200  # characters of a field; a longer one keeps only its first paragraphs

_Frame = Literal["page", "admonition", "quote", "field", "cell"]


@dataclass(slots=True)
class _List:
    ordered: bool
    number: int
    pending: str = ""  # marker of an item without text so far
    lead: str = ""  # the term that the item describes, written before its text
    shown: bool = False  # whether a part has been written for the current item


@dataclass(slots=True)
class _Container:
    frame: _Frame
    label: str = ""  # of an admonition; name of a field
    kind: str = ""  # of an admonition: "note"
    facts: list[str] = field(default_factory=list)  # of a field
    span: tuple[int, int] = (1, 1)  # of a cell: rows and columns
    pieces: list[Part] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # of the current list
    above: int = 0  # number of list items around these lines
    begun: bool = False  # whether a part has been written for the container
    around: int = 0  # number of items and blocks around the container
    in_cell: bool = False

    @property
    def inside(self) -> int:
        """The number of items and blocks around its current content."""
        return min(self.around + self.begun + self.items, _MAX_INSIDE)

    @property
    def items(self) -> int:
        """The number of its own open list items."""
        return sum(level.shown for level in self.lists)


class PageBuilder:
    """Collects the parts of one page and cleans their texts."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._stack: list[_Container] = [_Container("page")]
        self._rows: list[list[Cell]] = []
        self._heads: int | None = None  # header rows of the table; None if unknown
        self._table_caption = ""
        self._tables = 0  # open tables; inner ones become text of the cell

    def finish(self) -> tuple[Part, ...]:
        """Close everything and return the parts."""
        self.close_all()
        return tuple(self._parts)

    def close_all(self) -> None:
        """Close every list, table, quote and admonition."""
        while self._tables:
            self.close_table()
        while len(self._stack) > 1:
            self._close()
        self._write_pending()
        self._flush()
        self._stack[0].lists.clear()

    def take(self, parts: Iterable[Part]) -> None:
        """Add parts of another reader."""
        inside = self._interrupt()
        self._parts += [replace(part, inside=part.inside + inside) for part in parts]

    def heading(self, text: str, level: int, anchor: str = "") -> None:
        """Add a heading. Inside of a list, quote, admonition or table it is a line of text."""
        if not (text := clean_inline(text)):
            return
        if len(self._stack) > 1 or self._stack[0].lists:
            self.paragraph(text)
            return
        self._flush()
        self._parts.append(Part("heading", text, level=min(max(level, 1), 6), anchor=anchor))

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        if not (text := clean_inline(text)):
            return
        top = self._stack[-1]
        if top.lists and (top.lists[-1].pending or top.lines):
            self._write_item(top, text)
        else:
            self._emit("paragraph", text)

    def code(self, text: str, language: str = "", caption: str = "") -> None:
        """Add code. The caption is its file name or title. A list of a command's options becomes fields."""
        text = visible(text).strip("\n").rstrip()
        if not text.strip():
            return
        if language.lower() in PLAIN and (options := options_in(text)):
            self.paragraph(caption)
            for name, explanation in options:
                self.field(name, description=explanation)
            return
        if self._stack[-1].frame == "cell":
            self.paragraph(f"`{text}`")
            return
        inside = self._interrupt()
        self._parts.append(Part("code", text, info=language, caption=clean_inline(caption), inside=inside))

    def image(self, alt: str, address: str, caption: str = "") -> None:
        """Add an image. Without a caption, an image in a list item, cell or admonition is a mark in its text."""
        alt, caption, top = clean_inline(plain(alt)), clean_inline(caption), self._stack[-1]
        mark = picture(address, alt)
        if top.in_cell:
            top.pieces.append(Part("paragraph", f"{mark} {caption}".rstrip()))
        elif not caption and top.lines:
            top.lines[-1] += mark
        elif not caption and top.pieces:
            last = top.pieces.pop()
            top.pieces.append(replace(last, text=last.text + mark))
        else:
            inside = self._interrupt()
            self._parts.append(Part("image", alt, info=address, caption=caption, inside=inside))

    def field(self, name: str, facts: Sequence[tuple[str, str]] = (), description: str | Sequence[str] = ()) -> None:
        """Add a parameter, option or defined term with its facts and description."""
        self.open_field(name)
        for fact in facts:
            self.fact(*fact)
        for paragraph in [description] if isinstance(description, str) else description:
            self.paragraph(paragraph)
        self.close_field()

    def open_field(self, name: str) -> None:
        """Open a field; everything up to its end describes it."""
        name = clean_inline(name)
        self._open(_Container("field", name if "`" in name or not name else f"`{name}`"))

    def fact(self, name: str, value: str) -> None:
        """Add a fact of the open field, such as its type or default. Outside of a field it is a paragraph."""
        line = clean_inline(f"{name}: {value}" if name else value)
        top = self._stack[-1]
        if not line:
            return
        if top.frame == "field" and not top.begun:
            top.facts.append(line)
        else:
            self.paragraph(line)

    def close_field(self) -> None:
        """Close the innermost field."""
        self._close_to("field")

    def open_list(self, ordered: bool = False, start: int = 1) -> None:
        """Open a list, possibly inside of an item."""
        self._write_pending()
        self._stack[-1].lists.append(_List(ordered, start))

    def item(self, lead: str = "") -> None:
        """Start the next item; `lead` is the term that it describes."""
        self._write_pending()
        if not self._stack[-1].lists:
            self.open_list()
        top = self._stack[-1].lists[-1]
        top.pending = f"{top.number}. " if top.ordered else "- "
        top.lead = clean_inline(lead)
        top.number += 1
        top.shown = False

    def close_list(self) -> None:
        """Close the innermost list and everything inside of it."""
        if not any(container.lists for container in self._stack):
            return
        while not self._stack[-1].lists and self._stack[-1].frame != "cell":
            self._close()
        if not (top := self._stack[-1]).lists:
            return
        self._write_pending()
        top.lists.pop()
        if not top.lists:
            self._flush_lines(top)

    def open_admonition(self, label: str, kind: str = "") -> None:
        """Open an admonition. The label is shown; the kind ("note") is for rendering."""
        self._open(_Container("admonition", clean_inline(label), kind or plain(label).casefold()))

    def close_admonition(self) -> None:
        """Close the innermost admonition."""
        self._close_to("admonition")

    def open_quote(self) -> None:
        """Open a quotation."""
        self._open(_Container("quote"))

    def close_quote(self) -> None:
        """Close the innermost quotation."""
        self._close_to("quote")

    def open_table(self, caption: str = "") -> None:
        """Open a table."""
        if not self._tables:
            self._interrupt()
            self._rows, self._heads, self._table_caption = [], None, caption
        self._tables += 1

    def caption(self, text: str) -> None:
        """Set the caption of the open table, or of an image that was just added."""
        last = self._parts[-1] if self._parts else None
        if self._tables == 1 and not self._rows:
            self._table_caption = text
        elif last and last.kind == "image" and not last.caption and not self._tables:
            self._parts[-1] = replace(last, caption=clean_inline(text))
        else:
            self.paragraph(text)

    def row(self, head: bool | None = None) -> None:
        """Start the next row of the table; `head`: whether it belongs to the header. If it is never given, the first
        row is the header."""
        if self._tables == 1:
            self._leave_cell()
            if head is not None:
                heads = self._heads or 0
                self._heads = heads + (head and heads == len(self._rows))
            self._rows.append([])

    def cell(self, rows: int = 1, columns: int = 1) -> None:
        """Start the next cell of the row. It is repeated in all rows and columns that it spans."""
        if self._tables != 1:
            return
        self._leave_cell()
        if not self._rows:
            self._rows.append([])
        self._stack.append(_Container("cell", span=(rows, columns), in_cell=True))

    def close_table(self) -> None:
        """Close the table."""
        if not self._tables:
            return
        self._tables -= 1
        if self._tables:
            return
        self._leave_cell()
        self.table(self._rows, 1 if self._heads is None else self._heads, self._table_caption)

    def table(self, rows: Sequence[Sequence[str | Cell]], heads: int = 1, caption: str = "") -> None:
        """Add a complete table. The first `heads` rows are its header; with 0 the header is empty."""
        cells, caption = spread(rows), clean_inline(caption)
        if not (text := pipe_table(cells, heads)):
            return
        if self._stack[-1].frame == "cell":
            self.paragraph(" ".join([caption, *(" ".join(row) for row in cells)]))
            return
        self._parts.append(Part("table", text, caption=caption, inside=self._interrupt()))

    def _leave_cell(self) -> None:
        while any(container.frame == "cell" for container in self._stack):
            container = self._stack[-1]
            if container.frame == "field":
                self._flush()
            self._flush_lines(container)
            self._stack.pop()
            if container.frame == "cell":
                text = " ".join(piece.text for piece in container.pieces)
                self._rows[-1].append(Cell(text, *container.span))
            else:
                self._stack[-1].pieces.extend(container.pieces)

    def _open(self, container: _Container) -> None:
        container.around, container.in_cell = self._interrupt(), self._stack[-1].in_cell
        self._stack.append(container)

    def _close_to(self, frame: _Frame) -> None:
        for container in reversed(self._stack):
            if container.frame == "cell":
                return
            if container.frame == frame:
                break
        else:
            return
        while self._stack[-1].frame != frame:
            self._close()
        self._close()

    def _close(self) -> None:
        self._write_pending()
        self._flush()
        self._stack.pop()

    def _interrupt(self) -> int:
        """Write the current content before a separate part. Returns the number of items and blocks around that part."""
        self._write_pending()
        top = self._stack[-1]
        if top.frame != "cell":
            self._flush(begin=True)
        return top.inside

    def _write_item(self, top: _Container, text: str) -> None:
        depth = min(len(top.lists) - 1, _MAX_INDENT)
        last, indent = top.lists[-1], "  " * depth
        if last.pending:
            if top.lines and len(top.lines[0]) - len(top.lines[0].lstrip()) > len(indent):
                self._flush_lines(top)  # the lines were deeper than this item
            if not top.lines:
                top.above = sum(level.shown for level in top.lists[:-1])
            text = f"{last.lead}: {text}" if last.lead else text
            top.lines.append(f"{indent}{last.pending}{text}")
            last.pending, last.lead, last.shown = "", "", True
        else:
            top.lines.append(f"{indent}  {text}")

    def _write_pending(self) -> None:
        """Write the term of an item without text in this part; an empty item is dropped."""
        top = self._stack[-1]
        if top.lists and top.lists[-1].pending and (lead := top.lists[-1].lead):
            top.lists[-1].lead = ""
            self._write_item(top, lead)

    def _emit(self, kind: BlockKind, text: str) -> None:
        top = self._stack[-1]
        to = self._parts if top.frame == "page" else top.pieces
        to.append(Part(kind, text, inside=top.items))

    def _flush_lines(self, container: _Container) -> None:
        if container.lines:
            text = dedent("\n".join(container.lines))  # after code, a list may continue at a deeper level
            container.lines.clear()
            to = self._parts if container.frame == "page" else container.pieces
            to.append(Part("list", text, inside=container.above))

    def _flush(self, begin: bool = False) -> None:
        """Make parts of the content of the innermost container. `begin`: write its label even without text, because a
        part follows inside of it."""
        top = self._stack[-1]
        self._flush_lines(top)
        named = not top.begun and top.label and (begin or top.frame == "field")
        if top.frame in ("page", "cell") or not (top.pieces or named):
            return
        pieces, top.pieces = top.pieces, []
        parts: list[Part] = []
        if not top.begun:
            # a list that the next part interrupts is separate, so that this part is shown inside of its item
            end = len(pieces) - bool(begin and top.lists and pieces and pieces[-1].kind == "list")
            end = end or (0 if top.label else len(pieces))
            first, rest = pieces[:end], pieces[end:]
            part, over = _field_part(top, first) if top.frame == "field" else (_joined(top, first), [])
            parts, pieces, top.begun = [replace(part, inside=top.around)], [*over, *rest], True
        parts += [replace(piece, inside=min(top.around + 1 + piece.inside, _MAX_INSIDE)) for piece in pieces]
        if top.in_cell:
            self._stack[-2].pieces.extend(parts)
        else:
            self._parts.extend(parts)


def _joined(container: _Container, pieces: Sequence[Part]) -> Part:
    """The part for a quote or an admonition, with all its pieces."""
    text = "\n\n".join(piece.text for piece in pieces)
    if container.frame == "quote":
        return Part("quote", text)
    if not container.label:
        return Part("paragraph", text)
    label = plain(container.label)
    ends = "" if label.endswith((".", ":", "!", "?", "…")) else ":"
    return Part("admonition", f"{container.label}{ends} {text}".rstrip(), info=container.kind, caption=label)


def _field_part(container: _Container, pieces: list[Part]) -> tuple[Part, list[Part]]:
    """The part for a field, and the pieces that do not fit into it."""
    lines = [container.label, *container.facts]
    room, kept = _MAX_FIELD - sum(map(len, lines)), 0
    while kept < len(pieces) and (not kept or len(pieces[kept].text) <= room):
        room -= len(pieces[kept].text)
        kept += 1
    return Part("field", "\n".join([*lines, *(piece.text for piece in pieces[:kept])])), pieces[kept:]


class MarkedItems:
    """Writes list items that are known only by their markers. Another kind of marker begins an inner list, and an item
    with a number keeps it."""

    def __init__(self, to: PageBuilder) -> None:
        self._to = to
        self._open: list[tuple[str, int]] = []  # of each open list: the kind of its markers, the last number

    def item(self, marker: str, text: str) -> None:
        """Add an item with a marker such as `-` or `2.`."""
        digits = "".join(filter(str.isdecimal, marker))
        kind = marker.strip().removeprefix(digits)
        number = int(digits or 0)
        ordered, kind = bool(digits), f"1{kind}" if digits else kind
        while kind in (known for known, _ in self._open[:-1]):
            self._close()
        if self._open and self._open[-1][0] == kind and ordered and number != self._open[-1][1] + 1:
            self._close()
        if not self._open or self._open[-1][0] != kind:
            self._to.open_list(ordered, number)
            self._open.append((kind, number))
        self._open[-1] = (kind, number)
        self._to.item()
        self._to.paragraph(text)

    def close(self) -> None:
        """Close all lists."""
        while self._open:
            self._close()

    def _close(self) -> None:
        self._to.close_list()
        self._open.pop()
