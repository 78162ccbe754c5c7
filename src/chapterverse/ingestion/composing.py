"""Makes a page from a draft: one Markdown text, with the offsets of its sections, blocks and marks.

Also determines the page's title, module and address.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from chapterverse.book import CAPTION, Block, Mark, Page, Section, page_id_for
from chapterverse.ingestion.anchors import Anchors
from chapterverse.ingestion.document import NO_ANCHOR, Document, Draft, Part
from chapterverse.ingestion.inline import extract, plain
from chapterverse.ingestion.links import Links, page_address
from chapterverse.ingestion.ordering import chapter_of, order_in_navigation, order_of, title_of_path
from chapterverse.ingestion.prompt_injection import flags_of

_MARKER = re.compile(r"\s*+(?:[-*+•]|\d{1,4}[.)])\s++")
_CHAPTER_NUMBER = re.compile(r"^(?:\d{1,3}(?:\.\d{1,3}){1,4}[.:)]?|\d{1,3}[.:)])\s+")  # 6. Legs
_NUMBER_PREFIX = re.compile(r"^\d+\s*[-_.]+\s*(?=\D)")  # Docusaurus sorts by this number and hides it


def compose(document: Document, draft: Draft) -> Page:
    """The page of a draft, with exact offsets into its text."""
    headings = [part for part in draft.parts if part.kind == "heading"]
    named = plain(draft.title) or (plain(headings[0].text) if headings else "")
    title = " ".join(named.split()) or title_of_path(document.path)
    anchors = Anchors(document.anchors)
    layout = _Layout(title)
    written_title = headings[0] if headings and _same_title(plain(headings[0].text), title) else None
    url = _url(document, draft)
    links = Links(document, url)
    for part in _without_contents(draft.parts, links):
        if part.kind != "heading":
            layout.add(part)
            continue
        # the heading that repeats the page's title has an anchor, too
        anchor = "" if part.anchor == NO_ANCHOR else anchors.take(plain(part.text), part.anchor)
        if part is not written_title:
            layout.begin_section(part, anchor)
    text, sections, blocks, marks = layout.finish()
    return Page(
        page_id=page_id_for(url, document.edition),
        url=url,
        title=title,
        module=document.module or _module_of(document.path),
        source=document.source,
        text=text,
        sections=sections,
        blocks=tuple(_addressed(block, links) for block in blocks),
        flags=flags_of(text),
        order=_order(document, draft),
        marks=tuple(found for mark in marks if (found := _resolved(mark, links))),
        chapters=document.chapters,
        edition=document.edition,
    )


@dataclass(slots=True)
class _Open:
    """An open section."""

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
    _marks: list[Mark] = field(default_factory=list)
    _above: list[tuple[int, str]] = field(default_factory=list)  # level and text of the current headings

    def __post_init__(self) -> None:
        self._sections.append(_Open(self.title, 1, "", 0, ()))
        self._put(Part("heading", self.title, level=1))

    def begin_section(self, part: Part, anchor: str) -> None:
        while self._above and self._above[-1][0] >= part.level:
            self._above.pop()
        breadcrumb = tuple(heading for _, heading in self._above)
        heading = plain(part.text)
        self._above.append((part.level, heading))
        self._write("\n\n")
        self._sections.append(_Open(heading, part.level, anchor, self._length, breadcrumb))
        self._put(part)

    def add(self, part: Part) -> None:
        self._write("\n\n")
        if part.kind not in ("image", "table") or not part.caption:
            self._put(part)
            return
        caption = Part("paragraph", part.caption, info=CAPTION, inside=part.inside)  # ordinary text
        bare = replace(part, caption="")
        first, second = (bare, caption) if part.kind == "image" else (caption, bare)
        self._put(first)
        self._write("\n\n")
        self._put(second)

    def finish(self) -> tuple[str, tuple[Section, ...], tuple[Block, ...], tuple[Mark, ...]]:
        ends = [section.start for section in self._sections[1:]] + [self._length]
        sections = tuple(
            Section(one.heading, one.level, one.anchor, one.start, end, one.breadcrumb)
            for one, end in zip(self._sections, ends, strict=True)
        )
        return "".join(self._written), sections, tuple(self._blocks), tuple(self._marks)

    def _put(self, part: Part) -> None:
        text, marks = (_markdown(part), []) if part.kind == "code" else extract(_markdown(part))
        start, end = self._length, self._length + len(text)
        section, caption = len(self._sections) - 1, plain(part.caption)
        self._blocks.append(Block(part.kind, start, end, section, part.info, caption, part.inside))
        self._marks += [replace(mark, start=start + mark.start, end=start + mark.end) for mark in marks]
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
        return f"{fence}{part.info}\n{part.text}\n{fence}"
    if part.kind == "image":
        return f"[Image: {' '.join(part.text.split())}]" if part.text.strip() else "[Image]"
    if part.kind == "quote":
        return "\n".join(f"> {line}".rstrip() for line in part.text.split("\n"))
    return part.text


def _addressed(block: Block, links: Links) -> Block:
    """The block; if it is an image, with its resolved address."""
    return replace(block, info=links.resolve(block.info)) if block.kind == "image" else block


def _resolved(mark: Mark, links: Links) -> Mark | None:
    """The mark; if it is a link or an image, with its resolved address. None for a link that cannot be resolved."""
    if mark.kind not in ("link", "image"):
        return mark
    target = links.resolve(mark.target)
    return replace(mark, target=target) if target or mark.kind == "image" else None


def _same_title(heading: str, title: str) -> bool:
    """Whether a heading repeats the title. Chapter numbers are ignored."""
    heading, title = (" ".join(text.replace("`", "").split()).casefold() for text in (heading, title))
    return heading == title or _CHAPTER_NUMBER.sub("", heading) == _CHAPTER_NUMBER.sub("", title) != ""


def _module_of(path: str) -> str:
    """The first folder of a path, without the number by which Docusaurus sorts; empty for a file at the root."""
    folders = PurePosixPath(path.lstrip("/")).parts[:-1]
    return _NUMBER_PREFIX.sub("", folders[0]) if folders else ""


def _order(document: Document, draft: Draft) -> str:
    if document.place is not None:
        order = order_in_navigation(document.place)
        return chapter_of(order, draft.number) if draft.subpath else order
    if draft.subpath:
        return chapter_of(order_of(document.path, document.folders), draft.number)
    return order_of(document.path, document.folders, draft.number)


def _url(document: Document, draft: Draft) -> str:
    """The address of a draft's page."""
    if draft.subpath:
        return f"{document.url.rstrip('/')}/{draft.subpath}"
    return page_address(document.tree, document.path, draft.slug) if document.tree and draft.slug else document.url


def _without_contents(parts: Sequence[Part], links: Links) -> list[Part]:
    """The parts, without tables of contents of the page itself. These are lists in which every item is only a link
    within the page, and most items match a heading."""
    headings = [part for part in parts if part.kind == "heading"]
    anchors = {part.anchor for part in headings if part.anchor}
    words = {_words(plain(part.text)) for part in headings}

    def is_contents(part: Part) -> bool:
        jumps = [_jump(line, links) for line in part.text.split("\n")] if part.kind == "list" and not part.info else []
        matching = sum(jump is not None and (jump[0] in words or jump[1] in anchors) for jump in jumps)
        return None not in jumps and len(jumps) > 1 and matching * 2 > len(jumps)

    return [part for part in parts if not is_contents(part)]


def _jump(line: str, links: Links) -> tuple[str, str] | None:
    """The words and the anchor of a list item that is only a link within its page; None for other items."""
    text, marks = extract(line)
    marker = _MARKER.match(text)
    link = next((mark for mark in marks if mark.kind == "link"), None)
    if not marker or not link or (link.start, link.end) != (marker.end(), len(text.rstrip())):
        return None
    page, sign, anchor = links.resolve(link.target).partition("#")
    return (_words(text[link.start : link.end]), anchor) if sign and page == links.url else None


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", re.sub(r"\{[^{}]*\}\s*$", "", text).casefold()))
