"""Parses a model's Markdown, as it streams, into statements.

A statement is released when nothing that may still arrive can change it, so that statements never depend on how the
text was split on its way. Everything is accepted: nested lists, fences that never close, tables, no structure at all.
"""

import re
from typing import Final, Literal

from chapterverse.evidence.statement import Shape, Statement, UnitRef
from chapterverse.language import sentences
from chapterverse.units import cells_of
from chapterverse.writing.unit_numbers import LOOK_AHEAD, find_numbers, mask_numbers, open_bracket, without_numbers

MAX_STATEMENT_CHARS: Final = 2000  # what is longer without an end is cut here; the gate shows nothing so long

LineKind = Literal["blank", "fence", "heading", "row", "rule", "item", "text"]

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[\w+#.-]*)")
_HEADING = re.compile(r"[ \t]{0,3}(?P<marks>#{1,6})[ \t]+")
_BOLD_LINE = re.compile(r"\*\*[^*\n]{0,119}[^*\n.!?]\*\*:?|__[^_\n]{0,119}[^_\n.!?]__:?")
_ROW = re.compile(r"[ \t]*\|")
_ROW_RULE = re.compile(r"(?=[^-]*-)[|:\- \t]++")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<marker>[-*+•]|\d{1,4}[.)])(?P<gap>[ \t]+)(?=\S)")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|_{3,}|={2,})")
_NEXT_WORD = re.compile(r"\s*+[\"'“‘«(\[*_]*+\w*+")
_TICKS = re.compile(r"`+")
_MAY_END = re.compile(r"[.!?…。！？｡\n]")
_DECIDED: Final = 12  # characters of a line that tell what it is
_NO_WORD = re.compile(r"[\W_]*")
_NUMBER_ALONE = re.compile(r"[*_\s]*\d{1,3}[.)][*_\s]*")  # "**1." of a heading in bold is no sentence


class MarkdownParser:
    """Takes text in any pieces and gives statements."""

    def __init__(self) -> None:
        self._line = ""  # of a line whose kind is not known yet, or that is taken as a whole
        self._inline = False  # whether the rest of the line belongs to the open paragraph or item
        self._text = ""  # of the open paragraph or item, what is not released yet
        self._block: Statement | None = None  # the shape of that block
        self._blank = True  # the line before was blank
        self._items: list[int] = []  # indents of the list items around this place
        self._fence = ""  # what closes the open code block
        self._code: list[str] = []
        self._code_block: Statement | None = None
        self._header = ""  # of the open table, with its rule
        self._header_refs: tuple[UnitRef, ...] = ()

    def feed(self, delta: str) -> list[Statement]:
        """The statements that this piece of text completes."""
        found: list[Statement] = []
        for piece in re.findall(r"[^\n]*\n|[^\n]+", delta.replace("\r", "")):
            ended = piece.endswith("\n")
            if self._inline:
                self._text += piece.removesuffix("\n")
            else:
                self._line += piece.removesuffix("\n")
                if ended or self._is_decided():
                    found += self._take(self._line, whole=ended)
            if ended and self._inline:
                self._inline, self._text = False, self._text + "\n"
        return found + self._sentences(ended=False)

    def finish(self) -> list[Statement]:
        """The statements that the end of the text completes."""
        found = [] if self._inline or not self._line else self._take(self._line, whole=True)
        return found + self._end_code() + self._end_block() + self._end_table()

    # ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_decided(self) -> bool:
        """Whether the begun line is known to be text or an item, which need not wait for the line's end."""
        line = self._line.lstrip()
        return len(line) >= _DECIDED and not self._fence and _kind(self._line) in ("text", "item")

    def _take(self, line: str, *, whole: bool) -> list[Statement]:
        self._line = ""
        if self._fence:
            return self._code_line(line)
        kind = _kind(line)
        if kind == "text" and self._header and "|" in line:
            kind = "row"
        ended = [] if kind in ("row", "rule") else self._end_table()
        was_blank, self._blank = self._blank, kind == "blank"
        if kind == "blank":
            return ended + self._end_block()
        if kind == "text" and self._block is not None:
            return ended + self._go_on(line.strip() if whole else line.lstrip(), whole)
        ended += self._end_block()
        if kind == "item":
            self._open_item(line, whole)
        elif kind == "text":
            self._open_paragraph(line, whole, was_blank)
        elif kind == "fence":
            self._open_code(line)
        elif kind == "heading":
            ended += self._heading(line)
        elif kind == "row":
            ended += self._row(line)
        return ended

    def _go_on(self, text: str, whole: bool) -> list[Statement]:
        self._text += text + ("\n" if whole else "")
        self._inline = not whole
        return []

    def _open_item(self, line: str, whole: bool) -> None:
        found = _ITEM.match(line)
        assert found is not None
        indent = len(found["indent"].expandtabs(4))
        while self._items and self._items[-1] >= indent:
            self._items.pop()
        self._block = Statement("", shape="item", depth=len(self._items), marker=found["marker"].replace(")", "."))
        self._items.append(indent)
        self._text = line[found.end() :].rstrip() + "\n" if whole else line[found.end() :]
        self._inline = not whole

    def _open_paragraph(self, line: str, whole: bool, was_blank: bool) -> None:
        self._leave_items(line, was_blank)
        quote = _QUOTE.match(line)
        text = line[quote.end() :] if quote else line.lstrip()
        self._block = Statement("", shape="paragraph", depth=len(self._items))
        self._text = text.rstrip() + "\n" if whole else text
        self._inline = not whole

    def _leave_items(self, line: str, was_blank: bool = True) -> None:
        """Leave the list items that this line is not indented below."""
        indent = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
        while self._items and self._items[-1] >= indent and was_blank:
            self._items.pop()

    def _heading(self, line: str) -> list[Statement]:
        self._items = []
        found = _HEADING.match(line)
        assert found is not None
        text, named = without_numbers(line[found.end() :].rstrip("# \t"))
        return [Statement(text, named, "heading", level=len(found["marks"]))] if text else []

    # ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _row(self, line: str) -> list[Statement]:
        if not self._header:
            self._leave_items(line)
            self._header, self._header_refs = without_numbers(line.strip())
            return []
        if _ROW_RULE.fullmatch(line):
            self._header += "" if "\n" in self._header else f"\n{line.strip()}"
            return []
        found = [] if "\n" in self._header else self._end_table(keep=True)
        row, named = without_numbers(line.strip())
        return [*found, self._told(row, named)]

    def _told(self, row: str, named: tuple[UnitRef, ...]) -> Statement:
        """A row with the names of its columns."""
        header, _, rule = self._header.partition("\n")
        names, values = cells_of(header) if rule else [], cells_of(row)
        text = " | ".join(value for value in values if value)
        if len(names) == len(values):
            pairs = zip(names, values, strict=True)
            text = " | ".join(f"{name}: {value}" if name else value for name, value in pairs if value)
        head = self._header if rule else ""
        return Statement(text, named or self._header_refs, "row", depth=len(self._items), row=row, head=head)

    def _end_table(self, *, keep: bool = False) -> list[Statement]:
        """What looked like a header and has no rule below it is a row like others."""
        header, self._header = self._header, " " if keep else ""
        if not header.strip() or "\n" in header:
            return []
        return [Statement(" | ".join(filter(None, cells_of(header))), self._header_refs, "row", row=header)]

    # ── code ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open_code(self, line: str) -> None:
        self._leave_items(line)
        found = _FENCE.match(line)
        assert found is not None
        self._fence, self._code = found["mark"], []
        self._code_block = Statement("", shape="code", depth=len(self._items), head=found["info"])

    def _code_line(self, line: str) -> list[Statement]:
        if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
            return self._end_code()
        self._code.append(line)
        return []

    def _end_code(self) -> list[Statement]:
        block, self._fence, self._code_block = self._code_block, "", None
        code, self._code = _dedented(self._code), []
        self._blank = True
        if block is None or not code.strip():
            return []
        return [Statement(code, (), "code", depth=block.depth, head=block.head)]

    # ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sentences(self, *, ended: bool) -> list[Statement]:
        """The statements of the open block that are certain. An item is cut only where unit numbers end a sentence:
        numbers at its end stand for all of it."""
        found: list[Statement] = []
        at = 0  # how far the sentences that are still waiting for their numbers reach
        while self._block is not None:
            if not ended and not _MAY_END.search(self._text, at) and len(self._text) < MAX_STATEMENT_CHARS:
                break
            stop = _first_end(self._text[at : at + MAX_STATEMENT_CHARS + LOOK_AHEAD], ended)
            if stop is None and len(self._text) - at <= MAX_STATEMENT_CHARS:
                break
            stop = at + (stop or MAX_STATEMENT_CHARS)
            last = ended and stop >= len(self._text)
            waits = self._block.shape == "item" and not find_numbers(self._text[:stop])
            joins = waits or _NUMBER_ALONE.fullmatch(self._text, 0, stop)
            if joins and not last and stop < MAX_STATEMENT_CHARS:
                at = stop
                continue
            found += self._release(self._text[:stop])
            self._text, at = self._text[stop:], 0
            if not self._text.strip() and ended:
                break
        return found

    def _release(self, raw: str) -> list[Statement]:
        block = self._block
        assert block is not None
        text, named = without_numbers(" ".join(raw.split()))
        if _NO_WORD.fullmatch(text):
            return []
        shape: Shape = block.shape
        level = 0
        if shape == "paragraph" and block.opens and _BOLD_LINE.fullmatch(text):
            shape, level = "heading", 7
        self._block = Statement("", shape=block.shape, opens=False, depth=block.depth)
        return [Statement(text, named, shape, block.opens, block.depth, block.marker, level)]

    def _end_block(self) -> list[Statement]:
        found = self._sentences(ended=True) if self._text.strip() else []
        self._block, self._text, self._inline = None, "", False
        return found


def _kind(line: str) -> LineKind:
    """What a line is, judged by itself."""
    if not line.strip():
        return "blank"
    if _FENCE.match(line):
        return "fence"
    if _HEADING.match(line):
        return "heading"
    if _ROW.match(line):
        return "row"
    if _RULE.fullmatch(line):
        return "rule"
    return "item" if _ITEM.match(line) else "text"


def _first_end(block: str, ended: bool) -> int | None:
    """Where the first sentence ends, with the numbers behind it; None while that is not certain."""
    known = len(block) if ended else open_bracket(block)
    masked = mask_numbers(block[:known])
    spans = sentences(masked)
    if len(spans) < 2:
        return len(block) if ended else None
    start = spans[1][0]
    if not ended and (_open_code(masked[:start]) or _NEXT_WORD.fullmatch(masked, start)):
        return None
    return start


def _open_code(text: str) -> bool:
    """Whether a backtick waits for its partner."""
    waiting = ""
    for ticks in _TICKS.findall(text):
        if not waiting:
            waiting = ticks
        elif ticks == waiting:
            waiting = ""
    return bool(waiting)


def _dedented(lines: list[str]) -> str:
    """Code without the indentation that all of its lines share, because it lies in a list."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return "\n".join(line[cut:].rstrip() for line in lines).strip("\n")
