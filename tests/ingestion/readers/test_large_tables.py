import time

import pytest

from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.readers.large_tables import MANY_LINES, lift

_SHAPES = {
    "simple": ("== ==\nx  y\n== ==\n", "a  b\n", "== ==\n"),
    "grid": ("+--+--+\n|x |y |\n+==+==+\n", "|a |b |\n+--+--+\n", ""),
    "csv": (".. csv-table::\n   :header: x,y\n\n", "   a,b\n", ""),
    "list": (".. list-table::\n   :header-rows: 1\n\n   * - x\n     - y\n", "   * - a\n     - b\n", ""),
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_large_tables_are_read_like_small_ones(shape: str) -> None:
    begin, row, end = _SHAPES[shape]
    for count in (3, MANY_LINES):
        text = f"Before.\n\n{begin}{row * count}{end}\nAfter.\n"
        parts = read(Document("u", "x.rst", "b", "rst", text.encode(), "sphinx"))[0].parts
        assert [part.kind for part in parts] == ["paragraph", "table", "paragraph"]
        assert parts[1].text.split("\n") == ["| x | y |", "| --- | --- |", *["| a | b |"] * count]


def test_header_and_fields_of_several_lines_of_a_large_csv_table() -> None:
    begin = '.. csv-table::\n   :header: Name, "Default value"\n\n   a,"line one\n   line two"\n'
    text = begin + "   a,b\n" * MANY_LINES
    (part,) = read(Document("u", "x.rst", "b", "rst", text.encode(), "sphinx"))[0].parts
    assert part.text.startswith("| Name | Default value |\n| --- | --- |\n| a | line one line two |\n| a | b |\n")


def test_row_of_several_lines_is_joined() -> None:
    begin, row, end = _SHAPES["simple"]
    _, (table,) = lift(f"{begin}{row * MANY_LINES}c  d\n   e\n{end}")
    assert table.endswith("| c | d e |")


@pytest.mark.slow
def test_table_of_two_megabytes_is_read_in_bounded_time() -> None:
    start = time.process_time()
    text = "== ==\n" + "a  b\n" * 400_000 + "== ==\n"
    read(Document("u", "x.rst", "b", "rst", text.encode(), "sphinx"))
    assert time.process_time() - start < 20


def test_borders_without_an_end_are_no_table() -> None:
    start = time.process_time()
    text = "== ==\nx\n" * 40_000
    assert lift(text) == (text, [])
    assert time.process_time() - start < 20
