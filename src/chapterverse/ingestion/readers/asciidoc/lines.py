"""The lines of AsciiDoc blocks: which kind of block starts at a line, and which lines belong to a list item."""

import re
from collections.abc import Sequence
from typing import Final, Literal

_MAX_MACRO: Final = 5_000  # characters of a line that is a macro

METADATA = re.compile(r"\[(?:[\w{,.#\"'%].*|\[(?:[^\W\d][\w:.-]*+(?:,[ \t]*+.+)?)?\])?\]")
TITLE = re.compile(r"\.(\.?[^ \t.].*)")
DELIMITER = re.compile(r"-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|~{4,}|--|[|,:!]={3,}|`{3}[\w+#-]*")
_MACRO = re.compile(r"(?=.*\]\Z)([a-z_][\w-]*+)::(|\S|\S.*?\S)\[(.*)\]")
_BULLET = re.compile(r"(?<![ \t])[ \t]*+(-|\*{1,5}|•)[ \t]++(\S.*)")
_NUMBER = re.compile(r"(?<![ \t])[ \t]*+(\.{1,5}|\d{1,9}\.|[a-zA-Z]\.|[IVXivx]{1,9}\))[ \t]++(\S.*)")
_TERM = re.compile(r"(?!//[^/])[ \t]*+([^ \t].*?)(:::?:?|;;)(?:[ \t]++([\s\S]*))?")
_CALLOUT = re.compile(r"<(\d{1,9}|\.)>[ \t]++(.*)")
ENTRY = re.compile(r":!?\w[\w-]*+!?:(?:[ \t]++.*)?")
LITERAL = re.compile(r"[ \t]+\S")


class Lines:
    """Lines and the current position."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0

    @property
    def done(self) -> bool:
        """Whether all lines are read."""
        return self.at >= len(self.lines)

    @property
    def line(self) -> str:
        """The next line."""
        return self.lines[self.at]

    def skip_blank(self) -> None:
        """Skip blank lines and comments."""
        while not self.done and (not self.line or (self.line.startswith("//") and not self.line.startswith("///"))):
            if self.line.startswith("//-"):  # the usual separator of two lists
                return
            self.at += 1

    def delimited(self, end: str) -> list[str]:
        """The lines up to the end of the block."""
        begin = self.at + 1
        stop = begin
        while stop < len(self.lines) and self.lines[stop] != end:
            stop += 1
        self.at = stop + 1
        return list(self.lines[begin:stop])

    def verbatim(self) -> list[str]:
        """The lines up to the next blank line, unchanged."""
        begin = self.at
        while not self.done and self.line and self.line != "+":
            self.at += 1
        return list(self.lines[begin : self.at])

    def paragraph(self, in_list: bool) -> list[str]:
        """The lines up to the next blank line or the next block, without comments."""
        begin = self.at
        self.at += 1
        while not self.done and self.line:
            line = self.line
            if DELIMITER.fullmatch(line) or (line.startswith("[") and METADATA.fullmatch(line)):
                break
            if line == "+" or (in_list and list_kind(line)):
                break
            self.at += 1
        taken = self.lines[begin : self.at]
        return [line for line in taken if not line.startswith("//") or line.startswith("///")]


def macro_of(line: str) -> re.Match[str] | None:
    """The block macro of a line: `name::target[attributes]`; None if it is not one."""
    return _MACRO.fullmatch(line) if line.endswith("]") and len(line) < _MAX_MACRO else None


def list_kind(line: str) -> str:
    """The kind of list whose item starts at a line; empty if none does."""
    if not line:
        return ""
    if _BULLET.fullmatch(line):
        return "bullet"
    if _NUMBER.fullmatch(line):
        return "number"
    if line.startswith("<") and _CALLOUT.fullmatch(line):
        return "callout"
    if ("::" in line or ";;" in line) and _TERM.fullmatch(line):
        return "term"
    return ""


def marker_of(line: str, kind: str) -> str:
    """The marker that all items of a list share."""
    if kind == "bullet":
        found = _BULLET.fullmatch(line)
        return found[1] if found else ""
    if kind == "number":
        found = _NUMBER.fullmatch(line)
        mark = found[1] if found else ""
        if mark.startswith("."):
            return mark
        return "1." if mark[:1].isdigit() else "I)" if mark.endswith(")") else "a." if mark.islower() else "A."
    if kind == "term":
        found = _TERM.fullmatch(line)
        return found[2] if found else ""
    return "<>" if _CALLOUT.fullmatch(line) else ""


def item_of(line: str, kind: str) -> tuple[str | None, str]:
    """The term (None in other lists) and the text on the first line of an item."""
    if kind == "term":
        found = _TERM.fullmatch(line)
        assert found, "asked only for lines that are items"
        return found[1], found[3] or ""
    found = {"bullet": _BULLET, "number": _NUMBER, "callout": _CALLOUT}[kind].fullmatch(line)
    assert found, "asked only for lines that are items"
    return None, found[2]


def take_item(run: Lines, kind: str, marker: str, text: str) -> list[str]:
    """All lines of an item: its text, nested lists, and blocks attached with `+`."""
    return _ItemLines(run, kind, marker, text).take()


class _ItemLines:
    """Collects the lines of an item."""

    def __init__(self, run: Lines, kind: str, marker: str, text: str) -> None:
        self._run, self._kind, self._marker = run, kind, marker
        self._lines = [text] if text else []
        self._has_text = bool(text) or kind != "term"
        self._nested = False
        self._attached: Literal["no", "next", "frozen"] = "no"
        self._detached = -1

    def take(self) -> list[str]:
        """The lines of the item."""
        while not self._run.done:
            line = self._run.line
            if self._is_sibling(line):
                break
            above = self._lines[-1] if self._lines else None
            if above == "+" and self._continues(line):
                continue
            if not self._goes_on(line, above):
                break
        if self._detached >= 0:
            del self._lines[self._detached]
        while self._lines and (not self._lines[-1] or self._lines[-1] == "+"):
            self._lines.pop()
        return self._lines

    def _is_sibling(self, line: str) -> bool:
        return list_kind(line) == self._kind and marker_of(line, self._kind) == self._marker

    def _continues(self, line: str) -> bool:
        """Handle the line after a `+`, which attaches the next block. Returns whether it is a second `+`, now read."""
        if self._attached == "no":
            self._attached, self._has_text = "next", True
            if not self._nested:
                self._lines[-1] = ""
        if line != "+":
            return False
        if self._attached != "frozen":
            self._attached = "frozen"
            self._lines.append(line)
        self._run.at += 1
        return True

    def _goes_on(self, line: str, above: str | None) -> bool:
        run = self._run
        if DELIMITER.fullmatch(line):
            if self._attached != "next":
                return False
            begin = run.at
            run.delimited("```" if line.startswith("`") else line)
            self._lines += run.lines[begin : run.at]
            self._attached = "no"
            return True
        if self._kind == "term" and self._attached != "next" and line.startswith("[") and METADATA.fullmatch(line):
            return self._metadata()
        if self._attached == "next" and line:
            self._attach(line)
            return True
        if above == "":
            return self._after_blank(line)
        self._has_text = self._has_text or bool(line)
        self._nested = self._nested or bool(list_kind(line))
        self._add(line)
        return True

    def _metadata(self) -> bool:
        """Read attributes below a term if a nested list follows; otherwise they belong to the block after the list."""
        at = self._run.at
        while at < len(self._run.lines):
            line = self._run.lines[at]
            if line and not METADATA.fullmatch(line):
                break
            at += 1
        if at >= len(self._run.lines) or not list_kind(self._run.lines[at]) or self._is_sibling(self._run.lines[at]):
            return False
        self._lines += self._run.lines[self._run.at : at]
        self._run.at = at
        return True

    def _attach(self, line: str) -> None:
        if LITERAL.match(line) and not list_kind(line):
            self._literal()
        elif TITLE.fullmatch(line) or METADATA.fullmatch(line) or ENTRY.fullmatch(line):
            self._add(line)
            return  # the block follows
        else:
            self._nested = self._nested or bool(list_kind(line))
            self._add(line)
        self._attached = "no"

    def _after_blank(self, line: str) -> bool:  # noqa: PLR0911 one way out for each kind
        run = self._run
        while not line:
            run.at += 1
            if run.done:
                return False
            line = run.line
        if self._is_sibling(line):
            return False
        if line == "+":
            self._detached = len(self._lines)
            self._add(line)
            return True
        if not self._has_text:  # a term without text so far
            if not self._nested and self._lines:
                self._lines.pop()
            self._has_text = True
            self._add(line)
            return True
        if list_kind(line):
            self._nested = True
            self._add(line)
            return True
        if LITERAL.match(line):
            self._literal()
            return True
        return False

    def _literal(self) -> None:
        while not self._run.done and self._run.line and self._run.line != "+":
            if self._kind == "term" and self._is_sibling(self._run.line):
                return
            self._add(self._run.line)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._run.at += 1
