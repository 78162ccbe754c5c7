"""The writer that needs no key: it answers with excerpts of the book.

The section reader has read the passages before; here the best ones are cut out of their sections, with what a reader
needs to understand them. The statements are the book's own words, so they are proven already.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final

from chapterverse.evidence.citations import Proven
from chapterverse.evidence.passages import IssuedPassage
from chapterverse.evidence.statement import Statement
from chapterverse.language import stems
from chapterverse.trained import SectionReader, shared_reader
from chapterverse.writing.cutting import Excerpt, cut_excerpt, near_duplicates
from chapterverse.writing.writer import Exchange, Finished, Reading, Task, WriterEvent

NAME: Final = "excerpt"
MOST: Final = 3  # excerpts
CLOSE: Final = 2.5  # logits below the best passage that another one may lie to answer another part
TIED: Final = 1.0  # logits below it that another one may lie to be as good an answer

# A question that has parts or compares things.
_PARTS = re.compile(r"\b(?:and|or|vs|versus|between|compared?|differ|differences?|both)\b|[?;].*\?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Chosen:
    passage: IssuedPassage
    excerpt: Excerpt

    @property
    def said(self) -> frozenset[str]:
        return stems(f"{self.passage.breadcrumb} {self.excerpt.text}")


class ExcerptWriter:
    """Answers with the book's own words."""

    name = NAME
    engine = "the excerpt writer, which answers with the book's own words"
    needs_readings = True

    def __init__(self, reader: SectionReader | None = None) -> None:
        self._reader = reader or shared_reader()

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """The excerpt that answers, and others where it leaves parts of the question open."""
        for chosen in await self._choose(task):
            if place := chosen.passage.breadcrumb:
                yield Proven(Statement(f"From “{place}”:"), "frame")
            excerpt = chosen.excerpt
            yield Proven(Statement(excerpt.text, shape="excerpt"), "quoted", excerpt.units, highlights=excerpt.lit)
        yield Finished()

    async def rewrite(self, question: str, history: Sequence[Exchange]) -> tuple[str, Finished]:
        """It has no words of its own."""
        return "", Finished()

    async def probe(self) -> None:
        """Load the reader."""
        await asyncio.to_thread(self._reader.load)

    async def close(self) -> None:
        """Nothing to close: the reader belongs to the process."""

    async def _choose(self, task: Task) -> list[_Chosen]:
        """The best passage, and those near it that speak of what it leaves open."""
        chosen: list[_Chosen] = []
        asked, parts = stems(task.question), _PARTS.search(task.question) is not None
        best = task.readings[0].score if task.readings else 0.0
        for at, (passage, reading) in enumerate(zip(task.passages, task.readings, strict=False)):
            if len(chosen) == MOST or (chosen and reading.score < best - (CLOSE if parts else TIED)):
                break
            candidate = await _cut(task, at, passage)
            if candidate is None or any(near_duplicates(candidate.excerpt.text, one.excerpt.text) for one in chosen):
                continue
            said = frozenset[str]().union(*(one.said for one in chosen))
            tied = reading.score >= best - TIED and len(chosen) < 2
            if not chosen or tied or (asked & candidate.said) - said:
                chosen.append(candidate)
        return chosen


async def _cut(task: Task, at: int, passage: IssuedPassage) -> _Chosen | None:
    """The excerpt of a passage, from as much of its section as is known."""
    chunk = passage.chunk
    page = await task.page(chunk.page_id) if task.page and chunk else None
    scores = dict(task.readings[at].units)
    if page is not None and chunk is not None:
        passage = task.evidence.widen(passage, page)
        for other, reading in zip(task.passages, task.readings, strict=False):
            if other.chunk and other.chunk.page_id == page.page_id:
                scores = {**_lowered(reading, task.readings[at]), **scores}
    heading = (chunk.section_heading or chunk.page_title) if chunk else ""
    excerpt = cut_excerpt(passage, scores, task.question, heading)
    if excerpt is not None and _repeats(task, excerpt):
        told = task.readings[at].told
        fresh = {start: score for start, score in scores.items() if start not in told}
        excerpt = cut_excerpt(passage, fresh, task.question, heading)
        if excerpt is not None and _repeats(task, excerpt):
            return None
    return None if excerpt is None else _Chosen(passage, excerpt)


def _repeats(task: Task, excerpt: Excerpt) -> bool:
    """Whether an excerpt would be the last answer again: it marks the same units, or it is the same text for a question
    that names nothing new ("why?", "more")."""
    told = frozenset[int]().union(*(reading.told for reading in task.readings))
    if not told:
        return False
    marked = {unit.start for unit in excerpt.lit}
    same_text = bool(task.history) and excerpt.text[:200] in task.history[-1].answer
    return marked == told or (same_text and (marked <= told or not stems(task.question)))


def _lowered(reading: Reading, chosen: Reading) -> dict[int, float]:
    """The units of another passage of the page, by as much less as that passage answers less."""
    less = max(0.0, chosen.score - reading.score)
    return {start: score - less for start, score in reading.units.items()}
