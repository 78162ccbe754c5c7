"""The page under way: what a reader writes into, heading by heading and item by item.

Owns how nested structure (lists, quotes, admonitions, table cells) becomes a flat run of parts. Never parses, and
forgives markup that closes what it never opened. Code or a table inside a list ends the list's part, stands on its own,
and the list goes on after it: a program is never indented into a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Literal

from chapterverse.book import BlockKind
from chapterverse.ingestion.document import Part
from chapterverse.ingestion.readers.cleaning import clean_inline, pipe_table, visible

_MAX_INDENT = 8  # list levels; deeper ones are written at this depth

_Frame = Literal["page", "admonition", "quote", "cell"]


@dataclass(slots=True)
class _List:
    ordered: bool
    number: int
    pending: str = ""  # marker of an item that has no text yet
    lead: str = ""  # the term that the item's text explains


@dataclass(slots=True)
class _Container:
    frame: _Frame
    label: str = ""
    pieces: list[str] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # of the list under way


class Manuscript:
    """Collects the parts of one page. Texts are cleaned on their way in."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._stack: list[_Container] = [_Container("page")]
        self._rows: list[list[str]] = []
        self._tables = 0  # tables open at this place; inner ones dissolve into the cell that holds them

    def finish(self) -> tuple[Part, ...]:
        """Everything written, with whatever is still open closed."""
        self.close_all()
        return tuple(self._parts)

    def close_all(self) -> None:
        """Ends every list, table, quote and admonition, as a heading of the page does."""
        while self._tables:
            self.close_table()
        while len(self._stack) > 1:
            self._close()
        self._write_pending()
        self._flush()
        self._stack[0].lists.clear()

    def take(self, parts: Sequence[Part]) -> None:
        """Parts that another reader made."""
        self._write_pending()
        self._flush()
        self._parts.extend(parts)

    def heading(self, text: str, level: int, anchor: str = "") -> None:
        """A heading of the page. Inside a list, a quote, an admonition or a table it is only a line of text."""
        if not (text := clean_inline(text)):
            return
        if len(self._stack) > 1 or self._stack[0].lists:
            self.paragraph(text)
            return
        self._flush()
        self._parts.append(Part("heading", text, level=min(max(level, 1), 6), anchor=anchor))

    def paragraph(self, text: str) -> None:
        """Prose, wherever the page is just now."""
        if not (text := clean_inline(text)):
            return
        top = self._stack[-1]
        if top.lists and (top.lists[-1].pending or top.lines):
            self._write_item(top, text)
        else:
            self._emit("paragraph", text)

    def code(self, text: str, language: str = "") -> None:
        """A program, kept as it is."""
        text = visible(text).strip("\n").rstrip()
        if not text.strip():
            return
        if self._stack[-1].frame == "cell":
            self.paragraph(f"`{text}`")
            return
        self._write_pending()
        self._flush()
        self._parts.append(Part("code", text, language=language))

    def open_list(self, ordered: bool = False, start: int = 1) -> None:
        """A list begins, perhaps inside an item."""
        self._write_pending()
        self._stack[-1].lists.append(_List(ordered, start))

    def item(self, lead: str = "") -> None:
        """The next item begins; `lead` is the term it explains."""
        self._write_pending()
        if not self._stack[-1].lists:
            self.open_list()
        top = self._stack[-1].lists[-1]
        top.pending = f"{top.number}. " if top.ordered else "- "
        top.lead = clean_inline(lead)
        top.number += 1

    def close_list(self) -> None:
        """The innermost list ends, and with it whatever was left open inside."""
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

    def open_admonition(self, label: str) -> None:
        """A note, a warning or the like begins."""
        self._open(_Container("admonition", clean_inline(label)))

    def close_admonition(self) -> None:
        """The innermost admonition ends."""
        self._close_to("admonition")

    def open_quote(self) -> None:
        """A quotation begins."""
        self._open(_Container("quote"))

    def close_quote(self) -> None:
        """The innermost quotation ends."""
        self._close_to("quote")

    def open_table(self) -> None:
        """A table begins."""
        if not self._tables:
            self._write_pending()
            self._flush()
            self._rows = []
        self._tables += 1

    def row(self) -> None:
        """The next row of the table begins."""
        if self._tables == 1:
            self._leave_cell()
            self._rows.append([])

    def cell(self) -> None:
        """The next cell of the row begins."""
        if self._tables != 1:
            return
        self._leave_cell()
        if not self._rows:
            self._rows.append([])
        self._stack.append(_Container("cell"))

    def close_table(self) -> None:
        """The table ends."""
        if not self._tables:
            return
        self._tables -= 1
        if self._tables:
            return
        self._leave_cell()
        self.table(self._rows)

    def table(self, rows: list[list[str]]) -> None:
        """A whole table at once; the first row is its header."""
        if not (text := pipe_table(rows)):
            return
        if self._stack[-1].frame == "cell":
            self.paragraph(" ".join(" ".join(row) for row in rows))
            return
        self._write_pending()
        self._flush()
        self._parts.append(Part("table", text))

    def _leave_cell(self) -> None:
        while any(container.frame == "cell" for container in self._stack):
            container = self._stack[-1]
            self._flush_lines(container)
            self._stack.pop()
            if container.frame == "cell":
                self._rows[-1].append(" ".join(container.pieces))
            else:
                self._stack[-1].pieces.extend(container.pieces)

    def _open(self, container: _Container) -> None:
        self._write_pending()
        if self._stack[-1].frame != "cell":
            self._flush()
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

    def _write_item(self, top: _Container, text: str) -> None:
        indent = "  " * min(len(top.lists) - 1, _MAX_INDENT)
        last = top.lists[-1]
        if last.pending:
            text = f"{last.lead}: {text}" if last.lead else text
            top.lines.append(f"{indent}{last.pending}{text}")
            last.pending = last.lead = ""
        else:
            top.lines.append(f"{indent}  {text}")

    def _write_pending(self) -> None:
        """Writes the term of an item whose text does not come in this part; an empty item is no loss."""
        top = self._stack[-1]
        if top.lists and top.lists[-1].pending and (lead := top.lists[-1].lead):
            top.lists[-1].lead = ""
            self._write_item(top, lead)

    def _emit(self, kind: BlockKind, text: str) -> None:
        top = self._stack[-1]
        if top.frame == "page":
            self._parts.append(Part(kind, text))
        else:
            top.pieces.append(text)

    def _flush_lines(self, container: _Container) -> None:
        if container.lines:
            text = dedent("\n".join(container.lines))  # after a program, a list may go on deep inside
            container.lines.clear()
            if container.frame == "page":
                self._parts.append(Part("list", text))
            else:
                container.pieces.append(text)

    def _flush(self) -> None:
        """Makes a part of what the innermost container holds so far."""
        top = self._stack[-1]
        self._flush_lines(top)
        if not top.pieces or top.frame == "cell":
            return
        text = "\n\n".join(top.pieces)
        top.pieces.clear()
        if top.frame == "quote":
            kind: BlockKind = "quote"
        elif top.label:
            kind, text, top.label = "admonition", f"{top.label}: {text}", ""
        else:  # an admonition that goes on after its code
            kind = "paragraph"
        if self._inside_cell():
            self._stack[-2].pieces.append(text)
        else:
            self._parts.append(Part(kind, text))

    def _inside_cell(self) -> bool:
        return any(container.frame == "cell" for container in self._stack)
