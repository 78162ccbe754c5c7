"""Bytes to text, and text to what a person would see of it.

Owns decoding, the removal of characters that cannot be seen, and the one way a table is written. Never knows a
document format.
"""

import re
import unicodedata
from collections.abc import Sequence

from chapterverse.ingestion.document import Unreadable

_CONTROL_BYTES = bytes(b for b in range(32) if b not in b"\t\n\r\f\x1b")
_CONTROL_SHARE = 0.02  # of all bytes; text has next to none, random bytes have a tenth

# Controls, soft hyphens, zero-width and bidirectional marks, fillers, and the tag characters and variation selectors
# that can smuggle a message past the reader's eye. Joiners stay between letters of scripts that need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff])"
)


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 with its mark, or Windows Latin; newlines are `\\n`."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise Unreadable("looks like UTF-16 but is broken") from error
    else:
        if b"\0" in data or len(data) - len(data.translate(None, _CONTROL_BYTES)) > _CONTROL_SHARE * len(data):
            raise Unreadable("looks binary, not text")
        text = _decode_bytes(data)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode_bytes(data: bytes) -> str:
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")  # maps every byte


def visible(text: str) -> str:
    """The text without characters nobody can see; whitespace stays. For code."""
    return _HIDDEN.sub("", text)


def clean_inline(text: str) -> str:
    """One line of prose: composed characters, single spaces, nothing hidden."""
    return " ".join(visible(unicodedata.normalize("NFC", text)).split())


def pipe_table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table. The first row is its header; short rows are filled up. Empty when nothing is in it."""
    cells = [[clean_inline(cell).replace("|", "\\|") for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(len(row) for row in cells)
    lines = [_table_line(row + [""] * (width - len(row))) for row in cells]
    return "\n".join([lines[0], _table_line(["---"] * width), *lines[1:]])


def _table_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
