"""Collects text piece by piece, with marks that are opened and closed by tags.

Unbalanced marks are dropped; their text is kept.
"""

from dataclasses import dataclass, field

from chapterverse.book import MarkKind
from chapterverse.ingestion.inline import close_gaps, note, picture, styled

_MAX_OPEN = 50  # marks nested inside each other


@dataclass(slots=True)
class _Open:
    tag: str  # the closing tag
    kind: MarkKind | None
    target: str = ""
    pieces: list[str] = field(default_factory=list)


class Sentence:
    """Collects text and its marks. `bare`: code is a mark instead of in backticks, for headings."""

    def __init__(self, bare: bool = False) -> None:
        self._open: list[_Open] = [_Open("", None)]
        self._bare = bare

    def say(self, text: str) -> None:
        """Add text."""
        if text:
            self._open[-1].pieces.append(text)

    def unsay(self) -> str:
        """Remove and return the last piece of the innermost mark."""
        return self._open[-1].pieces.pop() if self._open[-1].pieces else ""

    def code(self, text: str) -> None:
        """Add inline code."""
        self.say(self._code(text))

    def image(self, target: str, alternative: str) -> None:
        """Add an image."""
        self.say(picture(target, alternative))

    def note(self, label: str) -> None:
        """Add a reference to a footnote."""
        self.say(note(label))

    def open(self, tag: str, kind: MarkKind, target: str = "") -> None:
        """Open a mark, which `close` closes by its tag."""
        if len(self._open) < _MAX_OPEN:
            self._open.append(_Open(tag, kind, target))

    def close(self, tag: str) -> None:
        """Close the innermost mark with this tag, and those inside of it."""
        if any(mark.tag == tag for mark in self._open[1:]):
            while self._open[-1].tag != tag:
                self._drop()
            top = self._open.pop()
            self.say(self._marked(top))

    def take(self) -> str:
        """Return the text so far and start again. Open marks are dropped."""
        while len(self._open) > 1:
            self._drop()
        text = "".join(self._open[0].pieces)
        self._open[0].pieces.clear()
        return close_gaps(text)

    def _drop(self) -> None:
        self.say("".join(self._open.pop().pieces))

    def _marked(self, mark: _Open) -> str:
        text = "".join(mark.pieces)
        if mark.kind is None or not text.strip():
            return text
        inner = text.strip()
        before, _, after = text.partition(inner)
        if mark.kind == "code":
            return f"{before}{self._code(inner)}{after}"
        if mark.kind == "link" and not mark.target:
            return text
        return f"{before}{styled(mark.kind, inner, mark.target)}{after}"

    def _code(self, text: str) -> str:
        if self._bare:
            return styled("code", text)
        return f"`` {text} ``" if "`" in text else f"`{text}`"
