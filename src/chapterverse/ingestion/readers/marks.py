"""Marker lines, which pass structure from `dialects.py` to the Markdown reader.

They are written into the text, and the parser returns them as tokens. A mark is a separate line that begins with a
private character, which `unmarked` removes from every source.
"""

from dataclasses import dataclass
from typing import Literal, cast

SENTINEL = "\uf8f5"

MarkKind = Literal["admonition", "plain", "end", "label"]

ADMONITIONS = {
    "note": "Note",
    "notes": "Note",
    "info": "Info",
    "information": "Info",
    "tip": "Tip",
    "hint": "Hint",
    "success": "Success",
    "question": "Question",
    "example": "Example",
    "quote": "Quote",
    "abstract": "Summary",
    "summary": "Summary",
    "important": "Important",
    "warning": "Warning",
    "caution": "Caution",
    "attention": "Attention",
    "danger": "Danger",
    "error": "Error",
    "failure": "Failure",
    "bug": "Bug",
    "seealso": "See also",
    "todo": "To do",
    "tldr": "Summary",
    "check": "Success",
    "done": "Success",
    "faq": "Question",
    "help": "Question",
    "fail": "Failure",
    "missing": "Failure",
    "cite": "Quote",
    "secondary": "Note",
    "experimental": "Experimental",
    "restricted": "Restricted",
}
_VERSIONS = {  # their label ends with a version, the first word after the name
    "version-added": "Added in version",
    "version-changed": "Changed in version",
    "version-deprecated": "Deprecated since version",
    "version-removed": "Removed in version",
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
ADMONITIONS |= _VERSIONS


@dataclass(frozen=True, slots=True)
class LineMark:
    """The start or end of an admonition or a plain block, or a label."""

    kind: MarkKind
    label: str = ""
    begins: str = ""  # the first words of an admonition's text
    name: str = ""  # of an admonition's kind: "note"

    def __str__(self) -> str:
        words = (" ".join(text.split()) for text in (self.label, self.begins, self.name))
        return SENTINEL + SENTINEL.join((self.kind, *words))


def opening(name: str, title: str = "", begins: str = "") -> LineMark:
    """The mark that opens an admonition, or a plain block if the name is unknown. A title replaces the label; `begins`:
    the first words of the text."""
    name, title = name.lower(), title.strip()
    if name in _VERSIONS:
        version, _, begins = (title or begins).strip().partition(" ")
        return LineMark("admonition", f"{_VERSIONS[name]} {version}".rstrip(), begins, name)
    if name not in ADMONITIONS:
        return LineMark("plain", title or begins)
    return LineMark("admonition", title or ADMONITIONS[name], begins, name)


def parse(line: str) -> LineMark:
    """The mark that is written in a line."""
    kind, label, begins, name = line.strip().removeprefix(SENTINEL).split(SENTINEL)
    return LineMark(cast(MarkKind, kind), label, begins, name)


def unmarked(text: str) -> str:
    """Remove the private character of marks from a text."""
    return text.replace(SENTINEL, "")
