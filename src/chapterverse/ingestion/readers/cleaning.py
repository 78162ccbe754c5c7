"""Decodes files, removes invisible characters, and writes tables."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse.ingestion.document import Unreadable
from chapterverse.ingestion.inline import remove_private

_CONTROL_BYTES = bytes(b for b in range(32) if b not in b"\t\n\r\f\x1b")
_CONTROL_SHARE = 0.02  # maximum share of control bytes; text has almost none, random data a tenth

# Control characters, soft hyphens, zero-width and bidirectional marks, fillers, tag characters and variation
# selectors, which can hide text from people. Joiners are kept between letters of scripts that need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff])"
)

_MAX_SPAN = 100  # columns
_MAX_REPEATED = 1_000_000  # characters of cells that are repeated in the rows and columns they span


def decode(data: bytes) -> str:
    """The text of a file in UTF-8, UTF-16 with a byte order mark, or Windows-1252; newlines become `\\n`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise Unreadable("looks like UTF-16 but is broken") from error
    else:
        if b"\0" in data or len(data) - len(data.translate(None, _CONTROL_BYTES)) > _CONTROL_SHARE * len(data):
            raise Unreadable("looks binary, not text")
        text = _decode_bytes(data)
    return normal(text)


def normal(text: str) -> str:
    """The text with `\\n` for newlines, without private characters."""
    return remove_private(text.replace("\r\n", "\n").replace("\r", "\n"))


def _decode_bytes(data: bytes) -> str:
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")  # maps every byte


def visible(text: str) -> str:
    """The text without invisible characters. White space is kept, because it matters in code."""
    return _HIDDEN.sub("", text)


def clean_inline(text: str) -> str:
    """The text as one line: with composed characters and single spaces, without invisible characters."""
    return " ".join(visible(unicodedata.normalize("NFC", text)).split())


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table with its row and column spans."""

    text: str
    rows: int = 1
    columns: int = 1


def spread(rows: Sequence[Sequence[str | Cell]]) -> list[list[str]]:
    """Repeat each cell in the rows and columns that it spans. If the table would become too large, these cells are
    empty instead."""
    spread_rows: list[list[str]] = []
    reaching: dict[int, tuple[int, str]] = {}  # column → number of rows still covered, and the text
    room = _MAX_REPEATED
    for row in rows:
        line: list[str] = []
        for cell in row:
            one = cell if isinstance(cell, Cell) else Cell(cell)
            _take_reaching(line, reaching)
            down = min(max(one.rows, 1), len(rows)) - 1
            for column in range(min(max(one.columns, 1), _MAX_SPAN)):
                cost = (len(one.text) + 1) * (down + bool(column))
                text = one.text if cost <= room else ""
                room -= cost if text else 0
                if down:
                    reaching[len(line)] = (down, text)
                line.append(text if column else one.text)
        _take_reaching(line, reaching)
        spread_rows.append(line)
    return spread_rows


def _take_reaching(line: list[str], reaching: dict[int, tuple[int, str]]) -> None:
    """Add the cells that span from the rows above to the next columns of a row."""
    while len(line) in reaching:
        left, text = reaching.pop(len(line))
        if left > 1:
            reaching[len(line)] = (left - 1, text)
        line.append(text)


def pipe_table(rows: Sequence[Sequence[str]], heads: int = 1) -> str:
    """A Markdown table. The first `heads` rows become its header; short rows are padded. Empty if the cells are."""
    cells = [[clean_inline(cell).replace("|", "\\|") for cell in row] for row in rows]
    heads = sum(any(row) for row in cells[:heads])
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(len(row) for row in cells)
    cells = [row + [""] * (width - len(row)) for row in cells]
    header = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*cells[:heads], strict=True)]
    header = header or [""] * width
    return "\n".join(map(_table_line, [header, ["---"] * width, *cells[heads:]]))


def _table_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
