"""A page as Markdown: its stored text with the links and images that its marks and blocks name.

The stored text is Markdown already, but for links and images, which are kept beside it so that offsets count into
words alone.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

from chapterverse.api.pages import PageMark, RenderedPage

Address = Callable[[str], str]  # of a link's target; empty: there is no way to it

_UNSAFE: Final = re.compile(r"[\s()<>|\\]")  # characters that would end an address, or a table's cell
_BRACKET: Final = re.compile(r"[][\\]")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def page_markdown(page: RenderedPage, address: Address, root: str) -> str:
    """Title, source and text of a page. `root` is put before the addresses of images, which are relative to the
    server's root."""
    head = page.blocks[0] if page.blocks and page.blocks[0].kind == "heading" else None
    pieces = sorted([*_links(page, address), *_images(page, address, root)])
    if head and head.start == 0:
        source = [(head.end, 1, 0, head.end, f"\n\nSource: {page.url}")]
        return _spliced(page.text, sorted([*pieces, *source])).rstrip() + "\n"
    return f"# {one_line(page.title)}\n\nSource: {page.url}\n\n{_spliced(page.text, pieces).rstrip()}\n"


def link(title: str, address: str) -> str:
    """A link with a text that may hold anything."""
    return f"[{_BRACKET.sub(_escaped, one_line(title))}]({_UNSAFE.sub(_encoded, address)})"


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


# What is written in the place of `text[start:end]`, as (start, order at that place, tie-breaker, end, written).
_Piece = tuple[int, int, int, int, str]
_CLOSES, _STANDS, _OPENS = 0, 1, 2  # at one place: ends of links first, then images, then beginnings


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
            yield start, _OPENS, -end, start, "["
            yield end, _CLOSES, -start, end, f"]({_UNSAFE.sub(_encoded, target)})"


def _around(mark: PageMark, code: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """What a link stands around: code as a whole, with its ticks. None: it begins inside and ends outside of it."""
    for start, end in code:
        if start < mark.end and mark.start < end and not (mark.start <= start and end <= mark.end):
            return (start, end) if start <= mark.start and mark.end <= end else None
    return mark.start, mark.end


def _is_closed(text: str, stretch: tuple[int, int]) -> bool:
    """Whether brackets can be put around a text: it is not empty and closes the brackets that it opens."""
    within = text[slice(*stretch)]
    return bool(within.strip()) and within.count("[") == within.count("]")


def _images(page: RenderedPage, address: Address, root: str) -> Iterable[_Piece]:
    for mark in page.marks:
        if mark.kind == "image" and (target := root + mark.source if mark.source else address(mark.target)):
            yield mark.start, _STANDS, 0, mark.end, f"!{link(mark.title, target)}"
    for block in page.blocks:
        if block.kind == "image" and (target := root + block.source if block.source else address(block.info)):
            named = re.fullmatch(r"\[Image: (.*)\]", page.text[block.start : block.end], re.DOTALL)
            yield block.start, _STANDS, 0, block.end, f"!{link(named[1] if named else '', target)}"


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
