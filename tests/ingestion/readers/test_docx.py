"""Word documents as Word and Pandoc write them, and broken files."""

import io
import zipfile

import pytest

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Unreadable
from chapterverse.ingestion.inline import plain
from chapterverse.ingestion.readers import read

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
W += 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
W += 'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
STYLES = (
    f"<w:styles {W}>"
    '<w:style w:styleId="Title"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="My head"/><w:basedOn w:val="H2"/></w:style>'
    '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Code"><w:name w:val="Source Code"/></w:style>'
    '<w:style w:styleId="Mono"><w:name w:val="Verbatim Char"/></w:style>'
    '<w:style w:styleId="Toc1"><w:name w:val="toc 1"/></w:style></w:styles>'
)
NUMBERING = (
    f'<w:numbering {W}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
)
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="https://x.test/a" TargetMode="External"/></Relationships>'
)
NOTES = f'<w:footnotes {W}><w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>'


def _run(text: str, style: str = "") -> str:
    return f'<w:r><w:rPr>{style}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, style: str = "", more: str = "") -> str:
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return (
        f"<w:p><w:pPr>{named}{more}</w:pPr>{''.join(one if one.startswith('<') else _run(one) for one in runs)}</w:p>"
    )


def _item(text: str, level: int) -> str:
    return paragraph(text, more=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="5"/></w:numPr>')


def _cell(text: str, more: str = "") -> str:
    return f"<w:tc><w:tcPr>{more}</w:tcPr>{paragraph(text)}</w:tc>"


def _wrapped(content: str) -> str:
    return f"<w:sdt><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def _archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in files.items():
            book.writestr(name, text)
    return buffer.getvalue()


def word_file(body: str) -> bytes:
    return _archive(
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": STYLES,
            "word/numbering.xml": NUMBERING,
            "word/_rels/document.xml.rels": RELATIONS,
            "word/footnotes.xml": NOTES,
        }
    )


SOUND = word_file(
    paragraph("Nodes", style="H1") + _item("first", 0) + f"<w:tbl><w:tr>{_cell('a')}{_cell('b')}</w:tr></w:tbl>"
)


def _document(data: bytes) -> Document:
    return Document("b/x.docx", "x.docx", "b", "docx", data)


def test_headings_lists_code_tables_links_and_notes() -> None:
    link = f'<w:hyperlink r:id="r1">{_run("the site")}</w:hyperlink>'
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    image = '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="p" descr="A plot"/></wp:inline></w:drawing></w:r>'
    power = _run("6", '<w:vertAlign w:val="superscript"/>')
    hidden = _run("secret", "<w:vanish/>")
    rows = [
        _cell("Name") + _cell("Use", '<w:gridSpan w:val="2"/>'),
        _cell("a", '<w:vMerge w:val="restart"/>') + _cell("1") + _cell("2"),
        _cell("", "<w:vMerge/>") + _cell("3") + _cell("4"),
    ]
    body = (
        paragraph("The Rover", style="Title")
        + paragraph("Contents 1", style="Toc1")
        + paragraph('<w:bookmarkStart w:id="0" w:name="setup"/>', "Setup", style="H1")
        + paragraph("A ", _run("bo", "<w:b/>"), _run("ld", "<w:b/>"), " word, ", link, deleted, hidden, ", ")
        + paragraph(_run("x = 1", '<w:rStyle w:val="Mono"/>'), " 10", power, note)
        + _item("first", 0) + _item("inner", 1) + _item("second", 0)
        + paragraph("Use", style="Own")
        + paragraph("def f():", style="Code") + paragraph("  return 1", style="Code")
        + f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
        + paragraph(image)
    )  # fmt: skip
    document = _document(word_file(body))
    (draft,) = read(document)
    page = compose(document, draft)
    assert page.text == (
        "# The Rover\n\n## Setup\n\nA bold word, the site,\n\n`x = 1` 10^6 (A note.)\n\n"
        "1. first\n  - inner\n2. second\n\n### Use\n\n```\ndef f():\n  return 1\n```\n\n"
        "| Name | Use | Use |\n| --- | --- | --- |\n| a | 1 | 2 |\n| a | 3 | 4 |\n\n[Image: A plot]"
    )
    assert [(mark.kind, page.text[mark.start : mark.end], mark.target) for mark in page.marks] == [
        ("strong", "bold", ""),
        ("link", "the site", "https://x.test/a"),
        ("sup", "^6", ""),
        ("footnote", "(A note.)", "2"),
    ]
    assert [section.anchor for section in page.sections] == ["", "setup", "use"]


def test_numbering_continues_over_text_and_restarts_if_the_list_says_so() -> None:
    numbering = NUMBERING.replace(
        "</w:numbering>",
        '<w:num w:numId="6"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/>'
        "</w:lvlOverride></w:num></w:numbering>",
    )
    restarted = _item("anew", 0).replace('numId w:val="5"', 'numId w:val="6"')
    body = _item("one", 0) + _item("two", 0) + paragraph("Between.") + _item("three", 0) + restarted + paragraph("End.")
    files = {
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/numbering.xml": numbering,
    }
    (draft,) = read(_document(_archive(files)))
    assert [part.text for part in draft.parts] == ["1. one\n2. two", "Between.", "3. three", "1. anew", "End."]


def test_numbers_continue_after_sub_items_that_follow_other_text() -> None:
    numbering = NUMBERING.replace('w:val="bullet"', 'w:val="decimal"')
    items = _item("inner one", 1) + _item("inner two", 1) + _item("two", 0) + _item("three", 0)
    body = _item("one", 0) + paragraph("Between.") + items
    files = {
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/numbering.xml": numbering,
    }
    (draft,) = read(_document(_archive(files)))
    lines = "\n".join(part.text for part in draft.parts).split("\n")
    assert [line.strip() for line in lines] == [
        *("1. one", "Between.", "1. inner one", "2. inner two", "2. two", "3. three")
    ]


def test_text_boxes_are_read_once_after_their_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph('In the box.')}{_item('a step', 0)}</w:txbxContent>"
    drawing = (
        "<w:r><mc:AlternateContent xmlns:mc='mc'><mc:Choice><w:drawing><wp:docPr id='1' name='Box'/>"
        f"{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    (draft,) = read(_document(word_file(paragraph("Before.", drawing) + paragraph("After."))))
    assert [part.text for part in draft.parts] == ["Before.", "In the box.", "1. a step", "After."]


def test_deleted_and_hidden_text_boxes_are_not_read() -> None:
    def box(text: str, style: str = "") -> str:
        content = f"<w:txbxContent>{paragraph(text)}</w:txbxContent>"
        return f"<w:r><w:rPr>{style}</w:rPr><w:pict>{content}</w:pict></w:r>"

    runs = (
        f"<w:del>{box('SECRET')}</w:del>",
        f"<w:moveFrom>{box('SECRET')}</w:moveFrom>",
        box("SECRET", "<w:vanish/>"),
        box("SECRET", "<w:webHidden/>"),
        box("Shown.", '<w:vanish w:val="0"/>'),
    )
    (draft,) = read(_document(word_file(paragraph("Before.", *runs))))
    assert [part.text for part in draft.parts] == ["Before.", "Shown."]


def test_code_has_only_its_visible_text() -> None:
    box = f"<w:txbxContent>{paragraph('Callout')}</w:txbxContent>"
    drawing = (
        "<w:r><mc:AlternateContent xmlns:mc='mc'><mc:Choice><w:drawing><wp:docPr id='1' name='Box'/>"
        f"{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    moved = f"<w:moveFrom>{_run('y = 2')}</w:moveFrom>"
    body = paragraph("x = 1", _run("SECRET", "<w:vanish/>"), moved, drawing, style="Code")
    (draft,) = read(_document(word_file(body)))
    assert [(part.kind, part.text) for part in draft.parts] == [("code", "x = 1"), ("paragraph", "Callout")]


def test_equations_are_tex_and_paragraphs_of_a_note_are_apart() -> None:
    def math(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    fraction = f"<m:f><m:num>{math('a+b')}</m:num><m:den>{math('2')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{math('x')}</m:e><m:sup>{math('10')}</m:sup></m:sSup>"
    total = (
        f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{math("i")}</m:sub><m:sup/><m:e>{power}</m:e></m:nary>'
    )
    root = f"<m:rad><m:deg/><m:e>{math('y')}</m:e></m:rad><m:d><m:e>{math('z')}</m:e></m:d>"
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = paragraph("So ", f"<m:oMath xmlns:m='m'>{math('s=')}{fraction}</m:oMath>", " holds.", note)
    body += paragraph(f"<m:oMathPara xmlns:m='m'><m:oMath>{total}{math('+')}{root}</m:oMath></m:oMathPara>")
    notes = NOTES.replace("</w:footnote>", f"{paragraph('More.')}</w:footnote>")
    files = {
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/footnotes.xml": notes,
    }
    document = _document(_archive(files))
    page = compose(document, read(document)[0])
    assert page.text == ("# X\n\nSo $s=\\frac{a+b}{2}$ holds. (A note. More.)\n\n$$∑_i x^{10}+\\sqrt{y}(z)$$")


@pytest.mark.parametrize(
    ("equation", "tex"),
    [
        ('<m:acc><m:accPr><m:chr m:val="\u0305"/></m:accPr>E</m:acc>', "\\bar{x}"),
        ("<m:acc>E</m:acc>", "\\hat{x}"),  # the accent of Word if it names none
        ('<m:acc><m:accPr><m:chr m:val="\u20d7"/></m:accPr>E</m:acc>', "\\vec{x}"),
        ('<m:acc><m:accPr><m:chr m:val="\u0331"/></m:accPr>E</m:acc>', "x\u0331"),  # TeX has no name for it
        ('<m:bar><m:barPr><m:pos m:val="top"/></m:barPr>E</m:bar>', "\\overline{x}"),
        ("<m:bar>E</m:bar>", "\\underline{x}"),
        ("<m:groupChr>E</m:groupChr>", "\\underbrace{x}"),
        (
            '<m:groupChr><m:groupChrPr><m:chr m:val="\u23de"/><m:pos m:val="top"/></m:groupChrPr>E</m:groupChr>',
            "\\overbrace{x}",
        ),
        (
            '<m:groupChr><m:groupChrPr><m:chr m:val="→"/><m:pos m:val="top"/></m:groupChrPr>E</m:groupChr>',
            "\\overset{→}{x}",
        ),
    ],
)
def test_equations_keep_accents_bars_and_braces(equation: str, tex: str) -> None:
    inside = equation.replace("E<", "<m:e><m:r><m:t>x</m:t></m:r></m:e><")
    body = paragraph("The mean ", f"<m:oMath xmlns:m='m'>{inside}</m:oMath>", " is.")
    (draft,) = read(_document(word_file(body)))
    assert plain(draft.parts[0].text) == f"The mean ${tex}$ is."


def test_text_in_every_kind_of_wrapper_is_read() -> None:
    ruby = f"<w:r><w:ruby><w:rt>{_run('kana')}</w:rt><w:rubyBase>{_run('base')}</w:rubyBase></w:ruby></w:r>"
    wrapped = "".join(f"<w:{tag}>{_run(f' {tag}')}</w:{tag}>" for tag in ("customXml", "bdo", "dir", "del"))
    symbols = '<w:r><w:sym w:font="Symbol" w:char="F0B3"/><w:sym w:font="Wingdings" w:char="F0B3"/></w:r>'
    (part,) = read(_document(word_file(f"<w:p>{ruby}{wrapped}{symbols}</w:p>")))[0].parts
    assert part.text == "base customXml bdo dir\u2265\ufffd"


def test_rows_may_begin_at_a_later_column() -> None:
    later = '<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>' + _cell("h1") + "</w:tr>"
    (part,) = read(_document(word_file(f"<w:tbl><w:tr>{_cell('Name')}{_cell('Host')}</w:tr>{later}</w:tbl>")))[0].parts
    assert part.text.endswith("|  | h1 |")


def test_lists_of_a_list_style_have_numbers() -> None:
    numbering = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="0"><w:numStyleLink w:val="X"/></w:abstractNum>
    <w:abstractNum w:abstractNumId="1"><w:styleLink w:val="X"/><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
    </w:abstractNum><w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num></w:numbering>"""
    body = f"<w:document {W}><w:body>{_item('one', 0)}{_item('two', 0)}</w:body></w:document>"
    (part,) = read(_document(_archive({"word/document.xml": body, "word/numbering.xml": numbering})))[0].parts
    assert part.text == "1. one\n2. two"


def test_rows_of_an_inner_table_are_only_in_their_cell() -> None:
    inner = f"<w:tbl><w:tr>{_cell('in')}</w:tr></w:tbl>"
    rows = f"<w:tr>{_cell('a')}<w:tc>{paragraph('b')}{inner}</w:tc></w:tr>"
    wrapped = _wrapped(f"<w:tr>{_cell('c')}{_wrapped(_cell('d'))}</w:tr>")
    (draft,) = read(_document(word_file(f"<w:tbl>{rows}{wrapped}</w:tbl>")))
    (table,) = draft.parts
    assert table.text.count("in") == 1
    assert len(table.text.split("\n")) == 3
    assert table.text.endswith("| c | d |")


def test_number_of_any_length_is_read() -> None:
    span = f'<w:gridSpan w:val="{"9" * 5_000}"/>'
    (draft,) = read(_document(word_file(f"<w:tbl><w:tr>{_cell('a', span)}{_cell('b')}</w:tr></w:tbl>")))
    assert draft.parts[0].text.startswith("| a | b |")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PK\x03\x04 broken", "damaged"),
        (b"\xd0\xcf\x11\xe0 old Word", "damaged"),
        (_archive({"a.txt": "x"}), "has no word/document.xml"),
        (_archive({"word/document.xml": "<a"}), "not XML"),
        (_archive({"word/document.xml": "<a/>"}), "has no body"),
        (_archive({"word/document.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}), "declares XML entities"),
        (_archive({"word/document.xml": "<a>" * 1000}), "nested too deeply"),
        (_archive({"word/document.xml": "<a>" + " " * 60_000_000 + "</a>"}), "ZIP bomb"),
    ],
)
def test_broken_file_is_unreadable_with_its_reason(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(_document(data))
