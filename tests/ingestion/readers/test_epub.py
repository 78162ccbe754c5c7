"""EPUB 3 and EPUB 2 archives built here, also protected, broken and hostile ones."""

import io
import zipfile

import pytest

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Draft, NothingToRead, Tree, Unreadable
from chapterverse.ingestion.readers import epub

CONTAINER = """<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Robots</dc:title></metadata><manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="cover" href="cover.xhtml" media-type="application/xhtml+xml"/>
<item id="two" href="text/chapter%202.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="gone" href="text/gone.xhtml" media-type="application/xhtml+xml"/>
<item id="pic" href="a.png" media-type="image/png"/></manifest>
<spine toc="ncx"><itemref idref="cover"/><itemref idref="nav"/><itemref idref="one"/><itemref idref="two"/>
<itemref idref="gone"/><itemref idref="pic"/></spine></package>"""
NAV = """<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body><nav
 epub:type="toc"><ol><li><a href="text/one.xhtml#top">Walking</a><ol><li><a
 href="text/one.xhtml#b">Not this</a></li></ol></li>
<li><a href="text/chapter%202.xhtml">Arms &amp; hands</a></li></ol></nav></body></html>"""
NCX = """<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint id="a"><navLabel><text>Going</text></navLabel>
<content src="text/one.xhtml"/></navPoint></navMap></ncx>"""
ONE = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head
><title/><script src="x.js"/></head><body><a id="top"/><section id="s1"><h1>Legs</h1>
<p>A robot <i/>walks.</p></section></body></html>"""
TWO = "<html><head><title>Robots</title></head><body><div><p>It holds.</p></div></body></html>"
FILES = {
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/nav.xhtml": NAV,
    "OEBPS/toc.ncx": NCX,
    "OEBPS/cover.xhtml": '<html><body><img src="a.png"/></body></html>',
    "OEBPS/text/one.xhtml": ONE,
    "OEBPS/text/chapter 2.xhtml": TWO,
    "OEBPS/a.png": "png",
}


def archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, text in files.items():
            book.writestr(name, text)
    return buffer.getvalue()


def read(data: bytes) -> list[Draft]:
    return epub.read(Document("https://book.example/robots.epub", "robots.epub", "book", "epub", data))


def test_chapters_have_the_order_of_the_spine_and_titles_of_the_contents() -> None:
    one, two = read(archive(FILES))
    assert (one.title, one.subpath) == ("Walking", "OEBPS/text/one.xhtml")
    assert [(part.kind, part.text, part.anchor) for part in one.parts] == [
        ("heading", "Legs", "s1"),
        ("paragraph", "A robot walks.", ""),
    ]
    assert (two.title, two.subpath) == ("Arms & hands", "OEBPS/text/chapter 2.xhtml")
    assert two.parts[0].text == "It holds."


def test_epub_2_titles_come_from_the_ncx() -> None:
    one, two = read(archive({**FILES, "OEBPS/book.opf": PACKAGE.replace('properties="nav"', "")}))
    assert one.title == "Going"
    assert two.title == "Robots"  # not in the contents: the title of the page


@pytest.mark.parametrize(
    ("listed", "headings", "text"),
    [
        ("Walking", "<h1>1</h1>", "# Walking"),  # a number alone is no title
        ("Chapter 1: Walking", "<h1>Chapter 1</h1><h2>Walking</h2>", "# Chapter 1: Walking"),
        ("1 Walking", "<header><h1>Walking</h1></header>", "# 1 Walking"),
        ("I", "<h1>I<br/>Walking</h1>", "# I Walking"),
        ("", "<h2>Walking</h2>", "# Walking"),  # instead of the title of the file
        ("", "<h2>Part One</h2><h1>Walking</h1>", "# Walking\n\n## Part One"),
        ("Walking", "<h1>Walking</h1><h2>Walking uphill</h2>", "# Walking\n\n## Walking uphill"),
    ],
)
def test_title_is_not_a_bare_number_and_not_repeated(listed: str, headings: str, text: str) -> None:
    nav = f"""<html xmlns:epub="http://www.idpf.org/2007/ops"><body><nav epub:type="landmarks"><ol><li><a
    href="text/one.xhtml">Start of the text</a></li></ol></nav><nav epub:type="toc"><ol>
    {f'<li><a href="text/one.xhtml">{listed}</a></li>' if listed else ""}
    <li><a href="text/chapter%202.xhtml">Arms</a></li></ol></nav></body></html>"""
    one = f"<html><head><title>Robots</title></head><body>{headings}<p>It walks.</p></body></html>"
    data = archive({**FILES, "OEBPS/nav.xhtml": nav, "OEBPS/text/one.xhtml": one})
    document = Document("https://book.example/robots.epub", "robots.epub", "book", "epub", data)
    assert compose(document, epub.read(document)[0]).text == f"{text}\n\nIt walks."


@pytest.mark.parametrize(
    ("listed", "headings", "text"),
    [
        ("The Eighties", "<h1>The Eighties</h1><h2>1980</h2>", "# The Eighties\n\n## 1980"),
        ("The Eighties", "<h2>1980</h2>", "# The Eighties\n\n## 1980"),
        ("Languages", "<h1>Languages</h1><h2>C</h2>", "# Languages\n\n## C"),
        ("Legs and Arms", "<h2>Legs</h2>", "# Legs and Arms\n\n## Legs"),
        ("Walking", "<h2>1</h2><h1>Walking</h1>", "# Walking"),  # the number of the chapter
        ("1", "", "# 1"),  # not the title of the file, which is that of the book
    ],
)
def test_headings_of_sections_stay_at_the_start_of_a_chapter(listed: str, headings: str, text: str) -> None:
    nav = f"""<html xmlns:epub="http://www.idpf.org/2007/ops"><body><nav epub:type="toc"><ol>
    <li><a href="text/one.xhtml">{listed}</a></li></ol></nav></body></html>"""
    one = f"<html><head><title>Robots</title></head><body>{headings}<p>It walks.</p><h2>1981</h2></body></html>"
    data = archive({**FILES, "OEBPS/nav.xhtml": nav, "OEBPS/text/one.xhtml": one})
    document = Document("https://book.example/robots.epub", "robots.epub", "book", "epub", data)
    assert compose(document, epub.read(document)[0]).text == f"{text}\n\nIt walks.\n\n## 1981"


def test_asides_are_read() -> None:
    aside = "<aside><p>A remark.</p></aside><div class='sidebar'><p>A box.</p></div>"
    one = f"<html><body><h1>Walking</h1>{aside}<p>It walks.</p></body></html>"
    first = read(archive({**FILES, "OEBPS/text/one.xhtml": one}))[0]
    assert [part.text for part in first.parts] == ["A remark.", "A box.", "It walks."]


def test_encrypted_content_is_unreadable_but_obfuscated_fonts_are_not() -> None:
    encryption = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><e:EncryptedData
    xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptionMethod Algorithm="%s"/></e:EncryptedData></encryption>"""
    name = "META-INF/encryption.xml"
    assert len(read(archive({**FILES, name: encryption % "http://www.idpf.org/2008/embedding"}))) == 2
    with pytest.raises(Unreadable, match="DRM"):
        read(archive({**FILES, name: encryption % "http://www.w3.org/2001/04/xmlenc#aes128-cbc"}))


BOMB = """<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]><package>&b;</package>"""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"not a zip", "not an EPUB"),
        (archive(FILES)[:-40], "not an EPUB"),
        (archive({"a.txt": "x"}), "has no META-INF/container.xml"),
        (archive({**FILES, "META-INF/container.xml": "<container/>"}), "names no book"),
        (archive({**FILES, "META-INF/container.xml": "<container"}), "is not XML"),
        (archive({**FILES, "OEBPS/book.opf": BOMB}), "declares XML entities"),
        (archive({**FILES, "zeros": "\0" * 30_000_000}), "ZIP bomb"),
    ],
)
def test_invalid_archive_is_unreadable_with_its_reason(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(data)


def test_damaged_archive_is_unreadable() -> None:
    data = bytearray(archive(FILES))
    at = data.index(b"OEBPS/text/one.xhtml") + len("OEBPS/text/one.xhtml") + 10
    data[at : at + 20] = b"\xff" * 20
    with pytest.raises(Unreadable, match="damaged"):
        read(bytes(data))


def test_book_without_text_has_nothing_to_read() -> None:
    with pytest.raises(NothingToRead, match="no text"):
        read(archive({**FILES, "OEBPS/text/one.xhtml": "<body></body>", "OEBPS/text/chapter 2.xhtml": "<body/>"}))


def test_chapter_is_read_once_with_its_notes_and_links() -> None:
    chapter = """<html xmlns:epub="http://www.idpf.org/2007/ops"><body><h1>Legs</h1><p>See <a
 href="chapter%202.xhtml#b">arms</a>.<a epub:type="noteref" href="#n1">1</a></p><img src="../a.png" alt="A leg"/>
<aside epub:type="footnote" id="n1"><p>A note.</p></aside></body></html>"""
    twice = PACKAGE.replace(
        '<itemref idref="two"/>', '<itemref idref="one"/><itemref idref="two"/><itemref idref="two"/>'
    )
    data = archive({**FILES, "OEBPS/text/one.xhtml": chapter, "OEBPS/book.opf": twice})
    document = Document("b/robots.epub", "robots.epub", "b", "epub", data, tree=Tree("/nowhere", name="b"))
    one, _ = epub.read(document)
    page = compose(document, one)
    assert page.text == "# Walking\n\n# Legs\n\nSee arms.\n\n[Image: A leg]\n\nA note."
    assert [mark.target for mark in page.marks] == ["b/robots.epub/OEBPS/text/chapter 2.xhtml#b"]


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("OEBPS/book.opf", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares XML entities"),
        ("OEBPS/book.opf", '<!DOCTYPE a [<!ATTLIST a b CDATA "c">]><a/>', "declares XML entities"),
        ("OEBPS/book.opf", "<a>" * 500 + "</a>" * 500, "nested too deeply"),
    ],
)
def test_hostile_xml_is_unreadable(file: str, text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(archive({**FILES, file: text}))
