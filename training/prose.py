"""Prose of documentation pages: sections, sentences and passages, with markup taken off.

Owns how training text is cut from Markdown, MDX and RST sources. Knows nothing of labels or models; sentences are
cut by the product's own splitter, so that the models meet the sentences they will be shown.
"""

import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
from chapterverse.text import sentences as sentence_spans

_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|\{\{[<%].*?[%>]\}\}|\{%.*?%\}|\{/\*.*?\*/\}", re.DOTALL)
_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'#*+])\1{2,}\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)]|#\.)\s+")
_SKIPPED = re.compile(r"^\s*(?:\||:::|import |export |\.\. |:\w[\w-]*:|<|\+[-=]+|\$ )")
_INLINE = (
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), " "),
    (re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])"), r"\1"),
    (re.compile(r":[a-z:]+:`~?([^`<]+?)\s*(?:<[^`>]*>)?`"), r"`\1`"),
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),
    (re.compile(r"``"), "`"),
    (re.compile(r"</?[A-Za-z][^>\n]*>|\{#[^}]*\}"), " "),
    (re.compile(r"\*\*|__(?=\w)|(?<=\w)__"), ""),
)
# The Wikipedia texts of CLAPNQ and MTRAG have a blank before every mark.
_TOKENISED = (
    (re.compile(r"`` | ''"), '"'),
    (re.compile(r"\( "), "("),
    (re.compile(r" ([.,;:)?!%]|'s\b|n't\b)"), r"\1"),
    (re.compile(r" - "), "-"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """Paragraphs under one heading."""

    source: str
    page: str
    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences that stand together, as a reader would select them."""

    source: str
    page: str
    heading: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def sentences(text: str) -> list[str]:
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]


def detokenised(text: str) -> str:
    for pattern, replacement in _TOKENISED:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def plain(line: str) -> str:
    for pattern, replacement in _INLINE:
        line = pattern.sub(replacement, line)
    return " ".join(line.split())


def sections(source: str, page: str, raw: str) -> Iterator[Section]:
    """The sections of a page in order; code, tables and directives are left out."""
    heading, paragraphs, open_lines = _title(page), [], []
    fenced = False
    lines = _COMMENT.sub(" ", _FRONT.sub("", raw)).split("\n")

    def close() -> None:
        if open_lines:
            paragraphs.append(plain(" ".join(open_lines)))
            open_lines.clear()

    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
            close()
            continue
        if fenced or _UNDERLINE.match(line):
            continue
        following = lines[number + 1] if number + 1 < len(lines) else ""
        title = _HEADING.match(line)
        if title or (line.strip() and not line.startswith(" ") and _UNDERLINE.match(following)):
            close()
            if paragraphs:
                yield Section(source, page, heading, tuple(paragraphs))
            heading, paragraphs = plain(title[1] if title else line), []
        elif not line.strip() or _SKIPPED.match(line) or line.startswith(("    ", "\t")):
            close()
        else:
            if _ITEM.match(line):
                close()
            open_lines.append(_ITEM.sub("", line))
    close()
    if paragraphs:
        yield Section(source, page, heading, tuple(paragraphs))


def passages(section: Section, rng: random.Random) -> list[Passage]:
    """The section's sentences in runs of 30 to 170 words."""
    found: list[Passage] = []
    run: list[str] = []
    limit = rng.choice((50, 80, 110, 140, 170))
    every = [s for paragraph in section.paragraphs for s in sentences(paragraph) if len(s) < 600]
    for sentence in every:
        run.append(sentence)
        if sum(len(s.split()) for s in run) >= limit:
            found.append(Passage(section.source, section.page, section.heading, tuple(run)))
            run, limit = [], rng.choice((50, 80, 110, 140, 170))
    if sum(len(s.split()) for s in run) >= 30:
        found.append(Passage(section.source, section.page, section.heading, tuple(run)))
    return [p for p in found if sum(map(str.isalpha, p.text)) > 0.6 * len(p.text)]


def _title(page: str) -> str:
    return re.sub(r"[-_]+", " ", Path(page).stem)
