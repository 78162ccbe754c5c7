"""AsciiDoc: the blocks of a page, line by line.

Owns a compact reading of the language as Asciidoctor writes it: what a book uses, not what a processor must offer.
Never includes a file, evaluates a condition or runs a macro: `include::` and its kin are left out.
"""

import re
from dataclasses import dataclass
from textwrap import dedent

from chapterverse.ingestion.document import Document, Draft, Part
from chapterverse.ingestion.readers import asciidoctext
from chapterverse.ingestion.readers.cleaning import decode
from chapterverse.ingestion.readers.manuscript import Manuscript

_MAX_DEPTH = 20  # of blocks inside blocks; deeper ones are left out

_ATTRIBUTE = re.compile(r":(!?[\w-]+!?):(?:\s+(.*))?")
_HEADING = re.compile(r"(={1,6}|#{1,6})\s+(\S.*?)(?:\s+\1)?")
_ANCHOR = re.compile(r"\[\[([\w:.-]+)(?:,[^\]]*)?\]\]|\[#([\w:.-]+)[^\]]*\]")
_STYLE = re.compile(r"\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,:!]={3,}|`{3,})([\w+#-]*)")
_BREAK = re.compile(r"'{3,}|<<<|(?:- ?){3}|(?:\* ?){3}")
_MACRO = re.compile(r"([a-z][\w-]*)::(\S*?)\[(.*)\]")
_ITEM = re.compile(r"\s*(\*{1,6}|-|\.{1,6}|\d+\.|<(?:\d+|\.)>)\s+(\S.*)")
_TERM = re.compile(r"\s*(\S.*?)(:{2,4}|;;)(?:\s+(.*))?")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):\s+(.*)", re.DOTALL)
_UNREAD = re.compile(r"//(?!/)|(?:if|endif|include)\w*::")
_KINDS = ("NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION")


@dataclass(slots=True)
class _Pending:
    """What the lines before a block say about it."""

    style: str = ""
    anchor: str = ""


def read(document: Document) -> list[Draft]:
    """The one page of an AsciiDoc file."""
    return [Draft("", _Reading().read(decode(document.data)))]


class _Reading:
    def __init__(self) -> None:
        self._to = Manuscript()
        self._attributes: dict[str, str] = {}
        self._lines: list[str] = []
        self._place = 0
        self._lists: list[str] = []  # markers of the lists that are open here
        self._depth = 0

    def read(self, text: str) -> tuple[Part, ...]:
        self._lines = text.split("\n")
        self._skip_header()
        self._blocks()
        return self._to.finish()

    def _skip_header(self) -> None:
        """The title stays a heading; the author's and the revision's lines under it go."""
        while self._place < len(self._lines) and not self._lines[self._place].startswith(("= ", "# ")):
            line = self._lines[self._place].rstrip()
            if line and not _ATTRIBUTE.fullmatch(line) and not line.startswith("//"):
                self._place = 0
                return
            self._set_attribute(line)
            self._place += 1
        if self._place == len(self._lines):
            self._place = 0
            return
        self._to.heading(self._inline(self._lines[self._place][2:], plain=True), 1)
        self._place += 1
        while self._place < len(self._lines) and self._lines[self._place].strip():
            self._set_attribute(self._lines[self._place].rstrip())
            self._place += 1

    def _set_attribute(self, line: str) -> bool:
        if not (entry := _ATTRIBUTE.fullmatch(line)):
            return False
        name = entry[1].strip("!").lower()
        if "!" in entry[1]:
            self._attributes.pop(name, None)
        else:
            self._attributes[name] = self._inline(entry[2] or "")
        return True

    def _inline(self, text: str, plain: bool = False) -> str:
        return asciidoctext.spoken(text, self._attributes, plain=plain)

    def _blocks(self) -> None:
        pending, attached = _Pending(), False
        while self._place < len(self._lines):
            line = self._lines[self._place].rstrip()
            if line == "+" and self._lists:
                attached, self._place = True, self._place + 1
            elif not line or _UNREAD.match(line) or self._set_attribute(line) or self._about_block(line, pending):
                self._place += 1
            else:
                if not attached and not self._is_item(line):
                    self._close_lists()
                self._block(line, pending)
                pending, attached = _Pending(), False
        self._close_lists()

    def _about_block(self, line: str, pending: _Pending) -> bool:
        if anchor := _ANCHOR.fullmatch(line):
            pending.anchor = anchor[1] or anchor[2]
        elif style := _STYLE.fullmatch(line):
            pending.style = style[1]
            if named := re.search(r"(?:^|,)\s*#([\w:.-]+)", style[1]):
                pending.anchor = named[1]
        elif title := _BLOCK_TITLE.fullmatch(line):
            if not self._lists:
                self._to.paragraph(self._inline(title[1]))
        else:
            return False
        return True

    def _block(self, line: str, pending: _Pending) -> None:
        heading = _HEADING.fullmatch(line)
        if heading and not (self._depth or self._lists):
            self._place += 1
            self._to.heading(self._inline(heading[2], plain=True), len(heading[1]), pending.anchor)
        elif _BREAK.fullmatch(line):
            self._place += 1
        elif delimiter := _DELIMITER.fullmatch(line):
            self._delimited(delimiter[1], delimiter[2], pending.style)
        elif macro := _MACRO.fullmatch(line):
            self._place += 1
            if macro[1] == "image":
                self._to.paragraph(self._inline(macro[3].partition(",")[0].strip('"')))
        elif self._is_item(line):
            self._item(line)
        elif line[0] in " \t":
            self._to.code(dedent("\n".join(self._take_paragraph())))
        else:
            self._paragraph(pending.style)

    def _delimited(self, delimiter: str, language: str, style: str) -> None:
        body = self._take_delimited(delimiter)
        mark = delimiter[0]
        if mark in "-.`" and delimiter != "--":
            self._to.code("\n".join(body), language or _language(style))
        elif mark in "|,:!":
            self._to.table(asciidoctext.table(body, style, mark, self._inline))
        elif mark not in "+/" and self._depth < _MAX_DEPTH:
            self._nested(body, style, quoted=mark == "_")

    def _take_delimited(self, delimiter: str) -> list[str]:
        begin = self._place + 1
        end = begin
        while end < len(self._lines) and self._lines[end].rstrip() != delimiter:
            end += 1
        self._place = end + 1
        return self._lines[begin:end]

    def _nested(self, body: list[str], style: str, quoted: bool) -> None:
        kind = style.partition(",")[0].partition("%")[0].strip()
        if kind in ("source", "listing", "literal"):
            self._to.code("\n".join(body), _language(style))
            return
        outside = self._lines, self._place, self._lists
        self._lines, self._place, self._lists = body, 0, []
        self._depth += 1
        if kind in _KINDS:
            self._to.open_admonition(kind.capitalize())
        elif quoted:
            self._to.open_quote()
        self._blocks()
        if kind in _KINDS:
            self._to.close_admonition()
        elif quoted:
            self._to.close_quote()
        self._depth -= 1
        self._lines, self._place, self._lists = outside

    def _is_item(self, line: str) -> bool:
        if _ITEM.fullmatch(line):
            return True
        term = _TERM.fullmatch(line) if "::" in line or ";;" in line else None
        return bool(term) and not _MACRO.fullmatch(line)

    def _item(self, line: str) -> None:
        if item := _ITEM.fullmatch(line):
            marker, lead, text = item[1], "", item[2]
            marker = "1." if marker[0].isdigit() else "<>" if marker[0] == "<" else marker
        else:
            term = _TERM.fullmatch(line)
            assert term, "asked only for lines that are items"
            marker, lead, text = term[2], self._inline(term[1]), term[3] or ""
        self._place += 1
        if marker not in self._lists:
            self._to.open_list(ordered=marker[0] in ".1<")
            self._lists.append(marker)
        while self._lists[-1] != marker:
            self._to.close_list()
            self._lists.pop()
        self._to.item(lead)
        self._to.paragraph(self._inline(" ".join([text, *self._take_paragraph()])))

    def _close_lists(self) -> None:
        while self._lists:
            self._to.close_list()
            self._lists.pop()

    def _take_paragraph(self) -> list[str]:
        """The lines up to the next blank line or the next block."""
        begin = self._place
        while self._place < len(self._lines):
            line = self._lines[self._place].rstrip()
            starts = _DELIMITER.fullmatch(line) or _STYLE.fullmatch(line) or line == "+"
            if not line or starts or (self._lists and self._is_item(line)):
                break
            self._place += 1
        return [line for line in self._lines[begin : self._place] if not _UNREAD.match(line)]

    def _paragraph(self, style: str) -> None:
        begin = self._place
        lines = self._take_paragraph()
        if self._place == begin:  # a line that only looks like the begin of something
            lines, self._place = [self._lines[begin]], begin + 1
        kind = style.partition(",")[0].partition("%")[0].strip()
        text = "\n".join(lines)
        admonition = _ADMONITION.match(text)
        if kind in ("source", "listing", "literal"):
            self._to.code(text, _language(style))
        elif kind in _KINDS or admonition:
            self._to.open_admonition((admonition[1] if admonition else kind).capitalize())
            self._to.paragraph(self._inline(admonition[2] if admonition else text))
            self._to.close_admonition()
        elif kind in ("quote", "verse"):
            self._to.open_quote()
            self._to.paragraph(self._inline(text))
            self._to.close_quote()
        else:
            self._to.paragraph(self._inline(text))


def _language(style: str) -> str:
    """Of `[source,python]` or `[,python]`."""
    kind, _, rest = style.partition(",")
    given = rest.partition(",")[0].strip().strip('"')
    return given if kind.partition("%")[0].strip() in ("source", "") and "=" not in given else ""
