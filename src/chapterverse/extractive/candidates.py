"""The sentences of passages that an answer may consist of, each with the words around it.

Owns what can be said on its own: sentences, list items, rows of tables. Headings and code lines cannot.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from chapterverse.text import sentences
from chapterverse.transcript import IssuedPassage

_HEADING = re.compile(r"#{1,6}\s+(.*)")
_FENCE = re.compile(r"(?:`{3,}|~{3,})")
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*(\S*)", re.MULTILINE)
_ITEM = re.compile(r"(?:> ?)*(?:[-*+•]|\(?\d{1,3}[.)])[ \t]+")
_RULE = re.compile(r"\|?[\s:|-]+\|?")
_LONGEST_CODE = 30  # lines of a block that is still an example and not a program
_POINTS_BACK = re.compile(r"(?:It|Its|They|Their|This|These|Those|That|He|She|Such|Both|Here)\b")
_LETTERS = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be said, and what gives it its meaning."""

    passage: IssuedPassage
    rank: int  # of its passage, from 0
    place: int  # among the sentences of its passage
    text: str  # as it is said: without the mark of a list, cells of a row joined
    before: str  # the sentence before it in the same paragraph or item
    lead: str  # what announces it: the sentence above its list, the head of its table
    heading: str  # breadcrumb and headings above it
    is_row: bool = False
    code: str = ""  # the fenced block right after it

    @property
    def announces(self) -> bool:
        """Whether something must follow it."""
        return self.text.endswith(":")

    @property
    def points_back(self) -> bool:
        """Whether it begins with a word for something that was named before it."""
        return bool(_POINTS_BACK.match(self.text))


def candidates(passages: Sequence[IssuedPassage]) -> list[Candidate]:
    """All that could be said, in the order of the passages; what two passages repeat comes once."""
    found: dict[str, Candidate] = {}
    for rank, passage in enumerate(passages):
        for candidate in _Reader(passage, rank).read():
            found.setdefault(candidate.text, candidate)
    return list(found.values())


class _Reader:
    """Reads one passage from top to bottom and remembers what stands above."""

    def __init__(self, passage: IssuedPassage, rank: int) -> None:
        self._passage, self._rank = passage, rank
        self._text = _whole_fences(passage.text)
        self._heading = passage.breadcrumb
        self._before = self._lead = self._header = ""
        self._found: list[Candidate] = []
        self._block: list[str] | None = None  # lines of the code block that is open
        self._follows = False  # whether that block stands right after the last candidate

    def read(self) -> list[Candidate]:
        """The candidates of the passage."""
        end = 0
        for place, (start, stop) in enumerate(_sentences(self._text)):
            if self._block is None and "\n\n" in self._text[end:start]:
                self._new_block(self._text[start:stop])
            end = stop
            self._take(self._text[self._text.rfind("\n", 0, start) + 1 : stop], place, self._text[start:stop])
        return self._found

    def _take(self, line: str, place: int, said: str) -> None:
        if _FENCE.match(said):
            self._fence(line)
        elif self._block is not None:
            self._block.append(line)
        elif title := _HEADING.match(said):
            self._heading = f"{self._heading} {title[1]}"
            self._before = self._lead = self._header = ""
            self._follows = False
        elif said.startswith("|"):
            self._row(place, said)
        else:
            self._sentence(place, said)

    def _new_block(self, said: str) -> None:
        """A blank line: what was said before stays near only if it announced something."""
        self._before = ""
        if not _ITEM.match(said) and not said.startswith("|") and not self._lead_is_last():
            self._lead = ""
        if not said.startswith("|"):
            self._header = ""

    def _lead_is_last(self) -> bool:
        return bool(self._found) and self._found[-1].text == self._lead

    def _fence(self, line: str) -> None:
        if self._block is None:
            self._block = [line]
            return
        block, self._block = [*self._block, line], None
        if self._follows and len(block) <= _LONGEST_CODE:
            self._found[-1] = replace(self._found[-1], code="\n".join(block))
        self._follows = False
        self._lead = ""

    def _row(self, place: int, said: str) -> None:
        if _RULE.fullmatch(said):
            return
        cells = [cell.strip() for cell in said.strip("|").split("|")]
        if not self._header:
            self._header = " ".join(cells)
            return
        lead = f"{self._lead} {self._header}".strip()
        self._add(Candidate(self._passage, self._rank, place, _row(cells), "", lead, self._heading, is_row=True))

    def _sentence(self, place: int, said: str) -> None:
        item = _ITEM.match(said)
        spoken = " ".join((said[item.end() :] if item else said).split())
        before = "" if item else self._before
        if _LETTERS.search(spoken):
            self._add(Candidate(self._passage, self._rank, place, spoken, before, self._lead, self._heading))
        if spoken.endswith(":"):
            self._lead = spoken
        self._before = spoken

    def _add(self, candidate: Candidate) -> None:
        self._found.append(candidate)
        self._follows = True


@lru_cache(maxsize=1024)
def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    """The same passages come up for many questions, and twice for each."""
    return tuple(sentences(text))


def _whole_fences(text: str) -> str:
    """A passage may begin inside a code block that was cut: its first fence is then a bare, closing one. When it was
    cut on both sides, every line is indented."""
    fences = _FENCE_LINE.findall(text)
    if not fences and all(line.startswith("    ") for line in text.splitlines() if line.strip()):
        return f"```\n{text}\n```"
    return f"```\n{text}" if len(fences) % 2 and not fences[0] else text


def _row(cells: Sequence[str]) -> str:
    """A row as it can be read aloud: what it is about, then what is said of it."""
    first, *rest = [cell for cell in cells if cell] or [""]
    return f"{first}: {'; '.join(rest)}" if rest else first
