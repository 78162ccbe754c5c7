"""Parses untrusted XML: no entities, no external files, limited size and depth."""

from typing import Any, Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from chapterverse.ingestion.document import Unreadable

MAX_ELEMENTS: Final = 3_000_000  # 500,000 addresses of a sitemap with six elements each
MAX_DEPTH: Final = 200  # nested elements


class TooComplex(Exception):
    """An XML file that is nested too deeply, has too many elements, or declares entities or default attributes."""


def limited_xml_parser(start: Any, end: Any, text: Any) -> expat.XMLParserType:
    """An expat parser with these handlers that raises `TooComplex` if a file exceeds a limit.

    A DOCTYPE with declarations is refused: `<!ENTITY>` and `<!ATTLIST>` can expand a small file. One that only names a
    DTD, as in an EPUB 2, is allowed, because the DTD is not fetched."""
    depth = count = 0

    def limited_start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > MAX_DEPTH or count > MAX_ELEMENTS:
            raise TooComplex("is nested too deeply or has too many elements")
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


def parse_xml(data: bytes, name: str) -> Element:
    """Parse an XML file to a tree without namespaces. `name` is for error messages."""
    builder = TreeBuilder()

    def start(tag: str, attributes: dict[str, str]) -> None:
        builder.start(_local(tag), {_local(key): value for key, value in attributes.items()})

    parser = limited_xml_parser(start, lambda tag: builder.end(_local(tag)), builder.data)
    try:
        parser.Parse(data, True)
    except TooComplex as error:
        raise Unreadable(f"{name} {error}") from None
    except (expat.ExpatError, LookupError, ValueError) as error:  # LookupError: an unknown encoding
        raise Unreadable(f"{name} is not XML") from error
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
