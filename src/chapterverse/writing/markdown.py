"""Parses a model's Markdown, as it streams, into statements with the units that they name.

A statement is released when no later text can change it, so the statements do not depend on how the stream was split.
All input is accepted: nested lists, fences that never close, tables, no structure at all. Units are named as `[2.3]`,
`[2.3, 2.4]`, `[2.3][3.1]`, `[1]`, `[^1]`, `[1-3]`, `【1】`. Text between backticks is code, and the brackets of a link
or of an index in code are not unit numbers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Final

from chapterverse.evidence.statement import Statement, UnitRef
from chapterverse.language import INLINE_CODE, sentences
from chapterverse.units import cells_of, row_text

MAX_STATEMENT_CHARS: Final = 2000  # a longer text without an end is cut here; the gate does not show it

# The kind of a line, judged by itself. Any other line is text.
_LINE = re.compile(
    r"(?P<blank>\s*$)"
    r"|(?P<fence>[ \t]*(?P<fence_mark>`{3,}+(?!.*`)|~{3,})[ \t]*(?P<language>[\w+#.-]*))"
    r"|(?P<heading>[ \t]{0,3}#{1,6}[ \t]+)"
    r"|(?P<row>[ \t]*\|)"
    r"|(?P<rule>[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|_{3,}|={2,})$)"
    r"|(?P<item>[ \t]*(?P<marker>[-*+•]|\d{1,4}[.)])[ \t]+(?=\S))"
)
_MAYBE_FENCE = re.compile(r"`{1,2}$|~{1,2}$|`{3}|~{3}")  # the text of an item, which may become a code block
_BOLD_LINE = re.compile(r"\*\*[^*\n]{0,119}[^*\n.!?]\*\*:?|__[^_\n]{0,119}[^_\n.!?]__:?")
_ROW_RULE = re.compile(r"(?=[^-]*-)[|:\- \t]++")
_QUOTE = re.compile(r"^([ \t]*)(?:>[ \t]?)+")
_QUOTED_CODE = re.compile(r"^[ \t]*>[ \t]?")  # the code itself may begin with ">"
_NEXT_WORD = re.compile(r"\s*+[\"'“‘«(\[*_]*+\w*+")
_MAY_END = re.compile(r"[.!?…。！？｡\n]")
_DECIDED: Final = 12  # characters of a line that are enough to tell its kind
_NO_WORD = re.compile(r"[\W_]*")
_NUMBER_ALONE = re.compile(r"[*_\s]*\d{1,3}[.)][*_\s]*")  # "**1." of a bold heading is not a sentence

_ONE = r"\^?[1-9]\d{0,2}(?:\.[1-9]\d{0,3})?(?:†[^\]】\n]{0,20})?"
_LABEL = r"(?:(?:source|passage|unit|ref|doc)s?\s*+:?\s*+)?"
_LIST = rf"{_LABEL}{_ONE}(?:\s*+(?:[,;–—-]|and|&)\s*+{_LABEL}{_ONE})*"
_NUMBERS = re.compile(rf"(?:\[\s*+{_LIST}\s*+\]|【\s*+{_LIST}\s*+】)(?![(\w])", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*+(?:(?:[,;/&–—-]|and|or)\s*+)?")  # joins two brackets with numbers
_BARE_LIST = re.compile(r"\[\s*+\d++(?:\s*+[,;–—-]\s*+\d++)+\s*+\]")  # may also be a range or a list of values
_CLAUSE = r"(?:according to|based on|per|as (?:[a-z]+ )?(?:in|by|from|per|under))"  # leads to the numbers after it
_WRAP = re.compile(  # around numbers
    rf"(?<!\S)(?:(?P<paren>\()(?:(?:see|source|units?)(?: also)?|from|in|{_CLAUSE})?|(?P<mark>[*_]{{1,2}}))$",
    re.IGNORECASE,
)
_LEAD = re.compile(rf"(?:^(?:in|from)|(?:^|,? ){_CLAUSE}|(?:^|, )(?P<subject>as))$", re.IGNORECASE)
_LEAD_END = re.compile(r",|(?=[.;:!?)]|$)")
_VERB = re.compile(r" [a-z]+", re.IGNORECASE)  # "as [1.2] explains"
_PART = re.compile(r"(\d{1,3})(?:\.(\d{1,4}))?(?:†[^,;\]】]*)?\s*([–—-])?")
_INDEXED = re.compile(r"(?<![\w.])(?=[\w.]*[_.(])[^\W\d][\w.]{0,80}+(?:\(\))?(?<!\.)$")  # `a.b[0]` without backticks
_HALF = re.compile(r"[\[【][^\]】\n]{0,60}$|\Z")  # a bracket that may still become a number, or the end
_WIDEST: Final = 50  # maximum numbers of one range; a wider range is a mistake, and only its ends are used
_LOOK_AHEAD: Final = 64  # characters that may stand between the first bracket and its end


class MarkdownParser:
    """Turns text that arrives in pieces into statements."""

    def __init__(self) -> None:
        self._line = ""  # a line whose kind is not known yet, or that is parsed as a whole
        self._inline = False  # whether the rest of the line belongs to the open block
        self._block: Statement | None = None  # the shape of the open paragraph, item or code
        self._text = ""  # the text of that block that is not released yet
        self._fence = ""  # the mark that closes the open code block
        self._quoted = False  # whether the open code block is in a block quote
        self._blank = True  # the line before was blank
        self._tail = ""  # the last characters that arrived
        self._broken = False  # the line before ended in a hard break: two blanks
        self._items: list[int] = []  # indents of the list items around the current line
        self._last: list[Statement] = []  # the last statement of a block, until it is known whether code follows
        self._header: Statement | None = None  # of the open table; its `head` is empty until the line below it arrives

    def feed(self, delta: str) -> list[Statement]:
        """Return the statements that this piece of text completes."""
        found: list[Statement] = []
        for piece in re.findall(r"[^\n]*\n|[^\n]+", delta.replace("\r", "")):
            if self._inline:
                self._text += piece
                self._inline = not piece.endswith("\n")
            else:
                self._line += piece
                if piece.endswith("\n") or self._is_decided():
                    found += self._take(self._line)
            self._tail = (self._tail + piece)[-3:]
            if piece.endswith("\n"):
                self._broken = self._tail == "  \n"
        return found + self._sentences(ended=False)

    def finish(self) -> list[Statement]:
        """Return the statements that the end of the text completes."""
        found = self._take(f"{self._line}\n") if self._line else []
        return found + self._next_after() + self._end_block() + self._end_table()

    def _is_decided(self) -> bool:
        """Whether the current line is known to be text or an item, which need not wait for the line's end. After a
        table it may still become a row."""
        if self._fence or self._header:
            return False
        line = _QUOTE.sub(r"\1", self._line)
        kind, mark = _kind(line)
        if kind == "item" and mark and _MAYBE_FENCE.match(line, mark.end()):
            return False
        return len(line.lstrip()) >= _DECIDED and kind in ("text", "item")

    def _take(self, line: str) -> list[Statement]:
        """Begin, continue or end a block. An unfinished line has no line break. Returns the completed statements."""
        self._line = ""
        if self._fence:
            return self._take_code(line)
        line, self._quoted = _QUOTE.sub(r"\1", line), _QUOTE.match(line) is not None
        kind, mark = _kind(line.rstrip("\n"))
        if kind == "text" and self._header and "|" in line:
            kind = "row"
        fence = mark if kind == "fence" else None
        if kind == "item" and mark and (inner := _LINE.match(line.rstrip("\n"), mark.end())) and inner["fence"]:
            fence = inner
        found = [] if kind in ("row", "rule") else self._end_table()
        was_blank, self._blank = self._blank, kind == "blank"
        if kind != "text" or self._block is None or self._is_broken(line):
            found += self._end_block()
        found = self._keep_last(found) if kind == "blank" else self._next_after(found, code=fence is not None)
        if kind == "heading":
            found += self._keep_last(self._heading(line.rstrip()))
        elif kind == "row":
            found += self._row(line)
        elif kind == "fence":
            self._leave_items(line)
        elif kind == "item" or (kind == "text" and self._block is None):
            self._open(line, mark, was_blank)
        if fence:
            self._open_code(fence)
        elif kind in ("text", "item"):
            self._text += line[mark.end() :] if mark else line.lstrip(" \t")
            self._inline = not line.endswith("\n")
        return found

    def _keep_last(self, found: list[Statement]) -> list[Statement]:
        """Keep back the last of these statements until the next block begins."""
        self._last = found[-1:] or self._last
        return found[:-1]

    def _next_after(self, found: Sequence[Statement] = (), *, code: bool = False) -> list[Statement]:
        """Return the statements before the block that begins now, which may be code."""
        found, self._last = [*self._last, *found], []
        return [*found[:-1], *(replace(one, above_code=code) for one in found[-1:])]

    def _is_broken(self, line: str) -> bool:
        """Whether a hard break separates this line from the paragraph before it. Unit numbers belong to that
        paragraph, and the lines of an item stay together, since the first is often its title."""
        paragraph = self._block is not None and self._block.shape == "paragraph"
        return self._broken and paragraph and not line.lstrip().startswith(("[", "【", "("))

    def _take_code(self, line: str) -> list[Statement]:
        """Continue or end the open code block. One in a block quote ends with the quote."""
        code = _QUOTED_CODE.sub("", line) if self._quoted else line
        bare = _NUMBERS.sub("", code).strip()  # unit numbers may follow the closing fence
        if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
            return self._keep_last(self._end_block())
        if self._quoted and not _QUOTED_CODE.match(line):
            return self._keep_last(self._end_block()) + self._take(line)
        self._text += code
        return []

    def _open(self, line: str, item: re.Match[str] | None, was_blank: bool) -> None:
        """Open an item or a paragraph."""
        self._leave_items(line, was_blank or item is not None)
        self._block = Statement("", depth=len(self._items))
        if item:
            self._items.append(_indent(line))
            self._block = replace(self._block, shape="item", marker=item["marker"].replace(")", "."))

    def _open_code(self, fence: re.Match[str]) -> None:
        self._fence = fence["fence_mark"]
        self._block = Statement("", shape="code", depth=len(self._items), head=fence["language"])

    def _leave_items(self, line: str, was_blank: bool = True) -> None:
        """Leave the list items that do not contain this line, judged by its indent."""
        while self._items and self._items[-1] >= _indent(line) and was_blank:
            self._items.pop()

    def _heading(self, line: str) -> list[Statement]:
        self._items = []
        marks, _, rest = line.strip().partition(" ")
        text, named = _without_numbers(rest.rstrip("# \t"))
        return [Statement(text, named, "heading", level=len(marks))] if text else []

    def _row(self, line: str) -> list[Statement]:
        """Process a line of a table. Only the line of dashes below it marks a header."""
        header = self._header
        if header and _ROW_RULE.fullmatch(line.strip("\n")):
            self._header = replace(header, head=header.head or f"{header.row}\n{line.strip()}")
            return []
        row, named = _without_numbers(line.strip())
        if header and header.head:
            # A row with other columns is shown as it is judged: without the header.
            head = header.head if len(cells_of(header.row)) == len(cells_of(row)) else ""
            return [replace(header, text=row_text(header.row, row), named=named or header.named, row=row, head=head)]
        found = self._end_table()
        self._leave_items(line)
        self._header = Statement(row_text("", row), named, "row", depth=len(self._items), row=row)
        return found

    def _end_table(self) -> list[Statement]:
        """Close the table. A first row without a line of dashes below it is an ordinary row."""
        header, self._header = self._header, None
        return [header] if header and not header.head else []

    def _sentences(self, *, ended: bool) -> list[Statement]:
        """Return the statements of the open block that cannot change any more. An item is split only where unit numbers
        end a sentence: numbers at its end apply to the whole item."""
        found: list[Statement] = []
        at = 0  # end of the sentences that still wait for their numbers
        while self._block is not None and self._block.shape != "code":
            if not ended and not _MAY_END.search(self._text, at) and len(self._text) < MAX_STATEMENT_CHARS:
                break
            waiting = self._block.shape == "item" and not ended and len(self._text) < MAX_STATEMENT_CHARS
            if waiting and not _find_numbers(self._text):
                break
            stop = _first_end(self._text[at : at + MAX_STATEMENT_CHARS + _LOOK_AHEAD], ended)
            if stop is None and len(self._text) - at <= MAX_STATEMENT_CHARS:
                break
            stop = at + (stop or MAX_STATEMENT_CHARS)
            last = ended and stop >= len(self._text)
            waits = self._block.shape == "item" and not _find_numbers(self._text[:stop])
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
        text, named = _without_numbers(" ".join(raw.split()))
        if _NO_WORD.fullmatch(text):
            return []
        self._block = replace(block, opens=False, marker="")
        if block.shape == "paragraph" and block.opens and not named and _BOLD_LINE.fullmatch(text):
            block = replace(block, shape="heading", level=7)
        return [replace(block, text=text, named=named)]

    def _end_block(self) -> list[Statement]:
        block, found = self._block, []
        if block is not None and block.shape == "code":
            code = "\n".join(line.rstrip() for line in dedent(self._text).split("\n")).strip("\n")
            found = [replace(block, text=code)] if code else []
            self._blank = True
        elif self._text.strip():
            found = self._sentences(ended=True)
        self._block, self._text, self._inline, self._fence = None, "", False, ""
        return found


def _indent(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _kind(line: str) -> tuple[str, re.Match[str] | None]:
    mark = _LINE.match(line)
    return (mark.lastgroup or "text" if mark else "text"), mark


def _first_end(block: str, ended: bool) -> int | None:
    """Return the end of the first sentence with the numbers after it; None while it may still change."""
    half = _HALF.search(block)
    masked = _mask_numbers(block if ended or half is None else block[: half.start()])
    spans = sentences(masked)
    if len(spans) < 2:
        return len(block) if ended else None
    start = spans[1][0]
    open_code = "`" in INLINE_CODE.sub("", masked[:start])
    return None if not ended and (open_code or _NEXT_WORD.fullmatch(masked, start)) else start


def _find_numbers(text: str) -> list[re.Match[str]]:
    """Find the brackets with unit numbers, in order."""
    code = [match.span() for match in INLINE_CODE.finditer(text)]
    return [
        match
        for match in _NUMBERS.finditer(text)
        if not any(start <= match.start() < end for start, end in code)
        and not _INDEXED.search(text[max(0, match.start() - 80) : match.start()])
    ]


def _without_numbers(text: str) -> tuple[str, tuple[UnitRef, ...]]:
    """Return a text without its unit numbers, and the numbers in order without repeats. A phrase such as "according to
    [1.2]," goes with its numbers. Next to numbers such as `[1.2]`, a list such as `[1, 4]` is text."""
    found = _find_numbers(text)
    if any("." in one[0] for one in found):
        found = [one for one in found if not _BARE_LIST.fullmatch(one[0])]
    bare, at = "", 0
    for one in found:
        between = text[at : one.start()]
        bare += "" if at and _BETWEEN.fullmatch(between) else between.rstrip(" \t\n")
        at = one.end()
        wrap = _WRAP.search(bare)
        if wrap and text.startswith(close := ")" if wrap["paren"] else wrap["mark"], at):
            bare, at = bare[: wrap.start()].rstrip(), at + len(close)
        elif lead := _LEAD.search(bare, max(0, len(bare) - _LOOK_AHEAD)):
            verb = _VERB.match(text, at) if lead["subject"] else None
            end = _LEAD_END.match(text, verb.end() if verb else at)
            if end and (verb or not lead["subject"]):
                bare, at = bare[: lead.start()], end.end()
    bare = (bare + text[at:].rstrip(" \t\n")).strip()
    return bare, tuple(dict.fromkeys(ref for one in found for ref in _refs(one[0])))


def _mask_numbers(text: str) -> str:
    """Mask the numbers of a text, keeping its length, so that none separates a sentence from its full stop."""
    for found in _find_numbers(text):
        before_stop = re.match(r"\s*[.!?…。！？:]", text[found.end() :])
        mask = ("\u00a4" if before_stop else " ") * len(found[0])
        text = text[: found.start()] + mask + text[found.end() :]
    return text


def _refs(bracket: str) -> Iterator[UnitRef]:
    """Yield each number, and those inside a range of units of one passage or of passages."""
    first: UnitRef | None = None
    for part in _PART.finditer(bracket):
        ref = UnitRef(int(part[1]), int(part[2] or 0))
        if first and first.unit and first.passage == ref.passage and ref.unit <= first.unit + _WIDEST:
            yield from (UnitRef(ref.passage, unit) for unit in range(first.unit + 1, ref.unit))
        elif first and not first.unit and not ref.unit and ref.passage <= first.passage + _WIDEST:
            yield from map(UnitRef, range(first.passage + 1, ref.passage))
        yield ref
        first = ref if part[3] else None
