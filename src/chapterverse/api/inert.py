"""Escapes text of the book as Markdown without active content: no images, no HTML, no links.

Clients of `/v1` and MCP render Markdown. An image of the book would be loaded from any host, and a link of the book
would look like one of ours. Emphasis, lists, tables and code are kept. Citation markers and our own links are added
here, too, because they must not merge with the text around them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import quote

from chapterverse.evidence.citations import markers_of
from chapterverse.models import AnswerSummary, NearSection

_FENCE: Final = re.compile(r"(`{3,}+|~{3,}+)[^`\r\n]*")  # only at the start of a line: never inside a list
_CODE: Final = re.compile(r"(?<!`)(`{1,20}+)([^`\n]{1,4000}+)\1(?!`)")
# What renderers turn into links: an address with a scheme, www., an e-mail address.
_ADDRESS: Final = re.compile(
    r"(?<![a-z0-9])(?:[a-z][a-z0-9+.-]{1,20}://|www\.|(?:mailto|xmpp|tel|data|javascript|vbscript|file):)[^\s`]{1,2000}"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}",
    re.IGNORECASE,
)
_AFTER_ADDRESS: Final = ".,;:!?'\"*_~)"  # ends a sentence, not an address
_BEGINS: Final = re.compile(r"[\[\]<`]|!(?=\[)|~(?=~~)|(?<=~~)~|\\(?=[!-/:-@\[-`{-~])|&(?=#?\w{1,32};)")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_MARKER: Final = re.compile("\ue000([0-9]{1,4})\ue001(?=([(\\[:])?)")


class Inert:
    """Escapes a streamed answer: `feed` each piece, then `flush`.

    The end of a piece that may become a code fence or an address is held back until the next piece."""

    def __init__(self) -> None:
        self._fence = ""  # the code fence that is open
        self._held = ""
        self._last = ""  # the last character that was returned
        self._fresh = True  # whether the next character begins a line

    def feed(self, text: str) -> str:
        """Add a piece. Return the escaped text that later pieces cannot change."""
        *lines, rest = (self._held + text).split("\n")
        done = "".join(self._line(f"{line}\n") for line in lines)
        self._held = rest
        if not self._fence and not (self._fresh and rest[:1] in ("`", "~")):
            place = _settled(rest)
            self._held = rest[place:]
            done += self._line(rest[:place])
        return done

    def flush(self) -> str:
        """Return the text that was held back, escaped."""
        rest, self._held = self._held, ""
        return self._line(rest)

    def _line(self, line: str) -> str:
        """Escape a line, or a part of one that does not end in a newline."""
        fresh, self._fresh = self._fresh, line.endswith("\n") if line else self._fresh
        bare = line.rstrip("\r\n")
        if self._fence:
            indent = len(bare) - len(bare.lstrip(" "))
            closing = bare.strip(" \t")
            if fresh and indent < 4 and closing.startswith(self._fence) and not closing.strip(self._fence[0]):
                self._fence = ""
            return line
        if fresh and (begin := _FENCE.fullmatch(bare)):
            self._fence = begin[1]
            return line
        shown = _joined([self._last, inert_line(line)])[len(self._last) :]
        self._last = shown[-1:] or self._last
        return shown


def _settled(text: str) -> int:
    """Return the length of the final part of an unfinished line: up to its last blank or to code that is not closed."""
    place = max(text.rfind(blank) for blank in " \t") + 1
    closed = 0
    for code in _CODE.finditer(text):
        closed = code.end()
        if code.start() < place < closed:
            place = code.start()
            break
    opened = text.find("`", closed)
    place = place if opened < 0 else min(place, opened)
    return len(text[:place].rstrip("\\"))  # a backslash belongs to what follows it


def inert(text: str) -> str:
    """Escape a whole text."""
    escaping = Inert()
    return escaping.feed(text) + escaping.flush()


def inert_line(text: str) -> str:
    """Escape a text without code fences, such as a title or a quote on one line."""
    done: list[str] = []
    place = 0
    for code in _CODE.finditer(text):
        done += [_prose(text[place : code.start()]), code[0]]
        place = code.end()
    return _joined([*done, _prose(text[place:])])


def _joined(pieces: Iterable[str]) -> str:
    """Join the pieces, with a blank between code and a backtick or backslash before it, which would change its
    meaning."""
    text = ""
    for piece in pieces:
        text += f" {piece}" if text.endswith(("`", "\\")) and piece.startswith("`") else piece
    return text


def link_to(url: str) -> str:
    """Return an http or https address in a form that renderers turn into a link. Other addresses are escaped."""
    if not url.lower().startswith(("http://", "https://")):
        return inert_line(url)
    return quote(url, safe="/:?#@!$&'*+,;=%~-._")  # encodes characters that end an address, such as blanks and brackets


def marked(text: str, cites: Sequence[int]) -> str:
    """Replace the markers of a statement with private characters that `written` finds later."""
    pieces: list[str] = []
    last = 0
    for start, end, number in markers_of(text, cites):
        pieces += _unmarked(text[last:start]), f"\ue000{number}\ue001"
        last = end
    return "".join((*pieces, _unmarked(text[last:])))


def written(text: str, form: str) -> str:
    """Write the citation markers in the given form, for example `[^{}]`. Text after a marker cannot turn it into a
    link."""
    return written_with_places(text, form)[0]


def written_with_places(text: str, form: str) -> tuple[str, list[tuple[int, int, int]]]:
    """Like `written`; also returns the start, end and number of each marker in the result."""
    done = ""
    places: list[tuple[int, int, int]] = []
    last = 0
    for found in _MARKER.finditer(text):
        done += text[last : found.start()]
        marker = form.format(found[1])
        places.append((len(done), len(done) + len(marker), int(found[1])))
        done += marker + ("\\" if found[2] else "")
        last = found.end()
    return done + text[last:], places


def unescaped(text: str) -> str:
    """Undo the escaping, for an answer that a client sends back."""
    return _ESCAPED.sub(r"\1", text)


def advice_of(
    done: AnswerSummary, address: Callable[[NearSection], str] = lambda section: section.source_url
) -> list[str]:
    """The paragraphs after a refusal: what was searched for, and the nearest sections as a list of links to their
    addresses."""
    first = inert((done.advice or "").partition("\n")[0])
    sections = [f"- {inert_line(one.place)}: {link_to(address(one))}{one.quoted(inert_line)}" for one in done.nearest]
    return [first, "\n".join(sections)] if sections else [first]


def _unmarked(text: str) -> str:
    return text.replace("\ue000", "").replace("\ue001", "")


def _prose(text: str) -> str:
    """Escape text outside of code: addresses become code; characters that begin active content are escaped."""
    done: list[str] = []
    place = 0
    for address in _ADDRESS.finditer(text):
        shown = address[0].rstrip(_AFTER_ADDRESS)
        done += [_BEGINS.sub(_escape, text[place : address.start()]), f"`{shown}`"]
        place = address.start() + len(shown)
    return _joined([*done, _BEGINS.sub(_escape, text[place:])])


def _escape(found: "re.Match[str]") -> str:
    return "&amp;" if found[0] == "&" else f"\\{found[0]}"
