"""Measures whether a parameter is one unit (name, default and description together), and whether it is found.

Up to 100 random settings of Flask's configuration reference are taken from the HTML that Sphinx built (`py:data`). One
unit of our page must contain all parts of each. Then the book is ingested with the built-in embedder, and the questions
"What is the default of X?" and "What does X do?" must find that unit among the first three passages. If several
parameters have the same name, the question names the page, and if a page has several, the section. Run with `python -m
bench.readers.parameters`.
"""

import argparse
import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.readers import sphinx_site
from bench.readers.compare import bare
from bench.readers.ours import SITE, address, read_folder
from bench.results import commit, newest, save
from chapterverse.ingestion.options import SourceOptions
from chapterverse.library import Book
from chapterverse.units import cut_units, unit_text

PROBES = 100
SEED = 13
PASSAGES = 3
QUESTIONS = ("What is the default of {}?", "What does {} do?")
_FIRST_WORDS = 12  # words of the description that the unit must contain


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as the site shows it."""

    page: str
    name: str
    kind: str
    default: str
    description: str
    title: str = ""  # title of the page
    section: str = ""  # the heading above it

    def facts(self) -> list[str]:
        first = " ".join(self.description.split()[:_FIRST_WORDS])
        return [fact for fact in (self.name, self.kind, self.default, first) if bare(fact)]


def settings(site: Path) -> Iterator[Parameter]:
    """Find settings: `dl.py.data` elements with a name in capitals and paragraphs, one of which states the default."""
    for page, body in _bodies(site):
        for entry in body.css("dl.py.data"):
            term, text = entry.css_first("dt .descname"), entry.css_first("dd")
            said = [child.text() for child in text.iter() if child.tag == "p"] if text is not None else []
            if term is None or not term.text().isupper() or not said:
                continue
            defaults = [one.partition(":")[2].strip() for one in said if one.startswith("Default:")]
            default = defaults[0] if defaults else ""
            yield Parameter(page, term.text(), "", default, said[0], _title(body), _heading_above(entry))


def _heading_above(node: LexborNode) -> str:
    section = node.parent
    while section is not None and section.tag != "section":
        section = section.parent
    heading = (
        next((child for child in section.iter() if child.tag in ("h1", "h2", "h3", "h4")), None) if section else None
    )
    return " ".join(heading.text().split()) if heading else ""


def _title(body: LexborNode) -> str:
    heading = body.css_first("h1")
    return " ".join(heading.text().split()) if heading else ""


REFERENCES = {"flask": settings}


def probes(book: sphinx_site.SphinxBook) -> tuple[list[Parameter], list[Parameter]]:
    """Return a random choice of a book's parameters, and all of them."""
    known = sorted(set(REFERENCES[book.name](sphinx_site.build(book))), key=lambda one: (one.page, one.name))
    return random.Random(SEED).sample(known, min(PROBES, len(known))), known


def not_one_unit(book: sphinx_site.SphinxBook, chosen: list[Parameter]) -> list[Parameter]:
    """Return the parameters that no single unit contains."""
    pages = {address(page): page for page in read_folder(sphinx_site.project(book)).pages}
    missed = []
    for parameter in chosen:
        page = pages.get(parameter.page)
        units = cut_units(page.text, page.blocks) if page else ()
        texts = [bare(re.sub(r"\n", " ", unit_text(page.text, unit))) for unit in units] if page else []
        if not any(all(bare(fact) in text for fact in parameter.facts()) for text in texts):
            missed.append(parameter)
    return missed


async def not_found(
    book: sphinx_site.SphinxBook, chosen: list[Parameter], known: list[Parameter]
) -> tuple[list[str], int]:
    """Return the questions whose answer is not among the first passages, and the number of questions whose answer is in
    the very first one."""
    names = Counter(bare(one.name) for one in known)
    on_page = Counter((one.page, bare(one.name)) for one in known)
    missed, first = [], 0
    async with Book.open(sphinx_site.CACHE / "homes" / book.name) as asked:
        await asked.ingest(sphinx_site.project(book), options=SourceOptions(base_url=SITE))
        for parameter in chosen:
            where = f" in {parameter.title}" if names[bare(parameter.name)] > 1 else ""
            where += f", {parameter.section}" if on_page[parameter.page, bare(parameter.name)] > 1 else ""
            facts = [bare(fact) for fact in parameter.facts()]
            for question in (form.format(f"{parameter.name}{where}") for form in QUESTIONS):
                found = await asked.search(question, top_k=PASSAGES)
                holds = [
                    all(fact in bare(one.chunk_text.replace("\n", " ")) for fact in facts) for one in found.results
                ]
                first += bool(holds) and holds[0]
                if not any(holds):
                    missed.append(question)
    return missed, first


def _bodies(site: Path) -> Iterator[tuple[str, LexborNode]]:
    for place in sorted((site / "html").rglob("*.html")):
        body = LexborHTMLParser(place.read_text("utf-8")).css_first("div.body")
        if body is not None:
            for extra in body.css(".headerlink"):
                extra.decompose()
            yield place.relative_to(site / "html").as_posix(), body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", action="append", choices=list(REFERENCES), help="only this book; may be repeated")
    parser.add_argument("--keep", action="store_true", help="add this book to the result of this commit")
    options = parser.parse_args()
    result: dict[str, Any] = {}
    for book in sphinx_site.BOOKS:
        if book.name not in (options.book or REFERENCES):
            continue
        chosen, known = probes(book)
        torn = not_one_unit(book, chosen)
        missed, first = asyncio.run(not_found(book, chosen, known))
        asked = len(QUESTIONS) * len(chosen)
        print(
            f"{book.name:<8} {len(chosen) - len(torn)} of {len(chosen)} parameters are one unit ({len(known)} in all)"
        )
        print(
            f"         {asked - len(missed)} of {asked} questions find it in {PASSAGES} passages, {first} in the first"
        )
        for one in torn:
            print("    torn:", one.page, one.name, "|", one.kind, "|", one.default, "|", one.description[:60])
        for question in missed:
            print("    missed:", question)
        result[book.name] = {
            "parameters": len(known),
            "probes": len(chosen),
            "one unit": len(chosen) - len(torn),
            "questions": asked,
            "in three passages": asked - len(missed),
            "in the first": first,
        }
    if options.keep or not options.book:
        before = newest("parameters")
        if options.book and before and before[1] == commit():
            result = before[0] | result
        print(save("parameters", result))


if __name__ == "__main__":
    main()
