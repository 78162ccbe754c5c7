"""Small files that made version 1 crash, hang or use gigabytes of memory."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from chapterverse.ingestion.document import Format
from tests.ingestion.readers.test_epub import CONTAINER, FILES, ONE, PACKAGE, archive


@dataclass(frozen=True)
class Hostile:
    """A hostile file: its name, its format and a function that makes its content."""

    name: str
    format: Format
    make: Callable[[], bytes]


def _epub(**changed: str) -> bytes:
    names = {"opf": "OEBPS/book.opf", "nav": "OEBPS/nav.xhtml", "one": "OEBPS/text/one.xhtml"}
    return archive(FILES | {names[name]: text for name, text in changed.items()})


def attlist_epub() -> bytes:
    """Each `<a/>` of the package gets a thousand default attributes with a long value."""
    defaults = "".join(f'a{number} CDATA "{"x" * 20_000}" ' for number in range(40))
    package = f"<!DOCTYPE package [<!ATTLIST a {defaults}>]><package>{'<a/>' * 20_000}</package>"
    return _epub(opf=package)


def spine_epub() -> bytes:
    """A spine that lists one chapter 20,000 times."""
    return _epub(opf=PACKAGE.replace('<itemref idref="one"/>', '<itemref idref="one"/>' * 20_000))


def same_chapter_epub() -> bytes:
    """A manifest with 5,000 ids for one chapter."""
    items = "".join(f'<item id="c{n}" href="text/one.xhtml" media-type="application/xhtml+xml"/>' for n in range(5_000))
    refs = "".join(f'<itemref idref="c{n}"/>' for n in range(5_000))
    chapter = ONE.replace("<p>A robot", "<p>" + "A robot has two legs. " * 500 + "A robot")
    return _epub(
        opf=PACKAGE.replace("</manifest>", items + "</manifest>").replace("</spine>", refs + "</spine>"), one=chapter
    )


def nav_epub() -> bytes:
    """5,000 manifest items for one table of contents with deeply nested lists."""
    items = "".join(
        f'<item id="n{n}" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>' for n in range(5_000)
    )
    nav = "<html><body><nav>" + "<ol><li><a href='text/one.xhtml'>x</a>" * 2_000 + "</body></html>"
    return _epub(opf=PACKAGE.replace("</manifest>", items + "</manifest>"), nav=nav)


def merge_keys() -> bytes:
    """YAML merge keys in 28 levels, each with two references to the level before."""
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 28)]
    return ("---\ntitle: Merged\n" + "\n".join(lines) + "\n---\n# Merged\n\nText of the page.\n").encode()


def alias_bomb() -> bytes:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return ("---\n" + "\n".join(lines) + "\ntitle: *a11\n---\n# Aliases\n\nText of the page.\n").encode()


def attribute_doubling() -> bytes:
    """AsciiDoc attributes that each refer twice to the one before."""
    lines = [":a0: boom boom"] + [f":a{n}: {{a{n - 1}}}{{a{n - 1}}}" for n in range(1, 32)]
    return ("= Page\n" + "\n".join(lines) + "\n\nText: {a31}\n").encode()


def _pdf(objects: dict[int, bytes]) -> bytes:
    out = bytearray(b"%PDF-1.5\n")
    places = {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, objects[number])
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for number in sorted(objects):
        out += b"%010d 00000 n \n" % places[number]
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def _stream(data: bytes, extra: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), extra, data)


_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def repeated_kids_pdf() -> bytes:
    """A page tree with four levels; each node lists the next one 20 times: 160,000 pages."""
    objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>"}
    for level in range(4):
        kids = b"%d 0 R " % (level + 3) * 20
        objects[level + 2] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (20 ** (4 - level), kids)
    objects[6] = b"<< /Type /Page /MediaBox [0 0 600 800] /Contents 7 0 R /Resources << /Font << /F1 8 0 R >> >> >>"
    objects[7] = _stream(b"BT /F1 10 Tf 14 TL 50 700 Td " + b"(Text of the page.) Tj T* " * 500 + b"ET")
    objects[8] = _FONT
    return _pdf(objects)


def nested_forms_pdf(drawn: bytes = b"BT /F1 10 Tf (Text) Tj ET " * 10) -> bytes:
    """Eight forms, each drawing the next one 30 times. With text it costs memory and time, without text only time."""
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources << /XObject << /X 10 0 R >> >> >>",
        4: _stream(b"/X Do " * 30),
        5: _FONT,
    }
    for level in range(10, 17):
        inside = b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /XObject << /X %d 0 R >> >>"
        objects[level] = _stream(b"/X Do " * 30, inside % (level + 1))
    text = b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F1 5 0 R >> >>"
    objects[17] = _stream(drawn, text)
    for number in (6, 7, 8, 9):
        objects[number] = b"null"
    return _pdf(objects)


@cache
def flate_pdf() -> bytes:
    """A page whose text is compressed twice, from 1.5 GB to a few kB."""
    once = zlib.compressobj(1)
    line = b"BT /F1 10 Tf 50 700 Td (%s) Tj ET\n" % (b"A" * 1_000)
    packed = b"".join([*(once.compress(line * 1_000) for _ in range(1_500)), once.flush()])
    twice = zlib.compress(packed, 9)
    return _pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> >> >>",
            4: _stream(twice, b"/Filter [/FlateDecode /FlateDecode]"),
            5: _FONT,
        }
    )


def zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("OEBPS/book.opf", b"<package>" + b" " * 150_000_000 + b"</package>")
    return buffer.getvalue()


def nested_sitemap() -> bytes:
    """46 kB of gzip with 16 million nested elements."""
    packer = zlib.compressobj(9, wbits=31)
    pieces = [packer.compress(b"<urlset>"), *(packer.compress(b"<a>" * 100_000) for _ in range(160)), packer.flush()]
    return b"".join(pieces)


def wide_sitemap() -> bytes:
    return gzip.compress(b"<urlset>" + b"<a/>" * 12_000_000 + b"</urlset>")


def _html(body: str) -> Callable[[], bytes]:
    return f"<html><body><main><h1>Page</h1>{body}<p>Text of the page.</p></main></body></html>".encode


def _front(text: str) -> Callable[[], bytes]:
    return (text + "\n# Page\n\nText of the page.\n").encode


CRASHING = (
    Hostile("brackets", "markdown", _front("---\ntitle: " + "[" * 40_000 + "\n---")),
    Hostile("colours", "html", _html('<p style="color: rgb(1.2.3, ., 9)">a</p><p style="color:rgba(1,2,3,..)">b</p>')),
    Hostile("list-start", "html", _html(f'<ol start="{"9" * 5_000}"><li>a</li></ol>')),
    Hostile("columns", "html", _html(f'<table><tr><th>a</th><td colspan="{"9" * 5_000}">b</td></tr></table>')),
    Hostile("weight", "markdown", _front(f"---\nweight: {'9' * 400}\n---")),
    Hostile("deep-toml", "markdown", _front("+++\na = " + "[" * 5_000 + "\n+++")),
    Hostile("toml-number", "markdown", _front(f"+++\nweight = {'9' * 5_000}\n+++")),
    Hostile("integer", "markdown", _front(f"---\ntitle: 0x{'f' * 5_000}\nweight: {'9' * 5_000}\n---")),
    Hostile("sexagesimal", "markdown", _front(f"---\ntitle: 1{':59' * 5_000}\n---")),
    Hostile("csv", "asciidoc", lambda: b"= Page\n\nText of the page.\n\n,===\n" + b"x" * 132_000 + b",y\n,===\n"),
    Hostile("rst-csv", "rst", lambda: b"Page\n====\n\nText.\n\n.. csv-table::\n\n   " + b"x" * 132_000 + b",y\n"),
    Hostile("rst-list", "rst", lambda: b"Page\n====\n\nText.\n\n" + b"9" * 5_000 + b". a\n"),
    Hostile("surrogate", "markdown", _front('---\ntitle: "\\ud800"\n---')),
)
ENDLESS = (
    Hostile("merge-keys", "markdown", merge_keys),
    Hostile("aliases", "markdown", alias_bomb),
    Hostile("attributes", "asciidoc", attribute_doubling),
    Hostile("spine", "epub", spine_epub),
    Hostile("same-chapter", "epub", same_chapter_epub),
    Hostile("contents", "epub", nav_epub),
    Hostile("digits", "asciidoc", lambda: b"= Page\n\nText.\n\n|===\n" + b"1" * 200_000 + b"\n|===\n"),
    Hostile("mdx-hidden", "mdx", lambda: b"# Page\n\nText.\n\n" + b"<div hidden>" * 30_000 + b"</p>" * 30_000),
    Hostile("kids", "pdf", repeated_kids_pdf),
    Hostile("forms", "pdf", nested_forms_pdf),
    Hostile("empty-forms", "pdf", lambda: nested_forms_pdf(b"q Q ")),
)
LARGE = (
    Hostile("attlist", "epub", attlist_epub),
    Hostile("flate", "pdf", flate_pdf),
    Hostile("zip", "epub", zip_bomb),
)
SUFFIXES = {
    "markdown": "md",
    "mdx": "mdx",
    "html": "html",
    "asciidoc": "adoc",
    "rst": "rst",
    "epub": "epub",
    "pdf": "pdf",
}


def every_hostile_file() -> Iterator[Hostile]:
    yield from (*CRASHING, *ENDLESS, *LARGE)
