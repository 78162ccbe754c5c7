"""Shared by the oracles: the text of an element and the cells of a table, in HTML that a generator wrote."""

import re
from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from bench.readers.compare import Table

_INLINE = {
    *("a", "span", "em", "strong", "code", "cite", "sup", "sub", "kbd", "samp", "abbr", "b", "i", "tt", "q", "var"),
    *("mark", "ins", "del", "s", "u", "small", "font", "wbr", "label"),
}


def text_of(node: LexborNode) -> str:
    """The text of an element. Blocks are separated, inline elements are not."""
    said: list[str] = []
    for child in node.iter(include_text=True):
        if child.is_text_node:
            said.append(child.text_content or "")
        elif child.is_element_node:
            inner = text_of(child)
            said.append(inner if child.tag in _INLINE else f"\n{inner}\n")
    return "".join(said)


def drop_contents(body: LexborNode) -> None:
    """Remove lists of links to headings of the same page, which our readers leave out."""
    titles = body.css("h1, h2, h3, h4, h5, h6")
    ids = {f"#{one.attributes.get('id')}" for one in [*titles, *body.css("section")]}
    headings = ids | {_said(one) for one in titles}
    for listing in [one for one in body.css("ul, ol") if _is_contents(one, headings)]:
        listing.decompose()


def _is_contents(listing: LexborNode, headings: set[str]) -> bool:
    links = listing.css("a")
    own = all((link.attributes.get("href") or "").startswith("#") for link in links)
    only = "".join("".join(link.text() for link in links).split()) == "".join(listing.text().split())
    known = sum(bool({_said(link), link.attributes.get("href")} & headings) for link in links)
    return len(links) > 1 and own and only and known * 2 > len(links)


def _said(node: LexborNode) -> str:
    return " ".join(re.findall(r"\w+", node.text().casefold()))


def cells_of(rows: Iterable[LexborNode]) -> Table:
    """The texts of rows. A cell that spans several is repeated. Empty rows are left out."""
    found: Table = []
    reaching: dict[int, tuple[int, str]] = {}  # column → rows still covered, and the text
    for row in rows:
        cells: list[str] = []
        for cell in row.iter():
            _reach(cells, reaching)
            down, across = _number(cell, "rowspan"), _number(cell, "colspan")
            said = " ".join(text_of(cell).split())
            for _ in range(across):
                if down > 1:
                    reaching[len(cells)] = (down - 1, said)
                cells.append(said)
        _reach(cells, reaching)
        if any(cells):
            found.append(cells)
    return found


def is_inside(node: LexborNode, *tags: str) -> bool:
    """Whether an element is inside one of these."""
    above = node.parent
    while above is not None:
        if above.tag in tags:
            return True
        above = above.parent
    return False


def _number(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return int(value) if value.isdigit() else 1


def _reach(cells: list[str], reaching: dict[int, tuple[int, str]]) -> None:
    while len(cells) in reaching:
        left, text = reaching.pop(len(cells))
        if left > 1:
            reaching[len(cells)] = (left - 1, text)
        cells.append(text)
