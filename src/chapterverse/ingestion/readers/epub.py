"""Reads EPUB books: a page for each item of the spine.

Reads the archive within limits, the package file, and the order and titles of chapters. The chapters are HTML. XML
entities are not expanded.
"""

import posixpath
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from selectolax.lexbor import LexborHTMLParser

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Unreadable
from chapterverse.ingestion.inline import plain
from chapterverse.ingestion.readers import html
from chapterverse.ingestion.readers.archive import DAMAGE, refuse_bombs
from chapterverse.ingestion.readers.cleaning import clean_inline
from chapterverse.ingestion.readers.safe_xml import parse_xml

_CHAPTERS = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_NUMBER = re.compile(r"\W*(?:\d+|[ivxlc]+)\W*", re.I)  # a heading that is only the number of its chapter
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z\d+.-]*:")
_EMPTY = re.compile(  # <p/> is self-closing in XHTML, but not in HTML
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([A-Za-z][\w:-]*+)([^<>]*+)(?<=/)>"
)


def read(document: Document) -> list[Draft]:
    """The chapters of a book in reading order, with the titles from its table of contents."""
    try:
        with zipfile.ZipFile(BytesIO(document.data)) as archive:
            refuse_bombs(archive, len(document.data))
            return _Book(archive, document).drafts()
    except DAMAGE as error:
        raise Unreadable("is not an EPUB, or is damaged") from error


class _Book:
    """An open archive and its package file."""

    def __init__(self, archive: zipfile.ZipFile, document: Document) -> None:
        self._archive = archive
        self._document = document
        self._names = set(archive.namelist())
        self._refuse_protection()
        roots = [rootfile.get("full-path", "") for rootfile in self._xml("META-INF/container.xml").iter("rootfile")]
        if not roots:
            raise Unreadable("its container names no book")
        self._folder = posixpath.dirname(roots[0])
        package = self._xml(roots[0])
        self._items = {item.get("id", ""): item.attrib for item in package.iter("item")}
        self._spine = list(dict.fromkeys(item.get("idref", "") for item in package.iter("itemref")))

    def drafts(self) -> list[Draft]:
        titles = self._titles()
        drafts: list[Draft] = []
        seen: set[str] = set()
        for identifier in self._spine:
            item = self._items.get(identifier, {})
            path = self._path(item.get("href", ""))
            is_contents = "nav" in item.get("properties", "").split()
            if path not in self._names or path in seen or is_contents or item.get("media-type") not in _CHAPTERS:
                continue
            seen.add(path)
            try:
                draft = html.draft_of(self._chapter(path), whole=True)
            except NothingToRead:
                continue  # for example a cover
            drafts.append(replace(_titled(draft, titles.get(path, "")), subpath=path, number=len(drafts)))
        if not drafts:
            raise NothingToRead("has no text")
        return drafts

    def _refuse_protection(self) -> None:
        if "META-INF/encryption.xml" not in self._names:
            return
        for method in self._xml("META-INF/encryption.xml").iter("EncryptionMethod"):
            if method.get("Algorithm") not in _FONT_OBFUSCATION:
                raise Unreadable("is protected against reading (DRM)")

    def _titles(self) -> dict[str, str]:
        """Chapter titles by path, from the navigation of EPUB 3 or EPUB 2."""
        titles: dict[str, str] = {}
        contents = [item for item in self._items.values() if "nav" in item.get("properties", "").split()]
        for item in contents[:1]:
            path = self._path(item.get("href", ""))
            if path in self._names:
                page = self._page(path)
                lists = page.css("nav")
                toc = next((nav for nav in lists if "toc" in (nav.attributes.get("epub:type") or "").split()), None)
                for link in (toc or page).css("nav a[href]"):
                    target = _resolve(posixpath.dirname(path), link.attributes.get("href") or "")
                    titles.setdefault(target, clean_inline(link.text()))
        for item in self._items.values() if not titles else ():
            path = self._path(item.get("href", ""))
            if item.get("media-type") == "application/x-dtbncx+xml" and path in self._names:
                label = ""
                for node in self._xml(path).iter():
                    if node.tag == "text":
                        label = clean_inline(node.text or "")
                    elif node.tag == "content":
                        titles.setdefault(_resolve(posixpath.dirname(path), node.get("src", "")), label)
        return titles

    def _path(self, href: str) -> str:
        return _resolve(self._folder, href)

    def _page(self, path: str) -> LexborHTMLParser:
        return html.parse(_EMPTY.sub(r"<\1\2></\1>", html.text_from(self._archive.read(path))))

    def _chapter(self, path: str) -> LexborHTMLParser:
        """Parse a chapter. Marks references to footnotes, and resolves links to chapters of this book."""
        tree = self._page(path)
        for link in tree.css("a[href]"):
            href = link.attributes.get("href") or ""
            if "noteref" in (link.attributes.get("epub:type") or "").split():
                link.attrs["class"] = "footnote-ref"  # so that its number is left out
            elif self._document.tree and not _SCHEME.match(href):
                target, _, anchor = href.partition("#")
                inside = _resolve(posixpath.dirname(path), target) if target else path
                link.attrs["href"] = f"path:{self._document.path}/{inside}{f'#{anchor}' if anchor else ''}"
        for image in tree.css("img[src]"):
            if not _SCHEME.match(image.attributes.get("src") or ""):
                image.attrs["src"] = ""  # it is in the archive and has no address
        return tree

    def _xml(self, path: str) -> Element:
        if path not in self._names:
            raise Unreadable(f"has no {path}")
        return parse_xml(self._archive.read(path), path)


def _titled(draft: Draft, listed: str) -> Draft:
    """The chapter with its title: the one in the table of contents or, if that is missing or only a number, its first
    heading. The headings at its start that repeat the title, and its number alone, are left out."""
    first = draft.parts[0]
    has_h1 = any(part.level == 1 for part in draft.parts if part.kind == "heading")  # then it is the draft's title
    own = draft.title if has_h1 else plain(first.text) if first.kind == "heading" else ""
    is_named = bool(own) and not _is_number(own)
    title = listed if listed and not (_is_number(listed) and is_named) else own or draft.title
    count = next((place for place, part in enumerate(draft.parts) if part.kind != "heading"), 0)
    start = draft.parts[:count]
    repeating = _repeating(title, [plain(heading.text) for heading in start])
    levels = [part.level for part in draft.parts if part.kind == "heading"]
    numbers = max(repeating, default=0)  # before this place, a number alone is the number of the chapter
    if not repeating and levels and levels.count(levels[0]) == 1:  # else it is one of several sections
        numbers = 1
    kept = [
        heading
        for place, heading in enumerate(start)
        if place not in repeating and not (place < numbers and _is_number(plain(heading.text)))
    ]
    return replace(draft, title=title, parts=(*kept, *draft.parts[count:]))


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _repeating(title: str, headings: Sequence[str]) -> set[int]:
    """The places of the headings that together repeat the whole title, with or without its number; else none."""
    rest = _words(title)
    places: set[int] = set()
    for place, heading in enumerate(headings):
        words = _words(heading)
        begin = int(rest[:1] != words[:1] and bool(rest) and _is_number(rest[0]))
        if words and rest[begin : begin + len(words)] == words:
            rest = rest[begin + len(words) :]
            places.add(place)
    return set() if rest else places


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _resolve(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))
