"""HTML inside Markdown: its text and its structure, not its tags.

Owns the reading of tags, piece by piece as Markdown hands them over. Never shows what a browser would hide: comments,
scripts, styles, elements that are hidden by attribute or style. Not a reader of HTML pages.
"""

import html
import re

from chapterverse.ingestion.readers.hiding import hides
from chapterverse.ingestion.readers.manuscript import Manuscript

_TAG = re.compile(  # bounded and possessive, so that no broken tag costs more than its length
    r"<!--.*?(?:-->|\Z)|<[!?][^<>]*+>"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][\w.:-]*+)(?P<rest>(?:[^<>\"']++|\"[^\"]{0,5000}+\"|'[^']{0,5000}+'){0,100}+)>",
    re.DOTALL,
)
_ATTRIBUTE = r"""(?<![\w-]){}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_ALT = re.compile(_ATTRIBUTE.format("alt"), re.IGNORECASE)
_ID = re.compile(_ATTRIBUTE.format("(?:id|name)"), re.IGNORECASE)
_HIDDEN = re.compile(r"""(?<![\w-])(?:hidden(?=[\s=/]|$)|aria-hidden\s*=\s*["'{]*true)""", re.IGNORECASE)
_STYLE = re.compile(r"""(?<![\w-])style\s*=\s*(?:"([^"]*)"|'([^']*)'|\{([^<>]*?)\}\})""", re.IGNORECASE)
_INVISIBLE = {"script", "style", "template", "noscript", "head", "svg", "iframe", "object"}
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_INLINE = {
    "a",
    "abbr",
    "b",
    "bdi",
    "bdo",
    "big",
    "cite",
    "data",
    "del",
    "dfn",
    "em",
    "font",
    "i",
    "ins",
    "kbd",
    "label",
}
_INLINE |= {"mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}


def is_hidden(attributes: str) -> bool:
    """Whether a tag's attributes keep it from being seen."""
    style = _STYLE.search(attributes)
    return bool(_HIDDEN.search(attributes)) or (style is not None and hides(next(filter(None, style.groups()), "")))


class RawHtml:
    """Follows the HTML of one page and writes what can be seen of it."""

    def __init__(self, manuscript: Manuscript) -> None:
        self._to = manuscript
        self._hidden: list[str] = []  # names of the open elements from the outermost hidden one inward
        self._text: list[str] = []
        self._pre = False
        self._heading: tuple[int, str] | None = None

    @property
    def hiding(self) -> bool:
        """Whether this place of the page is inside a hidden element."""
        return bool(self._hidden)

    def block(self, source: str) -> None:
        """Reads a block of HTML."""
        place = 0
        for tag in _TAG.finditer(source):
            self._write(source[place : tag.start()])
            place = tag.end()
            if tag["name"]:
                self._tag(tag["name"].lower(), tag["rest"], closing=bool(tag["end"]))
        self._write(source[place:])
        self._flush()

    def inline(self, source: str) -> str:
        """What an inline tag adds to the sentence around it: next to nothing."""
        if not (tag := _TAG.fullmatch(source)) or not tag["name"]:
            return ""
        name, closing = tag["name"].lower(), bool(tag["end"])
        if self._follow_hidden(name, tag["rest"], closing) or closing:
            return ""
        return " " if name == "br" else _attribute(_ALT, tag["rest"]) if name == "img" else ""

    def end_sentence(self) -> None:
        """Elements hidden inside a sentence end with it."""
        self._hidden.clear()

    def _tag(self, name: str, attributes: str, closing: bool) -> None:
        if self._follow_hidden(name, attributes, closing):
            return
        if name == "pre":
            self._flush()
            self._pre = not closing
        elif self._pre:
            self._text.append("\n" if name == "br" else "")
        elif name == "code":
            self._text.append("`")
        elif name == "img":
            self._text.append(_attribute(_ALT, attributes))
        elif name not in _INLINE:
            self._flush()
            self._structure(name, attributes, closing)

    def _structure(self, name: str, attributes: str, closing: bool) -> None:
        match name, closing:
            case (("h1" | "h2" | "h3" | "h4" | "h5" | "h6"), _):
                self._heading = None if closing else (int(name[1]), _attribute(_ID, attributes))
            case (("ul" | "ol" | "dl"), False):
                self._to.open_list(ordered=name == "ol")
            case (("ul" | "ol" | "dl"), True):
                self._to.close_list()
            case (("li" | "dt"), False):
                self._to.item()
            case "blockquote", _:
                self._to.close_quote() if closing else self._to.open_quote()
            case "table", _:
                self._to.close_table() if closing else self._to.open_table()
            case "tr", False:
                self._to.row()
            case (("td" | "th"), False):
                self._to.cell()

    def _follow_hidden(self, name: str, attributes: str, closing: bool) -> bool:
        """Keeps track of hidden elements; true when the tag is part of one."""
        if closing:
            if name in self._hidden:
                while self._hidden.pop() != name:
                    pass
                return True
            return self.hiding
        if not self.hiding and name not in _INVISIBLE and not is_hidden(attributes):
            return False
        if name not in _VOID and not attributes.endswith("/"):
            self._flush()
            self._hidden.append(name)
        return True

    def _write(self, text: str) -> None:
        if text and not self.hiding:
            self._text.append(html.unescape(text))

    def _flush(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if self._pre:
            self._to.code(text)
        elif self._heading:
            self._to.heading(text, *self._heading)
        else:
            self._to.paragraph(text)


def _attribute(pattern: re.Pattern[str], attributes: str) -> str:
    found = pattern.search(attributes)
    return html.unescape(next((value for value in found.groups() if value), "")) if found else ""
