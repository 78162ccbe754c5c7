"""Parses AsciiDoc tables: columns, spans, headers, and the formats CSV, DSV and TSV."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from chapterverse.ingestion.limits import whole_number
from chapterverse.ingestion.readers.asciidoc.blocks import About

_MAX_SPAN: Final = 500
_MAX_COLUMNS: Final = 1_000
_SPEC = re.compile(
    r"(?:^|(?<=\s))(?:(?P<columns>\d{1,4})?(?:\.(?P<rows>\d{1,4}))?(?P<how>[*+]))?"
    r"(?:[<^>](?:\.[<^>])?|\.[<^>])?(?P<style>[adehlmsv])?\Z"
)
_COLUMN = re.compile(r"(?:(\d{1,4})\*)?(?:[<^>](?:\.[<^>])?|\.[<^>])?(?:\d{1,5}%?|~)?([adehlmsv])?")
_SPEC_CHARS: Final = 14  # the longest specification of a cell


@dataclass(slots=True)
class TableCell:
    """A cell as it is written."""

    text: str
    style: str = ""
    rows: int = 1
    columns: int = 1


@dataclass(slots=True)
class Table:
    """The rows of a table and how many of them are its header."""

    rows: list[list[TableCell]] = field(default_factory=list)
    heads: int = 0


def read_table(lines: list[str], about: About, mark: str) -> Table:
    """Parse the lines between two table delimiters; `mark` is the delimiter's first character."""
    form = about.names.get("format", "")
    if "separator" in about.names and len(about.names["separator"].replace("\\t", "\t")) == 1:
        mark = about.names["separator"].replace("\\t", "\t")
        form = form or "psv"
    elif form in ("csv", "tsv", "dsv"):
        mark = {"csv": ",", "tsv": "\t", "dsv": ":"}[form]
    form = form or {",": "csv", ":": "dsv"}.get(mark, "psv")
    styles = _columns(about.names.get("cols", ""))
    lines = [line for line in lines if not line.startswith("//") or line.startswith("///")]
    while lines and not lines[-1]:
        lines = lines[:-1]
    implied = len(lines) > 1 and bool(lines[0]) and not lines[1]
    if form == "psv":
        cells = list(_cells("\n".join(lines), mark))
        on_first = list(_cells(_first_line(lines), mark))
        first, width = len(on_first), len(styles) or sum(cell.columns for cell in on_first)
    else:
        rows = list(_separated(lines, mark, form))
        width = len(styles) or (len(rows[0]) if rows else 0)
        first = width
        cells = [TableCell(text) for row in rows for text in (row + [""] * width)[:width]]
    table = Table(list(_rows(cells, styles, max(width, 1))))
    implied = implied and bool(table.rows) and first >= len(table.rows[0])
    if ("header" in about.options or implied) and "noheader" not in about.options:
        table.heads = min(1, len(table.rows))
    return table


def _first_line(lines: list[str]) -> str:
    return next((line for line in lines if line), "")


def _columns(given: str) -> list[str]:
    """The style of each column of `cols="1,2a,3*m"`."""
    if not given.strip():
        return []
    if given.strip().isdecimal():
        return [""] * min(whole_number(given, 0), _MAX_COLUMNS)
    styles: list[str] = []
    for column in re.split(r";" if ";" in given and "," not in given else r",", given):
        found = _COLUMN.fullmatch(column.strip())
        times = int(found[1]) if found and found[1] else 1
        styles += [(found[2] or "") if found else ""] * min(times, _MAX_COLUMNS - len(styles))
    return styles


def _cells(text: str, mark: str) -> Iterator[TableCell]:
    """The cells of `|a 2+|b`. The text right before a bar specifies the cell after the bar."""
    at, spec = -1, TableCell("")
    times = 1
    place = text.find(mark)
    while place >= 0:
        if place and text[place - 1] == "\\":
            place = text.find(mark, place + 1)
            continue
        found = _SPEC.search(text, max(at + 1, place - _SPEC_CHARS, 0), place)
        end = place - (len(found[0]) if found else 0)
        if at >= 0:
            yield from _repeated(spec, text[at + 1 : end], mark, times)
        spec, times = _spec(found)
        at = place
        place = text.find(mark, place + 1)
    if at >= 0:
        yield from _repeated(spec, text[at + 1 :], mark, times)


def _repeated(spec: TableCell, text: str, mark: str, times: int) -> Iterator[TableCell]:
    text = text.replace(f"\\{mark}", mark).strip("\n")
    text = text if spec.style in ("a", "l") else text.strip()
    for _ in range(times):
        yield TableCell(text, spec.style, spec.rows, spec.columns)


def _spec(found: re.Match[str] | None) -> tuple[TableCell, int]:
    if not found:
        return TableCell(""), 1
    columns, rows = int(found["columns"] or 1), int(found["rows"] or 1)
    if found["how"] == "*":
        return TableCell("", found["style"] or ""), min(columns, _MAX_COLUMNS)
    return TableCell("", found["style"] or "", min(max(rows, 1), _MAX_SPAN), min(max(columns, 1), _MAX_SPAN)), 1


def _separated(lines: list[str], mark: str, form: str) -> Iterator[list[str]]:
    if form == "dsv":
        for line in lines:
            if line:
                yield [
                    field.replace(f"\\{mark}", mark).strip() for field in re.split(rf"(?<!\\){re.escape(mark)}", line)
                ]
        return
    ended = (f"{line}\n" for line in lines)  # keeps the lines of a field apart
    try:
        yield from ([cell.strip() for cell in row] for row in csv.reader(ended, delimiter=mark) if row)
    except csv.Error:
        return


def _rows(cells: list[TableCell], styles: list[str], width: int) -> Iterator[list[TableCell]]:
    """The cells by row. A cell that spans rows occupies its columns in the rows below."""
    reaching: dict[int, int] = {}  # column → number of rows in which it is still occupied
    row: list[TableCell] = []
    column = 0

    def skip(column: int) -> int:
        while column < width and reaching.get(column, 0):
            reaching[column] -= 1
            column += 1
        return column

    column = skip(0)
    for cell in cells:
        while column >= width:
            yield row
            row, column = [], skip(0)
        if not cell.style and column < len(styles):
            cell.style = styles[column]
        for covered in range(column, min(column + cell.columns, width)):
            if cell.rows > 1:
                reaching[covered] = cell.rows - 1
        row.append(cell)
        column = skip(column + cell.columns)
    if row:
        yield row
