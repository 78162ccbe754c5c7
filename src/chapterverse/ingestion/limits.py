"""Limits that readers share: what a hostile file may make a parser do before it is refused."""

from typing import Any, Final
from xml.parsers import expat

from chapterverse.ingestion.document import Unreadable

MAX_NUMBER: Final = 999_999_999  # a larger number of a list, a page or a column is a mistake or an attack
MAX_XML_DEPTH: Final = 100  # elements inside each other; books and sitemaps need fewer than 20
MAX_XML_ELEMENTS: Final = 3_000_000  # 500,000 addresses of a sitemap with six elements each
MAX_HIDDEN_DEPTH: Final = 500  # hidden elements inside each other in Markdown and MDX
MAX_PDF_PAGES: Final = 20_000
MAX_PDF_BOOKMARKS: Final = 20_000


class TooComplex(Exception):
    """An XML file that is nested too deeply, has too many elements, or declares entities or default attributes."""


def whole_number(text: str | None, default: int) -> int:
    """A number that a document states, or the default if it is none or too large. `int` refuses 5,000 digits."""
    digits = (text or "").strip()
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 9:
        return default
    return min(int(digits), MAX_NUMBER)


def nesting_depth(text: str) -> int:
    """How deeply brackets and braces are nested at most. Those in strings count as well."""
    depth = deepest = 0
    for character in text:
        if character in "[{(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]})":
            depth = max(depth - 1, 0)
    return deepest


def limited_xml_parser(start: Any, end: Any, text: Any) -> expat.XMLParserType:
    """An expat parser with these handlers that raises `TooComplex` where a file exceeds a limit.

    A DOCTYPE is refused if it declares anything itself: `<!ENTITY>` and `<!ATTLIST>` make a small file large. One that
    only names a DTD, as the contents of an EPUB 2 do, is harmless, because the DTD is not fetched."""
    depth = count = 0

    def limited_start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > MAX_XML_DEPTH:
            raise TooComplex("its elements are nested too deeply")
        if count > MAX_XML_ELEMENTS:
            raise TooComplex("has too many elements")
        start(name, attributes)

    def limited_end(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name)

    def doctype(_name: str, _system: str | None, _public: str | None, declares: bool) -> None:
        if declares:
            raise TooComplex("declares XML entities or attributes in its DOCTYPE")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = limited_start
    parser.EndElementHandler = limited_end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = doctype
    return parser


def require_hidden_depth(depth: int) -> None:
    """Refuse hidden elements inside each other that no page has: each closing tag looks through all open ones."""
    if depth > MAX_HIDDEN_DEPTH:
        raise Unreadable("its hidden elements are nested too deeply")


def require_pdf_size(pages: int) -> None:
    """Refuse a PDF with more pages than any book has. A page tree may name one page a million times."""
    if pages > MAX_PDF_PAGES:
        raise Unreadable(f"has {pages:,} pages, more than {MAX_PDF_PAGES:,}")
