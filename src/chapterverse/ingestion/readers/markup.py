"""From the elements of an HTML page to parts.

Owns what each element means: headings and their anchors, lists, tables, code, admonitions, figures. Never decides which
element holds the content nor what is hidden: what it is given is read from top to bottom.
"""

import re
from collections.abc import Iterator, Mapping

from selectolax.lexbor import LexborNode

from chapterverse.ingestion.document import Part
from chapterverse.ingestion.readers.manuscript import Manuscript

_DEEPEST = 150  # elements inside each other; what lies deeper is read as bare text
_BLOCK = re.compile(
    r"address|article|aside|blockquote|body|center|d[dlt]|details|dialog|div|fieldset|figcaption|figure|footer|form|"
    r"h[1-6r]|header|hgroup|li|main|menu|nav|[ou]l|p|pre|search|section|summary|table|tbody|tfoot|thead|t[dhr]"
)
_HEADING = re.compile(r"h([1-6])")
_CODE = frozenset(["code", "kbd", "samp", "tt"])
_LANGUAGE = re.compile(r"(?:language|lang|highlight(?:-source|-text)?)-([A-Za-z][\w+#.-]*)")
_NO_LANGUAGE = frozenset(["default", "none", "notranslate", "text", "plaintext", "plain"])
_ADMONITION = frozenset(["admonition", "theme-admonition"])
_KIND = re.compile(
    r"(?:theme-admonition-)?(note|tip|hint|info|warning|danger|caution|attention|error|important|seealso|abstract|success|"
    r"question|failure|bug|example|quote|todo|secondary)"
)
_ADMONITION_TITLE = ".admonition-title, [class*=admonitionHeading], summary"


def parts_of(root: LexborNode, names: Mapping[int, str]) -> tuple[Part, ...]:
    """The parts below an element. `names` are titles of tab panels by the `mem_id` of the panel."""
    walk = _Walk(names)
    walk.children(root)
    return walk.page.finish()


def text_of(node: LexborNode) -> str:
    """The text of an element as one runs over it with the eye; code is in backticks."""
    return "".join(_run(node, 0))


class _Walk:
    def __init__(self, names: Mapping[int, str]) -> None:
        self.page = Manuscript()
        self._names = names
        self._section = ""  # id of the section whose heading has not come yet
        self._level = 1  # of the last heading
        self._depth = 0

    def children(self, node: LexborNode) -> None:
        """Everything inside an element; loose text between blocks is a paragraph."""
        if self._depth > _DEEPEST:
            self.page.paragraph(node.text(separator=" "))
            return
        self._depth += 1
        loose: list[str] = []
        for child in node.iter(include_text=True):
            if child.is_text_node:
                loose.append(child.text_content or "")
            elif _is_block(child):
                self.page.paragraph("".join(loose))
                loose.clear()
                self._block(child)
            elif child.is_element_node:
                loose.extend(_inline(child, 0))
        self.page.paragraph("".join(loose))
        self._depth -= 1

    def _block(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if heading := _HEADING.fullmatch(tag):
            self._heading(node, int(heading[1]))
        elif tag == "pre":
            self.page.code(_code_text(node), _language(node))
        elif tag in ("ul", "ol", "menu"):
            self._list(node)
        elif tag == "dl":
            self._definitions(node)
        elif tag == "table":
            self._table(node)
        elif tag == "blockquote":
            self.page.open_quote()
            self.children(node)
            self.page.close_quote()
        elif _classes(node) & _ADMONITION:
            self._admonition(node)
        else:
            self._container(node, tag)

    def _container(self, node: LexborNode, tag: str) -> None:
        if name := self._names.get(node.mem_id):
            self.page.paragraph(f"{name}:")
        if tag == "section" or (tag == "div" and "section" in _classes(node)):
            self._section = node.attributes.get("id") or ""
        self.children(node)

    def _heading(self, node: LexborNode, level: int) -> None:
        anchor = node.attributes.get("id") or ""
        for inner in () if anchor else node.css("a[id], a[name], span[id]"):
            anchor = anchor or inner.attributes.get("id") or inner.attributes.get("name") or ""
        self._level = level
        self.page.heading(text_of(node), level, anchor or self._section)
        self._section = ""

    def _list(self, node: LexborNode) -> None:
        start = node.attributes.get("start") or ""
        self.page.open_list(node.tag == "ol", int(start) if start.isdecimal() else 1)
        for child in node.iter():
            if child.tag == "li":
                self.page.item()
            self.children(child)
        self.page.close_list()

    def _definitions(self, node: LexborNode) -> None:
        """Terms with what they mean; the signature of a function or class is a heading that can be linked to."""
        if any("sig" in _classes(term) for term in node.iter() if term.tag == "dt"):
            self._signatures(node)
            return
        self.page.open_list()
        terms: list[str] = []
        for child in _rows(node, "div"):
            if child.tag == "dt":
                terms.append(text_of(child).strip().rstrip(":"))
            elif child.tag == "dd":
                self.page.item(", ".join(terms))
                terms.clear()
                self.children(child)
        if terms:
            self.page.item(", ".join(terms))
        self.page.close_list()

    def _signatures(self, node: LexborNode) -> None:
        above = self._level
        for child in node.iter():
            if child.tag == "dt" and (anchor := child.attributes.get("id")):
                signature = " ".join(child.text().split())
                self._level = min(above + 1, 6)
                self.page.heading(signature.split("(")[0], self._level, anchor)
                self.page.paragraph(f"`{signature}`")
            elif child.tag == "dt":
                self.page.paragraph(f"`{' '.join(child.text().split())}`")
            else:
                self.children(child)
        self._level = above

    def _table(self, node: LexborNode) -> None:
        if numbered := node.css_first("td.code pre"):  # code beside its line numbers
            self._block(numbered)
            return
        rows = [list(_rows(row)) for row in _rows(node, "thead", "tbody", "tfoot") if row.tag == "tr"]
        if _is_layout(node, rows):
            for row in rows:
                for cell in row:
                    self.children(cell)
            return
        if caption := node.css_first("caption"):
            self.page.paragraph(text_of(caption))
        self.page.table([[text for cell in row for text in _cell(cell)] for row in rows])

    def _admonition(self, node: LexborNode) -> None:
        kinds = (_KIND.fullmatch(name) for name in sorted(_classes(node)))
        kind = next((found[1] for found in kinds if found), "note")
        label = "See also" if kind == "seealso" else kind.capitalize()
        title = node.css_first(_ADMONITION_TITLE)
        said = " ".join(text_of(title).split()) if title else ""
        if title:
            title.decompose()
        self.page.open_admonition(label)
        if said.rstrip(":").casefold() != label.casefold():
            self.page.paragraph(said)
        self.children(node)
        self.page.close_admonition()


def _is_block(node: LexborNode) -> bool:
    """Also an inline element that holds a block, as `<a><div>`."""
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
        yield f"`{code}`" if code and "`" not in code else code
    elif tag == "img":
        yield f" {node.attributes.get('alt') or ''} "
    elif tag == "br":
        yield " "
    elif tag == "sup":
        power = "".join(_run(node, depth)).strip()
        yield f"^{power}" if re.fullmatch(r"[+−-]?\d+|[a-z]", power) and not node.css_first("a") else power
    elif tag == "math":
        tex = node.css_first("annotation")
        yield f" {(tex or node).text()} "
    elif tag not in ("rt", "rp"):
        yield from _run(node, depth)


def _run(node: LexborNode, depth: int) -> Iterator[str]:
    for child in node.iter(include_text=True):
        if child.is_text_node:
            yield child.text_content or ""
        elif child.is_element_node:
            yield from _inline(child, depth + 1)
            if _BLOCK.fullmatch(child.tag or ""):
                yield " "


def _code_text(node: LexborNode) -> str:
    """Code as it is laid out. Some highlighters end lines with `<br>`, or make each line an element of its own."""
    lines = node.css(".token-line, .code-line, span.line")
    if len(lines) > 1 and "\n" not in node.text().strip():
        return "\n".join(line.text().rstrip("\n") for line in lines)
    for pause in node.css("br"):
        pause.replace_with("\n")
    return node.text()


def _language(node: LexborNode) -> str:
    """From the class of the code, or of up to three elements around it."""
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
    return ""


def _rows(node: LexborNode, *groups: str) -> Iterator[LexborNode]:
    """The children of a table or a definition list, also those inside its groups."""
    for child in node.iter():
        if child.tag in groups:
            yield from child.iter()
        else:
            yield child


def _cell(cell: LexborNode) -> list[str]:
    span = cell.attributes.get("colspan") or ""
    return [text_of(cell)] + [""] * (min(int(span), 50) - 1 if span.isdecimal() else 0)


def _is_layout(node: LexborNode, rows: list[list[LexborNode]]) -> bool:
    """Whether a table only places things on the page."""
    if node.attributes.get("role") in ("presentation", "none") or max(map(len, rows), default=0) < 2:
        return True
    if node.css_first("th"):
        return False
    return node.css_first("td table, td h1, td h2, td h3, td pre") is not None


def _classes(node: LexborNode) -> frozenset[str]:
    return frozenset((node.attributes.get("class") or "").split())
