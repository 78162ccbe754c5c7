"""Detects tables in a PDF by the positions of text.

A PDF has no tables, only positions of letters. A line with wide gaps has several cells. If the cells of consecutive
lines begin at the same positions, the lines are rows of a table. A line with a single cell, not in the first column,
continues the cell above it. The line above the rows is the header if it has the same number of cells.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ALIGNED = 3.0  # points; maximum distance between the starts of cells in a column
_FAR = 0.9  # times the height of a line: a wider gap separates two cells
SHORT_CELL = 30  # maximum mean length of cells in the first of two columns; longer ones are columns of text
_MARKER = re.compile(r"[•▪◦‣●○■–*-]|\(?\d{1,3}[.)]?|[a-z][.)]")  # of a list


@dataclass(frozen=True, slots=True)
class PdfCell:
    """A part of a line and its position."""

    left: float
    text: str
    right: float = 0.0


def cells_of(pieces: Sequence[tuple[float, float, float, str]]) -> tuple[PdfCell, ...]:
    """The cells of a line, from its pieces (left, right, height, text). A line without wide gaps has one cell."""
    cells: list[PdfCell] = []
    end = 0.0
    for left, right, height, text in sorted(pieces):
        if cells and left - end <= _FAR * height:
            joined = f"{cells[-1].text}{' ' if left - end > 0.1 * height else ''}{text}"
            cells[-1] = PdfCell(cells[-1].left, joined, max(end, right))
        else:
            cells.append(PdfCell(left, text, right))
        end = max(end, right)
    return tuple(cells)


def tables_in(lines: Sequence[Sequence[PdfCell]]) -> Iterator[tuple[int, int, list[list[str]]]]:
    """The tables in these lines: the first line, the line after the last one, and the rows."""
    done = 0
    for at, line in enumerate(lines):
        if at < done or len(line) < 2:
            continue
        end = _end_of_rows(lines, at)
        header = at - 1 if at > done and len(lines[at - 1]) == len(line) else at
        rows = _rows(lines[header:at]) + _rows(lines[at:end])
        if len(rows) > 2 and _is_table(rows):
            yield header, end, rows
            done = end


def _end_of_rows(lines: Sequence[Sequence[PdfCell]], at: int) -> int:
    """The line after the rows that match the one at `at`."""
    columns = lines[at]
    end = at + 1
    while end < len(lines):
        places = [_column(columns, cell) for cell in lines[end]]
        if not places or None in places or (len(places) > 1 and len(places) != len(columns)):
            break
        if len(places) == 1 and places[0] == 0:
            break  # text after the table, at the position of its first column
        end += 1
    return end


def _column(columns: Sequence[PdfCell], cell: PdfCell) -> int | None:
    return next((place for place, one in enumerate(columns) if abs(one.left - cell.left) <= _ALIGNED), None)


def _rows(lines: Sequence[Sequence[PdfCell]]) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in lines:
        if len(line) > 1:
            rows.append([cell.text for cell in line])
        else:
            place = _column(lines[0], line[0]) or 0
            rows[-1][place] += f" {line[0].text}"
    return rows


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are a table, not a list with markers as cells, and not two columns of text."""
    if all(_MARKER.fullmatch(row[0]) for row in rows[1:]) and len(rows[0]) == 2:
        return False
    return len(rows[0]) > 2 or sum(len(row[0]) for row in rows) <= SHORT_CELL * len(rows)
