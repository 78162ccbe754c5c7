"""Renders AsciiDoc books with the real Asciidoctor and reads its HTML into facts to compare.

Asciidoctor must be on the PATH (Debian: `asciidoctor`). Its output goes to `.cache`. Additions of its defaults
(numbered captions, lines with authors) are turned off or ignored, and so are broken links. Where Asciidoctor shows the
file name of a referenced page, the page's title is expected, as Antora shows it.
"""

import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.readers.built_html import cells_of, text_of
from bench.readers.compare import PageFacts, Score, Table, compare, order
from bench.readers.ours import SITE, address, facts_of, read_folder
from bench.readers.sphinx_site import CACHE

_OFF = (
    *("table-caption", "figure-caption", "example-caption", "appendix-caption", "sectanchors", "sectlinks", "toc"),
    *("sectnums", "icons", "source-highlighter"),
)
_DROPPED = "#header .details, #footer, #toc, script, style, sup.footnote, sup.footnoteref, #footnotes hr, img"
_CALLOUT = re.compile(
    r"[ \t]*(?:(?://|#|--|;;)[ \t]*)?(?:(?:<!--\d+-->|<[\d.]+>|\(\d+\)|<!--\(\d+\)-->)[ \t]*)+$", re.M
)
_ENDINGS = (".adoc", ".asciidoc", ".asc")


@dataclass(frozen=True, slots=True)
class AsciiDocBook:
    """A folder of AsciiDoc pages, each of which Asciidoctor renders separately."""

    name: str
    folder: Path
    left_out: tuple[str, ...] = ()  # pages that need preprocessing before Asciidoctor
    rename: str = ""  # extension of further files that contain AsciiDoc


BOOKS = (
    AsciiDocBook("git-doc", Path("/usr/share/doc/git-doc"), rename=".txt"),
    AsciiDocBook("quarkus", CACHE / "asciidoc-sources" / "quarkus"),  # docs/src/main/asciidoc of its repository
)


def available(book: AsciiDocBook) -> bool:
    """Whether the book and Asciidoctor are available."""
    return book.folder.is_dir() and shutil.which("asciidoctor") is not None


def score(book: AsciiDocBook) -> dict[str, Score]:
    """The measures of one book."""
    source = sources(book)
    reading = read_folder(source, lambda path: path.endswith(_ENDINGS))
    found: dict[str, PageFacts] = {}
    for page in reading.pages:
        facts = found[posixpath.splitext(address(page))[0]] = facts_of(page)
        links = [mark for mark in page.marks if mark.kind == "link"]
        facts.code = [_CALLOUT.sub("", code) for code in facts.code]
        facts.links = [
            (page.text[mark.start : mark.end], _bare_target(mark.target.removeprefix(f"{SITE}/"))) for mark in links
        ]
        facts.text = re.sub(r"(?m)^(?:> )?[ ]*\d+\. ", "", facts.text).replace("`", "")
    site = _site(book)
    # pages without text, such as pages of includes only
    refused = {posixpath.splitext(path)[0] for path in reading.refused}
    wanted = {page: facts for page, facts in site.items() if page not in refused and page not in book.left_out}
    for name, facts in wanted.items():
        if name in found and not any(level == 1 for level, _, _ in facts.headings):
            found[name].headings[:1] = []  # a page without a heading is named after its file
    scores = compare({page: facts for page, facts in wanted.items() if page in found}, found, site)
    scores["order"] = order([], [])  # these books have no navigation of their own
    missing = [page for page in wanted if page not in found]
    return {"pages": Score(len(wanted) - len(missing), len(wanted), missing), **scores}


def sources(book: AsciiDocBook) -> Path:
    """The folder of a book's pages."""
    if not book.rename:
        return book.folder
    place = CACHE / "asciidoc-sources" / book.name
    if not place.is_dir():
        shutil.copytree(book.folder, place, ignore=lambda _, names: [one for one in names if one.endswith(".html")])
        for one in list(place.rglob(f"*{book.rename}")):
            shutil.copy(one, one.with_suffix(".adoc"))
    return place


def render(book: AsciiDocBook) -> Path:
    """The folder with the HTML of a book, which is rendered first if needed."""
    site, source = CACHE / "asciidoc-sites" / book.name, sources(book)
    pages = [one for one in sorted(source.rglob("*")) if one.suffix in _ENDINGS and "/_" not in one.as_posix()]
    if not site.is_dir():
        options = [word for name in _OFF for word in ("-a", f"{name}!")]
        command = ["asciidoctor", "-S", "unsafe", "-q", *options, "-a", "linkcss", "-R", str(source), "-D", str(site)]
        subprocess.run([*command, *map(str, pages)], check=True, cwd=source)
    return site


def _site(book: AsciiDocBook) -> dict[str, PageFacts]:
    site = render(book)
    trees = {
        one.relative_to(site).with_suffix("").as_posix(): LexborHTMLParser(_normal(one.read_text("utf-8")))
        for one in sorted(site.rglob("*.html"))
    }
    titles = {page: dict(_titles(tree)) for page, tree in trees.items()}
    return {page: _facts(tree, page, titles) for page, tree in trees.items()}


def _normal(html: str) -> str:
    """Replace curly apostrophes, and write the macro of git's own extension in the form that the extension shows."""
    return re.sub(r"linkgit:([\w.-]+)\[(\d*)\]", r"\1(\2)", html.replace("&#8217;", "'"))


def _titles(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    for heading in tree.css("h1, h2, h3, h4, h5, h6"):
        in_header = heading.parent is not None and heading.parent.attributes.get("id") == "header"
        yield "" if in_header else heading.attributes.get("id") or "", heading.text()


def _facts(tree: LexborHTMLParser, page: str, titles: dict[str, dict[str, str]]) -> PageFacts:
    facts = PageFacts()
    for node in tree.css(_DROPPED):
        node.decompose()
    for node in tree.css("#footnotes .footnote > a"):
        node.decompose()
    for node in [one for one in tree.css("p, pre") if "Unresolved directive" in one.text()]:
        node.decompose()
    facts.anchors = dict(_anchors(tree))
    known = {node.attributes.get("id") for node in tree.css("[id]")}
    for link in tree.css("#content a[href], #footnotes a[href]"):
        href = link.attributes.get("href") or ""
        if link.text().strip() and not (href.startswith("#") and href[1:] not in known):
            target = _bare_target(_joined(page, href))
            facts.links.append((_shown(link, href, target, titles), target))
    for heading in tree.css("#header h1, #content h1, #content h2, #content h3, #content h4, #content h5, #content h6"):
        in_header = heading.parent is not None and heading.parent.attributes.get("id") == "header"
        anchor = "" if in_header else heading.attributes.get("id") or ""
        facts.headings.append((int((heading.tag or "h1")[1]), heading.text(), anchor))
    if facts.headings:  # the first heading is the page's title, even if it is not in the header
        facts.headings[0] = (1, facts.headings[0][1], "")
    tables = [one for one in tree.css("table.tableblock") if not _inside_table(one)]
    said = [caption.text() for one in tables for caption in one.css("caption")]
    facts.tables = [_table(one) for one in tables]
    said += [cell for table in facts.tables for row in table for cell in row]
    for one in tables:
        one.decompose()
    for one in tree.css("#content .content > pre"):
        facts.code.append(_CALLOUT.sub("", one.text()))
        one.decompose()
    for part in ("#header", "#content", "#footnotes"):
        body = tree.css_first(part)
        said.append(text_of(body) if body else "")
    facts.text = "\n".join(said)
    return facts


def _joined(page: str, href: str) -> str:
    if href.startswith("#"):
        return f"{page}{href}"
    relative = not re.match(r"[a-zA-Z][\w+.-]*:|/", href)
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), href)) if relative else href


def _shown(link: LexborNode, href: str, target: str, titles: dict[str, dict[str, str]]) -> str:
    page, _, anchor = target.partition("#")
    if link.text() == href.partition("#")[0] and page in titles and anchor in titles[page]:
        return titles[page][anchor]
    return link.text()


def _bare_target(target: str) -> str:
    address, mark, anchor = unquote(target).partition("#")
    return f"{posixpath.splitext(address)[0] if ':' not in address else address}{mark}{anchor}".rstrip("/")


def _anchors(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    section = ""
    for node in tree.css("#content [id]"):
        name = node.attributes.get("id") or ""
        if re.fullmatch(r"h[1-6]", node.tag or ""):
            section = name
        yield name, name if (node.tag or "").startswith("h") else name or section


def _inside_table(node: LexborNode) -> bool:
    above = node.parent
    while above is not None:
        if above.tag == "table" and "tableblock" in (above.attributes.get("class") or ""):
            return True
        above = above.parent
    return False


def _table(table: LexborNode) -> Table:
    return cells_of(row for part in table.iter() if part.tag in ("thead", "tbody", "tfoot") for row in part.iter())
