"""Compares a page as one of our readers reads it with the same page as its own generator renders it.

Both sides are reduced to `PageFacts`. Each measure counts hits and tries, which are summed over the pages of a book. An
oracle (`sphinx_oracle.py` and others) reads the generator's HTML into facts; `ours.py` does this for our pages.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from urllib.parse import unquote

Table = list[list[str]]  # rows of cells; a spanning cell is repeated, several header rows are joined into one
Heading = tuple[int, str, str]  # level, text, anchor; the page's title has no anchor
Link = tuple[str, str]  # text, target

BARS = {
    "words recall": 0.99,
    "words precision": 0.99,
    "code": 0.995,
    "cells": 0.99,
    "headings": 0.995,
    "links": 0.99,
    "order": 1.0,
}
_WORD = re.compile(r"\w+")
_MARKER = re.compile(r"(?:^|\s)(?:-|\d+\.)\s")
_LAYOUT = re.compile(r"[`\s$]|\\[()\[\]]|\u200b|\ufe0f")


@dataclass(slots=True)
class PageFacts:
    """The content of a page."""

    text: str = ""  # everything but code blocks
    code: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)  # facts of a field, as pairs of name and value
    anchors: dict[str, str] = field(default_factory=dict)  # every id of the page → id of its section


@dataclass(slots=True)
class Score:
    """How often a measure was met."""

    hits: int = 0
    tries: int = 0
    misses: list[str] = field(default_factory=list)  # some examples

    @property
    def share(self) -> float:
        return self.hits / self.tries if self.tries else 1.0

    def add(self, hits: int, tries: int, page: str, missed: Iterable[object] = ()) -> None:
        self.hits += hits
        self.tries += tries
        if len(self.misses) < 400:
            self.misses += [f"{page}: {one}" for one in list(missed)[:20]]


def compare(
    expected: Mapping[str, PageFacts], found: Mapping[str, PageFacts], site: Mapping[str, PageFacts]
) -> dict[str, Score]:
    """Compute the measures over all pages of a book, by address. If we lack a page, everything on it counts as missed.
    `site` has all pages that links may point to."""
    scores = {name: Score() for name in BARS if name != "order"}
    for page, oracle in expected.items():
        ours = found.get(page, PageFacts())
        _words(page, oracle, ours, scores)
        _code(page, oracle, ours, scores["code"])
        _cells(page, oracle, ours, scores["cells"])
        _headings(page, oracle, ours, scores["headings"])
        _links(page, oracle, ours, scores["links"], site)
    return scores


def order(expected: Iterable[Sequence[str]], found: Sequence[str]) -> Score:
    """Count the pages that are followed by the same page as on the site, which may have several orders."""
    score = Score()
    for turned in expected:
        wanted = set(turned)
        after = dict(itertools.pairwise(page for page in found if page in wanted))
        for page, following in itertools.pairwise(turned):
            score.add(after.get(page) == following, 1, page, [] if after.get(page) == following else [following])
    return score


def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(unicodedata.normalize("NFC", text).lower()))


def _words(page: str, oracle: PageFacts, ours: PageFacts, scores: dict[str, Score]) -> None:
    want, have = words(oracle.text), words(ours.text)
    same = (want & have).total()
    scores["words recall"].add(same, want.total(), page, (want - have).most_common(12))
    scores["words precision"].add(same, have.total(), page, (have - want).most_common(12))


def _code(page: str, oracle: PageFacts, ours: PageFacts, score: Score) -> None:
    want, have = Counter(map(_program, oracle.code)), Counter(map(_program, ours.code))
    score.add((want & have).total(), want.total(), page, (repr(one[:150]) for one in want - have))


def _program(code: str) -> str:
    return "\n".join(line.rstrip() for line in code.expandtabs(8).split("\n")).strip("\n")


def _cells(page: str, oracle: PageFacts, ours: PageFacts, score: Score) -> None:
    left = list(ours.tables)
    for table in oracle.tables:
        total, found = sum(map(len, table)), _cells_in_fields(table, ours)
        if found:  # our reader turned the small table of a parameter into facts of its field
            score.add(found, total, page, [] if found == total else [str(table[:3])])
            continue
        best = max(left, key=lambda one: _equal_cells(table, one), default=[])
        if best:
            left.remove(best)
        equal = _equal_cells(table, best)
        score.add(equal, total, page, [] if equal == total else [f"{table[:3]} / {best[:3]}"])


def _cells_in_fields(table: Table, ours: PageFacts) -> int:
    """Count the cells of a table of names and values that we have as facts of a field. Each fact counts once."""
    if len(table) != 2 or len(table[0]) != len(table[1]):
        return 0
    pairs = Counter((bare(name), bare(value)) for name, value in zip(*table, strict=True))
    if not all(ours.pairs[pair] > 0 for pair in pairs):
        return 0
    ours.pairs -= pairs
    return 2 * len(table[0])


def _equal_cells(expected: Table, found: Table) -> int:
    return sum(
        bare(want) in (bare(have), bare(_MARKER.sub(" ", have)))  # our cells keep list markers
        for row, other in zip(expected, found, strict=False)
        for want, have in zip(row, other, strict=False)
    )


def bare(text: str) -> str:
    """A text without characters that only one side writes."""
    return _LAYOUT.sub("", unicodedata.normalize("NFC", text))


def _headings(page: str, oracle: PageFacts, ours: PageFacts, score: Score) -> None:
    want = [(level, bare(text), anchor) for level, text, anchor in oracle.headings]
    have = [(level, bare(text), anchor) for level, text, anchor in ours.headings]
    matcher = SequenceMatcher(None, want, have, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    missed = Counter(want) - Counter(have)
    score.add(
        same, max(len(want), len(have)), page, [*missed, *(f"ours: {one}" for one in Counter(have) - Counter(want))]
    )


def _links(page: str, oracle: PageFacts, ours: PageFacts, score: Score, pages: Mapping[str, PageFacts]) -> None:
    want = Counter(
        (bare(text), _section(target, pages)) for text, target in oracle.links if _leads_somewhere(target, pages)
    )
    have = Counter((bare(text), _section(target, pages)) for text, target in ours.links)
    score.add((want & have).total(), want.total(), page, want - have)


def _leads_somewhere(target: str, pages: Mapping[str, PageFacts]) -> bool:
    """Whether a link of the site points outside, or to one of its pages or files. Broken links and scripts do not."""
    if ":" in target:
        return not target.startswith("javascript:")
    address = unquote(target).partition("#")[0].partition("?")[0]
    return any(one in pages for one in (address, f"{address}/", address.rstrip("/")))


def _section(target: str, pages: Mapping[str, PageFacts]) -> str:
    """Return a target with the section that contains its anchor, so that a label and its heading are the same place."""
    address, mark, anchor = unquote(target).partition("#")
    facts = pages.get(address)
    if not mark or facts is None:
        return unquote(target).rstrip("/")
    inside = facts.anchors.get(anchor, anchor)
    first = facts.headings[0] if facts.headings else None
    return f"{address}#{inside}" if inside and (first is None or inside != facts.anchors.get("")) else address
