"""Compares pages built by Sphinx, as our HTML reader reads them, with the markup of the same pages.

The oracle reads the same HTML by the classes that Sphinx writes. So this checks the choice of the main content, and the
text, code, tables, headings and links, but not whether Sphinx read the sources correctly. Headings that our reader
makes from the signatures of functions and options are not counted.
"""

import re
from dataclasses import replace
from pathlib import Path

from bench.readers import sphinx_oracle
from bench.readers.compare import PageFacts, Score, compare, order
from bench.readers.ours import SITE, facts_of
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, NothingToRead
from chapterverse.ingestion.readers import html

_SIGNATURE = re.compile(r'<dt[^>]*? id="([^"]+)"')
_ID = re.compile(r'\sid="([^"]+)"')
_PAGES = 250  # maximum number of pages of a site


def score(site: Path) -> dict[str, Score]:
    """The measures over some pages of a built site."""
    built = sphinx_oracle.read_site(site)
    expected: dict[str, PageFacts] = {}
    found: dict[str, PageFacts] = {}
    for address in list(built)[:: max(1, len(built) // _PAGES)]:
        data = (site / "html" / address).read_bytes()
        document = Document(f"{SITE}/{address}", address, "bench", "html", data)
        try:
            (draft,) = html.read(document)
        except NothingToRead:
            continue
        signatures = set(_SIGNATURE.findall(data.decode("utf-8", "replace")))
        page = compose(document, draft)
        made = {place for place, section in enumerate(page.sections) if section.anchor in signatures}
        kept = (block for block in page.blocks if block.kind != "heading" or block.section not in made)
        facts = facts_of(replace(page, blocks=tuple(kept)))
        ids = set(_ID.findall(data.decode("utf-8", "replace")))  # a heading without an id gets an anchor of ours
        facts.headings = [
            (level, text, anchor if anchor in ids else "")
            for level, text, anchor in facts.headings
            if anchor not in signatures
        ]
        facts.text = re.sub(r"(?m)^(?:> )?\s*\d+\. ", "", facts.text)
        expected[address], found[address] = built[address], facts
    scores = compare(expected, found, built)
    scores["order"] = order([], [])
    return {"pages": Score(len(found), len(expected)), **scores}
