"""Reads the HTML that MkDocs, VitePress, Docusaurus and Hugo built from a book into facts to compare."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.readers.built_html import cells_of, drop_contents, is_inside, text_of
from bench.readers.compare import PageFacts, Table
from bench.readers.ours import SITE, below_site

_UNSEEN = "script, style, template, noscript, svg, iframe, video, audio, object, img, input, select"
_UNSEEN += ", [hidden], [aria-hidden=true]"
_BOX = re.compile(r"(?:^|\s)(?:admonition|custom-block|theme-admonition|tabbed-block)(?:\s|$)")
_OBJECT = re.compile(r"\[([^\[\]\n]+)\]\[(?:[\w-]+\.)*[\w-]*\]")  # a reference that needs a plug-in we do not have


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where a generator puts the parts of a page."""

    body: str  # the page's own text
    dropped: str  # parts that the generator adds to it
    code: str = "pre"
    skipped: str = "404.html"
    bare: bool = False  # addresses end without a slash


MKDOCS = Dialect(
    "article.md-content__inner",
    ".md-source-file, .headerlink, .md-content__button, .md-tags, .toc, .footnote-backref, .footnote-ref, "
    ".md-clipboard, .linenos, .twemoji, .md-nav, .grid.cards hr",
)
VITEPRESS = Dialect(
    "main .vp-doc > div",
    ".header-anchor, button.copy, pre + .line-numbers-wrapper, .table-of-contents, div[class*=language-] > .lang",
)
DOCUSAURUS = Dialect(
    ".theme-doc-markdown",
    ".hash-link, button[class*=copyButton], button[class*=clean-btn], [class*=buttonGroup], .table-of-contents, "
    "[class*=tableOfContentsInline], [class*=docCardListItem]",
    bare=True,
)
HUGO = Dialect("main", ".footnote-ref, .footnote-backref")


def read_site(site: Path, dialect: Dialect) -> dict[str, PageFacts]:
    """The pages of a built site, by address relative to the site."""
    pages: dict[str, PageFacts] = {}
    for address, tree in _trees(site, dialect):
        if (body := tree.css_first(dialect.body)) is not None:
            pages[address] = _page(body, address, dialect)
    return pages


def reading_orders(site: Path, dialect: Dialect) -> list[list[str]]:
    """The reading orders of the site, from each page's link to the next; one order for each sidebar."""
    after: dict[str, str] = {}
    for address, tree in _trees(site, dialect):
        following = tree.css_first('link[rel="next"], a.pagination-nav__link--next, a.pager-link.next')
        sidebar = {_joined(address, one.attributes.get("href") or "") for one in tree.css(".VPSidebar a[href]")}
        if following is not None and (not sidebar or address in sidebar):  # VitePress links to the first page otherwise
            after[address] = _joined(address, following.attributes.get("href") or "")
    orders = []
    for first in sorted(after.keys() - set(after.values())):
        order = [first]
        while (turned := after.get(order[-1])) is not None and turned not in order:
            order.append(turned)
        orders.append(order)
    return orders


def _trees(site: Path, dialect: Dialect) -> Iterator[tuple[str, LexborHTMLParser]]:
    """The files of a built site, with their addresses relative to the site."""
    for place in sorted(site.rglob("*.html")):
        address = re.sub(r"(^|/)index\.html$", "" if dialect.bare else r"\1", place.relative_to(site).as_posix())
        tree = LexborHTMLParser(place.read_text("utf-8"))
        named = tree.css_first('link[rel="canonical"]')
        if named is not None and (href := named.attributes.get("href") or "").startswith(SITE):
            address = unquote(href.removeprefix(f"{SITE}/").removeprefix(SITE))
        if address not in dialect.skipped.split():
            yield address, tree


def _page(body: LexborNode, address: str, dialect: Dialect) -> PageFacts:
    facts = PageFacts()
    for node in body.css(f"{_UNSEEN}, {dialect.dropped}"):
        node.decompose()
    for details in body.css("details"):
        # FastAPI shows the program a second time
        if re.search("Other versions and variants|Full file preview", details.text()):
            details.decompose()
    for labels in body.css(".tabbed-labels"):
        if re.fullmatch(r"\s*(Python 3\.\d+\+\s*)+", labels.text()):
            labels.decompose()
    drop_contents(body)
    facts.links = list(_links(body, address))
    facts.anchors = dict(_anchors(body))
    for number, heading in enumerate(_headings(body)):
        anchor = heading.attributes.get("id") or ""
        if number == 0:
            facts.anchors[""] = anchor
        facts.headings.append((int((heading.tag or "h1")[1]), _words(heading.text()), anchor if number else ""))
    for code in body.css(dialect.code):
        facts.code.append(_code(code))
        code.decompose()
    said = []
    for table in [one for one in body.css("table") if not is_inside(one, "table")]:
        rows = _table(table)
        facts.tables.append(rows)
        said += [cell for row in rows for cell in row]
        table.decompose()
    facts.text = _OBJECT.sub(r"\1", "\n".join([*said, text_of(body)]))
    return facts


def _words(text: str) -> str:
    return _OBJECT.sub(r"\1", " ".join(text.split()))


def _headings(body: LexborNode) -> list[LexborNode]:
    return [
        one
        for one in body.css("h1, h2, h3, h4, h5, h6")
        if one.text().strip() and not is_inside(one, "li", "blockquote", "td", "th", "table") and not _in_box(one)
    ]


def _in_box(node: LexborNode) -> bool:
    above = node.parent
    while above is not None:
        if above.tag != "details" and _BOX.search(above.attributes.get("class") or ""):
            return True
        above = above.parent
    return False


def _links(body: LexborNode, address: str) -> Iterator[tuple[str, str]]:
    for link in body.css("a[href]"):
        said, target = " ".join(link.text().split()), _joined(address, link.attributes.get("href") or "")
        if said and not is_inside(link, "pre"):
            yield said, target


def _joined(address: str, href: str) -> str:
    target, anchor = urldefrag(urljoin(f"{SITE}/{address}", href))
    target = unquote(re.sub(r"(^|/)index\.html$", r"\1", target) if target.startswith(SITE) else target)
    return below_site(f"{target}#{unquote(anchor)}" if anchor else target)


def _anchors(body: LexborNode) -> Iterator[tuple[str, str]]:
    for node in body.css("[id]"):
        name = node.attributes.get("id") or ""
        yield name, name


def _code(pre: LexborNode) -> str:
    for line in pre.css("br"):
        line.replace_with("\n")
    lines = pre.css(".token-line, code > span.line")
    if lines:
        return "\n".join(line.text().rstrip("\n") for line in lines)
    return pre.text()


def _table_above(node: LexborNode) -> LexborNode | None:
    above = node.parent
    while above is not None and above.tag != "table":
        above = above.parent
    return above


def _table(table: LexborNode) -> Table:
    rows = cells_of(one for one in table.css("tr") if _table_above(one) == table)
    return [[_words(cell) for cell in row] for row in rows]
