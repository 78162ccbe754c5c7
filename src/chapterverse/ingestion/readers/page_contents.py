"""Tables of contents that a page has of itself. They repeat its headings and would answer questions with them."""

import re
from collections.abc import Sequence

from chapterverse.ingestion.document import Part
from chapterverse.ingestion.inline import extract, plain
from chapterverse.ingestion.links import Links

_MARKER = re.compile(r"\s*+(?:[-*+•]|\d{1,4}[.)])\s++")


def without_contents(parts: Sequence[Part], links: Links) -> list[Part]:
    """The parts of a page without lists whose every item is a link to the page itself, most of them to a heading."""
    headings = [part for part in parts if part.kind == "heading"]
    anchors = {part.anchor for part in headings if part.anchor}
    words = {_words(plain(part.text)) for part in headings}

    def is_contents(part: Part) -> bool:
        jumps = [_jump(line, links) for line in part.text.split("\n")] if part.kind == "list" and not part.info else []
        known = sum(jump is not None and (jump[0] in words or jump[1] in anchors) for jump in jumps)
        return None not in jumps and len(jumps) > 1 and known * 2 > len(jumps)

    return [part for part in parts if not is_contents(part)]


def _jump(line: str, links: Links) -> tuple[str, str] | None:
    """Words and anchor of a list item that is a link to its own page and nothing else."""
    text, marks = extract(line)
    marker = _MARKER.match(text)
    link = next((mark for mark in marks if mark.kind == "link"), None)
    if not marker or not link or (link.start, link.end) != (marker.end(), len(text.rstrip())):
        return None
    page, sign, anchor = links.resolve(link.target).partition("#")
    return (_words(text[link.start : link.end]), anchor) if sign and page == links.url else None


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", re.sub(r"\{[^{}]*\}\s*$", "", text).casefold()))
