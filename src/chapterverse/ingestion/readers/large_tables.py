"""Reads reStructuredText tables with thousands of rows, for which docutils would take minutes.

`lift` replaces them in the text by a directive. Their cells are read as plain text, without parsing inline markup.
"""

import csv
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from chapterverse.ingestion.readers.cleaning import pipe_table

MANY_LINES: Final = 4_000  # of a table; docutils takes a second for that many
DIRECTIVE: Final = "chapterverse-large-table"
_SIMPLE_BORDER = re.compile(r"[ \t]*=+(?:[ \t]+=+)+[ \t]*")
_GRID_BORDER = re.compile(r"[ \t]*\+(?:[-=]+\+)+[ \t]*")
_ITEM = re.compile(r"[ \t]*+(\*[ \t]++)?-(?:[ \t]++(.*))?")

Rows = list[list[str]]


def lift(text: str) -> tuple[str, list[str]]:
    """The text without its large tables, and the tables as Markdown."""
    if text.count("\n") < MANY_LINES:
        return text, []
    lines, place = text.split("\n"), 0
    tables: list[str] = []
    kept: list[str] = []
    ends = [
        at for at, line in enumerate(lines) if _SIMPLE_BORDER.fullmatch(line) and not "".join(lines[at + 1 : at + 2])
    ]
    while place < len(lines):
        end = _end_of_table(lines, place, ends)
        if end - place < MANY_LINES:
            kept += lines[place : max(end, place + 1)]
            place = max(end, place + 1)
            continue
        body = lines[place:end]
        rows, heads = _grid(body) if body[0].lstrip().startswith("+") else _simple(body)
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        kept += ["", f"{indent}.. {DIRECTIVE}:: {len(tables)}", ""]
        tables.append(pipe_table(rows, heads))
        place = end
    return "\n".join(kept), tables


def csv_rows(lines: Sequence[str], delimiter: str = ",") -> Rows:
    """The rows of a `csv-table`."""
    ended = (f"{line}\n" for line in lines)  # keeps the lines of a field apart
    try:
        return [row for row in csv.reader(ended, delimiter=delimiter[:1] or ",", skipinitialspace=True) if row]
    except csv.Error:
        return []


def list_rows(lines: Sequence[str]) -> Rows:
    """The rows of a `list-table`."""
    rows: Rows = []
    for line in lines:
        item = _ITEM.fullmatch(line)
        if item and (item[1] or not rows):
            rows.append([item[2] or ""])
        elif item:
            rows[-1].append(item[2] or "")
        elif rows and line.strip():
            rows[-1][-1] = f"{rows[-1][-1]} {line.strip()}"
    return rows


def _end_of_table(lines: list[str], place: int, ends: list[int]) -> int:
    """The line after the table that begins at `place`, or `place` if none does. `ends`: last lines of simple tables."""
    line = lines[place]
    if "+" in line and _GRID_BORDER.fullmatch(line):
        while place < len(lines) and lines[place].lstrip()[:1] in ("+", "|"):
            place += 1
    elif "=" in line and _SIMPLE_BORDER.fullmatch(line):
        following = bisect_right(ends, place)
        return ends[following] + 1 if following < len(ends) else place
    return place


def _simple(lines: list[str]) -> tuple[Rows, int]:
    columns = [found.start() for found in re.finditer(r"=+", lines[0])]
    rows: Rows = []
    heads = 0
    for line in lines[1:-1]:
        if "=" in line and _SIMPLE_BORDER.fullmatch(line):
            heads = heads or len(rows)
            continue
        if not line.strip() or not line.strip(" -"):
            continue
        cells = list(_slices(line, columns))
        if rows and not cells[0]:
            rows[-1] = [f"{before} {more}".strip() for before, more in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows, heads


def _slices(line: str, columns: list[int]) -> Iterator[str]:
    for start, end in zip(columns, [*columns[1:], None], strict=True):
        yield line[start:end].strip()


def _grid(lines: list[str]) -> tuple[Rows, int]:
    rows: Rows = []
    heads = 0
    fresh = True
    for line in lines:
        if _GRID_BORDER.fullmatch(line):
            heads = len(rows) if "=" in line else heads
            fresh = True
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if fresh or len(cells) != len(rows[-1]):
            rows.append(cells)
        else:
            rows[-1] = [f"{before} {more}".strip() for before, more in zip(rows[-1], cells, strict=True)]
        fresh = False
    return rows, heads
