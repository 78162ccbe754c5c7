"""Text with marks, as a reader meets it: piece by piece, with tags that open and close.

A mark that never closes, or that closes what was never opened, leaves its text without the mark.
"""

from dataclasses import dataclass, field

from chapterverse.book import MarkKind
from chapterverse.ingestion.inline import close_gaps, note, picture, styled

_MAX_OPEN = 50  # marks inside each other


@dataclass(slots=True)
class _Open:
    tag: str  # what closes it
    kind: MarkKind | None
    target: str = ""
    said: list[str] = field(default_factory=list)


class Sentence:
    """Collects text and its marks. `bare` writes code as a mark and not in backticks, as headings need it."""

    def __init__(self, bare: bool = False) -> None:
        self._open: list[_Open] = [_Open("", None)]
        self._bare = bare

    def say(self, text: str) -> None:
        """Adds text."""
        if text:
            self._open[-1].said.append(text)

    def unsay(self) -> str:
        """Takes back what was said last in the innermost mark."""
        return self._open[-1].said.pop() if self._open[-1].said else ""

    def code(self, text: str) -> None:
        """Adds inline code."""
        self.say(self._code(text))

    def image(self, target: str, alternative: str) -> None:
        """Adds an image."""
        self.say(picture(target, alternative))

    def note(self, label: str) -> None:
        """Adds a reference to a footnote."""
        self.say(note(label))

    def open(self, tag: str, kind: MarkKind, target: str = "") -> None:
        """A mark begins; `tag` is what will close it."""
        if len(self._open) < _MAX_OPEN:
            self._open.append(_Open(tag, kind, target))

    def close(self, tag: str) -> None:
        """The innermost mark of this tag ends, and with it those inside that are still open."""
        if any(one.tag == tag for one in self._open[1:]):
            while self._open[-1].tag != tag:
                self._drop()
            top = self._open.pop()
            self.say(self._marked(top))

    def take(self) -> str:
        """The text so far. Marks that are open end without a trace."""
        while len(self._open) > 1:
            self._drop()
        text = "".join(self._open[0].said)
        self._open[0].said.clear()
        return close_gaps(text)

    def _drop(self) -> None:
        self.say("".join(self._open.pop().said))

    def _marked(self, mark: _Open) -> str:
        text = "".join(mark.said)
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
