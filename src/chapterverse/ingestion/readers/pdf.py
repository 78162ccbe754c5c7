"""PDF files: one page of the book for the file, one section for each of its pages.

Owns how lines on paper become paragraphs. Never looks at pictures: a scanned file is refused. PDFium is not
thread-safe, so one file is read at a time, whatever thread asks.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import pypdfium2

from chapterverse.ingestion.document import Document, Draft, Part, Unreadable
from chapterverse.ingestion.readers.cleaning import clean_inline
from chapterverse.ingestion.readers.manuscript import Manuscript

_PDFIUM = threading.Lock()
_EDGE = 2  # lines at the top and at the bottom where headers and footers are
_RUNNING = 0.6  # share of the pages on which a line is a running header or footer
_FEWEST = 3  # pages below which nothing is
_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u00ad]$")  # at the end of a line
_COMPOUND = re.compile(r"\w+-\w+")
_BREAK = re.compile(r"[\x02\ufffe](?:\r?\n)?")  # what PDFium gives for a hyphen and the end of its line
_PAGE_NUMBER = re.compile(
    r"(?:page\s*)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?|[-–—]\s*\d{1,4}\s*[-–—]", re.I
)
_BULLET = re.compile(r"[•▪◦‣●○■–*-]\s+(?=\S)|(?P<number>\d{1,2})[.)]\s+(?=\S)")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_NO_TITLE = re.compile(r"untitled.*|.*\.(?:docx?|dvi|tex|pdf|indd|pptx?|odt|qxd)|microsoft word.*", re.I)


def read(document: Document) -> list[Draft]:
    """The one page of a PDF; `#page=N` leads to its sheets."""
    with _PDFIUM:
        name, bookmarks, texts = _extract(document.data)
    pages = [_lines(text) for text in texts]
    if not any(any(page) for page in pages):
        raise Unreadable("has no text (perhaps scanned pages)")
    running = _running(pages)
    compounds = {word for page in pages for line in page for word in _COMPOUND.findall(line)}
    parts: list[Part] = []
    topic = ""
    for number, page in enumerate(pages, 1):
        topic = bookmarks.get(number) or topic
        content = _content(_without_edges(page, running), compounds)
        if content:
            heading = f"Page {number}: {topic}" if topic else f"Page {number}"
            parts += [Part("heading", heading, level=2, anchor=f"page={number}"), *content]
    stem = " ".join(re.split(r"[-_\s]+", PurePosixPath(document.path).stem)).strip()
    title = stem if not name or _NO_TITLE.fullmatch(name) else name
    return [Draft(title, tuple(parts))]


def _extract(data: bytes) -> tuple[str, dict[int, str], list[str]]:
    """Title, first bookmark of each sheet by its number, text of each sheet."""
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower() or "security" in str(error).lower()
        raise Unreadable("is encrypted" if locked else "is not a PDF, or is damaged") from error
    try:
        bookmarks: dict[int, str] = {}
        for bookmark in pdf.get_toc():
            place = bookmark.get_dest()
            index = place.get_index() if place else None
            if index is not None and (title := clean_inline(bookmark.get_title())):
                bookmarks.setdefault(index + 1, title)
        texts = [page.get_textpage().get_text_range() for page in pdf]
        return clean_inline(pdf.get_metadata_value("Title")), bookmarks, texts
    except pypdfium2.PdfiumError as error:
        raise Unreadable("has pages that cannot be read") from error
    finally:
        pdf.close()


def _lines(text: str) -> list[str]:
    text = _BREAK.sub("-\n", text).translate(_LIGATURES)
    return [clean_inline(line) for line in text.splitlines()]


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", line)


def _running(pages: Sequence[list[str]]) -> set[str]:
    """Shapes of lines that stand at the edge of most pages."""
    if len(pages) < _FEWEST:
        return set()
    seen = Counter(
        shape for page in pages if page for shape in {_shape(line) for line in page[:_EDGE] + page[-_EDGE:] if line}
    )
    return {shape for shape, times in seen.items() if times > _RUNNING * len(pages)}


def _without_edges(page: list[str], running: set[str]) -> list[str]:
    lines = [line for line in page if line]
    for at in (0, -1):
        for _ in range(_EDGE):
            running_line = len(lines) > 1 and _shape(lines[at]) in running  # one line alone is the page's text
            if lines and (running_line or _PAGE_NUMBER.fullmatch(lines[at])):
                lines.pop(at)
    return lines


def _content(lines: Sequence[str], compounds: set[str]) -> tuple[Part, ...]:
    page = Manuscript()
    in_list = False
    for paragraph in _paragraphs(lines, compounds):
        bullet = _BULLET.match(paragraph)
        if in_list and not bullet:
            page.close_list()
        if bullet and not in_list:
            page.open_list(bullet["number"] is not None, int(bullet["number"] or 1))
        if bullet:
            page.item()
        page.paragraph(paragraph[bullet.end() :] if bullet else paragraph)
        in_list = bullet is not None
    return page.finish()


def _paragraphs(lines: Sequence[str], compounds: set[str]) -> Iterator[str]:
    """Lines joined where a sentence runs on: a paragraph ends with a short line, or before a bullet."""
    if not lines:
        return
    width = sorted(map(len, lines))[int(len(lines) * 0.9)]  # of a full line
    gathered: list[str] = []
    for line in lines:
        if gathered:
            above = gathered[-1]
            ends = above.endswith((".", "!", "?", ":")) or (line[:1].isupper() and not _HYPHEN.search(above))
            if _BULLET.match(line) or (len(above) < 0.8 * width and ends):
                yield _joined(gathered, compounds)
                gathered.clear()
        gathered.append(line)
    yield _joined(gathered, compounds)


def _joined(lines: Sequence[str], compounds: set[str]) -> str:
    """Lines as one; a word broken at the end of a line is whole again, with its hyphen where it has one elsewhere."""
    text = ""
    for line in lines:
        broken = _HYPHEN.search(text)
        if not broken or not line[:1].isalpha():
            text += f" {line}" if text else line
            continue
        head, tail = re.split(r"\W", text[:-1])[-1], re.split(r"\W", line, maxsplit=1)[0]
        compound = line[0].isupper() or f"{head}-{tail}" in compounds
        text = f"{text[:-1]}-{line}" if compound else text[:-1] + line
    return text
