"""Reads Word documents (.docx): headings by their style, lists, tables with spans, links, notes.

Parses the XML directly (docs/decisions/0027-docx-and-notebooks.md). Deleted and hidden text is left out.
"""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Final
from xml.etree.ElementTree import Element

from chapterverse.ingestion.document import Document, Draft, Unreadable
from chapterverse.ingestion.inline import formula, picture, plain, remove_private, styled
from chapterverse.ingestion.limits import whole_number
from chapterverse.ingestion.readers.archive import DAMAGE, refuse_bombs
from chapterverse.ingestion.readers.cleaning import Cell, clean_inline
from chapterverse.ingestion.readers.omml import tex_of
from chapterverse.ingestion.readers.page_builder import PageBuilder
from chapterverse.ingestion.readers.safe_xml import parse_xml

_MAX_DEPTH: Final = 5  # of tables and text boxes inside each other
_MAX_COLUMNS: Final = 100  # of a cell
_HEADING = re.compile(r"heading ?([1-9])|(?:über|ü)schrift ?([1-9])|titre ?([1-9])|título ?([1-9])")
_CODE = re.compile(r"code|source|preformatted|verbatim|listing|html pre|macro text|plain text|console")
_CONTENTS = re.compile(r"toc\b|toc ?\d|table of (?:contents|figures)|index ?\d|header|footer")
_QUOTE = re.compile(r"(?:intense )?quote|block text|zitat")
_WRAPPERS = ("sdt", "sdtContent", "customXml", "ins", "moveTo")  # elements around blocks or rows
_LEFT_OUT = ("del", "moveFrom", "Fallback")  # elements with text that Word does not show
_NO_ITEM: Final = -2  # in place of the number of a list's last item; no number follows it
_LETTER: Final = re.compile(r"(?:F0|00)?([2-9A-F][0-9A-F])", re.I)
_SYMBOLS: Final = (  # letters of the font Symbol, from 0x20
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_\ufffdαβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
    + "\ufffd" * 33
    + "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…\ufffd\ufffd↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"
)
_OFF = ("0", "false", "off", "none")


def read(document: Document) -> list[Draft]:
    """Read a Word document."""
    try:
        with zipfile.ZipFile(BytesIO(document.data)) as archive:
            refuse_bombs(archive, len(document.data))
            return [_Word(archive).draft()]
    except DAMAGE as error:
        raise Unreadable("is not a Word document, or is damaged") from error


@dataclass(slots=True)
class _Style:
    name: str
    level: int = 0  # of a heading
    based_on: str = ""
    number: str = ""  # id of the list that paragraphs of this style belong to


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a list as Word numbers it. Lists with the same `counter` continue each other."""

    counter: str
    ordered: bool
    start: int
    restart: int | None  # number of the first item of this list, if it does not continue another one


@dataclass(slots=True)
class _Run:
    """The open lists."""

    levels: list[int] = field(default_factory=list)  # number of the last item of each open level; 0 without numbers


class _Word:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        if "word/document.xml" not in self._names:
            raise Unreadable("has no word/document.xml")
        self._styles = self._read_styles()
        self._levels = self._read_numbering()
        self._counts: dict[str, dict[int, int]] = {}  # by counter and depth: number of the last item
        self._numbered: set[tuple[str, int]] = set()  # lists and depths that have begun
        self._targets = self._read_targets()
        self._notes: dict[tuple[str, str], str] = {}
        self._notes = self._read_notes()
        self._to = PageBuilder()
        self._lists = _Run()
        self._code: list[str] = []
        self._title = ""
        self._nested = 0  # open tables and text boxes
        self._shown = ""  # alternative text of the last image

    def draft(self) -> Draft:
        root = self._xml("word/document.xml")
        body = root.find("body")
        if body is None:
            raise Unreadable("has no body")
        self._blocks(body)
        self._end_code()
        self._end_lists()
        return Draft(self._title or self._named(), self._to.finish())

    # Other files of the archive

    def _xml(self, path: str) -> Element:
        return parse_xml(self._archive.read(path), posixpath.basename(path))

    def _read_styles(self) -> dict[str, _Style]:
        styles: dict[str, _Style] = {}
        if "word/styles.xml" not in self._names:
            return styles
        for node in self._xml("word/styles.xml").iter("style"):
            name = _value(node, "name").lower()
            found = _HEADING.fullmatch(name)
            outline = _value(node, "pPr/outlineLvl")
            level = int(next(filter(None, found.groups()))) if found else 0
            if not level and (depth := whole_number(outline, 9)) < 9:
                level = depth + 1
            styles[node.get("styleId", "")] = _Style(
                name, level, _value(node, "basedOn"), _value(node, "pPr/numPr/numId")
            )
        return styles

    def _read_numbering(self) -> dict[tuple[str, int], _Level]:
        """The levels of each list."""
        if "word/numbering.xml" not in self._names:
            return {}
        root = self._xml("word/numbering.xml")
        kinds: dict[str, dict[int, _Level]] = {}
        linked: dict[str, str] = {}  # lists that have the levels of a list style
        styled = {_value(one, "styleLink"): one.get("abstractNumId", "") for one in root.iter("abstractNum")}
        for abstract in root.iter("abstractNum"):
            counter = abstract.get("abstractNumId", "")
            if style := _value(abstract, "numStyleLink"):
                linked[counter] = styled.get(style, counter)
            for level in abstract.iter("lvl"):
                ordered = _value(level, "numFmt") not in ("bullet", "none", "")
                kinds.setdefault(counter, {})[_depth(level.get("ilvl"))] = _Level(
                    counter, ordered, whole_number(_value(level, "start"), 1), None
                )
        levels: dict[tuple[str, int], _Level] = {}
        for number in root.iter("num"):
            named = number.get("numId", "")
            restarts = {
                _depth(change.get("ilvl")): whole_number(_value(change, "startOverride"), 1)
                for change in number.iter("lvlOverride")
                if change.find("startOverride") is not None
            }
            counter = _value(number, "abstractNumId")
            for place, known in kinds.get(linked.get(counter, counter), {}).items():
                levels[named, place] = replace(known, restart=restarts.get(place))
        return levels

    def _read_targets(self) -> dict[str, str]:
        path = "word/_rels/document.xml.rels"
        if path not in self._names:
            return {}
        return {
            relation.get("Id", ""): relation.get("Target", "")
            for relation in self._xml(path).iter("Relationship")
            if relation.get("TargetMode") == "External"
        }

    def _read_notes(self) -> dict[tuple[str, str], str]:
        notes: dict[tuple[str, str], str] = {}
        for kind in ("footnote", "endnote"):
            path = f"word/{kind}s.xml"
            for note in self._xml(path).iter(kind) if path in self._names else ():
                if not note.get("type"):
                    text = " ".join(plain(self._text(paragraph)) for paragraph in note.iter("p"))
                    notes[kind, note.get("id", "")] = " ".join(text.split())
        return notes

    def _named(self) -> str:
        if "docProps/core.xml" not in self._names:
            return ""
        title = self._xml("docProps/core.xml").find("title")
        return clean_inline(title.text or "") if title is not None else ""

    # Blocks

    def _blocks(self, node: Element) -> None:
        for child in _unwrapped(node):
            if child.tag == "p":
                self._paragraph(child)
                self._text_boxes(child)
            elif child.tag == "tbl":
                self._table(child)

    def _text_boxes(self, node: Element) -> None:
        """Write the text boxes of a paragraph after it."""
        boxes = [child for child in _visible(node) if child.tag == "txbxContent"]
        for box in boxes if self._nested < _MAX_DEPTH else ():
            self._nested += 1
            self._blocks(box)
            self._nested -= 1

    def _paragraph(self, node: Element) -> None:
        style = self._styles.get(_value(node, "pPr/pStyle"), _Style(""))
        name = self._family(style)
        if _CONTENTS.match(name):
            return
        if _CODE.search(name) and not self._level(style):
            self._end_lists()
            self._code.append("".join(_code_text(node)))
            return
        self._end_code()
        text = self._text(node)
        level = self._level(style)
        if name == "title" and plain(text).strip() and not self._title:
            self._title = clean_inline(plain(text))
            self._to.heading(text, 1)
        elif level and plain(text).strip():
            self._end_lists()
            self._to.close_all()
            self._to.heading(plain(text), min(level + 1, 6) if self._title else min(level, 6), _bookmark(node))
        else:
            self._body(node, style, name, text)

    def _body(self, node: Element, style: _Style, name: str, text: str) -> None:
        number = _value(node, "pPr/numPr/numId") or style.number
        if number and number != "0" and text.strip():
            self._item(number, _depth(_value(node, "pPr/numPr/ilvl")), text)
            return
        if not text.strip():
            return
        self._end_lists()
        if _QUOTE.fullmatch(name):
            self._to.open_quote()
            self._to.paragraph(text)
            self._to.close_quote()
        elif not plain(text).strip():
            for alternative, address in self._images(node):
                self._to.image(alternative, address)
                self._shown = alternative
        elif "caption" in name and clean_inline(plain(text)) == clean_inline(self._shown):
            return  # it repeats the alternative text of the image
        else:
            self._to.paragraph(text)

    def _family(self, style: _Style) -> str:
        """The name of a style, or of the code or quote style that it is based on."""
        for _ in range(10):
            based = self._styles.get(style.based_on)
            if based is None or _CODE.search(style.name) or _CONTENTS.match(style.name) or style.name == "title":
                break
            if not (_CODE.search(based.name) or _QUOTE.fullmatch(based.name)):
                break
            style = based
        return style.name

    def _level(self, style: _Style) -> int:
        for _ in range(10):
            if style.level or style.based_on not in self._styles:
                break
            style = self._styles[style.based_on]
        return style.level

    def _item(self, number: str, depth: int, text: str) -> None:
        place = self._count(number, depth)
        open_ = self._lists.levels
        while len(open_) > depth + 1 or (len(open_) == depth + 1 and place != (open_[-1] and open_[-1] + 1)):
            self._to.close_list()
            open_.pop()
        while len(open_) <= depth:
            self._to.open_list(ordered=place > 0, start=place or 1)
            open_.append(_NO_ITEM if place else 0)
        open_[-1] = place
        self._to.item()
        self._to.paragraph(text)

    def _count(self, number: str, depth: int) -> int:
        """The number of the next item, as Word counts: lists continue over other text. 0 for items without numbers."""
        level = self._levels.get((number, depth))
        if level is None or not level.ordered:
            return 0
        counts = self._counts.setdefault(level.counter, {})
        if level.restart is not None and (number, depth) not in self._numbered:
            counts.pop(depth, None)
        first = level.start if level.restart is None else level.restart
        self._numbered.add((number, depth))
        counts[depth] = counts.get(depth, max(first, 1) - 1) + 1
        for deeper in [one for one in counts if one > depth]:
            del counts[deeper]
        return counts[depth]

    def _end_lists(self) -> None:
        while self._lists.levels:
            self._to.close_list()
            self._lists.levels.pop()

    def _end_code(self) -> None:
        if self._code:
            self._to.code("\n".join(self._code))
            self._code = []

    def _table(self, node: Element) -> None:
        self._end_code()
        self._end_lists()
        rows: list[list[Cell]] = []
        open_cells: dict[int, tuple[int, int]] = {}  # column → row and index of the cell that spans down
        heads = 0
        for row in _unwrapped(node, "tr") if self._nested < _MAX_DEPTH else ():
            column = min(whole_number(_value(row, "trPr/gridBefore"), 0), _MAX_COLUMNS)
            line = [Cell("")] * column
            for cell in _unwrapped(row, "tc"):
                across = whole_number(_value(cell, "tcPr/gridSpan"), 1)
                columns = across if 0 < across <= _MAX_COLUMNS else 1
                merge = cell.find("tcPr/vMerge")
                if merge is not None and merge.get("val") != "restart" and column in open_cells:
                    above, place = open_cells[column]
                    one = rows[above][place]
                    rows[above][place] = Cell(one.text, one.rows + 1, one.columns)
                else:
                    open_cells.pop(column, None)
                    if merge is not None:
                        open_cells[column] = (len(rows), len(line))
                    line.append(Cell(self._cell(cell), 1, columns))
                column += columns
            heads += heads == len(rows) and row.find("trPr/tblHeader") is not None
            rows.append(line)
        self._to.table(rows, max(heads, 1))

    def _cell(self, node: Element) -> str:
        outside = self._to, self._lists, self._code
        self._to, self._lists, self._code = PageBuilder(), _Run(), []
        self._nested += 1
        self._blocks(node)
        self._end_code()
        self._end_lists()
        parts = self._to.finish()
        self._to, self._lists, self._code = outside
        self._nested -= 1
        return " ".join(f"`{part.text}`" if part.kind == "code" else part.text for part in parts)

    # Text

    def _text(self, node: Element) -> str:
        """The text of a paragraph with its marks; runs with the same formatting are merged."""
        pieces: list[tuple[str, str]] = []  # formatting and text
        for child in node:
            if child.tag == "hyperlink":
                anchor = child.get("anchor", "")
                target = self._targets.get(child.get("id", ""), "") or (f"#{anchor}" if anchor else "")
                inner = plain(self._text(child))
                pieces.append(("", styled("link", inner, target) if target else inner))
            elif child.tag == "r":
                pieces += self._run(child)
            elif child.tag in ("oMath", "oMathPara"):
                pieces.append(("", f" {formula(tex_of(child).strip(), block=child.tag == 'oMathPara')} "))
            elif child.tag not in _LEFT_OUT:
                pieces.append(("", self._text(child)))
        content: list[str] = []
        for look, text in _merged(pieces):
            shown = f"`{text}`" if look == "code" else text
            for kind in ("emphasis", "strong", "sub", "sup"):
                shown = _around(kind, shown) if kind in look.split() else shown
            content.append(shown)
        return "".join(content)

    def _run(self, node: Element) -> list[tuple[str, str]]:
        if _is_hidden(node):
            return []
        style = node.find("rPr")
        text = "".join(self._inside(child) for child in node)
        named = self._styles.get(_value(style, "rStyle"))
        if named and _CODE.search(named.name) and text.strip() and "`" not in text:
            return [("code", text)]
        look = " ".join(kind for kind, name in (("strong", "b"), ("emphasis", "i")) if _is_on(style, name))
        raised = _value(style, "vertAlign") if style is not None else ""
        look += {"superscript": " sup", "subscript": " sub"}.get(raised, "")
        return [(look, text)] if text else []

    def _inside(self, node: Element) -> str:  # noqa: PLR0911 - one line an element
        match node.tag:
            case "t":
                return remove_private(node.text or "")
            case "tab" | "br" | "cr" | "noBreakHyphen":
                return "-" if node.tag == "noBreakHyphen" else " "
            case "sym":
                return _symbol(node)
            case "ruby":  # without its reading
                base = node.find("rubyBase")
                return plain(self._text(base)) if base is not None else ""
            case "footnoteReference" | "endnoteReference":
                note = self._notes.get((node.tag.removesuffix("Reference"), node.get("id", "")), "")
                return " " + styled("footnote", f"({note})", node.get("id", "")) if note else ""
            case "AlternateContent":  # the same for several versions of Word
                return "".join(self._inside(child) for child in node.iterfind("Choice/*"))
            case "drawing" | "pict" if node.find(".//txbxContent") is None:
                return "".join(picture(address, alternative) for alternative, address in self._images(node))
        return ""

    def _images(self, node: Element) -> list[tuple[str, str]]:
        """Alternative texts of the images in a node. The images themselves are in the archive and have no address."""
        return [(image.get("descr") or "", "") for image in node.iter("docPr")]


def _unwrapped(node: Element, tag: str = "") -> Iterator[Element]:
    """The children of a node with this tag, or all, with the content of wrappers instead of the wrappers."""
    for child in node:
        if child.tag in _WRAPPERS:
            yield from _unwrapped(child, tag)
        elif tag in ("", child.tag):
            yield child


def _visible(node: Element) -> Iterator[Element]:
    """The elements inside of a node in order, text boxes without their content.

    Without deleted, moved and hidden ones, and the alternatives for old versions of Word.
    """
    for child in node:
        if child.tag not in _LEFT_OUT and not _is_hidden(child):
            yield child
            if child.tag != "txbxContent":
                yield from _visible(child)


def _depth(text: str | None) -> int:
    return min(whole_number(text, 0), 99)


def _value(node: Element | None, path: str) -> str:
    found = node.find(path) if node is not None else None
    return found.get("val", "") if found is not None else ""


def _is_hidden(run: Element) -> bool:
    """Whether an element is a run with hidden text."""
    style = run.find("rPr") if run.tag == "r" else None
    return _is_on(style, "vanish") or _is_on(style, "webHidden")


def _is_on(style: Element | None, name: str) -> bool:
    found = style.find(name) if style is not None else None
    return found is not None and found.get("val", "1") not in _OFF


def _bookmark(node: Element) -> str:
    """The name of a heading's bookmark, the anchor for links; empty if there is none."""
    for mark in node.iter("bookmarkStart"):
        name = mark.get("name", "")
        if name and name != "_GoBack" and re.fullmatch(r"[\w.-]{1,100}", name):
            return name
    return ""


def _symbol(node: Element) -> str:
    """The letter of a symbol; a replacement character if its font is unknown."""
    found = _LETTER.fullmatch(node.get("char", "")) if node.get("font") == "Symbol" else None
    place = int(found[1], 16) - 0x20 if found else len(_SYMBOLS)
    return _SYMBOLS[place : place + 1] or "\ufffd"


def _code_text(node: Element) -> list[str]:
    return [
        "\n" if child.tag in ("br", "cr") else "\t" if child.tag == "tab" else remove_private(child.text or "")
        for child in _visible(node)
        if child.tag in ("t", "br", "cr") or (child.tag == "tab" and not child.get("val"))
    ]


def _merged(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    merged: list[tuple[str, str]] = []
    for look, text in pieces:
        if merged and merged[-1][0] == look:
            merged[-1] = (look, merged[-1][1] + text)
        else:
            merged.append((look, text))
    return merged


def _around(kind: str, text: str) -> str:
    """The text with a mark of this kind. White space at its ends stays outside of the mark."""
    bare = text.strip()
    if not bare:
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    marked = {"emphasis": styled("emphasis", bare), "strong": styled("strong", bare), "sub": styled("sub", bare)}
    return f"{before}{marked.get(kind) or styled('sup', bare)}{after}"
