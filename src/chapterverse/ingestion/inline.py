"""Encodes emphasis, links and images in the text of a draft.

A reader writes marks into the text with functions such as `styled` and `picture`. They are delimited by
private-use characters, which `decode` removes from every source, so the text can be joined, cleaned and split as usual.
When the page is composed, `extract` removes the marks and returns their positions.
"""

import re
from typing import Final
from urllib.parse import quote, unquote

from chapterverse.book import Mark, MarkKind

_OPEN: Final = "\uf8f0"
_NEXT: Final = "\uf8f1"  # between the fields of a mark
_TEXT: Final = "\uf8f2"  # between the fields and the text
_CLOSE: Final = "\uf8f3"
_PRIVATE = re.compile(f"[{_OPEN}-{_CLOSE}]")
_SAFE = "/:#?&=@!$'()*+,;~"  # not quoted in addresses; white space and `|` are, because of tables
_TOKEN = re.compile(
    f"{_OPEN}(?P<kind>\\w*){_NEXT}(?P<target>[^{_OPEN}-{_CLOSE}]*){_NEXT}(?P<title>[^{_OPEN}-{_CLOSE}]*){_TEXT}|{_CLOSE}"
)
_POWER = re.compile(r"\s*+(?:[+−-]?\d+|[a-z])\s*+")
_GAP = re.compile(f"(?<!\\s)\\s++({_OPEN}image{_NEXT}[^{_TEXT}{_OPEN}]*+{_TEXT}{_CLOSE})(?=\\s|\\Z)")


def styled(kind: MarkKind, text: str, target: str = "") -> str:
    """The text with a mark around it; an empty text stays empty. A superscript number gets a caret, so that 2^80 does
    not become 280."""
    if kind == "sup" and _POWER.fullmatch(text):
        text = f"^{text.strip()}"
    return f"{_OPEN}{kind}{_NEXT}{_quoted(target)}{_NEXT}{_TEXT}{text}{_CLOSE}" if text.strip() else text


def formula(tex: str, block: bool = False) -> str:
    """A formula in dollar signs, in double dollar signs if it is a block."""
    signs = "$$" if block else "$"
    return styled("math", f"{signs}{tex}{signs}") if tex.strip() else ""


def picture(target: str, alternative: str = "") -> str:
    """An inline image. It adds no text."""
    return f"{_OPEN}image{_NEXT}{_quoted(target)}{_NEXT}{_quoted(alternative)}{_TEXT}{_CLOSE}"


def note(label: str) -> str:
    """A reference to a footnote. It adds no text."""
    return f"{_OPEN}footnote{_NEXT}{_quoted(label)}{_NEXT}{_TEXT}{_CLOSE}"


def close_gaps(text: str) -> str:
    """Remove the space before an image that is followed by a space or by the end of the text."""
    return _GAP.sub(r"\1", text) if _OPEN in text else text


def plain(text: str) -> str:
    """The text without its marks."""
    return _PRIVATE.sub("", _TOKEN.sub("", text)) if _PRIVATE.search(text) else text


def remove_private(text: str) -> str:
    """Remove the private characters from a source's text."""
    return _PRIVATE.sub("", text)


def extract(text: str) -> tuple[str, list[Mark]]:
    """The text without marks, and the marks. Unbalanced marks are dropped."""
    if not _PRIVATE.search(text):
        return text, []
    written: list[str] = []
    open_marks: list[tuple[MarkKind, int, str, str]] = []
    marks: list[Mark] = []
    length = at = 0
    for token in _TOKEN.finditer(text):
        between = _PRIVATE.sub("", text[at : token.start()])
        written.append(between)
        length += len(between)
        at = token.end()
        if token["kind"] is not None:
            kind: MarkKind = token["kind"]  # type: ignore[assignment]
            open_marks.append((kind, length, unquote(token["target"]), unquote(token["title"])))
        elif open_marks:
            kind, start, target, title = open_marks.pop()
            if start < length or kind in ("image", "footnote"):
                marks.append(Mark(kind, start, length, target, title))
    written.append(_PRIVATE.sub("", text[at:]))
    return "".join(written), sorted(marks, key=lambda mark: (mark.start, -mark.end))


def _quoted(text: str) -> str:
    return quote(" ".join(text.split()), safe=_SAFE, errors="replace")
