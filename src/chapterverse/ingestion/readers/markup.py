"""Converts HTML elements to parts: headings and anchors, lists, tables, code, admonitions, figures.

The caller decides which element has the content and what is hidden.
"""

import re
from collections.abc import Iterator, Mapping

from selectolax.lexbor import LexborNode

from chapterverse.book import MarkKind
from chapterverse.ingestion.document import Part
from chapterverse.ingestion.inline import formula, picture, plain, styled
from chapterverse.ingestion.limits import whole_number
from chapterverse.ingestion.readers.cleaning import Cell
from chapterverse.ingestion.readers.page_builder import PageBuilder

_DEEPEST = 150  # nested elements; deeper ones are read as plain text
_BLOCK = re.compile(
    r"address|article|aside|blockquote|body|center|d[dlt]|details|dialog|div|fieldset|figcaption|figure|footer|form|"
    r"h[1-6r]|header|hgroup|li|main|menu|nav|[ou]l|p|pre|search|section|summary|table|tbody|tfoot|thead|t[dhr]"
)
_HEADING = re.compile(r"h([1-6])")
_CODE = frozenset(["code", "kbd", "samp", "tt"])
_MARKS: dict[str, MarkKind] = {"em": "emphasis", "i": "emphasis", "strong": "strong", "b": "strong", "sub": "sub"}
_LANGUAGE = re.compile(r"(?:language|lang|highlight(?:-source|-text)?)-([A-Za-z][\w+#.-]*)")
_NO_LANGUAGE = frozenset(["default", "none", "notranslate", "text", "plaintext", "plain"])
_TEX = re.compile(r"\s*+(?:\\\((.+)\\\)|\\\[(.+)\\\])\s*+", re.DOTALL)
_ADMONITION = frozenset(["admonition", "theme-admonition"])
_KIND = re.compile(
    r"(?:theme-admonition-|starlight-aside--)?(note|tip|hint|info|warning|danger|caution|attention|error|important|seealso|abstract|success|"
    r"question|failure|bug|example|quote|todo|secondary)"
)
_ADMONITION_TITLE = ".admonition-title, .starlight-aside__title, [class*=admonitionHeading], summary"


def parts_of(root: LexborNode, names: Mapping[int, str]) -> tuple[Part, ...]:
    """The parts of an element. `names`: titles of tab panels by the `mem_id` of the panel."""
    walk = _Walk(names)
    walk.children(root)
    return walk.page.finish()


def text_of(node: LexborNode) -> str:
    """The text of an element; code is in backticks."""
    return "".join(_run(node, 0))


class _Walk:
    def __init__(self, names: Mapping[int, str]) -> None:
        self.page = PageBuilder()
        self._names = names
        self._section = ""  # id of the section whose heading follows
        self._level = 1  # of the last heading
        self._depth = 0
        self._code_title = ""  # of the code that follows
        self._objects = 0  # open descriptions of functions and the like

    def children(self, node: LexborNode) -> None:
        """Read the content of an element; text between blocks is a paragraph."""
        if self._depth > _DEEPEST:
            self.page.paragraph(node.text(separator=" "))
            return
        self._depth += 1
        loose: list[str] = []
        images: list[LexborNode] = []
        for child in node.iter(include_text=True):
            if child.is_text_node:
                loose.append(child.text_content or "")
            elif _is_block(child):
                self._loose(loose, images)
                self._block(child)
            elif child.is_element_node:
                loose.extend(_inline(child, 0))
                images += [child] if child.tag == "img" else child.css("img")
        self._loose(loose, images)
        self._depth -= 1

    def _loose(self, said: list[str], images: list[LexborNode]) -> None:
        """Write text between blocks as a paragraph. Images without text become blocks."""
        text = "".join(said)
        if images and not plain(text).strip():
            for image in images:
                self._image(image)
        else:
            self.page.paragraph(text)
        said.clear()
        images.clear()

    def _image(self, node: LexborNode, caption: str = "") -> None:
        self.page.image(node.attributes.get("alt") or "", _source(node), caption)

    def _block(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if heading := _HEADING.fullmatch(tag):
            self._heading(node, int(heading[1]))
        elif _is_code_title(node):
            self._code_title = " ".join(text_of(node).split())
        elif tag == "pre":
            self.page.code(_code_text(node), _language(node), caption=self._code_title)
            self._code_title = ""
        elif tag in ("ul", "ol", "menu"):
            self._list(node)
        elif tag == "dl":
            self._definitions(node)
        elif tag == "table":
            self._table(node)
        elif tag == "figure":
            self._figure(node)
        elif tag == "blockquote":
            self.page.open_quote()
            self.children(node)
            self.page.close_quote()
        elif _classes(node) & _ADMONITION or (tag == "aside" and _kind(node)):
            self._admonition(node)
        elif tex := _tex(node):
            self.page.paragraph(tex)
        else:
            self._container(node, tag)

    def _figure(self, node: LexborNode) -> None:
        """Write an image or a table with its caption; a figure with other content like any element."""
        caption, images, table = node.css_first("figcaption"), node.css("img"), node.css_first("table")
        text = text_of(caption) if caption else ""
        rest = _length(node) - (_length(caption) if caption else 0)
        if len(images) == 1 and not rest:
            self._image(images[0], text)
        elif table and not images and rest == _length(table):
            self._table(table, text)
        else:
            self._container(node, "figure")

    def _container(self, node: LexborNode, tag: str) -> None:
        if name := self._names.get(node.mem_id):
            self.page.paragraph(f"{name}:")
        if tag == "section" or (tag == "div" and "section" in _classes(node)):
            self._section = node.attributes.get("id") or ""
        self.children(node)

    def _heading(self, node: LexborNode, level: int) -> None:
        anchor = node.attributes.get("id") or ""
        anchor = anchor or self._section
        for inner in () if anchor else node.css("a[id], a[name], span[id]"):
            anchor = anchor or inner.attributes.get("id") or inner.attributes.get("name") or ""
        self._level = level
        self.page.heading(text_of(node), level, anchor)
        self._section = ""

    def _list(self, node: LexborNode) -> None:
        self.page.open_list(node.tag == "ol", whole_number(node.attributes.get("start"), 1))
        for child in node.iter():
            if child.tag == "li":
                self.page.item()
            self.children(child)
        self.page.close_list()

    def _definitions(self, node: LexborNode) -> None:
        """Write terms with their descriptions as fields. Signatures of functions and classes become headings, too."""
        if any("sig" in _classes(term) for term in node.iter() if term.tag == "dt"):
            self._signatures(node)
            return
        plainly = self._objects > 0 and "field-list" in _classes(node)  # of a function: as text
        described: list[tuple[list[str], list[LexborNode]]] = []  # terms and their descriptions
        for child in _rows(node, "div"):
            if child.tag in ("dt", "dd") and (not described or (child.tag == "dt" and described[-1][1])):
                described.append(([], []))
            if child.tag == "dt":
                described[-1][0].append(text_of(child).strip().rstrip(":"))
            elif child.tag == "dd":
                described[-1][1].append(child)
        for terms, descriptions in described:
            name = ", ".join(terms)
            self.page.paragraph(f"{name}:") if plainly else self.page.open_field(name)
            for description in descriptions:
                self.children(description)
            if not plainly:
                self.page.close_field()

    def _signatures(self, node: LexborNode) -> None:
        """Write functions, classes and options: a heading with an anchor, and a field with the description."""
        above = self._level
        signatures: list[str] = []
        for child in node.iter():
            if child.tag == "dt":
                signature = " ".join(child.text().split())
                if (anchor := child.attributes.get("id")) and not signatures:
                    self._level = min(above + 1, 6)
                    self.page.heading(signature.split("(")[0], self._level, anchor)
                signatures.append(f"`{signature}`")
                continue
            self._objects += 1
            self.page.open_field(", ".join(signatures))
            signatures.clear()
            self.children(child)
            self.page.close_field()
            self._objects -= 1
        if signatures:
            self.page.field(", ".join(signatures))
        self._level = above

    def _table(self, node: LexborNode, outer: str = "") -> None:
        """Write a table. `outer`: the caption of the figure around it."""
        caption = node.css_first("caption")
        text = " ".join(filter(None, (outer, text_of(caption) if caption else "")))
        if numbered := node.css_first("td.code pre"):  # code with line numbers
            self._code_title = " ".join(text.split()) or self._code_title
            self._block(numbered)
            return
        rows = [list(_rows(row)) for row in _rows(node, "thead", "tbody", "tfoot") if row.tag == "tr"]
        if _is_layout(node, rows):
            self.page.paragraph(text)
            for row in rows:
                for cell in row:
                    self.children(cell)
            return
        self.page.table([[_cell(cell) for cell in row] for row in rows], _head_rows(node, rows), text)

    def _admonition(self, node: LexborNode) -> None:
        kind = _kind(node) or "note"
        label = "See also" if kind == "seealso" else kind.capitalize()
        title = node.css_first(_ADMONITION_TITLE)
        text = " ".join((text_of(title) if title else node.attributes.get("aria-label") or "").split())
        if title:
            title.decompose()
        same = text.rstrip(":").casefold() == label.casefold()
        self.page.open_admonition(label if same or not text else text, kind=kind)
        self.children(node)
        self.page.close_admonition()


def _kind(node: LexborNode) -> str:
    """The kind of an admonition by its classes, such as "note"; empty if they name none."""
    kinds = (_KIND.fullmatch(name) for name in sorted(_classes(node)))
    return next((found[1] for found in kinds if found), "")


def _length(node: LexborNode) -> int:
    """The number of characters of an element without white space."""
    return len("".join(node.text().split()))


def _is_code_title(node: LexborNode) -> bool:
    """Whether an element is the file name of the code below it: Docusaurus, Sphinx, MkDocs Material."""
    return node.css_first("pre") is None and any(
        name.startswith("codeBlockTitle") or name in ("code-block-caption", "filename") for name in _classes(node)
    )


def _is_block(node: LexborNode) -> bool:
    """Whether an element is a block, or an inline element that contains a block, such as `<a><div>`."""
    return _BLOCK.fullmatch(node.tag or "") is not None or (
        node.is_element_node and node.tag != "math" and _holds_block(node)
    )


def _holds_block(node: LexborNode) -> bool:
    return node.css_first("p, div, ul, ol, dl, pre, table, h1, h2, h3, h4, h5, h6, blockquote") is not None


def _inline(node: LexborNode, depth: int) -> Iterator[str]:
    """The text of one inline element."""
    tag = node.tag or ""
    if depth > _DEEPEST:
        yield node.text()
    elif tag in _CODE or (tag == "span" and "literal" in _classes(node)):
        code = " ".join(node.text().split())
        code = f"`{code}`" if code and "`" not in code else code
        link = node.css_first("a[href]")
        yield styled("link", code, link.attributes.get("href") or "") if link and link.text() == node.text() else code
    elif tag == "img":
        yield picture(_source(node), node.attributes.get("alt") or "") if _source(node) else ""
    elif mark := _MARKS.get(tag):
        yield styled(mark, "".join(_run(node, depth)))
    elif tag == "a" and (href := (node.attributes.get("href") or "").strip()):
        yield styled("link", "".join(_run(node, depth)), href)
    elif tag == "br":
        yield " "
    elif tag == "sup":
        yield styled("sup", "".join(_run(node, depth)).strip())
    elif tex := _tex(node):
        yield tex
    elif tag == "math":
        annotation = node.css_first("annotation")
        yield f" {formula(annotation.text().strip()) if annotation else node.text()} "
    elif tag not in ("rt", "rp"):
        yield from _run(node, depth)


def _tex(node: LexborNode) -> str:
    """The formula of an element for MathJax or KaTeX; empty if it has other content."""
    only = node.child
    if only is None or not only.is_text_node or only.next is not None:
        return ""
    found = _TEX.fullmatch(only.text_content or "")
    return formula((found[1] or found[2]).strip(), block=found[2] is not None) if found else ""


def _run(node: LexborNode, depth: int) -> Iterator[str]:
    for child in node.iter(include_text=True):
        if child.is_text_node:
            yield child.text_content or ""
        elif child.is_element_node:
            space = " " if _BLOCK.fullmatch(child.tag or "") else ""
            yield space
            yield from _inline(child, depth + 1)
            yield space


def _code_text(node: LexborNode) -> str:
    """The text of code. Some highlighters end lines with `<br>` or make each line an element."""
    lines = node.css(".token-line, .code-line, span.line")
    if len(lines) > 1 and "\n" not in node.text().strip():
        return "\n".join(line.text().rstrip("\n") for line in lines)
    for pause in node.css("br"):
        pause.replace_with("\n")
    return node.text()


def _language(node: LexborNode) -> str:
    """The language, from the class of the code or of up to three elements around it."""
    code = node.css_first("code")
    places = [code] if code else []
    around: LexborNode | None = node
    while around and len(places) < 5:
        places.append(around)
        around = around.parent
    for place in places:
        for name in sorted(_classes(place)):
            if (found := _LANGUAGE.fullmatch(name)) and found[1].lower() not in _NO_LANGUAGE:
                return found[1].lower()
        if "sourceCode" in _classes(place):  # Pandoc
            return next((name for name in sorted(_classes(place)) if name.islower() and name.isalnum()), "")
    return ""


def _rows(node: LexborNode, *groups: str) -> Iterator[LexborNode]:
    """The children of a table or a definition list, also those inside its groups."""
    for child in node.iter():
        if child.tag in groups:
            yield from child.iter()
        else:
            yield child


def _cell(cell: LexborNode) -> Cell:
    return Cell(text_of(cell), _span(cell, "rowspan"), _span(cell, "colspan"))


def _span(cell: LexborNode, name: str) -> int:
    given = cell.attributes.get(name) or ""
    return max(int(given), 1) if given.isdecimal() and len(given) < 6 else 1


def _head_rows(node: LexborNode, rows: list[list[LexborNode]]) -> int:
    """The number of header rows, 1 to 3: the first rows that are in `thead` or have only `th`."""
    heads = 0
    for row in rows:
        parent = row[0].parent.parent if row and row[0].parent else None
        in_head = parent is not None and parent.tag == "thead"
        if not in_head and not (row and all(cell.tag == "th" for cell in row)):
            break
        heads += 1
    return min(heads, 3) or 1


def _source(node: LexborNode) -> str:
    """The address of an image, also if it is loaded lazily; empty for images embedded in the page."""
    for name in ("src", "data-src"):
        address = (node.attributes.get(name) or "").strip()
        if address and not address.startswith("data:"):
            return address
    return ""


def _is_layout(node: LexborNode, rows: list[list[LexborNode]]) -> bool:
    """Whether a table is only for layout."""
    if node.attributes.get("role") in ("presentation", "none"):
        return True
    if node.css_first("th"):
        return False
    if max(map(len, rows), default=0) < 2:
        return True
    return node.css_first("td table, td h1, td h2, td h3, td pre") is not None


def _classes(node: LexborNode) -> frozenset[str]:
    return frozenset((node.attributes.get("class") or "").split())
