"""The writer that needs no API key: it answers with excerpts of the book.

The section reader has already read the passages. Here the best ones are cut out of their sections, with the text needed
to understand them. The statements are the book's own words, so they count as proven.
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
from chapterverse.writing.cutting import announces, cut_excerpt, excerpt_of, near_duplicates

NAME: Final = "excerpt"
MOST: Final = 3  # excerpts in one answer
CLOSE: Final = 2.5  # maximum distance in logits from the best passage to one for another part, or for a follow-up
TIED: Final = 1.5  # maximum distance in logits from the best passage to one that is as good an answer

# A question that has parts or compares things.
_PARTS = re.compile(r"\b(?:and|or|vs|versus|between|compared?|differ|differences?|both)\b|[?;].*\?", re.IGNORECASE)


class ExcerptWriter(Writer):
    """Answers with the book's own words."""

    name = NAME
    engine = "the excerpt writer, which answers with the book's own words"
    needs_readings = True

    async def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """Yield the excerpt that answers best, and others that are as good or answer other parts of the question."""
        for place, excerpt in _choose(task):
            if place:
                yield Proven(Statement(f"From “{place}”:"), "frame")
            yield excerpt
        yield Finished()

    async def probe(self) -> None:
        """Load the section reader."""
        await asyncio.to_thread(shared_reader().load)

    async def close(self) -> None:
        """Do nothing: the section reader is shared by the whole process."""


def _choose(task: Task) -> list[tuple[str, Proven]]:
    """Return the best excerpt, and close ones that are as good or cover more of the question, with their places."""
    chosen: list[tuple[str, Proven]] = []
    said: frozenset[str] = frozenset()
    by_page: defaultdict[str, set[int]] = defaultdict(set)  # starts of the units that the chosen excerpts show
    asked, parts = stems(task.question), _PARTS.search(task.question) is not None
    best = task.readings[0].score if task.readings else 0.0
    tied = CLOSE if task.history else TIED  # the meaning of a follow-up is less certain
    for passage, reading in zip(task.passages, task.readings, strict=False):
        if len(chosen) == MOST or reading.score < best - (CLOSE if parts or not chosen else tied):
            break  # also if the best passage gives no excerpt: a much worse one does not answer
        shown = by_page[passage.chunk.page_id if passage.chunk else ""]
        if max(reading.units, key=lambda start: reading.units[start], default=None) in shown:
            continue  # its best unit is shown already
        excerpt = _cut(task, passage, reading, shown)
        if excerpt is None or any(near_duplicates(excerpt.statement.text, one.statement.text) for _, one in chosen):
            continue
        says = stems(f"{passage.place} {excerpt.statement.text}")
        as_good = reading.score >= best - tied and len(chosen) < 2
        if not chosen or as_good or (asked & says) - said:
            chosen.append((passage.place, excerpt))
            said |= says
            shown.update(unit.start for unit in excerpt.units)
    return chosen or _answered_before(task)


def _answered_before(task: Task) -> list[tuple[str, Proven]]:
    """Return the unit that answers best, alone, if the last answer showed it among others."""
    if not task.readings or not task.history:
        return []
    passage, reading = task.passages[0], task.readings[0]
    quotes = [str(source.get("quote")) for source in task.history[-1].sources]
    best = max(passage.units, key=lambda unit: reading.units.get(unit.start, UNREAD), default=None)
    if best is None or announces(best.text) or not any(best.text in quote and best.text != quote for quote in quotes):
        return []
    return [(passage.place, excerpt_of(passage, [best], task.question, _heading(passage)))]


def _heading(passage: IssuedPassage) -> str:
    return (passage.chunk.section_heading or passage.chunk.page_title) if passage.chunk else ""


def _cut(task: Task, passage: IssuedPassage, reading: Reading, shown: set[int]) -> Proven | None:
    """Return the excerpt of a passage and the text around it, without the units in `shown`."""
    chunk, heading = passage.chunk, _heading(passage)
    scores = dict(reading.units)
    most = max(scores.values(), default=UNREAD) - 0.01
    for other, its in zip(task.passages, task.readings, strict=False):
        if chunk and other.chunk and other.chunk.page_id == chunk.page_id:
            # Units of that passage score lower by as much as it does, and none may become the best one.
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
        # The last answer had this excerpt: show only the units that answer, unless it had just those, too.
        brief = cut_excerpt(passage, known, task.question, heading, fill=False, seen=seen)
        if brief is None:
            return None
        if [brief.statement.text] != last_quotes and not marked.issuperset(unit.start for unit in brief.highlights):
            return brief
    return None
