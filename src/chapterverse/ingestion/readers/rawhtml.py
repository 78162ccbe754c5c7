"""Reads HTML inside of Markdown.

The Markdown parser passes tags piece by piece. Comments, scripts, styles and hidden elements are left out.
"""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Final

from chapterverse.book import MarkKind
from chapterverse.ingestion.document import NO_ANCHOR
from chapterverse.ingestion.limits import require_hidden_depth
from chapterverse.ingestion.readers.hidden_text import hides
from chapterverse.ingestion.readers.page_builder import PageBuilder
from chapterverse.ingestion.readers.sentence import Sentence

_TAG = re.compile(  # bounded and possessive, so that the time is linear for broken tags
    r"<!--.*?(?:-->|\Z)|<[!?][^<>]*+>"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][\w.:-]*+)(?P<rest>(?:[^<>\"']++|\"[^\"]{0,5000}+\"|'[^']{0,5000}+'){0,100}+)>",
    re.DOTALL,
)
_ATTRIBUTE = r"""(?<![\w-]){}\s*=\s*(?:"([^"]*)"|'([^']*)'|\{{["'`]([^"'`{{}}]*)["'`]\}}|([^\s"'>{{]+))"""
_ALT = re.compile(_ATTRIBUTE.format("(?:alt|aria-label)"), re.IGNORECASE)
_SRC = re.compile(_ATTRIBUTE.format("src"), re.IGNORECASE)
_HREF = re.compile(_ATTRIBUTE.format("(?:href|to)"), re.IGNORECASE)
_ID = re.compile(_ATTRIBUTE.format("(?:id|name)"), re.IGNORECASE)
_ROWS = re.compile(_ATTRIBUTE.format("rowspan"), re.IGNORECASE)
_COLUMNS = re.compile(_ATTRIBUTE.format("colspan"), re.IGNORECASE)
_TEXT = re.compile(_ATTRIBUTE.format("text"), re.IGNORECASE)
_START = re.compile(_ATTRIBUTE.format("start"), re.IGNORECASE)
_CONDITION = re.compile(r"(?<![\w-])v-(?:else-)?if\s*=\s*\"\s*\$frontmatter\.(\w+)\s*([!=])==?\s*'([^'\"]*)'\s*\"")
_VALUE = r"""\"[^\"]*\"|'[^']*'|\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}|[^\s\"'>{]+"""  # also of JSX
_ANY_ATTRIBUTE = re.compile(rf"([\w:@.-]++)(?:\s*+=\s*+({_VALUE}))?")
_INVISIBLE = {"script", "style", "template", "noscript", "head", "svg", "iframe", "object", "video", "audio", "select"}
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_INLINE = {
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip
MARKS: Final[dict[str, MarkKind]] = {
    "a": "link",
    "b": "strong",
    "strong": "strong",
    "em": "emphasis",
    "i": "emphasis",
    "dfn": "emphasis",
    "var": "emphasis",
    "cite": "emphasis",
    "sub": "sub",
    "sup": "sup",
    "code": "code",
    "kbd": "code",
    "samp": "code",
    "tt": "code",
}


def is_hidden(attributes: str) -> bool:
    """Whether a tag's attributes hide it."""
    for name, value in _ANY_ATTRIBUTE.findall(attributes):
        bare = value.strip("\"'{}` ").lower()
        match name.lower():
            case "hidden" if bare != "until-found" and (value[:1] != "{" or bare != "false"):
                return True
            case "aria-hidden" if bare == "true":
                return True
            case "style" if hides(value):
                return True
    return False


class RawHtml:
    """Tracks the HTML of one page and writes its visible content."""

    def __init__(self, to: PageBuilder, values: Mapping[str, str] | None = None) -> None:
        """`values`: the front matter, for VitePress's `v-if`."""
        self._to = to
        self._values = values
        self._hidden: list[str] = []  # names of the open elements, from the outermost hidden one
        self._said = Sentence()
        self._pre: list[str] | None = None  # text of the open <pre>
        self._language = ""
        self._heading: tuple[int, str] | None = None
        self._terms: list[str] | None = None  # terms whose description follows; None after it
        self._definitions: list[bool] = []  # for each open definition list, whether a field is open
        self._images: list[tuple[str, str]] = []  # images of this piece of HTML, while it has no text
        self._figure = False
        self._captions = False  # whether the current text is the caption of a table or an image

    @property
    def hiding(self) -> bool:
        """Whether the current position is inside of a hidden element."""
        return bool(self._hidden)

    def block(self, source: str) -> None:
        """Read a block of HTML."""
        place = 0
        tags = list(_TAG.finditer(source))
        controls = _controls(tags)
        for tag in tags:
            self._write(source[place : tag.start()])
            place = tag.end()
            if tag["name"]:
                self._tag(tag["name"].lower(), tag["rest"], bool(tag["end"]), is_control=tag.start() in controls)
        self._write(source[place:])
        self._flush()
        self._pre = None

    def inline(self, source: str, to: Sentence) -> None:
        """Read an inline tag."""
        if not (tag := _TAG.fullmatch(source)) or not tag["name"]:
            return
        name, rest, closing = tag["name"].lower(), tag["rest"], bool(tag["end"])
        if self._follow_hidden(name, rest, closing):
            return
        if name == "br":
            to.say(" ")
        elif name == "img":
            to.image(_attribute(_SRC, rest), _attribute(_ALT, rest))
        elif name in MARKS:
            _mark(to, name, rest, closing)
        elif name == "badge":
            to.say(_attribute(_TEXT, rest))
        elif name not in _INLINE:
            to.say(" ")

    def end_sentence(self) -> None:
        """Close the hidden inline elements of a sentence."""
        self._hidden.clear()

    def _tag(self, name: str, attributes: str, closing: bool, is_control: bool) -> None:
        if self._follow_hidden(name, attributes, closing, is_control):
            return
        if name == "pre":
            self._flush()
            self._pre = None if closing else []
            self._language = ""
        elif self._pre is not None:
            self._inside_pre(name, attributes)
        elif name == "img":
            self._images.append((_attribute(_SRC, attributes), _attribute(_ALT, attributes)))
        elif name in MARKS:
            _mark(self._said, name, attributes, closing)
        elif name == "badge":
            self._said.say(_attribute(_TEXT, attributes))
        elif name not in _INLINE:
            self._flush()
            self._structure(name, attributes, closing)

    def _inside_pre(self, name: str, attributes: str) -> None:
        assert self._pre is not None
        if name == "br":
            self._pre.append("\n")
        elif name == "code" and (found := re.search(r"language-([\w+-]+)", attributes)):
            self._language = found[1]

    def _structure(self, name: str, attributes: str, closing: bool) -> None:
        match name, closing:
            case (("h1" | "h2" | "h3" | "h4" | "h5" | "h6"), _):
                self._heading = None if closing else (int(name[1]), _attribute(_ID, attributes) or NO_ANCHOR)
            case (("ul" | "ol"), False):
                self._to.open_list(ordered=name == "ol", start=_number(_START, attributes))
            case (("ul" | "ol"), True):
                self._to.close_list()
            case "li", False:
                self._to.item()
            case (("dt" | "dd" | "dl"), _):
                self._definition(name, closing)
            case (("figure" | "figcaption" | "picture"), _):
                self._figure = not closing if name == "figure" else self._figure
                self._captions = name == "figcaption" and not closing
            case "blockquote", _:
                self._to.close_quote() if closing else self._to.open_quote()
            case _:
                self._table(name, attributes, closing)

    def _definition(self, name: str, closing: bool) -> None:
        """Read a tag of a definition list. A field has all descriptions of its terms."""
        lists = self._definitions
        if name == "dl" and not closing:
            lists.append(False)
        elif name == "dt" and not closing:
            self._end_field()
            self._terms = self._terms or []
        elif name == "dd" and not closing:
            if self._terms is not None or not any(lists[-1:]):
                self._to.open_field(", ".join(self._terms or []))
                lists[-1:] = [True]
            self._terms = None
        elif name == "dl":
            if self._terms:
                self._to.field(", ".join(self._terms))
            self._terms = None
            self._end_field()
            del lists[-1:]

    def _end_field(self) -> None:
        if any(self._definitions[-1:]):
            self._to.close_field()
            self._definitions[-1] = False

    def _table(self, name: str, attributes: str, closing: bool) -> None:
        if name == "table":
            self._to.close_table() if closing else self._to.open_table()
        elif name == "caption":
            self._captions = not closing
        elif name == "tr" and not closing:
            self._to.row()
        elif name in ("td", "th") and not closing:
            self._to.cell(_number(_ROWS, attributes), _number(_COLUMNS, attributes))

    def _follow_hidden(self, name: str, attributes: str, closing: bool, is_control: bool = False) -> bool:
        """Track hidden elements and controls outside of sentences; returns whether the tag is part of one."""
        if closing:
            if name in self._hidden:
                while self._hidden.pop() != name:
                    pass
                return True
            return self.hiding
        hides_itself = is_control or name in _INVISIBLE or is_hidden(attributes) or not self._holds(attributes)
        if not self.hiding and not hides_itself:
            return False
        if name not in _VOID and not attributes.endswith("/"):
            if not self.hiding:
                self._flush()
            self._hidden.append(name)
            require_hidden_depth(len(self._hidden))
        return True

    def _holds(self, attributes: str) -> bool:
        """Whether the condition of an element is true. A condition that cannot be evaluated counts as true."""
        found = _CONDITION.search(attributes) if self._values is not None and "v-" in attributes else None
        if not found or self._values is None:
            return True
        return (self._values.get(found[1], "") == found[3]) == (found[2] == "=")

    def _write(self, text: str) -> None:
        if not text or self.hiding:
            return
        if self._pre is not None:
            self._pre.append(html.unescape(text))
            return
        if self._images and text.strip() and not self._figure:
            self._inline_images()
        self._said.say(html.unescape(text))

    def _inline_images(self) -> None:
        for target, alternative in self._images:
            self._said.image(target, alternative)
        self._images.clear()

    def _flush(self) -> None:
        if self._pre is not None:
            self._to.code("".join(self._pre), self._language)
            self._pre.clear()
            return
        text = self._said.take()
        if self._figure and text.strip() and self._images:
            target, alternative = self._images.pop()
            self._to.image(alternative, target, text)
            text = ""
        if self._images and text.strip():
            self._inline_images()
            text += self._said.take()
        elif not self._figure:
            for target, alternative in self._images:
                self._to.image(alternative, target)
            self._images.clear()
        if self._heading:
            self._to.heading(text.replace("`", ""), *self._heading)
        elif self._terms is not None:
            self._terms += [text] if text.strip() else []
        elif self._captions and text.strip():
            self._to.caption(text)
        else:
            self._to.paragraph(text)


def _controls(tags: Sequence[re.Match[str]]) -> set[int]:
    """The places of the buttons that end in the same block. The end of others may not be read, so they hide nothing."""
    controls: set[int] = set()
    ends = False  # whether the next tag of a button is its end
    for tag in reversed(tags):
        if (tag["name"] or "").lower() == "button":
            if ends and not tag["end"]:
                controls.add(tag.start())
            ends = bool(tag["end"])
    return controls


def _mark(to: Sentence, name: str, attributes: str, closing: bool) -> None:
    if closing:
        to.close(name)
    else:
        to.open(name, MARKS[name], _attribute(_HREF, attributes) if name == "a" else "")


def _number(pattern: re.Pattern[str], attributes: str) -> int:
    value = _attribute(pattern, attributes)
    return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else 1


def _attribute(pattern: re.Pattern[str], attributes: str) -> str:
    found = pattern.search(attributes)
    return html.unescape(next((value for value in found.groups() if value), "")) if found else ""
