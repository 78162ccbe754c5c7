import time

from chapterverse.ingestion.document import Part
from chapterverse.ingestion.inline import picture, styled
from chapterverse.ingestion.readers.cleaning import Cell, pipe_table, spread
from chapterverse.ingestion.readers.page_builder import PageBuilder


def test_a_field_is_one_part() -> None:
    page = PageBuilder()
    page.field("rate", [("Type", "double"), ("Default", "20.0")], "How  often\nit runs.")
    page.field("`-v`, `--verbose`", description=["Says more.", "Much more."])
    page.field("bare")
    assert page.finish() == (
        Part("field", "`rate`\nType: double\nDefault: 20.0\nHow often it runs."),
        Part("field", "`-v`, `--verbose`\nSays more.\nMuch more."),
        Part("field", "`bare`"),
    )


def test_field_contains_its_list_and_is_followed_by_code_and_inner_fields() -> None:
    page = PageBuilder()
    page.open_field("mode")
    page.fact("Type", "string")
    page.paragraph("One of:")
    page.open_list()
    for text in ("fast", "safe"):
        page.item()
        page.paragraph(text)
    page.close_list()
    page.code("mode: fast", "yaml", caption="settings.yml")
    page.paragraph("More about it.")
    page.field("inner", [("Type", "int")])
    page.close_field()
    page.paragraph("after")
    assert page.finish() == (
        Part("field", "`mode`\nType: string\nOne of:\n- fast\n- safe"),
        Part("code", "mode: fast", info="yaml", caption="settings.yml", inside=1),
        Part("paragraph", "More about it.", inside=1),
        Part("field", "`inner`\nType: int", inside=1),
        Part("paragraph", "after"),
    )


def test_list_in_a_note_that_code_interrupts_is_a_part_of_its_own() -> None:
    page = PageBuilder()
    page.open_admonition("Note")
    page.paragraph("Do this:")
    page.open_list(ordered=True)
    page.item()
    page.paragraph("Run it.")
    page.code("run")
    page.paragraph("It runs.")
    page.item()
    page.paragraph("Stop it.")
    page.close_list()
    page.close_admonition()
    assert [(part.kind, part.text, part.inside) for part in page.finish()] == [
        ("admonition", "Note: Do this:", 0),
        ("list", "1. Run it.", 1),
        ("code", "run", 2),  # inside of the note and of the item
        ("paragraph", "It runs.", 2),
        ("list", "2. Stop it.", 1),
    ]


def test_long_description_keeps_its_first_paragraph_in_the_field() -> None:
    page = PageBuilder()
    page.field("name", [("Type", "int")], ["first", "word " * 300, "last"])
    kinds = [(part.kind, part.text[:17], part.inside) for part in page.finish()]
    assert kinds == [
        ("field", "`name`\nType: int\n", 0),
        ("paragraph", "word word word wo", 1),
        ("paragraph", "last", 1),
    ]


def test_numbering_continues_after_blocks_inside_an_item() -> None:
    page = PageBuilder()
    page.open_list(ordered=True)
    page.item()
    page.paragraph("Run:")
    page.code("make")
    page.paragraph("It takes long.")
    page.item()
    page.paragraph("Look:")
    page.image("A robot", "robot.png")
    page.item()
    page.field("rate", [("Type", "double")])
    page.item()
    page.paragraph("End")
    page.close_list()
    assert page.finish() == (
        Part("list", "1. Run:"),
        Part("code", "make", inside=1),
        Part("paragraph", "It takes long.", inside=1),
        Part("list", f"2. Look:{picture('robot.png', 'A robot')}"),
        Part("field", "`rate`\nType: double"),
        Part("list", "4. End"),
    )


def test_nested_blocks_keep_their_depth() -> None:
    page = PageBuilder()
    page.open_list()
    page.item()
    page.paragraph("Outer")
    page.open_list(ordered=True)
    page.item()
    page.paragraph("Run:")
    page.code("make")
    page.item()
    page.paragraph("Then:")
    page.open_admonition("Note", "note")
    page.code("sudo make")
    page.paragraph("Or not.")
    page.open_list()
    page.item()
    page.paragraph("At all")
    page.close_list()
    page.close_admonition()
    page.close_list()
    page.item()
    page.paragraph("Last")
    page.close_list()
    page.open_quote()
    page.paragraph("Said")
    page.table([["a"], ["b"]])
    page.paragraph("so.")
    page.close_quote()
    page.paragraph("after")
    assert page.finish() == (
        Part("list", "- Outer\n  1. Run:"),
        Part("code", "make", inside=2),
        Part("list", "2. Then:", inside=1),
        Part("admonition", "Note:", info="note", caption="Note", inside=2),
        Part("code", "sudo make", inside=3),
        Part("paragraph", "Or not.", inside=3),
        Part("list", "- At all", inside=3),
        Part("list", "- Last"),
        Part("quote", "Said"),
        Part("table", "| a |\n| --- |\n| b |", inside=1),
        Part("paragraph", "so.", inside=1),
        Part("paragraph", "after"),
    )


def test_list_that_continues_after_nested_code_keeps_its_depth() -> None:
    page = PageBuilder()
    page.open_list()
    page.item()
    page.paragraph("a")
    page.open_list()
    page.item()
    page.paragraph("b")
    page.code("x")
    page.item()
    page.paragraph("c")
    page.close_list()
    page.item()
    page.paragraph("d")
    page.close_list()
    assert page.finish() == (
        Part("list", "- a\n  - b"),
        Part("code", "x", inside=2),
        Part("list", "- c", inside=1),
        Part("list", "- d"),
    )


def test_images_are_blocks_or_marks() -> None:
    page = PageBuilder()
    page.image("An arm", "a.png", "The arm.")
    page.open_admonition("Note", "note")
    page.paragraph("see")
    page.image("", "b.png")
    page.close_admonition()
    page.open_table()
    page.row()
    page.cell()
    page.image("x", "c.png")
    page.paragraph("cell")
    page.close_table()
    assert page.finish() == (
        Part("image", "An arm", info="a.png", caption="The arm."),
        Part("admonition", f"Note: see{picture('b.png')}", info="note", caption="Note"),
        Part("table", f"| {picture('c.png', 'x')} cell |\n| --- |"),
    )


def test_cells_are_repeated_for_their_span() -> None:
    rows: list[list[str | Cell]] = [
        [Cell("a", columns=2), "b"],
        [Cell("c", rows=2), "d", "e"],
        ["f", Cell("g", rows=9)],
        ["h"],
    ]
    assert spread(rows) == [["a", "a", "b"], ["c", "d", "e"], ["c", "f", "g"], ["h"]]
    page = PageBuilder()
    page.open_table()
    for head, texts in ((True, ["x", "y"]), (True, ["x", "z"]), (False, ["1", "2"])):
        page.row(head)
        for text in texts:
            page.cell()
            page.paragraph(text)
    page.close_table()
    assert page.finish() == (Part("table", "| x | y z |\n| --- | --- |\n| 1 | 2 |"),)


def test_a_table_without_a_header_has_an_empty_one() -> None:
    assert pipe_table([["a", "b"]], 0) == "|  |  |\n| --- | --- |\n| a | b |"


def test_huge_spans_are_limited() -> None:
    start = time.process_time()
    rows: list[list[str | Cell]] = [["x"] for _ in range(2000)]
    rows[0] = [Cell("word " * 1000, rows=10**9, columns=10**9)]
    assert sum(len(text) for row in spread(rows) for text in row) < 2_000_000
    assert time.process_time() - start < 2


def test_fields_in_cells_become_text() -> None:
    page = PageBuilder()
    page.open_table()
    page.row()
    page.cell()
    page.field("a", [("Type", "int")], styled("strong", "bold"))
    page.cell()
    page.paragraph("b")
    page.close_table()
    assert page.finish()[0].text == f"| `a` Type: int {styled('strong', 'bold')} | b |\n| --- | --- |"


def test_closing_an_unopened_field_is_ignored() -> None:
    page = PageBuilder()
    page.close_field()
    page.fact("Type", "int")
    page.open_field("left open")
    assert page.finish() == (Part("paragraph", "Type: int"), Part("field", "`left open`"))
