"""Reads HTML pages: the content without the navigation of the site, and the links for the crawler.

Decides what is content, what is hidden, and the title. Hidden text is not indexed.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urldefrag, urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Unreadable
from chapterverse.ingestion.readers.cleaning import clean_inline, decode
from chapterverse.ingestion.readers.hidden_text import WHITE, Colour, ground_of, hides
from chapterverse.ingestion.readers.markup import parts_of, text_of

_DEEPEST = 5000  # nested elements; the parser's time is quadratic in the depth
_OPENING = re.compile(
    r"<(/?)(?!(?:p|li|td|th|tr|dt|dd|option|br|img|hr|input|meta|link|wbr|col|source)\b)[a-z][^<>]*+>", re.I
)
_CHARSET = re.compile(  # besides UTF-8 and Latin; a fixed list, so that a page cannot choose any codec of Python
    rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?"""
    rb"(iso-8859-(?!1\b)\d+|windows-125(?!2)\d|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5)",
    re.I,
)
_SNIFF = 2048  # bytes in which a page must name its encoding

_MAIN = (
    ".theme-doc-markdown",  # Docusaurus
    ".md-content article",  # MkDocs Material
    "[itemprop=articleBody]",  # Read the Docs
    "article.bd-article",  # PyData
    "[role=main]",
    "main",
    "article",
    "div.body",  # Sphinx
    "div.document",
)
_SITE = (
    "nav, footer:not(blockquote footer), "
    "script, style, noscript, template, iframe, object, canvas, video, audio, svg, dialog, "
    "input, select, textarea, label:not(.sd-tab-label), [role=navigation], [role=search], [role=banner], "
    "[role=contentinfo], [role=dialog], [role=tablist], .contents.topic, .toctree-wrapper, .headerlink, .hash-link, "
    ".header-anchor, .anchorjs-link, .toc, .table-of-contents, .theme-doc-toc-mobile, .breadcrumbs, .breadcrumb, "
    ".sphinxsidebar, .theme-doc-breadcrumbs, .theme-doc-version-badge, .theme-doc-version-banner, "
    ".theme-doc-footer, .pagination-nav, "
    ".theme-edit-this-page, .edit-this-page, .md-content__button, .md-source-file, .tabbed-labels, .related, "
    ".rst-footer-buttons, .prev-next-area, .skip-link, .linenos, .lineno, .linenodiv, td.gutter, .lnt, "
    ".hljs-ln-numbers, .footnote-back, .footnote-backref, .fn-backref, [role=doc-backlink]:not(.toc-backref), "
    ".footnote-ref, .footnote-reference, .copybtn, .cc-window, .md-consent, #onetrust-consent-sdk, "
    "[class*=cookie-banner], [class*=cookie-consent], [class*=cookieconsent], div[id*=cookie-banner], "
    "div[id*=cookie-consent]"
)
_ASIDE = "aside:not(.admonition):not(.topic):not(.footnote):not(.footnote-list), .sidebar"
_MARK = re.compile(r"[#¶§🔗\u200b\s]*")
_EDIT = re.compile(  # the whole text of a link
    r"\W*(?:(?:edit|improve) this page|edit source|edit(?: this page| source)? on \w+|suggest (?:an )?(?:edit|change)s?"
    r"|view (?:page )?source(?: on \w+)?)\W*",
    re.I,
)
_AT_RULE = re.compile(r"@[^{};@]*+\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\}")
_RULE = re.compile(r"(?<![^{}])([^{}]++)\{([^{}]*+)\}")
_SIMPLE = re.compile(r"[a-z]*[.#][\w-]+", re.I)
_SUFFIX = re.compile(r"(?<!\s)\s++(?:[|·—–›»]|::)\s++[^|·—–›»]{0,200}+$")
_HYPHEN_SUFFIX = re.compile(r"(?<!\s)\s++-\s++(?:(?!\s-\s).){0,200}+$")


def read(document: Document) -> list[Draft]:
    """Read an HTML file."""
    tree = parse(text_from(document.data))
    if reason := _not_content(tree):
        raise NothingToRead(reason)
    return [draft_of(tree)]


def links(document: Document) -> list[str]:
    """The absolute addresses of a page's links without fragments, in order, each once."""
    tree = parse(text_from(document.data))
    if "nofollow" in _robots(tree):
        return []
    found: dict[str, None] = {}
    for link in tree.css("a[href], area[href]"):
        if "nofollow" not in (link.attributes.get("rel") or "").lower().split():
            found[_address(tree, document.url, link)] = None
    found.pop("", None)
    return list(found)


def canonical(document: Document) -> str:
    """The canonical address of a page; empty if it has none."""
    tree = parse(text_from(document.data))
    for link in tree.css("link[rel][href]"):
        if "canonical" in (link.attributes.get("rel") or "").lower().split():
            return _address(tree, document.url, link)
    return ""


def text_from(data: bytes) -> str:
    """The text of a page: decoded as UTF-8 if possible, else by the encoding that the page names."""
    for encoding in ("utf-8", *(name.decode("ascii") for name in _CHARSET.findall(data[:_SNIFF]))):
        try:
            return decode(data.decode(encoding).encode())
        except (LookupError, UnicodeDecodeError):
            continue
    return decode(data)


def parse(text: str) -> LexborHTMLParser:
    """Parse a page. Raises Unreadable for pages that would take the parser minutes."""
    depth = 0
    for tag in _OPENING.finditer(text):
        if not tag[0].endswith("/>"):
            depth += -1 if tag[1] else 1
        if depth > _DEEPEST:
            raise Unreadable("its elements are nested too deeply")
    try:
        return LexborHTMLParser(text)
    except SelectolaxError as error:
        raise Unreadable("cannot be parsed as HTML") from error


def draft_of(tree: LexborHTMLParser, whole: bool = False) -> Draft:
    """The content of a page: the element with the main content or, with `whole`, the body. Changes the tree."""
    body = tree.body
    if body is None:
        raise NothingToRead("has no text")
    fallback = _named(tree)
    names = _tab_names(tree)
    _drop_hidden(tree)
    _drop_site(tree, whole)
    root = body if whole else _main(body)
    heading = root.css_first("h1")
    parts = parts_of(root, names)
    if not any(part.kind not in ("heading", "image") for part in parts):
        raise NothingToRead("has no text")
    return Draft((clean_inline(text_of(heading)) if heading else "") or fallback, parts)


def _not_content(tree: LexborHTMLParser) -> str:
    for meta in tree.css("meta[http-equiv][content]"):
        inside = meta.parent is not None and meta.parent.tag == "noscript"
        if (meta.attributes.get("http-equiv") or "").lower() == "refresh" and not inside:
            _, found, target = (meta.attributes.get("content") or "").partition("=")
            if found:
                return f"redirects to {target.strip(chr(34) + chr(39) + ' ')}"
    return "asks not to be indexed (noindex)" if _robots(tree) & {"noindex", "none"} else ""


def _robots(tree: LexborHTMLParser) -> set[str]:
    return {
        word.strip()
        for meta in tree.css("meta[name][content]")
        if (meta.attributes.get("name") or "").lower() == "robots"
        for word in (meta.attributes.get("content") or "").lower().split(",")
    }


def _address(tree: LexborHTMLParser, url: str, link: LexborNode) -> str:
    """The absolute address of a link; empty if it is not to a web page."""
    start = tree.css_first("base[href]")
    try:
        origin = urljoin(url, (start.attributes.get("href") or "").strip()) if start else url
        address = urldefrag(urljoin(origin, (link.attributes.get("href") or "").strip())).url
    except ValueError:
        return ""
    return address if address.startswith(("http://", "https://")) else ""


def _named(tree: LexborHTMLParser) -> str:
    """The title in the page's head, without the name of the site."""
    preview = tree.css_first('meta[property="og:title"]')
    head = tree.css_first("head title")
    name = clean_inline((preview.attributes.get("content") or "") if preview else "")
    name = name or clean_inline(head.text() if head else "")
    return _SUFFIX.sub("", name) if _SUFFIX.search(name) else _HYPHEN_SUFFIX.sub("", name)


def _tab_names(tree: LexborHTMLParser) -> dict[int, str]:
    """The titles of tab panels by `mem_id`. On the page they are in a separate bar, which is dropped."""
    names: dict[int, str] = {}
    for bar in tree.css("[role=tablist], .tabbed-labels"):
        titles = [clean_inline(tab.text()) for tab in bar.css("[role=tab], label")]
        panels = bar.parent.css("[role=tabpanel], .tabbed-block") if bar.parent else []
        if len(titles) == len(panels):
            names.update((panel.mem_id, title) for panel, title in zip(panels, titles, strict=True))
    return names


def _drop_hidden(tree: LexborHTMLParser) -> None:
    """Remove hidden elements, except the panels of inactive tabs."""
    _drop(tree.css("[hidden]:not([role=tabpanel]):not([hidden=until-found]), [aria-hidden=true]"))
    _drop([node for node in tree.css("[style]") if hides(node.attributes.get("style") or "", _behind(node))])
    for style in tree.css("style"):
        for selectors, declarations in _RULE.findall(_AT_RULE.sub("", style.text())):
            if hides(declarations, behind=None):
                for selector in selectors.split(","):
                    if _SIMPLE.fullmatch(selector.strip()):
                        _drop(tree.css(selector.strip()))


def _behind(node: LexborNode) -> Colour | None:
    """The background behind an element, by inline styles; None (unknown) in code, which may have its own theme."""
    ground: Colour | None = WHITE
    for parent in reversed(list(_around(node))):
        ground = ground_of(parent.attributes.get("style") or "", None if parent.tag in ("pre", "code") else ground)
    return ground


def _drop_site(tree: LexborHTMLParser, whole: bool) -> None:
    """Remove navigation, scripts, controls, and the anchor links of headings. With `whole`, asides and headers are
    content."""
    _drop(tree.css(_SITE))
    _drop(button for button in tree.css("button, [role=button]:not(a)") if not _is_content(button))
    if not whole:
        _drop(aside for aside in tree.css(_ASIDE) if not (_inside_main(aside) and _is_prose(aside)))
        _drop(header for header in tree.css("header") if not (_inside_main(header) and header.css_first("h1, h2")))
    _drop(link for link in tree.css("a") if _is_control(link))


def _is_content(button: LexborNode) -> bool:
    """Whether a button belongs to the content: a heading or, with the role of a button, a question, image or word."""
    if _is_heading(button):
        return True
    return button.tag != "button" and (
        button.tag == "summary" or button.css_first("img") is not None or _is_in_sentence(button)
    )


def _is_in_sentence(node: LexborNode) -> bool:
    """Whether an element is inside of a paragraph, list item or cell that has text of its own."""
    block = next((around for around in _around(node) if around.tag in ("p", "li", "td", "dd", "div")), None)
    return (
        block is not None
        and block.tag != "div"
        and any(child.is_text_node and (child.text_content or "").strip() for child in block.iter(include_text=True))
    )


def _is_heading(button: LexborNode) -> bool:
    """Whether a button is all the text of a heading, which opens and closes the section below it."""
    heading = next((node for node in _around(button) if re.fullmatch(r"h[1-6]", node.tag or "")), None)
    return heading is not None and heading.text().strip() == button.text().strip() != ""


def _is_prose(node: LexborNode) -> bool:
    """Whether most of an element's text is outside of links."""
    return _weight(node) * 2 > len(node.text())


def _is_control(link: LexborNode) -> bool:
    """Whether a link is a control of the site or the anchor link of a heading."""
    text = link.text().strip()
    if link.attributes.get("id") or link.css_first("img"):
        return False
    mark = (link.attributes.get("href") or "").startswith("#") and _MARK.fullmatch(text)
    return bool(mark or _EDIT.fullmatch(text))


def _drop(nodes: Iterable[LexborNode]) -> None:
    """Remove elements. Nested ones are removed with the outer one and must not be touched afterwards."""
    listed = {node.mem_id: node for node in nodes if node.tag not in ("html", "body", "main")}
    for node in [node for node in listed.values() if not any(parent.mem_id in listed for parent in _around(node))]:
        node.decompose()


def _around(node: LexborNode) -> Iterator[LexborNode]:
    while (parent := node.parent) is not None:
        yield parent
        node = parent


def _inside_main(node: LexborNode) -> bool:
    return any(parent.tag in ("main", "article") or parent.attributes.get("role") == "main" for parent in _around(node))


def _main(body: LexborNode) -> LexborNode:
    """The element with the content: by the usual markup, else the innermost element with most of the text."""
    for selector in _MAIN:
        found = body.css(selector)
        best = max(found, key=_weight, default=None)
        if best and _weight(best) > (0.3 * _weight(body) if len(found) > 1 else 0):
            return best  # the main content, not one of many cards
    here = body
    while (largest := max(here.iter(), key=_weight, default=None)) is not None:
        if largest.tag not in ("div", "section", "center", "table", "tbody", "tr", "td"):
            break
        if _weight(largest) < 0.7 * _weight(here) or (here.css_first("h1") and not largest.css_first("h1")):
            break
        here = largest
    return here


def _weight(node: LexborNode) -> int:
    """The number of characters outside of links."""
    return len(node.text()) - sum(len(link.text()) for link in node.css("a"))
