"""PDF files written here: bookmarks, running headers, hyphenation, tables, columns; encrypted and damaged files."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from chapterverse.ingestion.document import Document, Draft, Unreadable
from chapterverse.ingestion.readers import pdf


def write_pdf(
    pages: list[list[str]], bookmarks: dict[str, int] | None = None, title: str = "", lock: bool = False
) -> bytes:
    """A PDF with lines of Helvetica. Objects: 1 catalog, 2 pages, 3 font, 4 outlines, 5 info, ..."""
    objects: dict[int, str] = {3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"}
    kids = []
    number = 6
    for lines in pages:
        shown = " T* ".join(_shown(line) for line in lines)
        stream = f"BT /F1 10 Tf 14 TL 50 780 Td {shown} ET"
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R /F2 << /Type /Font /Subtype /Type1 /BaseFont /Courier >> >> >> >>"
        )
        objects[number + 1] = f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"
        kids.append(number)
        number += 2
    objects[1] = "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>"
    objects[2] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>"
    names = list((bookmarks or {}).items())
    ends = f"/First {number} 0 R /Last {number + len(names) - 1} 0 R" if names else ""
    objects[4] = f"<< /Type /Outlines {ends} /Count {len(names)} >>"
    objects[5] = f"<< /Title ({_escaped(title)}) >>"
    for index, (name, page) in enumerate(names):
        following = f"/Next {number + 1} 0 R" if index < len(names) - 1 else ""
        target = f"/Dest [{kids[page - 1]} 0 R /Fit]"
        objects[number] = f"<< /Title ({_escaped(name)}) /Parent 4 0 R {target} {following} >>"
        number += 1
    return _file(objects, lock)


def _file(objects: dict[int, str], lock: bool) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = {}
    for number in sorted(objects):
        places[number] = len(out)
        out += f"{number} 0 obj\n{objects[number]}\nendobj\n".encode("cp1252")
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for number in sorted(objects):
        out += f"{places[number]:010} 00000 n \n".encode()
    secret = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{'41' * 32}> /U <{'42' * 32}> /P -4 >>" if lock else ""
    name = f"/ID [<{'00' * 16}> <{'00' * 16}>]"
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R {name} {secret} >>\n".encode()
    return bytes(out + f"startxref\n{start}\n%%EOF\n".encode())


def _shown(line: str) -> str:
    """The operators for a line. `18|text` has font size 18, `c|text` is Courier."""
    size, bar, text = line.partition("|")
    font = (
        f"/F2 10 Tf ({_escaped(text)}) Tj /F1 10 Tf"
        if size == "c"
        else f"/F1 {size} Tf ({_escaped(text)}) Tj /F1 10 Tf"
    )
    return font if bar else f"({_escaped(line)}) Tj"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def read(data: bytes, path: str = "papers/my_robot-book.pdf") -> Draft:
    (draft,) = pdf.read(Document("https://book.example/x.pdf", path, "book", "pdf", data))
    return draft


BODY = [
    "A humanoid robot keeps its balance by moving the point where the forces of the ground",
    "act on its feet. This point must stay inside the area that the feet span, and the con-",
    "troller plans the steps so that it does.",
    "The next paragraph begins here and explains how a funda-",
    "mental model, the inverted pendulum, is used. It",
    "has one mass. It is well-known as the zero-moment-",
    "Point model; a well-",
    "known one:",
    "• the first point",
    "• the second point, which runs on over the end of the line because it is long enough to",
    "need two lines",
]


WALKING = (
    "A humanoid robot keeps its balance by moving the point where the forces of the ground act on its feet. This point "
    "must stay inside the area that the feet span, and the controller plans the steps so that it does."
)
PENDULUM = (
    "The next paragraph begins here and explains how a fundamental model, the inverted pendulum, is used. It has one "
    "mass. It is well-known as the zero-moment-Point model; a well-known one:"
)
POINTS = (
    "- the first point\n"
    "- the second point, which runs on over the end of the line because it is long enough to need two lines"
)


def test_lines_become_paragraphs_and_lists() -> None:
    draft = read(write_pdf([BODY]))
    assert [(part.kind, part.text) for part in draft.parts] == [
        ("heading", "Page 1"),
        ("paragraph", WALKING),
        ("paragraph", PENDULUM),
        ("list", POINTS),
    ]
    assert (draft.parts[0].level, draft.parts[0].anchor) == (2, "page=1")
    assert draft.title == "my robot book"


def test_running_headers_page_numbers_and_empty_pages_are_left_out() -> None:
    pages = [
        ["The Robot Book", f"Sheet {n} is about {word}.", f"{n}"] for n, word in enumerate(["legs", "arms", "eyes"], 1)
    ]
    pages.insert(2, [])
    draft = read(write_pdf(pages, title="Robots, 2nd edition"))
    assert draft.title == "Robots, 2nd edition"
    assert [(part.text, part.anchor) for part in draft.parts] == [
        ("Page 1", "page=1"),
        ("Sheet 1 is about legs.", ""),
        ("Page 2", "page=2"),
        ("Sheet 2 is about arms.", ""),
        ("Page 4", "page=4"),
        ("Sheet 3 is about eyes.", ""),
    ]


def test_footers_that_change_with_the_chapter_are_left_out() -> None:
    chapters = ["Legs", "Legs", "Arms", "Arms", "Eyes", "Eyes"]
    pages = [
        [f"Sheet {word} is about 7 things.", f"{n + 40} Chapter: {word}" if n % 2 else f"1.{n}. On {word} {n + 40}"]
        for n, word in enumerate(chapters, 1)
    ]
    said = [part.text for part in read(write_pdf(pages)).parts if part.kind != "heading"]
    assert said == [f"Sheet {word} is about 7 things." for word in chapters]


def test_headers_larger_than_the_text_are_left_out() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    text = "A line of the text of this chapter, without any number."
    pages = [
        ["12|" + (f"{number} Chapter {word}" if number % 2 else f"{word} {number}"), f"18|About {word}", *[text] * 9]
        for number, word in enumerate(words, 1)
    ]
    pages[2][:2] = ["About the middle.", "18|3 Stones"]
    parts = read(write_pdf(pages)).parts
    headings = [part.text for part in parts if part.kind == "heading"]
    assert headings[:4] == ["About alpha", "About beta", "Page 3: About beta", "3 Stones"]
    assert headings[4:] == [f"About {word}" for word in words[3:]]


def test_a_section_with_the_number_of_its_page_keeps_its_heading() -> None:
    words = ("alpha", "beta", "gamma", "delta", "epsilon")
    pages = [
        [
            f"18|{number} About {word}",
            f"The {word} part is in a line of text.",
            f"The end of {word} is page {number}",
            str(number),
        ]
        for number, word in enumerate(words, 1)
    ]
    parts = [part.text for part in read(write_pdf(pages)).parts]
    assert parts[:2] == ["1 About alpha", "The alpha part is in a line of text. The end of alpha is page 1"]
    assert parts[-2:] == ["5 About epsilon", "The epsilon part is in a line of text. The end of epsilon is page 5"]


def test_steps_keep_their_numbers_around_bullets() -> None:
    lines = ["Steps:", "1. Install", "\u2022 on Linux", "\u2022 on Mac", "2. Configure", "5. Run"]
    assert [part.text for part in read(write_pdf([lines])).parts[1:]] == [
        "Steps:",
        "1. Install\n  - on Linux\n  - on Mac\n2. Configure",
        "5. Run",
    ]


def test_numbers_at_the_edge_of_pages_that_are_no_page_numbers_stay() -> None:
    weights = {"legs": 3, "arms": 9, "eyes": 4, "ears": 12, "hands": 7, "feet": 1}
    pages = [[f"This is a sheet about {name}.", f"The {name} weigh {weight}"] for name, weight in weights.items()]
    said = " ".join(part.text for part in read(write_pdf(pages)).parts)
    assert all(f"The {name} weigh {weight}" in said for name, weight in weights.items())


def test_bookmark_names_its_page_and_the_pages_after_it() -> None:
    pages = [[f"Text of sheet {word}."] for word in ("one", "two", "three", "four")]
    draft = read(write_pdf(pages, {"Legs (walking)": 2, "Standing": 2, "Arms": 4}))
    assert [part.text for part in draft.parts if part.kind == "heading"] == [
        "Page 1",
        "Page 2: Legs (walking)",
        "Page 3: Legs (walking)",
        "Page 4: Arms",
    ]


def test_file_name_in_the_metadata_is_no_title() -> None:
    assert read(write_pdf([["x"]], title="Microsoft Word - thesis_final.doc")).title == "my robot book"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"%PDF-1.4 nothing", "not a PDF"),
        (b"", "not a PDF"),
        (write_pdf([["x"]])[:200], "not a PDF"),
        (write_pdf([["x"]], lock=True), "is encrypted"),
        (write_pdf([[], []]), "no text"),
    ],
)
def test_invalid_or_encrypted_file_is_unreadable(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(data)


def test_threads_can_read_concurrently() -> None:
    files = [write_pdf([[f"Sheet {sheet} of file {name}."] for sheet in range(5)]) for name in range(12)]
    with ThreadPoolExecutor(6) as pool:
        drafts = list(pool.map(read, files))
    assert [draft.parts[-1].text for draft in drafts] == [f"Sheet 4 of file {name}." for name in range(12)]


def test_font_size_gives_headings_and_monospace_gives_code() -> None:
    text = ["A paragraph that is written in letters of the usual size and goes on", "in a second line of the page."]
    first = ["24|The Rover", "16|Setup of the legs", *text, "13|Tools", *text, "c|def f():", "c|  return 1", *text]
    second = [*text, "16|Walking", *text]
    parts = read(write_pdf([first, second], title="The Rover")).parts
    assert [(part.kind, part.text, part.level, part.anchor) for part in parts if part.kind in ("heading", "code")] == [
        ("heading", "The Rover", 2, "page=1"),
        ("heading", "Setup of the legs", 2, "page=1"),
        ("heading", "Tools", 3, "page=1"),
        ("code", "def f():\n  return 1", 0, ""),
        ("heading", "Page 2: Tools", 2, "page=2"),
        ("heading", "Walking", 2, "page=2"),
    ]
    assert parts[2].text == " ".join(text)


def _placed(pieces: list[tuple[int, int, str]], bold: str = "") -> bytes:
    """A PDF with texts at given positions; texts that contain `bold` are bold."""
    shown = " ".join(
        f"BT /{'F2' if bold and bold in text else 'F1'} 10 Tf {left} {top} Td ({_escaped(text)}) Tj ET"
        for left, top, text in pieces
    )
    fonts = " ".join(
        f"/{name} << /Type /Font /Subtype /Type1 /BaseFont /{font} /Encoding /WinAnsiEncoding >>"
        for name, font in (("F1", "Helvetica"), ("F2", "Helvetica-Bold"))
    )
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 7 0 R"
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: "<< /Type /Pages /Count 1 /Kids [6 0 R] >>",
        5: "<< /Title (T) >>",
        6: f"{page} /Resources << /Font << {fonts} >> >> >>",
        7: f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
    }
    return _file(objects | dict.fromkeys((3, 4), "null"), lock=False)


def test_aligned_cells_are_a_table() -> None:
    long = "This sentence is long enough to tell how wide a line of the text is on this page."
    rows = [("speed", "0.5", "How fast the wheels turn"), ("mode", "safe", "How it moves"), ("arm", "1.57", "Its turn")]
    pieces = [(50, 780, long), (70, 760, "Name"), (160, 760, "Default"), (300, 760, "Description")]
    for number, row in enumerate(rows):
        top = 740 - 30 * number
        pieces += [(left, top, text) for left, text in zip((50, 150, 250), row, strict=True)]
    pieces += [(250, 730, "and the arm."), (50, 640, long)]
    pieces.sort(key=lambda piece: (-piece[1], piece[0]))
    (table,) = [part.text for part in read(_placed(pieces)).parts if part.kind == "table"]
    assert table.split("\n") == [
        "| Name | Default | Description |",
        "| --- | --- | --- |",
        "| speed | 0.5 | How fast the wheels turn and the arm. |",
        "| mode | safe | How it moves |",
        "| arm | 1.57 | Its turn |",
    ]


def test_list_and_two_columns_of_text_are_no_tables() -> None:
    listed = [(left, 780 - 14 * n, text) for n in range(4) for left, text in ((50, f"{n + 1}."), (90, f"Item {n}"))]
    assert "table" not in {part.kind for part in read(_placed(listed)).parts}
    text = "Words of a column that go on and on"
    columns = [(left, 780 - 14 * n, f"{text} {n}") for n in range(5) for left in (50, 320)]
    assert "table" not in {part.kind for part in read(_placed(columns)).parts}


def _column(word: str, lines: int) -> list[str]:
    return [f"The {word} column says in line {number} that it goes on" for number in range(lines)]


@pytest.mark.parametrize("order", ["across", "down", "backwards"])
def test_columns_are_read_in_order_independent_of_drawing_order(order: str) -> None:
    wide = "This line runs across the whole sheet, from the left edge to the right edge of all of its text."
    left, right = _column("left", 8), _column("right", 7)
    pieces = [(50, 800, wide)]
    pieces += [(50, 760 - 14 * number, line) for number, line in enumerate(left)]
    pieces += [(320, 760 - 14 * number, line) for number, line in enumerate(right)]
    pieces += [(50, 600, wide), (50, 586, wide)]
    if order != "down":
        pieces.sort(key=lambda piece: (-piece[1], piece[0] if order == "across" else -piece[0]))
    read_text = [part.text for part in read(_placed(pieces)).parts if part.kind == "paragraph"]
    assert " ".join(read_text) == " ".join([wide, *left, *right, wide, wide])


def test_three_columns_are_read_in_order() -> None:
    columns = [_column(word, 5) for word in ("first", "second", "third")]
    lines = [[line[:34] for line in column] for column in columns]
    pieces = [(40 + 180 * at, 780 - 14 * row, lines[at][row]) for row in range(5) for at in range(3)]
    read_text = " ".join(part.text for part in read(_placed(pieces)).parts if part.kind == "paragraph")
    assert read_text == " ".join(line for column in lines for line in column)


def test_table_with_long_last_column_is_a_table() -> None:
    rows = [(f"option {number}", f"What this option of the program does, number {number}") for number in range(6)]
    pieces = [
        (left, 780 - 14 * at, text) for at, row in enumerate(rows) for left, text in zip((50, 200), row, strict=True)
    ]
    (table,) = [part.text for part in read(_placed(pieces)).parts if part.kind == "table"]
    assert table.count("\n") == 6


def test_short_bold_line_is_a_heading() -> None:
    text = "Plug the charger in and wait until the lamp on the charger is green, which takes two hours."
    lines = ["Charging the battery", text, text, "Strong words end here.", text]
    placed = [(50, 780 - 14 * number, line) for number, line in enumerate(lines)]
    parts = read(_placed(placed, bold="Charging")).parts
    assert [part.text for part in parts if part.kind == "heading"] == ["Charging the battery"]
    assert "heading" not in {part.kind for part in read(_placed(placed, bold="Strong")).parts[1:]}
