"""Scans a reStructuredText or MyST file for its title, labels, objects and `toctree`s, without docutils."""

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from chapterverse.ingestion.document import Document, Tree, Unreadable
from chapterverse.ingestion.inclusion import Inclusion
from chapterverse.ingestion.readers.cleaning import decode
from chapterverse.ingestion.readers.included_lines import include_lines
from chapterverse.ingestion.readers.sphinx.objects import NAMESPACE, OBJECT, Objects, sphinx_id

MAX_FILE: Final = 5_000_000  # bytes of a page that is searched for labels
_DIRECTIVE = re.compile(r"(\s*)\.\.[ \t]+([A-Za-z][\w:.+-]*)[ \t]*::(?:[ \t]+(.*))?$")
_LABEL = re.compile(r"\s*\.\.[ \t]+_(?:`([^`]+)`|((?:[^:\\`]|\\.|:(?!\s|$))+)):[ \t]*$")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")
_MYST_LABEL = re.compile(r"\(([^()\s]+)\)=\s*$")
_MYST_HEADING = re.compile(r"(#{1,6})[ \t]++(.*?)(?:(?<![ \t#])[ \t]*+#*+)?$")
_MYST_DIRECTIVE = re.compile(r"\s*+(`{3,}+|~{3,}+|:{3,}+)\{([\w:.-]++)\}[ \t]*+(.*)$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
TITLED = re.compile(r"(.+?)(?<!\s)\s*+(?<![\\\0])<([^<>]++)>", re.DOTALL)  # docutils writes an escape as \0
_ONLY_WORD = re.compile(r"(\(|\)|[\w.+-]++)")
_COMMENT = re.compile(r"\s*\.\.(?:$|[ \t]+(?![_|\[]))")  # unless it is a directive
_OPTION = re.compile(r"\s*:([\w-]+):[ \t]*(.*)")
_NO_NODE = re.compile(  # directives between a label and its heading that add nothing to the page
    "codeauthor|currentmodule|default-domain|default-role|index|meta|moduleauthor|module|program|py:currentmodule|"
    "py:module|redirect-from|role|rst-class|sectionauthor|tabularcolumns"
)
_LITERAL = re.compile("code|code-block|sourcecode|parsed-literal|literalinclude|prompt|testcode|testoutput|raw|math")
_MARKUP = re.compile(r":[\w:.+-]{1,80}:(?=`)|`{1,2}|(?<![\w*\\])(\*{1,2})(?=\S)([^*]{1,200}?)(?<=\S)\1(?![\w*])|\\(.)")
_CAPTIONED: Final = {  # directives that may have a caption → their kind in Sphinx's numbering
    **dict.fromkeys(("figure",), "figure"),
    **dict.fromkeys(("table", "list-table", "csv-table"), "table"),
    **dict.fromkeys(("code-block", "sourcecode", "literalinclude"), "code-block"),
}


@dataclass(slots=True)
class Toctree:
    """A `toctree` as it is written; `Project` finds its pages."""

    caption: str = ""
    glob: bool = False
    numbered: bool = False
    backwards: bool = False
    entries: list[tuple[str, str]] = field(default_factory=list)  # title and name
    key: str = ""  # `toctree_key`


@dataclass(slots=True)
class Found:
    """The result of scanning one file."""

    title: str = ""
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)  # label → anchor, title
    objects: dict[str, str] = field(default_factory=dict)  # `kind:name` → anchor
    sections: dict[str, str] = field(default_factory=dict)  # title → anchor
    toctrees: list[Toctree] = field(default_factory=list)
    captioned: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)  # (kind, labels) of figures and so on


def scan(root: Path, path: str) -> Found | None:
    """The result for a file; None if it is a link, too large or unreadable."""
    place = root / path
    try:
        if place.is_symlink() or place.stat().st_size > MAX_FILE:
            return None
        text = decode(place.read_bytes())
    except (OSError, Unreadable):
        return None
    page = Document("", path, "", "rst", b"", tree=Tree(str(root)))
    search: _Search = _MystSearch() if path.endswith(".md") else _RstSearch(page)
    return search.run(text.split("\n"))


class _Search(ABC):
    """The common part of the scanners for reStructuredText and MyST."""

    def __init__(self) -> None:
        self.found = Found()
        self._pending: list[str] = []  # labels whose target has not been read yet
        self._taken: set[str] = set()  # anchors that are used on this page

    @abstractmethod
    def run(self, lines: list[str]) -> Found:
        """Scan the lines of one file."""

    def _section(self, title: str, anchor: str = "") -> None:
        title = plain_title(title)
        anchor = anchor or make_id(title)
        if not anchor or anchor in self._taken:
            anchor = make_id(self._pending[-1]) if self._pending else ""
        self._taken.add(anchor)
        self.found.title = self.found.title or title
        self.found.sections.setdefault(title, anchor)
        self._name(title, anchor)

    def _name(self, title: str, anchor: str = "") -> None:
        """Assign the pending labels to a title."""
        for label in self._pending:
            self.found.labels.setdefault(normal_name(label), (anchor or make_id(label), title))
        self._pending.clear()

    def _toctree(self, options: Iterable[str]) -> None:
        given, lines = _options(options)
        tree = Toctree(given.get("caption", ""), "glob" in given, "numbered" in given, "reversed" in given)
        tree.key = toctree_key(lines, given)
        for line in filter(None, map(str.strip, lines)):
            if not line.startswith(".. "):
                titled = TITLED.fullmatch(line)
                tree.entries.append((titled[1], titled[2]) if titled else ("", line))
        self.found.toctrees.append(tree)


class _RstSearch(_Search):
    def __init__(self, page: Document) -> None:
        super().__init__()
        self._objects = Objects(self.found.objects)
        self._inclusion = Inclusion(page)
        self._folder = posixpath.dirname(page.path)

    def run(self, lines: list[str]) -> Found:
        self._lines(lines)
        self._name("")
        return self.found

    def _lines(self, lines: list[str]) -> None:
        place = 0
        while place < len(lines):
            place = self._line(lines, place)

    def _line(self, lines: list[str], place: int) -> int:
        """Read the block that begins at a line; returns the number of the next line to read."""
        line = lines[place]
        if label := _LABEL.match(line):
            self._pending.append((label[1] or label[2]).replace("\\", ""))
        if label or not line.strip():
            return place + 1
        if directive := _DIRECTIVE.match(line):
            return self._directive(directive, lines, place)
        if _COMMENT.match(line):
            self._name("")
            empty = line.strip() == ".." and not "".join(lines[place + 1 : place + 2]).strip()
            return place + 1 if empty else _end_of_body(lines, place + 1, _indent(line))
        if (title := _title_at(lines, place)) is not None:
            self._section(title[0])
            return title[1]
        following = lines[place + 1] if place + 1 < len(lines) else ""
        defines = following.strip() and _indent(following) > _indent(line)  # the line is a term
        self._name(plain_title(line) if defines and self._pending else "")
        if line.rstrip().endswith("::"):
            return _end_of_body(lines, place + 1, _indent(line))
        return place + 1

    def _directive(self, directive: re.Match[str], lines: list[str], place: int) -> int:
        indent, name, argument = len(directive[1]), directive[2].lower(), (directive[3] or "").strip()
        if name in ("toctree", "include") or (name == "only" and not shown_in_html(argument)):
            end = _end_of_body(lines, place + 1, indent)
            if name == "toctree":
                self._toctree(lines[place + 1 : end])
            elif name == "include":
                self._include(argument, _options(lines[place + 1 : end])[0], directive[1])
            return end
        if name == "glossary":
            end = _end_of_body(lines, place + 1, indent)
            self._glossary(lines[place + 1 : end])
        elif OBJECT.fullmatch(name):
            self._object(name, argument, indent, lines, place)
        elif name in _CAPTIONED:
            caption, named = self._caption(name, argument, lines, place, indent)
            self._pending += [named] if named else []
            if caption:
                self.found.captioned.append((_CAPTIONED[name], tuple(map(normal_name, self._pending))))
            self._name(caption)
        self._enter(name, argument)
        if _LITERAL.fullmatch(name):
            return _end_of_body(lines, place + 1, indent)
        if not _NO_NODE.fullmatch(name) and not OBJECT.fullmatch(name):
            self._name("")
        return place + 1

    def _enter(self, name: str, argument: str) -> None:
        """Read a directive that names what the following objects belong to."""
        if name in ("currentmodule", "py:currentmodule"):
            self._objects.module = "" if argument == "None" else argument
        elif name == "program":
            self._objects.program = argument
        elif NAMESPACE.fullmatch(name):
            self._objects.enter(name, argument)

    def _include(self, wanted: str, options: Mapping[str, str], indent: str) -> None:
        """Read an included file as part of the page."""
        if {"literal", "code", "parser"}.intersection(options) or wanted.endswith(".md"):
            return
        found = self._inclusion.read(wanted if wanted.startswith("/") else f"/{posixpath.join(self._folder, wanted)}")
        lines = include_lines(found.text.split("\n"), options) if found else None
        if found and lines:
            with self._inclusion.inside(found):
                self._lines([f"{indent}{line}" if line.strip() else "" for line in lines])

    def _caption(self, name: str, argument: str, lines: list[str], place: int, indent: int) -> tuple[str, str]:
        """The caption of a figure, table or listing, and its label from the option `name`."""
        caption, label = plain_title(argument) if _CAPTIONED[name] == "table" else "", ""
        for line in lines[place + 1 : _end_of_body(lines, place + 1, indent)]:
            if option := re.match(r"\s*:(caption|name):\s*(.+)", line):
                caption, label = (plain_title(option[2]), label) if option[1] == "caption" else (caption, option[2])
            elif line.strip() and not line.lstrip().startswith(":"):
                return plain_title(line.strip()) if name == "figure" else caption, label
        return caption, label

    def _object(self, kind: str, argument: str, indent: int, lines: list[str], place: int) -> None:
        signatures = [argument]
        for line in lines[place + 1 : place + 20]:
            if not line.strip() or _indent(line) <= indent:
                break
            if re.match(r"\s+:no-?index:", line):
                return
            if signatures[-1].endswith("\\"):
                signatures[-1] = f"{signatures[-1][:-1].rstrip()} {line.strip()}"
            elif not line.lstrip().startswith(":"):
                signatures.append(line.strip())
        self._objects.describe(kind, signatures, indent)
        for label in self._pending if not _NO_NODE.fullmatch(kind) else ():
            self.found.labels.setdefault(normal_name(label), (make_id(label), ""))
        if not _NO_NODE.fullmatch(kind):
            self._pending.clear()

    def _glossary(self, lines: list[str]) -> None:
        filled = [line for line in lines if line.strip() and not line.lstrip().startswith((":sorted:", ".. "))]
        depth = min(map(_indent, filled), default=0)
        for line in filled:
            if _indent(line) == depth:
                term = plain_title(re.split(r"(?<!\s)\s++:\s++", line.strip())[0])
                self.found.objects.setdefault(f"term:{normal_name(term)}", sphinx_id("term", term))


class _MystSearch(_Search):
    def run(self, lines: list[str]) -> Found:
        place, fence = 0, ""
        while place < len(lines):
            line = lines[place]
            place += 1
            if fence:
                fence = "" if line.strip().startswith(fence) else fence
            elif directive := _MYST_DIRECTIVE.match(line):
                if directive[2] == "toctree":
                    end = next((at for at in range(place, len(lines)) if lines[at].strip() == directive[1]), len(lines))
                    self._toctree(lines[place:end])
                    place = end + 1
                elif directive[1][0] != ":":
                    fence = directive[1]
            elif opening := _FENCE.match(line):
                fence = opening[1]
            elif label := _MYST_LABEL.match(line):
                self._pending.append(label[1])
            elif heading := _MYST_HEADING.match(line):
                self._section(heading[2], make_id(self._pending[-1]) if self._pending else "")
            elif line.strip():
                self._name("")
        self._name("")
        return self.found


def plain_title(title: str) -> str:
    """A title without its inline markup."""
    title = re.sub(r"(?::[\w:.+-]{1,80}:)?`([^`<]{1,500}?)(?<!\s)\s*+<[^`<>]++>`_{0,2}", r"\1", title.strip())
    return " ".join(_MARKUP.sub(lambda found: found[2] or found[3] or "", title).split())


def _title_at(lines: list[str], place: int) -> tuple[str, int] | None:
    """The section title that begins at a line, and the number of the line after it; None if there is none."""
    line = lines[place]
    if line[0].isspace():
        return None
    if _ADORNMENT.match(line) and place + 2 < len(lines) and lines[place + 1].strip():
        if lines[place + 2].rstrip() == line.rstrip() and not _ADORNMENT.match(lines[place + 1].strip()):
            return lines[place + 1].strip(), place + 3
        if len(line.strip()) > 3 or place + 1 >= len(lines):
            return None
    under = lines[place + 1] if place + 1 < len(lines) else ""
    before = lines[place - 1].strip() if place else ""
    if not _ADORNMENT.match(under) or (before and not before.startswith("..") and not _ADORNMENT.match(before)):
        return None
    if len(under.rstrip()) < len(line.rstrip()) and len(under.rstrip()) < 4:
        return None
    return line.strip(), place + 2


def _options(body: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a directive, and the other lines of its body."""
    found: dict[str, str] = {}
    rest: list[str] = []
    for line in body:
        if option := _OPTION.match(line):
            found[option[1]] = option[2].strip()
        else:
            rest.append(line)
    return found, rest


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of_body(lines: list[str], place: int, indent: int) -> int:
    """The number of the first line that is neither blank nor indented more than `indent`."""
    while place < len(lines) and (not lines[place].strip() or _indent(lines[place]) > indent):
        place += 1
    return place


def toctree_key(lines: Iterable[str], options: Iterable[str]) -> str:
    """The key of the pages of a `toctree`: its entries, and the options that change them."""
    given = "\n".join(filter(None, [*map(str.strip, lines), *sorted({"glob", "reversed"}.intersection(options))]))
    return f"toctree:{sha256(given.encode(errors='replace')).hexdigest()[:16]}"


def shown_in_html(expression: str) -> bool:
    """Whether `only` shows its text in HTML. With an invalid expression it is shown."""
    words = _ONLY_WORD.findall(expression)[:100]

    def either() -> bool:
        value = both()
        while words and words[0] == "or":
            words.pop(0)
            value = both() or value
        return value

    def both() -> bool:
        value = one()
        while words and words[0] == "and":
            words.pop(0)
            value = one() and value
        return value

    def one() -> bool:
        word = words.pop(0) if words else "html"
        if word == "not":
            return not one()
        if word == "(":
            value = either()
            if words and words[0] == ")":
                words.pop(0)
            return value
        return word in ("html", "builder_html", "format_html")

    return either()


def normal_name(name: str) -> str:
    """A label as docutils normalises it."""
    return " ".join(name.lower().split())


def make_id(text: str) -> str:
    """The anchor that docutils generates for a title or label."""
    from docutils.nodes import make_id as made

    return str(made(text))
