"""XML from untrusted files: no entities, no external files, bounded size and depth."""

from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from chapterverse.ingestion.document import Unreadable

MAX_ELEMENTS: Final = 2_000_000
MAX_DEPTH: Final = 200


def parse_xml(data: bytes, name: str) -> Element:
    """The tree of an XML file; names of elements and attributes are without their namespaces. `name` is for errors."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > MAX_DEPTH or count > MAX_ELEMENTS:
            raise Unreadable(f"{name} is nested too deeply or has too many elements")
        builder.start(_local(tag), {_local(key): value for key, value in attributes.items()})

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_local(tag))

    def doctype(_: str, __: str | None, ___: str | None, internal: bool) -> None:
        if internal:
            raise Unreadable(f"{name} declares XML entities")

    def declare(*_: object) -> None:
        raise Unreadable(f"{name} declares XML entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = declare
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # LookupError: an encoding that does not exist
        raise Unreadable(f"{name} is not XML") from error
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
