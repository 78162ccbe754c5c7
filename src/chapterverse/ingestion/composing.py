"""From a draft to a page: one clean Markdown text and where everything lies in it.

Owns the text's layout, the offsets of blocks and sections, the page's title, module and address. Never parses.
"""

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from chapterverse.book import Block, Page, Section, page_id_for
from chapterverse.ingestion.anchors import Anchors
from chapterverse.ingestion.document import Document, Draft, Part
from chapterverse.ingestion.hostile import flags_of
from chapterverse.ingestion.ordering import chapter_of, order_of

_NUMBER_PREFIX = re.compile(r"^\d+\s*[-_.]+\s*(?=\D)")  # Docusaurus orders files and folders by it, and hides it
_SLUG = re.compile(r"[\w.~-]+(?:/[\w.~-]+)*")
_INDEX_NAMES = {"index", "_index", "readme"}


def compose(document: Document, draft: Draft) -> Page:
    """The page of a draft, with exact offsets into its text."""
    headings = [part for part in draft.parts if part.kind == "heading"]
    title = " ".join(draft.title.split()) or (headings[0].text if headings else _title_from_path(document.path))
    anchors = Anchors(document.anchors)
    layout = _Layout(title)
    written_title = headings[0] if headings and _same_title(headings[0].text, title) else None
    for part in draft.parts:
        if part.kind != "heading":
            layout.add(part)
            continue
        anchor = anchors.take(part.text, part.anchor)  # the title's own heading takes its anchor too
        if part is not written_title:
            layout.begin_section(part, anchor)
    url = _url(document.url, draft)
    text, sections, blocks = layout.finish()
    return Page(
        page_id=page_id_for(url),
        url=url,
        title=title,
        module=document.module or _module_of(document.path),
        source=document.source,
        text=text,
        sections=sections,
        blocks=blocks,
        flags=flags_of(text),
        order=_order(document, draft),
    )


@dataclass(slots=True)
class _Open:
    """A section whose end is not known yet."""

    heading: str
    level: int
    anchor: str
    start: int
    breadcrumb: tuple[str, ...]


@dataclass(slots=True)
class _Layout:
    title: str
    _written: list[str] = field(default_factory=list)
    _length: int = 0
    _sections: list[_Open] = field(default_factory=list)
    _blocks: list[Block] = field(default_factory=list)
    _above: list[tuple[int, str]] = field(default_factory=list)  # level and text of headings around this place

    def __post_init__(self) -> None:
        self._sections.append(_Open(self.title, 1, "", 0, ()))
        self._put(Part("heading", self.title, level=1))

    def begin_section(self, part: Part, anchor: str) -> None:
        while self._above and self._above[-1][0] >= part.level:
            self._above.pop()
        breadcrumb = tuple(heading for _, heading in self._above)
        self._above.append((part.level, part.text))
        self._write("\n\n")
        self._sections.append(_Open(part.text, part.level, anchor, self._length, breadcrumb))
        self._put(part)

    def add(self, part: Part) -> None:
        self._write("\n\n")
        self._put(part)

    def finish(self) -> tuple[str, tuple[Section, ...], tuple[Block, ...]]:
        ends = [section.start for section in self._sections[1:]] + [self._length]
        sections = tuple(
            Section(one.heading, one.level, one.anchor, one.start, end, one.breadcrumb)
            for one, end in zip(self._sections, ends, strict=True)
        )
        return "".join(self._written), sections, tuple(self._blocks)

    def _put(self, part: Part) -> None:
        text = _markdown(part)
        self._blocks.append(Block(part.kind, self._length, self._length + len(text), len(self._sections) - 1))
        self._write(text)

    def _write(self, text: str) -> None:
        self._written.append(text)
        self._length += len(text)


def _markdown(part: Part) -> str:
    if part.kind == "heading":
        return f"{'#' * part.level} {part.text}"
    if part.kind == "code":
        longest = max((len(run) for run in re.findall(r"`{3,}", part.text)), default=2)
        fence = "`" * (longest + 1)
        return f"{fence}{part.language}\n{part.text}\n{fence}"
    if part.kind == "quote":
        return "\n".join(f"> {line}".rstrip() for line in part.text.split("\n"))
    return part.text


def _same_title(heading: str, title: str) -> bool:
    return " ".join(heading.split()).casefold() == title.casefold()


def _title_from_path(path: str) -> str:
    """`guides/01-getting_started.md` reads as "Getting started"; an index page is named for its folder."""
    place = PurePosixPath(path)
    name = place.parent.name if place.stem.lower() in _INDEX_NAMES and place.parent.name else place.stem
    words = " ".join(re.split(r"[-_\s]+", _NUMBER_PREFIX.sub("", name))).strip()
    return words[:1].upper() + words[1:] or path or "Untitled"


def _module_of(path: str) -> str:
    """The first folder, without Docusaurus' ordering number; empty at the root."""
    folders = PurePosixPath(path.lstrip("/")).parts[:-1]
    return _NUMBER_PREFIX.sub("", folders[0]) if folders else ""


def _order(document: Document, draft: Draft) -> str:
    if draft.subpath:
        return chapter_of(order_of(document.path, document.folders), draft.number)
    return order_of(document.path, document.folders, draft.number)


def _url(url: str, draft: Draft) -> str:
    """The draft's own address. An absolute slug counts from a root that only the source knows, so it is left alone."""
    if draft.subpath:
        return f"{url.rstrip('/')}/{draft.subpath}"
    stem, _, last = url.rstrip("/").rpartition("/")
    if not _SLUG.fullmatch(draft.slug) or "." in last or "://" not in stem:
        return url
    return f"{stem}/{draft.slug}{'/' if url.endswith('/') else ''}"
