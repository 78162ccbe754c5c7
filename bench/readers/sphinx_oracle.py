"""Reads the HTML that Sphinx built from a book into facts to compare.

Left out on purpose: tables of contents, images, line and section numbers, hidden texts of cards, Sphinx's markup around
formulas, links around images and of footnotes, and links in code, in signatures and in page titles, which are plain
text in our reader.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.readers.built_html import cells_of, drop_contents, is_inside, text_of
from bench.readers.compare import PageFacts, Table

_DROPPED = (
    ".headerlink, .toctree-wrapper, .contents.topic, nav.contents, .linenos, .linenodiv, script, style, "
    ".viewcode-link, .system-message, .backlinks, .fn-backref, img, iframe, video, object, .section-number, "
    ".sd-hide-link-text"
)
_FORMULA = re.compile(r"\\(?:begin|end)\{(?:align|aligned|split|gather|gathered|equation)\*?\}")
_CITATION = re.compile(r"\[[^\[\]]+\]")  # a marker that we treat as a footnote
_NOT_LINKS = re.compile(r"footnote-reference|image-reference|headerlink|brackets|citation-reference")


def read_site(site: Path) -> dict[str, PageFacts]:
    """The pages of a built site, by address."""
    pages: dict[str, PageFacts] = {}
    for place in sorted((site / "html").rglob("*.html")):
        address = place.relative_to(site / "html").as_posix()
        if address.startswith("_") or address in (
            "genindex.html",
            "search.html",
            "py-modindex.html",
            "rst-modindex.html",
        ):
            continue
        pages[address] = read_page(place.read_text("utf-8"), address)
    return pages


def reading_order(site: Path, root: str) -> list[str]:
    """The reading order of the site: each page links to the next."""
    order, address = [], root
    while address not in order:
        order.append(address)
        tree = LexborHTMLParser((site / "html" / address).read_text("utf-8"))
        following = tree.css_first('link[rel="next"]')
        if following is None:
            break
        address = _joined(address, following.attributes.get("href") or "")
    return order


def read_page(html: str, address: str) -> PageFacts:
    tree = LexborHTMLParser(html)
    facts = PageFacts()
    body = tree.css_first("div.body")
    if body is None:
        return facts
    for node in body.css(_DROPPED):
        node.decompose()
    drop_contents(body)
    facts.anchors = dict(_anchors(body))
    title = body.css_first("h1")
    for link in [*(title.css("a") if title else ()), *body.css("pre a, dt.sig a")]:
        link.unwrap()
    for link in body.css("a.reference"):
        if not _NOT_LINKS.search(link.attributes.get("class") or ""):
            target, said = _joined(address, link.attributes.get("href") or ""), link.text()
            if said.strip() and not _CITATION.fullmatch(said.strip()):
                facts.links.append((said, target))
    for code in body.css("div.highlight pre, pre.literal-block, pre.doctest-block"):
        facts.code.append(code.text())
    headings = [one for one in body.css("h1, h2, h3, h4, h5, h6") if one.text().strip()]  # not those of raw HTML
    for number, heading in enumerate(headings):
        section = heading.parent
        anchor = (section.attributes.get("id") or "") if section is not None and section.tag == "section" else ""
        if number == 0:
            facts.anchors[""] = anchor
        facts.headings.append((int((heading.tag or "h1")[1]), heading.text(), anchor if number else ""))
    for code in body.css("div.highlight pre, pre.literal-block, pre.doctest-block"):
        code.decompose()
    cells: list[str] = []
    for table in [one for one in body.css("table.docutils") if not is_inside(one, "table")]:
        facts.tables.append(_table(table))
        cells += [cell for row in facts.tables[-1] for cell in row] + [one.text() for one in table.css("caption")]
        table.decompose()
    facts.text = _FORMULA.sub(" ", "\n".join([*cells, text_of(body)]))
    return facts


def _anchors(body: LexborNode) -> Iterator[tuple[str, str]]:
    for node in body.css("[id]"):
        name = node.attributes.get("id") or ""
        here: LexborNode | None = node
        while here is not None and here.tag != "section":
            here = here.parent
        if node.tag == "dt":
            yield name, name
        else:
            yield name, (here.attributes.get("id") or "") if here is not None else ""


def _table(table: LexborNode) -> Table:
    parts = {
        name: [row for part in table.iter() if part.tag == name for row in part.iter()] for name in ("thead", "tbody")
    }
    head = cells_of(parts["thead"])
    joined = [" ".join(dict.fromkeys(column)) for column in zip(*head, strict=False)]
    return [*([joined] if joined else []), *cells_of(parts["tbody"])]


def _joined(address: str, href: str) -> str:
    if re.match(r"[a-z][a-z0-9+.-]*:", href):
        return href
    if "_downloads/" in href:
        return f"download:{posixpath.basename(unquote(href))}"
    path, anchor = urldefrag(href)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(address), unquote(path))) if path else address
    return f"{path}#{unquote(anchor)}" if anchor else path
