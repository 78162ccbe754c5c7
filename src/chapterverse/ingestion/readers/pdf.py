"""Reads PDF files: each file is one page of the book, and each sheet begins a new section.

Images are not read: a scanned file is refused. PDFium is not thread-safe, so only one file is read at a time.
"""

import ctypes
import re
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import pypdfium2

from chapterverse.ingestion.document import Document, Draft, Part, Unreadable
from chapterverse.ingestion.ordering import words_of
from chapterverse.ingestion.readers.cleaning import clean_inline, visible
from chapterverse.ingestion.readers.page_builder import MarkedItems, PageBuilder
from chapterverse.ingestion.readers.pdf_tables import SHORT_CELL, PdfCell, cells_of, tables_in

_PDFIUM = threading.Lock()
_MAX_PAGES = 10_000
_MAX_CHARS = 50_000_000
_MAX_BOOKMARKS = 20_000
_LARGER = 1.12  # minimum size of a heading relative to the text
_HEADING_SHARE = 0.35  # of all letters; if more are large, size does not indicate headings
_MAX_HEADING = 200  # characters
_MAX_PIECES = 100  # of a line
_MAX_PLACES = 400  # candidate positions of columns on a sheet
_MAX_LINES = 1_000  # of a sheet; with more, columns are not detected
_COLUMN_LINES = 4  # minimum number of lines in a column
_NEAR = 3.0  # points; maximum distance between the starts of lines in a column
_TITLE_WORDS = 10  # maximum number of words in a heading that is only bold
_PROGRAM = -1  # instead of a heading level: the paragraph is code
_LETTER = 0.6  # width of a letter of code, relative to its size
_LEADER = re.compile(r"(?:\. ?){6}[. ]{0,300}+(?:\d{1,4}|[ivxlc]{1,6})?\s{0,20}$")
_ICON = re.compile("[\ue000-\uf8ff]")  # of icon fonts
_SHEET = re.compile(r"Page \d+(?::|$)")
_BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.I)
_FIXED = re.compile(r"mono|courier|1mn|consolas|menlo|typewriter|cmtt|inconsolata|fira ?code|source ?code", re.I)
_NUMBERED = re.compile(r"(?:chapter|section|appendix)?\s*(?:\d{1,3}(?:\.\d{1,3}){0,4}|[A-Z])[.:)]?\s+\S", re.I)
_GAP = 1.35  # times the usual line distance: a larger distance separates two paragraphs
_LINE = re.compile(r"[^\r\n\x02\ufffe]+[\x02\ufffe]?|[\x02\ufffe]")
_EDGE = 2  # lines at the top and bottom that may be headers and footers
_RUNNING = 0.6  # share of the pages on which a running header or footer occurs
_NUMBERED_PAGES = 0.5  # share of the pages with a page number at their edge
_EDGE_NUMBER = re.compile(r"^(\d{1,4})(?=\s|$)|(?<=\s)(\d{1,4})$")  # at the beginning or end of a line
_NO_NUMBERS = -100_000  # an offset that no page has
_FEWEST = 3  # pages; with fewer, headers and footers are not detected
_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u00ad]$")  # at the end of a line
_COMPOUND = re.compile(r"(?<!\w)\w++-\w++")
_BREAK = re.compile(r"[\x02\ufffe]")  # PDFium's hyphen at the end of a line
_PAGE_NUMBER = re.compile(
    r"(?:page\s*)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?|[-–—]\s*\d{1,4}\s*[-–—]", re.I
)
_BULLET = re.compile(r"[•▪◦‣●○■–*-]\s+(?=\S)|\d{1,2}[.)]\s+(?=\S)")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_NO_TITLE = re.compile(r"untitled.*|.*\.(?:docx?|dvi|tex|pdf|indd|pptx?|odt|qxd)|microsoft word.*", re.I)


def read(document: Document) -> list[Draft]:
    """Read a PDF. The anchors of sections are their sheets (`#page=N`)."""
    with _PDFIUM:
        name, bookmarks, pages = _extract(document.data)
    if not any(line.text for page in pages for line in page):
        raise Unreadable("has no text (perhaps scanned pages)")
    pages = _without_common_bold(pages)
    running, offset = _running(pages), _page_offset(pages)
    compounds = {word for page in pages for line in page for word in _COMPOUND.findall(line.text)}
    levels = _heading_levels(pages)
    heights = Counter(
        round(line.top)
        for number, page in enumerate(pages, 1)
        for line in _edges(page)
        if number + offset in _edge_numbers(line.text)
    )
    parts: list[Part] = []
    topic = ""
    for number, page in enumerate(pages, 1):
        topic = topic if levels and topic else bookmarks.get(number) or topic
        stamp = _stamp(page, number + offset, heights, levels)
        content = _content(_without_edges(page, running, stamp), compounds, levels, f"page={number}")
        if content and content[0].kind != "heading":
            heading = f"Page {number}: {topic}" if topic else f"Page {number}"
            parts.append(Part("heading", heading, level=2, anchor=f"page={number}"))
        parts += content
        topic = next((part.text for part in reversed(content) if part.kind == "heading"), topic)
    stem = words_of(PurePosixPath(document.path).stem)
    title = stem if not name or _NO_TITLE.fullmatch(name) else name
    return [Draft(title, _levelled(parts, title))]


def _levelled(parts: list[Part], title: str) -> tuple[Part, ...]:
    """The parts, with heading levels renumbered from 2. A heading that repeats the title is not counted."""
    named = (part for part in parts if part.kind == "heading" and part.text.casefold() != title.casefold())
    used = {part.level for part in named if not _SHEET.match(part.text)}
    level = {old: min(new, 6) for new, old in enumerate(sorted(used), 2)}
    return tuple(
        replace(part, level=2 if _SHEET.match(part.text) else level.get(part.level, 2))
        if part.kind == "heading"
        else part
        for part in parts
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """A line on a sheet: text, size, position and font."""

    text: str
    size: float = 0.0
    top: float = 0.0
    left: float = 0.0
    right: float = 0.0
    bold: bool = False
    fixed: bool = False  # a monospaced font
    cells: tuple[PdfCell, ...] = ()  # of a line with wide gaps


def _extract(data: bytes) -> tuple[str, dict[int, str], list[list[_Line]]]:
    """The title, the first bookmark of each sheet, and the lines of each sheet."""
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower() or "security" in str(error).lower()
        raise Unreadable("is encrypted" if locked else "is not a PDF, or is damaged") from error
    try:
        if len(pdf) > _MAX_PAGES:
            raise Unreadable(f"has {len(pdf):,} pages, more than {_MAX_PAGES:,}")
        pages: list[list[_Line]] = []
        room = _MAX_CHARS
        for page in pdf:
            pages.append(_lines(page.get_textpage()))
            room -= sum(len(line.text) for line in pages[-1])
            page.close()
            if room < 0:
                raise Unreadable("has too much text")
        return clean_inline(pdf.get_metadata_value("Title")), _bookmarks(pdf), pages
    except pypdfium2.PdfiumError as error:
        raise Unreadable("has pages that cannot be read") from error
    finally:
        pdf.close()


def _bookmarks(pdf: Any) -> dict[int, str]:
    bookmarks: dict[int, str] = {}
    for number, bookmark in enumerate(pdf.get_toc(max_depth=8)):
        if number > _MAX_BOOKMARKS:
            break
        place = bookmark.get_dest()
        index = place.get_index() if place else None
        if index is not None and (title := clean_inline(bookmark.get_title())):
            bookmarks.setdefault(index + 1, title)
    return bookmarks


def _lines(page: Any) -> list[_Line]:
    """The lines of a sheet, in reading order, with sizes and positions if PDFium can measure them."""
    text = page.get_text_range()
    measured = len(text) == page.count_chars()  # otherwise offsets in the text and in PDFium differ
    lines: list[_Line] = []
    for found in _LINE.finditer(text):
        shown = clean_inline(_ICON.sub("", _BREAK.sub("-", found[0])).translate(_LIGATURES))
        if _LEADER.search(shown):  # a line of a table of contents
            continue
        if shown and measured:
            lines.append(_measured(page, shown, found.start(), found.end()))
        elif shown:
            lines.append(_Line(shown))
    return _in_columns(lines) if measured else lines


def _in_columns(lines: list[_Line]) -> list[_Line]:
    """The lines of a sheet in reading order: the left column before the right one. A line across both columns
    separates the text above it from the text below."""
    place = _gap(lines) if len(lines) <= _MAX_LINES else None
    if place is None:
        return lines
    across = _sides(lines, place)[2]
    heights = sorted(-line.top for line in across)
    bands: list[list[_Line]] = [[] for _ in range(2 * len(heights) + 1)]  # text, line across, text, line across, …
    for line in lines:
        at = bisect_left(heights, -line.top)
        bands[2 * at + (at < len(heights) and heights[at] == -line.top)].append(line)
    ordered: list[_Line] = []
    for band in bands:
        left, right, wide = _sides(band, place)
        if wide or not _are_columns(left, right):
            ordered += band
            continue
        for column in (left, right):
            ordered += _in_columns(sorted(column, key=lambda line: -line.top))
    return ordered


def _gap(lines: Sequence[_Line]) -> float | None:
    """The start of the right column; None if there are no columns."""
    spans = [[(cell.left, cell.right) for cell in line.cells] or [(line.left, line.right)] for line in lines]
    starts = sorted({round(left) for line in spans for left, _ in line})[:_MAX_PLACES]

    def lines_beside(place: float) -> int:
        inside = [[right for left, right in line if left < place - _NEAR] for line in spans]
        free = [
            (len(before), len(line))
            for before, line in zip(inside, spans, strict=True)
            if not before or max(before) <= place - _NEAR
        ]
        return min(sum(before > 0 for before, _ in free), sum(before < every for before, every in free))

    place = max(starts, key=lines_beside, default=0)
    left, right, _ = _sides(lines, place)
    return place if _are_columns(left, right) else None


def _sides(lines: Sequence[_Line], place: float) -> tuple[list[_Line], list[_Line], list[_Line]]:
    """The lines left of a position, those right of it, and those across it."""
    left: list[_Line] = []
    right: list[_Line] = []
    across: list[_Line] = []
    for line in lines:
        cells = line.cells or (PdfCell(line.left, line.text, line.right),)
        before = tuple(cell for cell in cells if cell.left < place - _NEAR)
        if any(cell.right > place - _NEAR for cell in before):
            across.append(line)
            continue
        for side, part in ((left, before), (right, cells[len(before) :])):
            if part:
                text = line.text if len(part) == len(cells) else " ".join(cell.text for cell in part)
                inner = part if len(part) > 1 else ()
                side.append(replace(line, text=text, left=part[0].left, right=part[-1].right, cells=inner))
    return left, right, across


def _are_columns(left: Sequence[_Line], right: Sequence[_Line]) -> bool:
    """Whether both are columns of text, not a table or a margin."""
    return all(
        len(side) >= _COLUMN_LINES and sum(len(line.text) for line in side) > SHORT_CELL * len(side)
        for side in (left, right)
    )


def _measured(page: Any, line_text: str, start: int, end: int) -> _Line:
    """A line with its position, font and size. The size is the median of a sample of its letters."""
    step = max((end - start) // 5, 1)
    sizes = sorted(pypdfium2.raw.FPDFText_GetFontSize(page.raw, place) for place in range(start, end, step))
    middle = (start + end) // 2
    try:
        boxes = [page.get_charbox(place) for place in {start, middle}]
    except pypdfium2.PdfiumError:
        boxes = []
    heights = [abs(box[3] - box[1]) for box in boxes]
    size = sizes[len(sizes) // 2]
    if size <= 1.5 and heights:  # a font of size 1 that is scaled by the page
        size = max(heights) * 1.4
    top = max((box[3] for box in boxes), default=0.0)
    left = min((box[0] for box in boxes), default=0.0)
    right = page.get_charbox(end - 1)[2] if boxes else 0.0
    fonts = [_font(page, place) for place in (*range(start, end, step), end - 1)]
    bold = all(_BOLD.search(name) for name, _ in fonts)
    fixed = all(flags & 1 or _FIXED.search(name) for name, flags in fonts)
    if fixed:  # the indent is significant
        raw = visible(page.get_text_range(start, end - start)).replace("\xa0", " ")
        line_text, first = raw.strip(), start + len(raw) - len(raw.lstrip())
        left = page.get_charbox(first)[0] if first < end else left
    cells = () if fixed else cells_of(list(_pieces(page, start, end)))
    right = cells[-1].right if cells else right
    return _Line(line_text, round(size * 2) / 2, top, left, right, bold, fixed, cells if len(cells) > 1 else ())


def _pieces(page: Any, start: int, end: int) -> Iterator[tuple[float, float, float, str]]:
    """The pieces of a line between gaps: left, right, height and text of each."""
    for number in range(min(page.count_rects(start, end - start), _MAX_PIECES)):
        left, bottom, right, top = page.get_rect(number)
        text = clean_inline(_ICON.sub("", page.get_text_bounded(left, bottom, right, top)).translate(_LIGATURES))
        if text:
            yield left, right, top - bottom, text


def _font(page: Any, place: int) -> tuple[str, int]:
    """The name and flags of a letter's font; the first flag means monospaced."""
    name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
    pypdfium2.raw.FPDFText_GetFontInfo(page.raw, place, name, 100, flags)
    return name.value.decode("utf-8", "replace"), flags.value


def _heading_levels(pages: Sequence[list[_Line]]) -> dict[float, int]:
    """The heading level of each letter size that is larger than the text; the largest size has level 2."""
    weight: Counter[float] = Counter()
    for page in pages:
        for line in page:
            weight[line.size] += len(line.text)
    if not weight or not weight.total():
        return {}
    body = weight.most_common(1)[0][0]
    larger = sorted((size for size in weight if size >= body * _LARGER and size > body + 0.5), reverse=True)
    if sum(weight[size] for size in larger) > _HEADING_SHARE * weight.total():
        return {}
    return {size: min(level, 6) for level, size in enumerate(larger, 2)}


def _without_common_bold(pages: list[list[_Line]]) -> list[list[_Line]]:
    """The pages; if many letters are bold, no line is marked as bold."""
    letters = sum(len(line.text) for page in pages for line in page)
    if sum(len(line.text) for page in pages for line in page if line.bold) <= _HEADING_SHARE * letters:
        return pages
    return [[replace(line, bold=False) for line in page] for page in pages]


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", line)


def _running(pages: Sequence[list[_Line]]) -> set[str]:
    """The shapes (texts without digits) of lines that are at the edges of most pages."""
    if len(pages) < _FEWEST:
        return set()
    seen = Counter(shape for page in pages if page for shape in {_shape(line.text) for line in _edges(page)})
    return {shape for shape, times in seen.items() if times > _RUNNING * len(pages)}


def _page_offset(pages: Sequence[list[_Line]]) -> int:
    """The printed number of a page minus the number of its sheet; `_NO_NUMBERS` if most pages have none. It identifies
    headers such as "48 Chapter 5", whose text differs from chapter to chapter."""
    seen = Counter(
        offset
        for number, page in enumerate(pages, 1)
        for offset in {found - number for line in _edges(page) for found in _edge_numbers(line.text)}
    )
    offset, times = max(seen.items(), key=lambda one: one[1], default=(0, 0))
    return offset if times > max(_FEWEST, _NUMBERED_PAGES * len(pages)) else _NO_NUMBERS


def _edge_numbers(text: str) -> set[int]:
    return {int(number) for found in _EDGE_NUMBER.finditer(text) for number in found.groups() if number}


def _edges(page: list[_Line]) -> list[_Line]:
    return page[:_EDGE] + page[-_EDGE:]


def _stamp(page: list[_Line], number: int, heights: Mapping[int, int], levels: Mapping[float, int]) -> _Line | None:
    """The line with the number of the page, at a height that other pages have it too. If there are several, it is alone
    in its line, at the usual height, or in the size of the text."""

    def usual(line: _Line) -> int:
        return sum(heights[round(line.top) + off] for off in range(-round(_NEAR), round(_NEAR) + 1))

    def likely(line: _Line) -> tuple[bool, int, bool]:
        return bool(_PAGE_NUMBER.fullmatch(line.text)), usual(line), line.size not in levels

    lines = [line for line in _edges(page) if number in _edge_numbers(line.text) and usual(line) >= _FEWEST]
    return max(lines, key=likely, default=None)


def _without_edges(page: list[_Line], running: set[str], stamp: _Line | None) -> list[_Line]:
    """The lines without headers, footers and page numbers. `stamp`: the line with the number of the page."""
    lines = list(page)
    for at in (0, -1):
        for _ in range(_EDGE):
            text = lines[at].text if lines else ""
            is_running = len(lines) > 1 and (_shape(text) in running or lines[at] is stamp)
            if lines and (is_running or _PAGE_NUMBER.fullmatch(text)):  # a single line is the page's text
                lines.pop(at)
    return lines


def _content(lines: Sequence[_Line], compounds: set[str], levels: Mapping[float, int], anchor: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    done = 0
    for start, end, rows in tables_in([line.cells or (PdfCell(line.left, line.text),) for line in lines]):
        parts += _text(lines[done:start], compounds, levels, anchor)
        page = PageBuilder()
        page.table(rows)
        parts += page.finish()
        done = end
    return (*parts, *_text(lines[done:], compounds, levels, anchor))


def _text(lines: Sequence[_Line], compounds: set[str], levels: Mapping[float, int], anchor: str) -> tuple[Part, ...]:
    page = PageBuilder()
    items = MarkedItems(page)
    for paragraph, level in _paragraphs(lines, compounds, levels):
        bullet = _BULLET.match(paragraph) if not level else None
        if bullet:
            items.item(bullet[0], paragraph[bullet.end() :])
            continue
        items.close()
        if level == _PROGRAM:
            page.code(paragraph)
        elif level:
            page.heading(paragraph, level, anchor)
        else:
            page.paragraph(paragraph)
    return page.finish()


def _paragraphs(lines: Sequence[_Line], compounds: set[str], levels: Mapping[float, int]) -> Iterator[tuple[str, int]]:
    """Paragraphs, headings and code: the joined text of lines, with the heading level, 0 or `_PROGRAM`."""
    if not lines:
        return
    width = sorted(len(line.text) for line in lines)[int(len(lines) * 0.9)]  # of a full line
    pitch = _pitch(lines)
    gathered: list[_Line] = []
    for line in lines:
        if gathered and _ends(gathered[-1], line, width, pitch, levels):
            yield _told(gathered, compounds, levels)
            gathered.clear()
        gathered.append(line)
    yield _told(gathered, compounds, levels)


def _told(lines: Sequence[_Line], compounds: set[str], levels: Mapping[float, int]) -> tuple[str, int]:
    if all(line.fixed for line in lines):
        left = min(line.left for line in lines)
        width = lines[0].size * _LETTER or 1.0
        return "\n".join(f"{' ' * min(round((line.left - left) / width), 80)}{line.text}" for line in lines), _PROGRAM
    return _joined([line.text for line in lines], compounds), _level_of(lines, levels)


def _ends(above: _Line, line: _Line, width: int, pitch: float, levels: Mapping[float, int]) -> bool:
    """Whether a paragraph or heading ends between two lines: by size, font, distance, bullet, or a short first line."""
    if above.fixed or line.fixed:
        return above.fixed != line.fixed
    if levels.get(above.size, 0) != levels.get(line.size, 0) or _BULLET.match(line.text):
        return True
    if above.bold != line.bold and (_is_title(above) or _is_title(line)):
        return True
    gap = above.top - line.top
    if pitch and line.top and gap > _GAP * pitch * max(line.size, above.size) and not _HYPHEN.search(above.text):
        return True
    if levels.get(line.size):
        return False  # a heading continues on the next line
    ends = above.text.endswith((".", "!", "?", ":")) or (line.text[:1].isupper() and not _HYPHEN.search(above.text))
    return len(above.text) < 0.8 * width and ends


def _pitch(lines: Sequence[_Line]) -> float:
    """The usual line distance relative to the letter size; 0 if unknown."""
    steps = sorted(
        (one.top - two.top) / two.size
        for one, two in pairwise(lines)
        if two.size and one.size == two.size and 0 < one.top - two.top < 4 * two.size
    )
    return steps[len(steps) // 2] if len(steps) >= 3 else 0.0


def _level_of(lines: Sequence[_Line], levels: Mapping[float, int]) -> int:
    """The heading level of lines; 0 for text and for lines that are too long."""
    text = " ".join(line.text for line in lines)
    level = levels.get(lines[0].size, 0)
    if not level and all(_is_title(line) for line in lines):
        level = max(levels.values(), default=1) + 1
    sentence = text.endswith((".", ",", ";")) and len(text) > 60
    return level if len(text) <= _MAX_HEADING and not sentence and re.search(r"[^\W\d]", text) else 0


def _is_title(line: _Line) -> bool:
    """Whether a line in the size of the text is a heading: bold, and numbered or a few words without a full stop."""
    if not line.bold or len(line.text) > 100:
        return False
    few = len(line.text.split()) <= _TITLE_WORDS and line.text[:1].isupper() and line.text[-1:].isalnum()
    return few or _NUMBERED.match(line.text) is not None


def _joined(lines: Sequence[str], compounds: set[str]) -> str:
    """Join lines. The hyphen of a divided word is kept if the word has one elsewhere, or a capital letter follows."""
    text = ""
    for line in lines:
        broken = _HYPHEN.search(text[-2:])  # only the end: searching all of the text would take quadratic time
        if not broken or not line[:1].isalpha():
            text += f" {line}" if text else line
            continue
        head, tail = re.split(r"\W", text[-80:-1])[-1], re.split(r"\W", line, maxsplit=1)[0]
        compound = line[0].isupper() or f"{head}-{tail}" in compounds
        text = f"{text[:-1]}-{line}" if compound else text[:-1] + line
    return text
