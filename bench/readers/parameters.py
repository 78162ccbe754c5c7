"""Whether a parameter is one unit: name, type, default and description together.

100 random parameters of two Sphinx configuration references are taken from the HTML that Sphinx built (Nav2: a field
list whose entries hold a small table and a definition list; Sphinx: `confval`). For each, one unit of our page must
hold all of them. Run with `python -m bench.readers.parameters`.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bench.readers import sphinx_site
from bench.readers.compare import bare
from bench.readers.ours import address, read_folder
from bench.results import save
from chapterverse.units import cut_units, unit_text

PROBES = 100
SEED = 13
_FIRST_WORDS = 12  # of the description that the unit must hold


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as the site shows it."""

    page: str
    name: str
    kind: str
    default: str
    description: str

    def facts(self) -> list[str]:
        first = " ".join(self.description.split()[:_FIRST_WORDS])
        return [fact for fact in (self.name, self.kind, self.default, first) if bare(fact)]


def nav2(site: Path) -> Iterator[Parameter]:
    """`dt` name, `dd` with a table of type and default and a definition `Description`."""
    for page, body in _bodies(site):
        for term in body.css("dl.field-list > dt"):
            text = term.next
            while text is not None and text.tag != "dd":
                text = text.next
            table = text.css_first("table") if text is not None else None
            if text is None or table is None:
                continue
            rows = [[cell.text().strip() for cell in row.css("td, th")] for row in table.css("tr")]
            said = text.css("dl > dd > p")
            if len(rows) == 2 and len(rows[0]) == len(rows[1]) and said:
                values = {name.lower(): value for name, value in zip(*rows, strict=True)}
                name = term.text().strip().rstrip(":")
                yield Parameter(page, name, values.get("type", ""), values.get("default", ""), said[0].text())


def confvals(site: Path) -> Iterator[Parameter]:
    """`dl.confval` with fields Type and Default, then paragraphs."""
    for page, body in _bodies(site):
        for entry in body.css("dl.std.confval"):
            term, text = entry.css_first("dt"), entry.css_first("dd")
            if term is None or text is None:
                continue
            values: dict[str, str] = {}
            for key in text.css("dl.field-list > dt"):
                value = key.next
                while value is not None and value.tag != "dd":
                    value = value.next
                if value is not None:
                    values.setdefault(key.text().strip().rstrip(":").lower(), value.text())
            said = [child for child in text.iter() if child.tag == "p"]
            if said and "type" in values:
                yield Parameter(page, term.text().strip(), values["type"], values.get("default", ""), said[0].text())


REFERENCES = {"nav2": nav2, "sphinx": confvals}


def probe(book: sphinx_site.SphinxBook) -> tuple[int, list[Parameter], int]:
    """How many of the probes one unit holds, those that none holds, and how many parameters there are."""
    known = sorted(set(REFERENCES[book.name](sphinx_site.build(book))), key=lambda one: (one.page, one.name))
    chosen = random.Random(SEED).sample(known, min(PROBES, len(known)))
    pages = {address(page): page for page in read_folder(sphinx_site.sources(book)).pages}
    missed = []
    for parameter in chosen:
        page = pages.get(parameter.page)
        units = cut_units(page.text, page.blocks) if page else ()
        texts = [bare(re.sub(r"\n", " ", unit_text(page.text, unit))) for unit in units] if page else []
        if not any(all(bare(fact) in text for fact in parameter.facts()) for text in texts):
            missed.append(parameter)
    return len(chosen) - len(missed), missed, len(known)


def _bodies(site: Path) -> Iterator[tuple[str, LexborNode]]:
    for place in sorted((site / "html").rglob("*.html")):
        body = LexborHTMLParser(place.read_text("utf-8")).css_first("div.body")
        if body is not None:
            for extra in body.css(".headerlink"):
                extra.decompose()
            yield place.relative_to(site / "html").as_posix(), body


def main() -> None:
    result = {}
    for book in sphinx_site.BOOKS:
        if book.name in REFERENCES:
            held, missed, known = probe(book)
            print(f"{book.name:<8} {held} of {held + len(missed)} parameters are one unit ({known} in the book)")
            for one in missed:
                print("   ", one.page, one.name, "|", one.kind, "|", one.default, "|", one.description[:60])
            result[book.name] = {"held": held, "probes": held + len(missed), "parameters": known}
    print(save("parameters", result))


if __name__ == "__main__":
    main()
