"""EPUB books: one page for each item of the spine.

Owns the archive: its limits, its package file, the order and the titles of chapters. The chapters themselves are HTML.
Never writes to disk and never lets XML expand entities.
"""

import lzma
import posixpath
import re
import struct
import zipfile
import zlib
from dataclasses import replace
from io import BytesIO
from urllib.parse import unquote
from xml.parsers import expat

from selectolax.lexbor import LexborHTMLParser

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Unreadable
from chapterverse.ingestion.readers import html
from chapterverse.ingestion.readers.cleaning import clean_inline

_LARGEST = 200 * 1024 * 1024  # bytes of all files, unpacked
_DENSEST = 200  # times a whole archive may grow when unpacked; text grows some ten times
_SMALL = 10 * 1024 * 1024  # bytes up to which growth does not matter
_CHAPTERS = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_EMPTY = re.compile(  # <p/> closes itself in XHTML and stays open in HTML
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([A-Za-z][\w:-]*)([^<>]*?)/>"
)

# What the archive's reader raises on damage: it trusts lengths, places and encodings that the file states.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    NotImplementedError,
    EOFError,
    ValueError,
    OSError,
)

_Element = tuple[str, dict[str, str], str]  # name without prefix, attributes without prefix, text


def read(document: Document) -> list[Draft]:
    """The chapters of a book in reading order; their titles are those of its table of contents."""
    try:
        with zipfile.ZipFile(BytesIO(document.data)) as archive:
            _refuse_bombs(archive, len(document.data))
            return _Book(archive).drafts()
    except _DAMAGE as error:
        raise Unreadable("is not an EPUB, or is damaged") from error


def _refuse_bombs(archive: zipfile.ZipFile, packed: int) -> None:
    size = sum(info.file_size for info in archive.infolist())
    if size > _LARGEST:
        raise Unreadable(f"unpacks to {size // 2**20} MiB, more than {_LARGEST // 2**20}")
    if size > _SMALL and size > _DENSEST * packed:
        raise Unreadable("unpacks to far more than a book would (a ZIP bomb)")
    if any(info.flag_bits & 1 for info in archive.infolist()):
        raise Unreadable("is encrypted")


class _Book:
    """An open archive and its package file."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        self._refuse_protection()
        roots = [
            given.get("full-path", "") for name, given, _ in self._xml("META-INF/container.xml") if name == "rootfile"
        ]
        if not roots:
            raise Unreadable("its container names no book")
        self._folder = posixpath.dirname(roots[0])
        package = self._xml(roots[0])
        self._items = {given.get("id", ""): given for name, given, _ in package if name == "item"}
        self._spine = [given.get("idref", "") for name, given, _ in package if name == "itemref"]

    def drafts(self) -> list[Draft]:
        titles = self._titles()
        drafts: list[Draft] = []
        for identifier in self._spine:
            item = self._items.get(identifier, {})
            path = self._path(item.get("href", ""))
            is_contents = "nav" in item.get("properties", "").split()
            if path not in self._names or is_contents or item.get("media-type") not in _CHAPTERS:
                continue
            try:
                draft = html.draft_of(self._page(path), whole=True)
            except NothingToRead:
                continue  # a cover, a blank page
            title = titles.get(path) or draft.title
            drafts.append(replace(draft, title=title, subpath=path, number=len(drafts)))
        if not drafts:
            raise NothingToRead("has no text")
        return drafts

    def _refuse_protection(self) -> None:
        if "META-INF/encryption.xml" not in self._names:
            return
        for name, given, _ in self._xml("META-INF/encryption.xml"):
            if name == "EncryptionMethod" and given.get("Algorithm") not in _FONT_OBFUSCATION:
                raise Unreadable("is protected against reading (DRM)")

    def _titles(self) -> dict[str, str]:
        """Chapter titles by path, from the navigation of EPUB 3 or else that of EPUB 2."""
        titles: dict[str, str] = {}
        for item in self._items.values():
            path = self._path(item.get("href", ""))
            if "nav" in item.get("properties", "").split() and path in self._names:
                for link in self._page(path).css("nav a[href]"):
                    target = _resolve(posixpath.dirname(path), link.attributes.get("href") or "")
                    titles.setdefault(target, clean_inline(link.text()))
        for item in self._items.values() if not titles else ():
            path = self._path(item.get("href", ""))
            if item.get("media-type") == "application/x-dtbncx+xml" and path in self._names:
                label = ""
                for name, given, text in self._xml(path):
                    if name == "text":
                        label = clean_inline(text)
                    elif name == "content":
                        titles.setdefault(_resolve(posixpath.dirname(path), given.get("src", "")), label)
        return titles

    def _path(self, href: str) -> str:
        return _resolve(self._folder, href)

    def _page(self, path: str) -> LexborHTMLParser:
        return html.parse(_EMPTY.sub(r"<\1\2></\1>", html.text_from(self._archive.read(path))))

    def _xml(self, path: str) -> list[_Element]:
        if path not in self._names:
            raise Unreadable(f"has no {path}")
        return _elements(self._archive.read(path), path)


def _resolve(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))


def _elements(data: bytes, path: str) -> list[_Element]:
    """The elements of an XML file in the order of their ends of text, flat. Refuses to declare entities."""
    found: list[_Element] = []
    texts: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")

    def start(name: str, attributes: dict[str, str]) -> None:
        given = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        found.append((name.rpartition(" ")[2], given, ""))
        texts.clear()

    def end(name: str) -> None:
        if texts and found[-1][0] == name.rpartition(" ")[2]:
            found[-1] = (*found[-1][:2], "".join(texts))
        texts.clear()

    def declare(*_: object) -> None:
        raise Unreadable(f"{path} declares XML entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = texts.append
    parser.EntityDeclHandler = declare
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: an encoding that does not exist
        raise Unreadable(f"{path} is not XML") from error
    return found
