"""Reads plain text: paragraphs between blank lines, lists, indented code, and the usual kinds of headings."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath
from textwrap import dedent

from chapterverse.ingestion.document import Document, Draft, NothingToRead
from chapterverse.ingestion.ordering import words_of
from chapterverse.ingestion.readers.cleaning import clean_inline, decode, visible
from chapterverse.ingestion.readers.page_builder import MarkedItems, PageBuilder

_LONGEST_HEADING = 80  # characters
_UNDERLINE = re.compile(r"\s*(={3,}|-{3,}|\*{3,}|~{3,})\s*")
_CHAPTER = re.compile(
    r"(?:chapter|part|book|section|appendix)\s+(?:\d+|[ivxlc]+|[a-z]|one|two|three|four|five|six|seven|eight|nine|ten)\b"
    r"(?:\s*[.:—–-].*)?",
    re.I,
)
_SEPARATOR = re.compile(r"[\s*=_~-]+")
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+(?=\S)")


def read(document: Document) -> list[Draft]:
    """Read a text file. A short first line is its title."""
    blocks = list(_blocks(visible(decode(document.data))))
    if not blocks:
        raise NothingToRead("is empty")
    page = PageBuilder()
    title = ""
    for index, lines in enumerate(blocks):
        heading, level = _heading(lines)
        if index == 0 and len(blocks) > 1:
            title = heading or _short_line(lines)
        if heading and level:
            page.heading(heading, level)
        elif not (index == 0 and title):
            _write(page, lines)
        if heading and len(lines) > 2:
            _write(page, lines[2:])
    stem = words_of(PurePosixPath(document.path).stem)
    return [Draft(title or stem, page.finish())]


def _blocks(text: str) -> Iterator[list[str]]:
    """Blocks of lines between blank ones, without separators. A list after a line that ends in ":" is a block. Code
    continues after a blank line."""
    blocks: list[list[str]] = []
    in_code = False
    for block in re.split(r"\n[^\S\n]*\n", text.expandtabs(4)):
        lines = [line.rstrip() for line in block.split("\n") if line.strip()]
        if len(lines) > 2 and _UNDERLINE.fullmatch(lines[0]) and lines[0] == lines[2]:
            del lines[0]  # a heading with a line above and below
        if not lines:
            continue
        continues, in_code = in_code, _is_code(lines) and not _ITEM.match(lines[0]) and not _heading(lines)[0]
        if continues and in_code:
            blocks[-1] += ["", *lines]
        else:
            blocks.append(lines)
    for lines in blocks:
        pairs = enumerate([] if _is_code(lines) else pairwise(lines), 1)
        begin = next((place for place, (line, item) in pairs if line.endswith(":") and _ITEM.match(item)), None)
        for part in (lines[:begin], lines[begin:] if begin else []):
            if part and not _SEPARATOR.fullmatch("".join(part)):
                yield part


def _heading(lines: list[str]) -> tuple[str, int]:
    """The heading at the start of a block and its level; empty and 0 if there is none."""
    first = lines[0].strip()
    if len(first) > _LONGEST_HEADING or not any(letter.isalpha() for letter in first):
        return "", 0
    if len(lines) > 1 and (under := _UNDERLINE.fullmatch(lines[1])):
        return first, 1 if under[1][0] in "=*" else 2
    if len(lines) > 1 or _ITEM.match(lines[0]):
        return "", 0
    if _CHAPTER.fullmatch(first):
        return first, 2
    shouted = first.isupper() and re.search(r"[^\W\d_]{3}", first) and first[-1] not in ".,;!"
    return (first, 3) if shouted else ("", 0)


def _short_line(lines: list[str]) -> str:
    line = clean_inline(lines[0])
    return line if len(lines) == 1 and len(line) <= _LONGEST_HEADING and line[-1:] not in (".", ":", ",", ";") else ""


def _write(page: PageBuilder, lines: list[str]) -> None:
    if _ITEM.match(lines[0]):
        items = MarkedItems(page)
        for marker, text in _items(lines):
            items.item(marker, text)
        items.close()
    elif _is_code(lines):
        page.code(dedent("\n".join(lines)))
    else:
        page.paragraph(" ".join(lines))


def _is_code(lines: list[str]) -> bool:
    return all(line.startswith("    ") for line in lines if line)


def _items(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The markers and texts of list items, with their continuation lines."""
    begun, item = "", list[str]()
    for line in lines:
        if (marker := _ITEM.match(line)) and item:
            yield begun, " ".join(item)
            item.clear()
        begun = marker[0] if marker else begun
        item.append(line[marker.end() :] if marker else line.strip())
    yield begun, " ".join(item)
