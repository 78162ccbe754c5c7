"""The writer that needs no key: it answers with excerpts of the book.

The section reader has read the passages before; here the best ones are cut out of their sections, with what a reader
needs to understand them. The statements are the book's own words, so they are proven already.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import Final

from chapterverse.evidence.citations import Proven, without_markers
from chapterverse.evidence.passages import IssuedPassage
from chapterverse.evidence.statement import Statement
from chapterverse.language import stems
from chapterverse.trained import UNREAD, shared_reader
from chapterverse.writing import Finished, Reading, Task, Writer, WriterEvent
from chapterverse.writing.cutting import cut_excerpt, near_duplicates

NAME: Final = "excerpt"
MOST: Final = 3  # excerpts
CLOSE: Final = 2.5  # logits below the best passage that another one may lie to answer another part, or a follow-up
TIED: Final = 1.5  # logits below it that another one may lie to be as good an answer

# A question that has parts or compares things.
_PARTS = re.compile(r"\b(?:and|or|vs|versus|between|compared?|differ|differences?|both)\b|[?;].*\?", re.IGNORECASE)


class ExcerptWriter(Writer):
    """Answers with the book's own words."""

    name = NAME
    engine = "the excerpt writer, which answers with the book's own words"
    needs_readings = True

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """The excerpt that answers, and others where it leaves parts of the question open."""
        for place, excerpt in _choose(task):
            if place:
                yield Proven(Statement(f"From “{place}”:"), "frame")
            yield excerpt
        yield Finished()

    async def probe(self) -> None:
        """Load the reader."""
        await asyncio.to_thread(shared_reader().load)

    async def close(self) -> None:
        """Nothing to close: the reader belongs to the process."""


def _choose(task: Task) -> list[tuple[str, Proven]]:
    """The excerpt of the best passage, and of those near it that speak of what it leaves open, each with its place."""
    chosen: list[tuple[str, Proven]] = []
    said: frozenset[str] = frozenset()
    by_page: defaultdict[str, set[int]] = defaultdict(set)  # where the units begin that the chosen ones show
    asked, parts = stems(task.question), _PARTS.search(task.question) is not None
    best = task.readings[0].score if task.readings else 0.0
    tied = CLOSE if task.history else TIED  # what a follow-up means is less sure
    for passage, reading in zip(task.passages, task.readings, strict=False):
        if len(chosen) == MOST or (chosen and reading.score < best - (CLOSE if parts else tied)):
            break
        shown = by_page[passage.chunk.page_id if passage.chunk else ""]
        if max(reading.units, key=lambda start: reading.units[start], default=None) in shown:
            continue  # what answers in it is shown already
        excerpt = _cut(task, passage, reading, shown)
        if excerpt is None or any(near_duplicates(excerpt.statement.text, one.statement.text) for _, one in chosen):
            continue
        says = stems(f"{passage.place} {excerpt.statement.text}")
        as_good = reading.score >= best - tied and len(chosen) < 2
        if not chosen or as_good or (asked & says) - said:
            chosen.append((passage.place, excerpt))
            said |= says
            shown.update(unit.start for unit in excerpt.units)
    return chosen


def _cut(task: Task, passage: IssuedPassage, reading: Reading, shown: set[int]) -> Proven | None:
    """The excerpt of a passage and what stands around it, for what is not `shown` yet."""
    chunk = passage.chunk
    heading = (chunk.section_heading or chunk.page_title) if chunk else ""
    scores = dict(reading.units)
    most = max(scores.values(), default=UNREAD) - 0.01
    for other, its in zip(task.passages, task.readings, strict=False):
        if chunk and other.chunk and other.chunk.page_id == chunk.page_id:
            # Its units count by as much less as it answers less, and none is the best one.
            less = max(0.0, reading.score - its.score)
            scores = {**{start: min(most, score - less) for start, score in its.units.items()}, **scores}
    last_answer = without_markers(task.history[-1].response) if task.history else ""
    last_quotes = [source.get("quote") for turn in task.history[-1:] for source in turn.sources]
    marked = {start for each in task.readings for start in each.shown_before}  # in the last answer
    said = (unit.start for unit in passage.units if any(unit.text in turn.response for turn in task.history))
    seen = shown.union(said)
    scores = {start: score for start, score in scores.items() if start not in shown}
    fresh = {start: score for start, score in scores.items() if start not in reading.shown_before}
    for known in (scores, fresh):
        whole = cut_excerpt(passage, known, task.question, heading, fill=chunk is not None, seen=seen)
        if whole is None or whole.statement.text not in last_answer:
            return whole
        # Of what the reader has before them only what answers is shown, unless that were the last answer again.
        brief = cut_excerpt(passage, known, task.question, heading, fill=False, seen=seen)
        if brief is None:
            return None
        if [brief.statement.text] != last_quotes and not marked.issuperset(unit.start for unit in brief.highlights):
            return brief
    return None
