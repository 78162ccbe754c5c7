"""A page as Markdown: its stored text with links and images.

The stored text is Markdown without links and images. These are stored as marks and blocks, so that offsets refer to
the words.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

from chapterverse.api.pages import PageMark, RenderedPage

Address = Callable[[str], str]  # gives the address for a link's target; empty if it cannot be linked

_UNSAFE: Final = re.compile(r"[\s()<>|\\]")  # characters that would end an address, or a table's cell
_BRACKET: Final = re.compile(r"[][\\]")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def page_markdown(page: RenderedPage, address: Address, root: str) -> str:
    """Return a page's title, source and text as Markdown. `root` is put before the addresses of images, which are
    relative to the server's root."""
    head = page.blocks[0] if page.blocks and page.blocks[0].kind == "heading" else None
    pieces = sorted([*_links(page, address), *_images(page, address, root)])
    if head and head.start == 0:
        source = [(head.end, 1, 0, head.end, f"\n\nSource: {page.url}")]
        return _spliced(page.text, sorted([*pieces, *source])).rstrip() + "\n"
    return f"# {one_line(page.title)}\n\nSource: {page.url}\n\n{_spliced(page.text, pieces).rstrip()}\n"


def link(title: str, address: str) -> str:
    """A Markdown link. The title may contain any characters."""
    return f"[{_BRACKET.sub(_escaped, one_line(title))}]({_UNSAFE.sub(_encoded, address)})"


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


# A replacement for `text[start:end]`: (start, order at that position, tie-breaker, end, new text).
_Piece = tuple[int, int, int, int, str]
_LINK_END, _IMAGE, _LINK_START = 0, 1, 2  # their order at the same position


def _links(page: RenderedPage, address: Address) -> Iterable[_Piece]:
    code = [
        found.span()
        for block in page.blocks
        if block.kind != "code"
        for found in _CODE.finditer(page.text, block.start, block.end)
    ]
    linked: set[tuple[int, int]] = set()
    for mark in page.marks:
        stretch = _around(mark, code) if mark.kind == "link" else None
        target = address(mark.target) if stretch and stretch not in linked and _is_closed(page.text, stretch) else ""
        if stretch and target:
            linked.add(stretch)
            start, end = stretch
            yield start, _LINK_START, -end, start, "["
            yield end, _LINK_END, -start, end, f"]({_UNSAFE.sub(_encoded, target)})"


def _around(mark: PageMark, code: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the range of a link, extended to whole inline code with its ticks; None if it overlaps code only
    partly."""
    for start, end in code:
        if start < mark.end and mark.start < end and not (mark.start <= start and end <= mark.end):
            return (start, end) if start <= mark.start and mark.end <= end else None
    return mark.start, mark.end


def _is_closed(text: str, stretch: tuple[int, int]) -> bool:
    """Whether a text can be put in brackets: it is not empty and has as many opening as closing brackets."""
    within = text[slice(*stretch)]
    return bool(within.strip()) and within.count("[") == within.count("]")


def _images(page: RenderedPage, address: Address, root: str) -> Iterable[_Piece]:
    for mark in page.marks:
        if mark.kind == "image" and (target := root + mark.source if mark.source else address(mark.target)):
            yield mark.start, _IMAGE, 0, mark.end, f"!{link(mark.title, target)}"
    for block in page.blocks:
        if block.kind == "image" and (target := root + block.source if block.source else address(block.info)):
            named = re.fullmatch(r"\[Image: (.*)\]", page.text[block.start : block.end], re.DOTALL)
            yield block.start, _IMAGE, 0, block.end, f"!{link(named[1] if named else '', target)}"


def _spliced(text: str, pieces: Iterable[_Piece]) -> str:
    written: list[str] = []
    done = 0
    for start, _, _, end, new in pieces:
        if start >= done:
            written += [text[done:start], new]
            done = end
    return "".join([*written, text[done:]])


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _encoded(found: re.Match[str]) -> str:
    return quote(found[0])
