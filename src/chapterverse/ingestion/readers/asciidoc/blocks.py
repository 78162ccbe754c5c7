"""The blocks of an AsciiDoc page: a tree of sections, paragraphs, lists, tables and delimited blocks.

Follows Asciidoctor. Text inside the blocks is not parsed here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from chapterverse.ingestion.readers.asciidoc.lines import (
    DELIMITER,
    ENTRY,
    LITERAL,
    METADATA,
    TITLE,
    Lines,
    item_of,
    list_kind,
    macro_of,
    marker_of,
    take_item,
)
from chapterverse.ingestion.readers.asciidoc.source import Attributes, reindented

MAX_DEPTH: Final = 20  # of blocks inside blocks; deeper ones are read as paragraphs
KINDS: Final = ("NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION")

Kind = Literal[
    "heading",
    "paragraph",
    "code",
    "literal",
    "raw",
    "math",
    "group",
    "admonition",
    "quote",
    "list",
    "terms",
    "table",
    "image",
    "entry",
]

_ATX = re.compile(r"(={1,6}|#{1,6})[ \t]++(\S.*?)(?:(?<![ \t])[ \t]++\1)?")
_SETEXT = re.compile(r"(?!\.)(?=.*\w).+")
_UNDERLINE = re.compile(r"={2,}|-{2,}|~{2,}|\^{2,}|\+{2,}")
_UNDERLINES = "=-~^+"
ANCHOR = re.compile(r"\[\[([^\W\d][\w:.-]*+)(?:,[ \t]*+(.+))?\]\]")
_HEADING_ANCHOR = re.compile(r"(?=.*\]\]\Z)(.+?)(?<![ \t])[ \t]++\[\[([^\W\d][\w:.-]*+)(?:,[ \t]*+(.+))?\]\]")
_ATTRIBUTES = re.compile(r"\[(?=[\w{,.#\"'%])(.*)\]|\[\]")
_NAME = r"[\w{][\w{}.,'’&()-]*+(?: ++[\w{][\w{}.,'’&()-]*+){0,2}"  # at most three words; more are text
_AUTHORS = re.compile(rf"\A(?:{_NAME}(?:; ++{_NAME})*+(?<!\.)|.*<[^<>\s@]++@[^<>\s]++>.*)")
_REVISION = re.compile(r"\A(?=.*[\d{])[\w{].*(?<!\.)")
_BREAK = re.compile(r"'{3,}|<<<|(?:- ?){2}-|(?:\* ?){2}\*|(?:_ ?){2}_")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+")
_PLACE = re.compile(r"\s*(?:([\w:-]+)[ \t]*=[ \t]*)?(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^,]*))\s*(?:,|$)")
_SHORT = re.compile(r"([.#%])([^.#%]+)")


@dataclass(slots=True)
class About:
    """The attributes of a block, from the lines above it: `[style#id.role%option,second,name=value]` and `.Title`."""

    style: str = ""
    id: str = ""
    label: str = ""  # text of references to the block
    roles: set[str] = field(default_factory=set)
    options: set[str] = field(default_factory=set)
    places: list[str] = field(default_factory=list)  # positional values; the first is the style
    names: dict[str, str] = field(default_factory=dict)
    title: str = ""

    def place(self, number: int) -> str:
        """A positional value; empty if there is none."""
        return self.places[number] if number < len(self.places) else ""

    def read(self, line: str) -> None:
        """Read a line of attributes."""
        for number, (name, value) in enumerate(attributes_of(line)):
            if name in ("id", "role", "options", "opts", "reftext", "title"):
                self._named(name, value)
            elif name:
                self.names[name] = value
            else:
                self.places += [""] * (number + 1 - len(self.places))
                self.places[number] = value
                if number == 0:
                    self._shorthand(value)

    def _named(self, name: str, value: str) -> None:
        if name == "id":
            self.id = value
        elif name == "role":
            self.roles.update(value.split())
        elif name == "reftext":
            self.label = value
        elif name == "title":
            self.title = value
        else:
            self.options.update(option.strip() for option in value.split(","))

    def _shorthand(self, value: str) -> None:
        style = re.split(r"[.#%]", value, maxsplit=1)[0].strip()
        self.style = style or self.style
        for mark, one in _SHORT.findall(value[len(style) :]):
            if mark == "#":
                self.id = one.strip()
            else:
                (self.roles if mark == "." else self.options).add(one.strip())


def underline_level(line: str, below: str) -> int:
    """The level of a heading by the characters that underline it; 0 if the line below is no underline."""
    underlined = _UNDERLINE.fullmatch(below) and abs(len(below) - len(line)) <= 1
    return _UNDERLINES.index(below[0]) + 1 if underlined else 0


def attributes_of(line: str) -> list[tuple[str, str]]:
    """Names and values of a list of attributes; positional ones have no name."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(line) and len(found) < 100:
        one = _PLACE.match(line, at)
        if not one or one.end() == at:
            break
        value = one[2] if one[2] is not None else one[3] if one[3] is not None else (one[4] or "").strip()
        found.append((one[1] or "", re.sub(r"\\([\"'])", r"\1", value)))
        at = one.end()
    return found


@dataclass(slots=True)
class AsciidocBlock:
    """A block. `lines` is the text of a block without inner blocks."""

    kind: Kind
    about: About
    lines: list[str] = field(default_factory=list)
    blocks: list["AsciidocBlock"] = field(default_factory=list)
    level: int = 0  # of a heading
    marker: str = ""  # of a list: the first item's; of a table: its delimiter; of an admonition: its kind
    items: list["Item"] = field(default_factory=list)


@dataclass(slots=True)
class Item:
    """An item of a list, or one or more terms with their description."""

    text: list[str]
    blocks: list[AsciidocBlock]
    terms: list[str] = field(default_factory=list)


class Parser:
    """Parses the lines of one page. It tracks attributes, because headings and blocks depend on them."""

    def __init__(self, attributes: Attributes) -> None:
        self.attributes = attributes
        self.title = ""  # of the document
        self._depth = 0

    def page(self, lines: Sequence[str]) -> list[AsciidocBlock]:
        """The blocks below the document's header."""
        run = Lines(lines)
        self._header(run)
        return self._blocks(run, sections=True)

    def header(self, lines: Sequence[str]) -> None:
        """Read only the document's header."""
        self._header(Lines(lines))

    def cell(self, text: str) -> list[AsciidocBlock]:
        """The blocks of a table's cell."""
        return self._inside(text.split("\n"))

    def _header(self, run: Lines) -> None:
        """Read the title and the lines that belong to it."""
        about = About()
        while not run.done:
            line = run.line
            if not line or (line.startswith("//") and not line.startswith("///")):
                run.at += 1
            elif line.startswith("////") and not line.strip("/"):
                run.delimited(line)
            elif _about(line, about):
                run.at += 1
            elif not self._entry(run):
                break
        start = run.at
        heading = self._heading(run)
        if heading is None or heading[0] != 1 or self.attributes.offset:
            run.at = start if about == About() else 0
            return
        self.title = heading[1]
        if run.at - start == 2:  # an underlined title: the syntax before Asciidoctor 1.5
            self.attributes["compat-mode"] = ""
        self._below_title(run)

    def _below_title(self, run: Lines) -> None:
        """Read the line of authors, the line of the revision and the attributes. The first other line is text."""
        expected = [_AUTHORS, _REVISION]
        while not run.done and run.line:
            if self._entry(run):
                expected = []
            elif run.line.startswith("////") and not run.line.strip("/"):
                run.delimited(run.line)
            elif run.line.startswith("//") or (expected and expected.pop(0).fullmatch(run.line)):
                run.at += 1
            else:
                break

    def _entry(self, run: Lines) -> bool:
        """Read an attribute entry with its continuation lines; returns whether there is one."""
        if not run.line.startswith(":") or not ENTRY.fullmatch(run.line):
            return False
        parts = [run.line]
        while parts[-1].endswith(" \\") and run.at + 1 < len(run.lines):
            run.at += 1
            parts[-1] = parts[-1][:-2].rstrip()
            parts.append(run.line.strip())
        run.at += 1
        self.attributes.entry(" ".join(parts))
        return True

    def _inside(self, lines: Sequence[str]) -> list[AsciidocBlock]:
        if self._depth >= MAX_DEPTH:
            return [AsciidocBlock("paragraph", About(), [line for line in lines if line])]
        self._depth += 1
        found = self._blocks(Lines(lines))
        self._depth -= 1
        return found

    def _blocks(self, run: Lines, sections: bool = False, in_list: bool = False) -> list[AsciidocBlock]:
        found: list[AsciidocBlock] = []
        about = About()
        while not run.done:
            line, at = run.line, run.at
            if not line or (line.startswith("//") and not line.startswith("///")):
                run.at += 1
            elif line.startswith("////") and not line.strip("/"):
                run.delimited(line)
            elif self._entry(run):
                values = [" ".join(line.removesuffix(" \\") for line in run.lines[at : run.at])]
                found.append(AsciidocBlock("entry", About(), values))
            elif _about(line, about):
                run.at += 1
            else:
                if block := self._block(run, about, sections, in_list and run.at == 0):
                    found.append(block)
                about = About()
        return found

    def _block(self, run: Lines, about: About, sections: bool, in_list: bool) -> AsciidocBlock | None:  # noqa: PLR0911 one return for each kind
        discrete = about.style in ("discrete", "float")
        if (sections or discrete) and (heading := self._heading(run)):
            level, text = heading[0] + self.attributes.offset, heading[1]
            if named := _HEADING_ANCHOR.fullmatch(text):
                text, about.id, about.label = named[1], about.id or named[2], about.label or named[3] or ""
            return AsciidocBlock("heading", about, [text], level=level, marker="discrete" if discrete else "")
        line = run.line
        if delimiter := DELIMITER.fullmatch(line):
            return self._delimited(run, delimiter[0], about)
        if about.style in ("source", "listing", "literal"):
            return AsciidocBlock("literal" if about.style == "literal" else "code", about, run.verbatim())
        if _BREAK.fullmatch(line):
            run.at += 1
            return None
        if (macro := macro_of(line)) and macro[1] in ("image", "video", "audio", "toc"):
            run.at += 1
            image = AsciidocBlock("image", about, [macro[2], macro[3]])
            return image if macro[1] == "image" else None
        if kind := list_kind(line):
            return self._list(run, about, kind)
        return self._paragraph(run, about, in_list)

    def _heading(self, run: Lines) -> tuple[int, str] | None:
        """Level and text of a heading: `== Text`, or text that is underlined."""
        if run.done:
            return None
        line = run.line
        if line[:1] in "=#" and (found := _ATX.fullmatch(line)):
            run.at += 1
            return len(found[1]), found[2]
        below = run.lines[run.at + 1] if run.at + 1 < len(run.lines) else ""
        level = underline_level(line, below)
        if level and _SETEXT.fullmatch(line) and not METADATA.fullmatch(line):
            run.at += 2
            return level, line
        return None

    def _delimited(self, run: Lines, delimiter: str, about: About) -> AsciidocBlock | None:  # noqa: PLR0911 one return for each kind
        lines = run.delimited("```" if delimiter.startswith("`") else delimiter)
        mark, style = delimiter[0], about.style
        if mark in "|,:!" and len(delimiter) > 3:
            return AsciidocBlock("table", about, lines, marker=mark)
        if mark == "/" or style == "comment":
            return None
        if mark == "`":
            about.places = ["source", delimiter[3:]]
            about.style = "source"
            return AsciidocBlock("code", about, lines)
        if style in ("stem", "latexmath", "asciimath"):
            return AsciidocBlock("math", about, lines)
        if mark == "+" or style == "pass":
            return AsciidocBlock("raw", about, lines)
        if style in ("source", "listing", "literal") or (mark in "-." and delimiter != "--"):
            return AsciidocBlock(
                "literal" if style == "literal" or (mark == "." and not style) else "code", about, lines
            )
        if style == "verse":
            return AsciidocBlock("quote", about, lines, marker="verse")
        return self._compound(lines, about, quoted=mark == "_")

    def _compound(self, lines: list[str], about: About, quoted: bool = False) -> AsciidocBlock:
        """A block with inner blocks."""
        inside = self._inside(lines)
        if about.style in KINDS:
            return AsciidocBlock("admonition", about, blocks=inside, marker=about.style)
        quoted = quoted or about.style == "quote"
        return AsciidocBlock("quote" if quoted else "group", about, blocks=inside)

    def _paragraph(self, run: Lines, about: About, in_list: bool) -> AsciidocBlock | None:  # noqa: PLR0911 one return for each kind
        first, style = run.line, about.style
        lines = run.paragraph(in_list)
        if LITERAL.match(first) and style not in KINDS:
            if style != "normal":
                return AsciidocBlock("literal", about, reindented(lines))
            lines = [line.strip() for line in lines]
        if style == "comment" or not lines:
            return None
        if style in ("stem", "latexmath", "asciimath", "pass"):
            return AsciidocBlock("raw" if style == "pass" else "math", about, lines)
        if style in ("verse", "quote"):
            return AsciidocBlock("quote", about, lines, marker="verse")
        if found := _ADMONITION.match(lines[0]):
            lines[0] = lines[0][found.end() :]
            about.style = found[1]
        if about.style in KINDS:
            return AsciidocBlock(
                "admonition", about, blocks=[AsciidocBlock("paragraph", About(), lines)], marker=about.style
            )
        if lines[0].startswith("> ") or lines[0] == ">":
            return self._compound([re.sub(r"^> ?", "", line) for line in lines], about, quoted=True)
        if lines[0].startswith('"') and lines[-1].startswith("-- ") and lines[-2:-1] and lines[-2].endswith('"'):
            about.places = ["quote", *(part.strip() for part in lines[-1][3:].split(",", 1))]
            return AsciidocBlock("quote", about, [" ".join(lines[:-1]).strip('"')], marker="verse")
        return AsciidocBlock("paragraph", about, lines)

    def _list(self, run: Lines, about: About, kind: str) -> AsciidocBlock:
        """Read a list."""
        first = marker_of(run.line, kind)
        block = AsciidocBlock("terms" if kind == "term" else "list", about, marker=first)
        self._depth += 1
        terms: list[str] = []
        while not run.done and list_kind(run.line) == kind and marker_of(run.line, kind) == first:
            term, text = item_of(run.line, kind)
            run.at += 1
            lines = take_item(run, kind, first, text)
            if term is not None:
                terms.append(term)
            if term is None or lines or not self._another_term(run, first):
                block.items.append(self._item(lines, terms, has_text=bool(text)))
                terms = []
            run.skip_blank()
        if terms:
            block.items.append(Item([], [], terms))
        self._depth -= 1
        return block

    def _another_term(self, run: Lines, marker: str) -> bool:
        at = run.at
        while at < len(run.lines) and not run.lines[at]:
            at += 1
        return at < len(run.lines) and list_kind(run.lines[at]) == "term" and marker_of(run.lines[at], "term") == marker

    def _item(self, lines: list[str], terms: list[str], has_text: bool) -> Item:
        if self._depth >= MAX_DEPTH:
            return Item([line for line in lines if line], [], terms)
        text: list[str] = []
        at = 0
        while at < len(lines) and lines[at] and (has_text or terms):
            line = lines[at]
            opens = bool(DELIMITER.fullmatch(line) or METADATA.fullmatch(line) or line == "+")
            if at > 0 or not has_text:
                macro = macro_of(line)
                opens = opens or bool(list_kind(line) or TITLE.fullmatch(line) or (macro and macro[1] == "image"))
            elif not terms:
                opens = False
            if opens:
                break
            if not line.startswith("//") or line.startswith("///"):
                text.append(line.strip())
            at += 1
        blocks = self._blocks(Lines(lines[at:]), in_list=True)
        return Item(text, blocks, terms)


def _about(line: str, about: About) -> bool:
    """Read a line with attributes or the title of the next block; returns whether it is such a line."""
    if line.startswith("["):
        if anchor := ANCHOR.fullmatch(line):
            about.id, about.label = anchor[1], anchor[2] or about.label
            return True
        if found := _ATTRIBUTES.fullmatch(line):
            about.read(found[1] or "")
            return True
        return line == "[[]]"
    if line.startswith(".") and (title := TITLE.fullmatch(line)) and not DELIMITER.fullmatch(line):
        about.title = title[1]
        return True
    return False
