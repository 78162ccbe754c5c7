"""Reads a folder with our readers into facts to compare."""

import asyncio
import posixpath
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.readers.compare import PageFacts, bare
from chapterverse.book import CONTENTS, Page
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, NothingToRead, Unreadable
from chapterverse.ingestion.options import Generator, SourceOptions
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.sources.folder import Folder
from chapterverse.units import cells_of

SITE = "https://book.test"
_MARKER = re.compile(r"^ *\d+\. ", re.MULTILINE)  # list numbers, which are not in the text of HTML


@dataclass(slots=True)
class Reading:
    """The pages of a folder."""

    pages: list[Page] = field(default_factory=list)  # in reading order
    refused: dict[str, str] = field(default_factory=dict)  # path → reason
    seconds: float = 0.0

    def facts(self) -> dict[str, PageFacts]:
        """The facts of each page, by address relative to the site."""
        return {address(page): facts_of(page) for page in self.pages}

    def order(self) -> list[str]:
        return [address(page) for page in self.pages]


def read_folder(place: Path, wanted: Callable[[str], bool] = lambda _: True, generator: Generator = "auto") -> Reading:
    """Read every page of a folder as an ingest does."""
    return asyncio.run(_read_folder(place, wanted, generator))


async def _read_folder(place: Path, wanted: Callable[[str], bool], generator: Generator) -> Reading:
    reading, started = Reading(), time.perf_counter()
    async for fetched in Folder(place, SourceOptions(base_url=SITE, generator=generator)).documents({}):
        if not isinstance(fetched, Document) or not wanted(fetched.path):
            continue
        try:
            reading.pages += [compose(fetched, draft) for draft in read(fetched)]
        except (NothingToRead, Unreadable) as why:
            reading.refused[fetched.path] = str(why)
    reading.pages.sort(key=lambda page: page.place)
    reading.seconds = time.perf_counter() - started
    return reading


def address(page: Page) -> str:
    return page.url.removeprefix(f"{SITE}/")


def facts_of(page: Page) -> PageFacts:
    facts, said = PageFacts(), []
    for block in page.blocks:
        if block.info == CONTENTS:
            continue
        text = page.text[block.start : block.end]
        if block.kind == "code":
            said.append(block.caption)  # captions of other blocks are part of the text
            facts.code.append("\n".join(text.split("\n")[1:-1]))
        elif block.kind == "table":
            table = [cells_of(line) for number, line in enumerate(text.split("\n")) if number != 1]
            table = table if any(table[0]) else table[1:]
            facts.tables.append(table)
            said += [cell for row in table for cell in row]
        elif block.kind != "image":
            said.append(_MARKER.sub("", text))
            if block.kind == "field":
                pairs = (line.partition(":") for line in text.split("\n")[1:])
                facts.pairs.update((bare(name), bare(value)) for name, _, value in pairs)
    facts.text = "\n".join(said)
    for number, section in enumerate(page.sections):
        facts.headings.append((section.level, section.heading, section.anchor if number else ""))
    for mark in page.marks:
        if mark.kind == "link":
            facts.links.append((page.text[mark.start : mark.end], below_site(mark.target)))
    return facts


def below_site(target: str) -> str:
    """Return an address of the book relative to the site. For a file that is not a page, return only its name, because
    generators move such files."""
    below = target.removeprefix(f"{SITE}/")
    path = below.partition("#")[0].partition("?")[0]
    is_file = below != target and posixpath.splitext(path)[1] not in ("", ".html")
    return f"download:{posixpath.basename(path)}" if is_file else below
