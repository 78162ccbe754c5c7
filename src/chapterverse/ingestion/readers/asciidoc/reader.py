"""Converts the blocks of an AsciiDoc page to the parts of a page.

docs/decisions/0026-asciidoc.md explains why no library is used.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from chapterverse.ingestion.document import Document, Draft, Part, Unreadable
from chapterverse.ingestion.inline import close_gaps, formula, picture, plain
from chapterverse.ingestion.readers.asciidoc import project as asciidoc_project
from chapterverse.ingestion.readers.asciidoc.blocks import About, AsciidocBlock, Item, Parser, attributes_of
from chapterverse.ingestion.readers.asciidoc.source import Attributes, reindented, resolve
from chapterverse.ingestion.readers.asciidoc.table import TableCell, read_table
from chapterverse.ingestion.readers.asciidoc.text import Inline, generated_anchor, steps_of
from chapterverse.ingestion.readers.cleaning import Cell, clean_inline, decode
from chapterverse.ingestion.readers.page_builder import PageBuilder
from chapterverse.ingestion.readers.rawhtml import RawHtml

_ITEM = re.compile(r"\s*+(?:- |\d{1,9}\. )?")
_MAX_CELL_DEPTH: Final = 3  # tables inside tables
_PLACE = re.compile(
    r"\[?\[\[([^\W\d][\w:.-]*+)(?:,[ \t]*+([^\[\]]{1,500}+))?\]\]\]?|\banchor:([\w:.-]{1,300}+)\[([^\]]{0,500}+)\]"
)


def read(document: Document) -> list[Draft]:
    """Read an AsciiDoc file."""
    text = decode(document.data)
    try:
        source = asciidoc_project.source_of(document)
        before = Attributes(source.attributes)
        lines = source.lines(text, document.path)
        parser = Parser(Attributes(before))
        blocks = parser.page(lines)
        writer = _Writer(document, _header_attributes(before, lines), parser.title)
        parts = writer.write(blocks)
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    return [Draft("", parts)]


def _header_attributes(before: Attributes, lines: list[str]) -> Attributes:
    """The attributes at the end of a page's header."""
    parser = Parser(before)
    parser.header(lines)
    return before


class _Writer:
    def __init__(self, document: Document, attributes: Attributes, title: str) -> None:
        self._document = document
        self._attributes = attributes
        self._title = title
        self._to = PageBuilder()
        self._say = Inline(attributes, self._reference, self._address)
        self._anchors: dict[int, str] = {}  # id() of a heading → its anchor
        self._known: dict[str, str] = {}  # anchor on this page → title
        self._tables = 0

    def write(self, blocks: list[AsciidocBlock]) -> tuple[Part, ...]:
        given = Attributes(self._attributes)
        self._collect(blocks)
        self._attributes.clear()
        self._attributes.update(given)
        if self._title:
            self._to.heading(self._heading_text(self._title), 1)
        self._blocks(blocks)
        return self._to.finish()

    # Anchors and references

    def _collect(self, blocks: list[AsciidocBlock]) -> None:
        """Collect the anchors of headings and the texts of references, before any text is written."""
        taken: set[str] = set()
        for block in _all(blocks):
            about = block.about
            if block.kind == "entry":
                self._attributes.entry(block.lines[0])
            elif block.kind == "heading":
                text = self._say.bare(block.lines[0])
                anchor = about.id or self._generated(text, taken)
                taken.add(anchor)
                self._anchors[id(block)] = anchor
                self._known.setdefault(anchor, about.label or text)
            elif about.id:
                self._known.setdefault(about.id, about.label or self._say.bare(about.title) or f"[{about.id}]")
            for named in _named_places(block):
                self._known.setdefault(named[1] or named[3], named[2] or named[4] or f"[{named[1] or named[3]}]")

    def _generated(self, text: str, taken: set[str]) -> str:
        return generated_anchor(text, self._attributes, taken)

    def _reference(self, target: str) -> tuple[str, str]:
        """The address and the title of a reference's target. The address is empty if it is unknown."""
        path, mark, anchor = target.partition("#")
        if not mark and not path.endswith((".adoc", ".asciidoc", ".asc")) and ":" not in path and "$" not in path:
            path, anchor = "", target
        if not path or self._is_own(path):
            if anchor in self._known:
                return f"#{anchor}", self._known[anchor]
            for known, title in self._known.items():  # a reference may name the title
                if title == anchor:
                    return f"#{known}", title
        found = asciidoc_project.reference(self._document, path, anchor, self._attributes)
        if found:
            return found
        if not path:
            return "", f"[{anchor}]"
        shown = anchor or path
        is_file = path.endswith(".adoc") and ":" not in path  # a colon: a page of another Antora component
        return (self._address("link", target), shown) if is_file else ("", f"[{shown}]")

    def _is_own(self, path: str) -> bool:
        own = self._document.path
        return resolve(path, own) in (own, own.rpartition(".")[0])

    def _address(self, kind: str, target: str) -> str:
        """The target of a link or image, for `links.py`. Images are relative to `imagesdir`."""
        if kind == "image":
            if "://" in target or target.startswith(("data:", "/")):
                return target
            if antora := asciidoc_project.image_path(target, self._document):
                return f"path:{antora}"
            target = posixpath.join(self._attributes.get("imagesdir", ""), target)
        if "://" in target or target.startswith(("#", "/", "mailto:")):
            return target
        path, mark, anchor = target.partition("#")
        found = resolve(path, self._document.path) if path else self._document.path
        return f"path:{found}{mark}{anchor}" if found else ""

    # Blocks

    def _blocks(self, blocks: list[AsciidocBlock]) -> None:
        for block in blocks:
            self._block(block)

    def _block(self, block: AsciidocBlock) -> None:
        match block.kind:
            case "entry":
                self._attributes.entry(block.lines[0])
            case "heading":
                if block.marker != "discrete" and self._tables == 0:
                    self._to.close_all()
                self._to.heading(self._heading_text(block.lines[0]), block.level, self._anchors.get(id(block), ""))
            case "code" | "literal" | "image" | "list" | "terms" | "table" | "admonition" | "quote":
                self._structured(block)
            case "math":
                self._caption(block.about)
                self._to.paragraph(formula(" ".join(block.lines), block=True))
            case "raw":
                RawHtml(self._to).block("\n".join(block.lines))
            case "paragraph":
                self._caption(block.about)
                self._to.paragraph(self._say("\n".join(block.lines)))
            case _:
                self._caption(block.about)
                for inner in block.blocks if block.about.style == "tabs" else ():
                    inner.about.style = "tabs"
                self._blocks(block.blocks)

    def _structured(self, block: AsciidocBlock) -> None:
        match block.kind:
            case "code" | "literal":
                self._code(block)
            case "image":
                self._image(block)
            case "list":
                self._list(block)
            case "terms":
                self._terms(block)
            case "table":
                self._table(block)
            case "admonition" | "quote":
                self._framed(block)

    def _heading_text(self, text: str) -> str:
        return self._say.bare(text)

    def _caption(self, about: About) -> None:
        if about.title:
            self._to.paragraph(self._say(about.title))

    def _code(self, block: AsciidocBlock) -> None:
        about = block.about
        text = self._say.attributes_and_quotes("\n".join(block.lines), steps_of(about.names.get("subs", "")))
        if indent := about.names.get("indent", ""):
            text = "\n".join(reindented(text.split("\n"), indent))
        self._to.code(text, self._language(block), caption=plain(self._say(about.title)))

    def _language(self, block: AsciidocBlock) -> str:
        about = block.about
        if block.kind == "literal" or about.style not in ("source", ""):
            return ""
        given = about.place(1).strip() or about.names.get("language", "")
        if not given and about.style == "source":
            given = self._attributes.get("source-language", "")
        return given if re.fullmatch(r"[\w+#.-]{1,40}", given) else ""

    def _image(self, block: AsciidocBlock) -> None:
        target, inside = block.lines
        given = attributes_of(self._attributes.filled(inside))
        names = {name: value for name, value in given if name}
        alternative = given[0][1] if given and not given[0][0] else names.get("alt", "")
        title = self._say(block.about.title or names.get("title", ""))
        self._to.image(alternative, self._address("image", self._attributes.filled(target)), title)

    def _list(self, block: AsciidocBlock) -> None:
        self._caption(block.about)
        ordered = block.marker[0] in ".1aAI<"
        start = block.about.names.get("start", "")
        self._to.open_list(ordered=ordered, start=int(start) if start.isdecimal() and len(start) < 6 else 1)
        for item in block.items:
            self._to.item()
            self._to.paragraph(self._say(_unchecked("\n".join(item.text))))
            self._blocks(item.blocks)
        self._to.close_list()

    def _terms(self, block: AsciidocBlock) -> None:
        """Write terms with their descriptions as fields. In a tab set, the names of the tabs are paragraphs."""
        self._caption(block.about)
        for item in block.items:
            if block.about.style == "tabs":
                self._to.paragraph(", ".join(self._say(term) for term in item.terms) + ":")
                self._inside(item)
                continue
            self._to.open_field(", ".join(self._say(term) for term in item.terms))
            self._inside(item)
            self._to.close_field()

    def _inside(self, item: Item) -> None:
        self._to.paragraph(self._say("\n".join(item.text)))
        self._blocks(item.blocks)

    def _framed(self, block: AsciidocBlock) -> None:
        about = block.about
        if block.kind == "admonition":
            self._to.open_admonition(self._say(about.title) or block.marker.capitalize(), kind=block.marker.lower())
        else:
            self._to.open_quote()
            self._caption(about)
        if block.marker == "verse":
            self._to.paragraph(self._say("\n".join(block.lines)))
        self._blocks(block.blocks)
        if block.kind == "admonition":
            self._to.close_admonition()
            return
        if by := ", ".join(filter(None, (about.place(1), about.place(2)))):
            self._to.paragraph(f"— {self._say(by)}")
        self._to.close_quote()

    def _table(self, block: AsciidocBlock) -> None:
        table = read_table(block.lines, block.about, block.marker)
        rows = [
            [Cell(self._cell(cell, head=number < table.heads), cell.rows, cell.columns) for cell in row]
            for number, row in enumerate(table.rows)
        ]
        self._to.table(rows, table.heads, self._say(block.about.title))

    def _cell(self, cell: TableCell, head: bool) -> str:
        if cell.style == "l" and not head:
            return f"`{clean_inline(cell.text)}`" if cell.text.strip() and "`" not in cell.text else cell.text
        if cell.style == "a" and not head and self._tables < _MAX_CELL_DEPTH:
            return self._nested(cell.text)
        text = self._say(cell.text.strip())
        if cell.style == "m" and not head and text.strip() and "`" not in text:
            return f"`{text.strip()}`"
        return text

    def _nested(self, text: str) -> str:
        """The text of a cell that contains blocks, on one line."""
        parser = Parser(Attributes(self._attributes))
        outside, self._to = self._to, PageBuilder()
        self._tables += 1
        self._blocks(parser.cell(text))
        parts, self._to = self._to.finish(), outside
        self._tables -= 1
        return close_gaps(" ".join(_in_line(part) for part in parts))


def _all(blocks: list[AsciidocBlock]) -> list[AsciidocBlock]:
    """The blocks and their inner blocks, in order."""
    found: list[AsciidocBlock] = []
    for block in blocks:
        found.append(block)
        found += _all(block.blocks)
        for item in block.items:
            found += _all(item.blocks)
    return found


def _named_places(block: AsciidocBlock) -> Iterator[re.Match[str]]:
    """Inline anchors in a block."""
    if block.kind in ("code", "literal", "raw", "entry"):
        return
    for line in (*block.lines, *(line for item in block.items for line in (*item.terms, *item.text))):
        if "[[" in line or "anchor:" in line:
            yield from _PLACE.finditer(line)


def _in_line(part: Part) -> str:
    match part.kind:
        case "code":
            shown = [part.caption, f"`{part.text}`" if "`" not in part.text else part.text]
        case "table":
            shown = [part.caption, *re.sub(r"(?<!\\)\||(?<=\|) --- (?=\|)", " ", part.text).split()]
        case "image":
            shown = [picture(part.info, part.text), part.caption]
        case "list":
            shown = [_ITEM.sub("", line, count=1) for line in part.text.split("\n")]
        case _:
            shown = [part.text]
    return " ".join(filter(None, shown))


def _unchecked(text: str) -> str:
    """The text of a list item; the box of a checklist (`[x]`) becomes ☐ or ☑."""
    found = re.match(r"\[([ *x])\] +", text)
    return f"{'☐' if found[1] == ' ' else '☑'} {text[found.end() :]}" if found else text
