"""Emphasis, links and images inside a reader's text, until the page is laid out.

A reader writes marks into the text itself (`styled`, `picture`), between private characters that no source can hold
(`decode` removes them). So the text can be joined, cleaned and split like any other. When the page is laid out,
`extract` takes the marks out again and gives their places.
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
_SAFE = "/:#?&=@!$'()*+,;~"  # of an address; quoted are white space and the bar, which tables need
_TOKEN = re.compile(
    f"{_OPEN}(?P<kind>\\w*){_NEXT}(?P<target>[^{_OPEN}-{_CLOSE}]*){_NEXT}(?P<title>[^{_OPEN}-{_CLOSE}]*){_TEXT}|{_CLOSE}"
)
_POWER = re.compile(r"\s*+(?:[+−-]?\d+|[a-z])\s*+")
_GAP = re.compile(f"(?<!\\s)\\s++({_OPEN}image{_NEXT}[^{_TEXT}{_OPEN}]*+{_TEXT}{_CLOSE})(?=\\s|\\Z)")


def styled(kind: MarkKind, text: str, target: str = "") -> str:
    """The text with a mark around it; an empty text stays empty. A power is written with a caret, because 2 to the
    power of 80 is not 280."""
    if kind == "sup" and _POWER.fullmatch(text):
        text = f"^{text.strip()}"
    return f"{_OPEN}{kind}{_NEXT}{_quoted(target)}{_NEXT}{_TEXT}{text}{_CLOSE}" if text.strip() else text


def formula(tex: str, block: bool = False) -> str:
    """A formula between dollar signs; as a block of its own between two of them."""
    signs = "$$" if block else "$"
    return styled("math", f"{signs}{tex}{signs}") if tex.strip() else ""


def picture(target: str, alternative: str = "") -> str:
    """An image inside a line. It adds no words to the text."""
    return f"{_OPEN}image{_NEXT}{_quoted(target)}{_NEXT}{_quoted(alternative)}{_TEXT}{_CLOSE}"


def note(label: str) -> str:
    """A reference to a footnote. It adds no words to the text."""
    return f"{_OPEN}footnote{_NEXT}{_quoted(label)}{_NEXT}{_TEXT}{_CLOSE}"


def close_gaps(text: str) -> str:
    """The text without the space before an image that is followed by another space or by nothing."""
    return _GAP.sub(r"\1", text) if _OPEN in text else text


def plain(text: str) -> str:
    """The text without its marks."""
    return _PRIVATE.sub("", _TOKEN.sub("", text)) if _PRIVATE.search(text) else text


def remove_private(text: str) -> str:
    """A source's text without characters that could pass for a mark."""
    return _PRIVATE.sub("", text)


def extract(text: str) -> tuple[str, list[Mark]]:
    """The bare text and the marks in it. A mark that is never closed, or never opened, is dropped."""
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
