"""Converts inline AsciiDoc (formatting, links, references, images) to marks.

The substitutions and their order are those of Asciidoctor, because each depends on the result of the one before.
"""

import html
import re
from collections.abc import Callable
from functools import partial
from typing import Final

from chapterverse.book import MarkKind
from chapterverse.ingestion.inline import formula, picture, plain, styled
from chapterverse.ingestion.readers.asciidoc.blocks import attributes_of
from chapterverse.ingestion.readers.asciidoc.source import Attributes
from chapterverse.ingestion.readers.page_builder import PageBuilder
from chapterverse.ingestion.readers.rawhtml import RawHtml

_MAX_CHARS: Final = 30_000  # a longer text is not formatted
_QUOTED: Final = "{0,300}?"  # length of text in quotation marks; short, because it is searched from every backtick
_SPAN: Final = "{0,1000}?"  # length of formatted text; bounded because of unclosed marks

# Private characters as placeholders for text that later steps must not change.
_KEPT_OPEN, _KEPT_CLOSE, _TICK, _FIRST, _LAST = "\ue0f0", "\ue0f1", "\ue0f2", "\ue0f0", "\ue0f2"
_PRIVATE = re.compile(f"[{_FIRST}-{_LAST}]")
_KEPT = re.compile(f"{_KEPT_OPEN}(\\d+){_KEPT_CLOSE}")

_ALL_STEPS: Final = "specialchars,attributes,quotes,macros"
_STEPS: Final = {
    "a": "attributes",
    "c": "specialchars",
    "m": "macros",
    "n": _ALL_STEPS,
    "normal": _ALL_STEPS,
    "q": "quotes",
    "specialcharacters": "specialchars",
    "v": "specialchars",
    "verbatim": "specialchars",
}

_MARKUP = re.compile(r"[\[{*_`#^~<>+\\(&:\"'@.-]|//")
_ROLE = r"(?:\[[^\[\]]{1,200}\])?"
_PASS = re.compile(
    rf"{_ROLE}(?P<esc>\\{{0,2}})(?P<mark>\+\+\+?|\$\$)(?P<text>.{_SPAN})(?P=mark)"
    rf"|(?P<off>\\?)pass:(?P<steps>[a-z]*(?:,[a-z-]+)*)\[(?P<macro>|.{_SPAN}[^\\])\]"
    rf"|(?<!\w)(?P<no>\\?)(?:stem|latexmath|asciimath):[a-z,]*\[(?P<math>.{_SPAN}[^\\])\]",
    re.DOTALL,
)
_PLUS = re.compile(rf"(^|[^\w;:\\])(?:\[[^\[\]]{{1,200}}\])?(\\?)\+(\S|\S.{_SPAN}\S)\+(?!\w)", re.DOTALL)
_ESCAPED_PLUS = re.compile(rf"\\\+(\S|\S.{_SPAN}\S)\+(?!\w)", re.DOTALL)


def _unbound(mark: str) -> re.Pattern[str]:
    return re.compile(rf"(\\?){_ROLE}{mark}{mark}(.{_SPAN.replace('0', '1', 1)}){mark}{mark}", re.DOTALL)


def _bound(
    open_mark: str, close_mark: str, before: str = r"\w;:}<>&", after: str = r"\w", span: str = _SPAN
) -> re.Pattern[str]:
    return re.compile(rf"(^|[^{before}]){_ROLE}{open_mark}(\S|\S.{span}\S){close_mark}(?![{after}])", re.DOTALL)


_QUOTES: tuple[tuple[re.Pattern[str], str, bool], ...] = (  # pattern, kind, whether group 1 is the character before
    (_unbound(r"\*"), "strong", False),
    (_bound(r"\*", r"\*"), "strong", True),
    (_bound('"`', '`"'), "“”", True),
    (_bound("'`", "`'", before=r"\w;:`}<>&"), "‘’", True),
    (_unbound("`"), "code", False),
    (_bound("`", "`", before=r"\w;:\"'`}<>&", after=r"\w\"'`"), "code", True),
    (_unbound("_"), "emphasis", False),
    (_bound("_", "_"), "emphasis", True),
    (_unbound("#"), "", False),
    (_bound("#", "#"), "", True),
    (re.compile(r"(\\?)(?:\[[^\[\]]{1,200}\])?\^(\S+?)\^"), "sup", False),
    (re.compile(r"(\\?)(?:\[[^\[\]]{1,200}\])?~(\S+?)~"), "sub", False),
)
_OLD_QUOTES: tuple[tuple[re.Pattern[str], str, bool], ...] = (  # the syntax before Asciidoctor 1.5
    *_QUOTES[:2],
    (_bound("``", "''", span=_QUOTED), "“”", True),
    (_bound("'", "'"), "emphasis", True),
    (_bound("`", "'", span=_QUOTED), "‘’", True),
    (_unbound(r"\+"), "code", False),
    (_bound(r"\+", r"\+"), "code", True),
    *_QUOTES[6:],
)
_OLD_LITERAL = re.compile(r"(^|[^\w;:\"'`}])(\\?)`([^`\s]|[^`\s][^`]{0,3000}?\S)`(?![\w\"'`])", re.DOTALL)
_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"(?<!\\)\(C\)", "©"),
        (r"(?<!\\)\(R\)", "®"),
        (r"(?<!\\)\(TM\)", "™"),
        (r"(^| )--( |$)", r"\1—\2"),
        (r"(?<=\w)--(?=\w)", "—"),
        (r"(?<!\\)\.\.\.", "…"),
        (r"(?<!\\)->", "→"),
        (r"(?<!\\)=>", "⇒"),
        (r"(?<!\\)<-", "←"),
        (r"(?<!\\)<=", "⇐"),
        (r"\\(?=\((?:C|R|TM)\)|\.\.\.|->|=>|<-|<=|--)", ""),
    )
)
_INSIDE = r"((?:[^\]\\]|\\.){0,1000}+)"  # text inside of brackets
_IMAGE = re.compile(rf"(\\?)(image|icon):(?!:)([^\s\[\]:][^\[\]\n]{{0,500}}?|[^\s\[\]:])?\[{_INSIDE}\]", re.DOTALL)
_KEYS = re.compile(rf"(\\?)(?:kbd|btn):\[{_INSIDE}\]", re.DOTALL)
_MENU = re.compile(rf"(\\?)menu:(\w[^\[\n]{{0,80}})\[{_INSIDE}\]", re.DOTALL)
_INDEX = re.compile(
    rf"(?<!\()(\\?)(?:\(\(\((.{_SPAN})\)\)\)|\(\(([^()].{_SPAN})\)\)(?!\))|indexterm2?:\[{_INSIDE}\])", re.DOTALL
)
_NAMED_URL = re.compile(
    rf"(^|link:|[\s<>()\[\];\"'“‘\uf8f0-\uf8f3\ue0f0-\ue0f2])(\\?)((?:https?|file|ftps?|irc)://[^\s\[\]\uf8f0-\uf8f3]+)\[{_INSIDE}\]",
    re.DOTALL,
)
_URL = re.compile(
    r"(^|link:|[\s<>()\[\];\"'“‘\uf8f2\uf8f3\ue0f2])(\\?)((?:https?|file|ftps?|irc)://[^\s\[\]<>\uf8f0-\uf8f3\ue0f0-\ue0f2]*"
    r"[^\s,.?!\[\]<>)\uf8f0-\uf8f3\ue0f0-\ue0f2;:'\"])(>?)"
)
_LINK = re.compile(rf"(\\?)(link|mailto):([^\s\[\]:][^\[\]\n]{{0,2000}}?|[^\s\[\]:])\[{_INSIDE}\]", re.DOTALL)
_EMAIL = re.compile(
    r"([\\>:/\w@.%+\uf8f1-\uf8f2-])?\b([A-Za-z0-9_][\w.%+-]{0,100}@[A-Za-z0-9][A-Za-z0-9_.-]{0,100}\.[a-zA-Z]{2,5})\b"
)
_FOOTNOTE = re.compile(rf"(\\?)footnote(?:ref)?:([\w-]*)\[{_INSIDE}\]", re.DOTALL)
_ANCHOR = re.compile(
    r"(\\?)(?:\[\[(?:[^\W\d]|:)[\w:.-]*+(?:, {0,20}[^\[\]]{1,500}+)?\]\]|anchor:[\w:.-]{1,300}+\[[^\]]{0,500}+\])"
)
_BIBLIOGRAPHY = re.compile(r"\[\[\[([\w:][\w:.-]*+)(?:, {0,20}([^\[\]]{1,500}+))?\]\]\]")
_REFERENCE = re.compile(
    rf"(\\?)(?:<<([\w#/.:{{\"\ue0f0](?:(?!<<|>>).){{0,500}}?)>>|xref:([\w\"#/.:{{][^\[\]\n]{{0,500}}?|[\w#])\[{_INSIDE}\])",
    re.DOTALL,
)
_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z]+\d{0,2}|#\d{2,6}|#x[\da-fA-F]{2,5});")
_MACRO_NAME = re.compile(r"(?:^|(?<=\W))(linkgit):([\w.-]+)\[(\d*)\]")
_DASH = re.compile(r"\s?—\s?")
_FORBIDDEN = re.compile(r"[^ \w.-]+")

Resolve = Callable[[str], tuple[str, str]]  # target of a reference → its address and title
Address = Callable[[str, str], str]  # kind of target ("link" or "image") and target → address


class Inline:
    """Converts the text of blocks to text with marks."""

    def __init__(self, attributes: Attributes, resolve: Resolve, address: Address) -> None:
        self._attributes = attributes
        self._resolve = resolve
        self._address = address
        self._kept: list[str] = []
        self._notes: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """Convert the text of a paragraph, a title or a cell."""
        if len(text) > _MAX_CHARS or not _MARKUP.search(text):
            return text
        self._kept = []
        text = self._protect(_PRIVATE.sub("", text))
        text = self._format(text)
        text = self._attributes.filled(text)
        for pattern, replacement in _REPLACEMENTS:
            text = pattern.sub(replacement, text)
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
        text = self._macros(text)
        text = re.sub(r"(?m)[ \t]\+$", "", text)
        text = re.sub(r"\\(?=\{|<<|\[\[|https?:)", "", text)
        return self._restored(text)

    def bare(self, text: str) -> str:
        """The text without marks and backticks, for anchors."""
        return plain(self(text)).replace("`", "")

    def attributes_and_quotes(self, code: str, steps: frozenset[str]) -> str:
        """Apply the substitutions in `steps` to code."""
        if len(code) > 10 * _MAX_CHARS:
            return code
        self._kept = []
        if "macros" in steps:
            code = self._protect(code)
        if "quotes" in steps:
            code = self._format(code)
        if "attributes" in steps:
            code = self._attributes.filled(code)
        if "macros" in steps:
            code = self._macros(code)
        return plain(self._restored(code, tick="")) if steps & {"macros", "quotes"} else code

    def _keep(self, text: str) -> str:
        self._kept.append(text)
        return f"{_KEPT_OPEN}{len(self._kept) - 1}{_KEPT_CLOSE}"

    def _restored(self, text: str, tick: str = "`") -> str:
        for _ in range(3):
            if _KEPT_OPEN not in text:
                break
            text = _KEPT.sub(lambda found: self._kept[int(found[1])], text)
        return _PRIVATE.sub(lambda found: tick if found[0] == _TICK else "", text)

    def _protect(self, text: str) -> str:
        def passed(found: re.Match[str]) -> str:
            if found["esc"] or found["off"] or found["no"]:
                return found[0].replace("\\", "", 1)
            if found["math"] is not None:
                return self._keep(formula(found["math"].replace("\\]", "]")))
            if found["macro"] is not None:
                inner = found["macro"].replace("\\]", "]")
                return self._keep(self._passed(inner, steps_of(found["steps"])))
            return self._keep(self._raw(found["text"]) if found["mark"] == "+++" else found["text"])

        def literal(found: re.Match[str]) -> str:
            if found[2]:
                return found[0].replace("\\", "", 1)
            return found[1] + self._keep(found[3])

        if "++" in text or "$$" in text or ":" in text:
            text = _PASS.sub(passed, text)
        if "compat-mode" in self._attributes:
            return _OLD_LITERAL.sub(self._literal, text) if "`" in text else text
        if "+" in text:
            text = _PLUS.sub(literal, text)
            text = _ESCAPED_PLUS.sub(lambda found: found[0][1:], text)
        return text

    def _literal(self, found: re.Match[str]) -> str:
        if found[2]:
            return found[0].replace("\\", "", 1)
        return f"{found[1]}{_TICK}{self._keep(found[3])}{_TICK}"

    def _passed(self, text: str, steps: frozenset[str]) -> str:
        """The text of a `pass:` macro. It is raw HTML unless its special characters are escaped."""
        if "attributes" in steps:
            text = self._attributes.filled(text)
        if "specialchars" not in steps:
            text = self._raw(text)
        if "quotes" in steps:
            text = self._format(text)
        return self._macros(text) if "macros" in steps else text

    def _raw(self, text: str) -> str:
        """The visible text of raw HTML; a space for a line break alone."""
        if "<" not in text:
            return html.unescape(text)
        page = PageBuilder()
        RawHtml(page).block(text)
        return " ".join(plain(part.text) for part in page.finish()) or (" " if "<br" in text else "")

    def _format(self, text: str) -> str:
        old = "compat-mode" in self._attributes
        for pattern, kind, bound in _OLD_QUOTES if old else _QUOTES:
            if old or _SIGNS[kind] in text:
                text = pattern.sub(partial(self._formatted, kind, bound), text)
        return text

    def _formatted(self, kind: str, bound: bool, found: re.Match[str]) -> str:
        before = found[1] if bound else ""
        if (found[1] or "").startswith("\\"):
            return found[0][1:]
        inner = found[2]
        if kind == "code":
            return f"{before}{_TICK}{inner}{_TICK}" if "`" not in inner and _TICK not in inner else f"{before}{inner}"
        if kind in ("“”", "‘’"):
            return f"{before}{kind[0]}{inner}{kind[1]}"
        return before + (styled(_MARKS[kind], inner) if kind else inner)

    def _macros(self, text: str) -> str:
        if "[" in text and ":" in text:
            text = _KEYS.sub(lambda found: found[0][1:] if found[1] else found[2], text)
            text = _MENU.sub(lambda found: found[0][1:] if found[1] else _menu(found[2], found[3]), text)
            text = _IMAGE.sub(self._image, text)
            text = _MACRO_NAME.sub(self._manual, text)
        if "((" in text or "indexterm" in text:
            text = _INDEX.sub(_indexed, text)
        if "://" in text:
            text = _NAMED_URL.sub(self._named_url, text)
            text = _URL.sub(self._url, text)
        if "link:" in text or "mailto:" in text:
            text = _LINK.sub(self._link, text)
        if "@" in text:
            text = _EMAIL.sub(_mailed, text)
        if "footnote" in text:
            text = _FOOTNOTE.sub(self._footnote, text)
        if "[[" in text or "anchor:" in text:
            text = _BIBLIOGRAPHY.sub(lambda found: f"[{found[2] or found[1]}]", text)
            text = _ANCHOR.sub(lambda found: found[0][1:] if found[1] else "", text)
        if "<<" in text or "xref:" in text:
            text = _REFERENCE.sub(self._reference, text)
        return text

    def _image(self, found: re.Match[str]) -> str:
        if found[1] or not found[3]:
            return found[0].removeprefix("\\")
        given = attributes_of(found[4])
        alternative = given[0][1] if given and not given[0][0] else ""
        if found[2] == "icon":
            return f"[{dict(given).get('alt') or found[3]}]"
        return picture(self._address("image", found[3]), plain(alternative))

    def _manual(self, found: re.Match[str]) -> str:
        return styled(
            "link", f"{found[2]}({found[3]})" if found[3] else found[2], self._address("link", f"{found[2]}.html")
        )

    def _named_url(self, found: re.Match[str]) -> str:
        before = "" if found[1] == "link:" else found[1]
        if found[2]:
            return f"{before}{found[3]}[{found[4]}]"
        if before == "<":
            before = ""
        return f"{before}{styled('link', _text_of(found[4]) or self._shown(found[3]), self._restored(found[3]))}"

    def _url(self, found: re.Match[str]) -> str:
        before, url, after = found[1], found[3], found[4]
        if found[2]:
            return f"{before}{url}{after}"
        if before == "<" and after:
            before = after = ""
        return f"{before if before != 'link:' else ''}{styled('link', self._shown(url), url)}{after}"

    def _shown(self, url: str) -> str:
        return self._keep(re.sub(r"^\w+://", "", url) if "hide-uri-scheme" in self._attributes else url)

    def _link(self, found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        target = self._restored(found[3])
        address = f"mailto:{target}" if found[2] == "mailto" else self._address("link", target)
        return styled("link", _text_of(found[4]) or self._keep(target), address)

    def _footnote(self, found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        text, name = found[3].replace("\\]", "]"), found[2]
        if found[0].startswith("footnoteref:"):
            name, _, text = text.partition(",")
        if text.strip() and name not in self._notes:
            number = str(len(self._notes) + 1)
            self._notes[name or f"\0{number}"] = number
            return " " + styled("footnote", f"({' '.join(text.split())})", number)
        return ""

    def _reference(self, found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        if found[2] is not None:
            target, _, text = found[2].partition(",")
        else:
            target, text = found[3], _text_of(found[4])
        address, title = self._resolve(self._restored(target).strip().strip('"'))
        return styled("link", " ".join(text.split()) or title, address) if address else text.strip() or title


_MARKS: Final[dict[str, MarkKind]] = {"strong": "strong", "emphasis": "emphasis", "sup": "sup", "sub": "sub"}
_SIGNS: Final = {"strong": "*", "code": "`", "emphasis": "_", "": "#", "sup": "^", "sub": "~", "“”": '"`', "‘’": "'`"}


def steps_of(given: str) -> frozenset[str]:
    """The substitutions that the `subs` of a block or the steps of a `pass:` macro name."""
    steps: set[str] = set()
    for step in re.split(r"[,\s]+", given.replace('"', "")):
        name = step.strip("+-")
        if step.startswith("-"):
            steps.discard(name)
        else:
            steps.update(_STEPS.get(name, name).split(","))
    return frozenset(steps)


def _text_of(inside: str) -> str:
    """The text of a link from its brackets: `text^`, `text,window=_blank`, `"a, b",role=x`."""
    inside = inside.replace("\\]", "]")
    if "=" in inside:
        given = attributes_of(inside)
        inside = given[0][1] if given and not given[0][0] else ""
    return inside.strip().removesuffix("^").strip()


def _mailed(found: re.Match[str]) -> str:
    if found[1]:
        return found[0][1:] if found[1] == "\\" else found[0]
    return styled("link", found[2], f"mailto:{found[2]}")


def _menu(first: str, rest: str) -> str:
    return " › ".join(entry.strip() for entry in (first, *re.split(r">|,", rest)) if entry.strip())


def _indexed(found: re.Match[str]) -> str:
    """The visible text of an index term: terms in three parentheses are hidden, those in two are shown."""
    if found[1]:
        return found[0][1:]
    if found[3] is not None:
        return str(found[3])
    return found[4] if found[4] is not None and found[0].startswith("indexterm2") else ""


def generated_anchor(text: str, attributes: Attributes, taken: set[str]) -> str:
    """The anchor that Asciidoctor generates for a heading; empty if the page disables them."""
    if "sectids" not in attributes:
        return ""
    prefix, separator = attributes.get("idprefix", "_"), attributes.get("idseparator", "_")[:1]
    name = _FORBIDDEN.sub("", _DASH.sub("", text).lower())
    if separator:
        name = re.sub(rf"[ .{re.escape(separator)}-]+", lambda _: separator, name).rstrip(separator)
        if not prefix:
            name = name.lstrip(separator)
    else:
        name = name.replace(" ", "")
    anchor = first = f"{prefix}{name}"
    if separator and prefix and first.startswith(separator * 2) and prefix == separator:
        anchor = first = separator + first.lstrip(separator)
    number = 2
    while anchor in taken:
        anchor = f"{first}{separator}{number}"
        number += 1
    return anchor
