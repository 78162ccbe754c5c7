"""Where the book answers one question in two ways.

With a judge, the judge is asked. Without one, two stretches contradict each other when they say the same thing of what
was asked, in mostly the same words, with different numbers. Other contradictions need a model to be seen.
"""

import re
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from chapterverse.editions import edition_label
from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evidence import judge as judging
from chapterverse.language import stems
from chapterverse.models import Frozen
from chapterverse.units import blocks_of_text, cut_units

_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_NAMES: Final = {"source_url", "page_title", "section_heading", "book", "version"}
_CLAIM: Final = "Passages 1 and {} answer the question differently: they cannot both be right."


class QuotedPlace(Frozen):
    """A stretch of the book and where it stands."""

    source_url: str
    page_title: str
    section_heading: str
    text: str
    book: str = ""
    version: str = ""

    @property
    def head(self) -> str:
        """The edition, the page and the section in one line."""
        names = (edition_label(self.book, self.version), self.page_title, self.section_heading)
        return " › ".join(dict.fromkeys(filter(None, names)))


class Conflict(Frozen):
    """What an answer rests on, and what says otherwise."""

    said: QuotedPlace
    otherwise: QuotedPlace


async def conflicts_of(case: Case, judge: judging.Judge | None) -> tuple[Conflict, ...]:
    """What contradicts an answer, of what was found for its question."""
    if not case.answered:
        return ()
    others = [_rival(case, citation, passage) for citation in case.citations for passage in case.passages]
    rivals = list(dict.fromkeys(rival for rival in others if rival is not None))
    if judge is not None and rivals:
        try:
            return await _judged(case, rivals, judge)
        except judging.JudgeFailed:
            pass  # what can be seen without it is still worth telling
    asked = case.question.question
    return tuple(one for one in rivals if other_numbers(asked, one.said.text, one.otherwise.text))


def other_numbers(question: str, one: str, two: str) -> bool:
    """Whether two texts say the same thing with different numbers: more of their words are shared than not, and each
    has a number that neither the other nor the question has."""
    numbers = [set(_NUMBER.findall(text)) for text in (one, two, question)]
    words = [stems(_NUMBER.sub(" ", text)) for text in (one, two)]
    differ = bool(numbers[0] - numbers[1] - numbers[2]) and bool(numbers[1] - numbers[0] - numbers[2])
    return differ and 2 * len(words[0] & words[1]) > len(words[0] | words[1])


def _rival(case: Case, citation: Citation, passage: FoundPassage) -> Conflict | None:
    """What another section says of what was asked, as far as the answer's own words say it; None if nothing. That a
    version of a book says otherwise than another is no contradiction."""
    if passage.book == citation.book and passage.version != citation.version:
        return None
    if (passage.book, passage.source_url) == (citation.book, citation.source_url) or not citation.marks:
        return None
    said = " ".join(mark.text for mark in citation.marks)
    told = stems(said)
    asked = told & stems(case.question.question)
    texts = [passage.text[unit.start : unit.end] for unit in cut_units(passage.text, blocks_of_text(passage.text))]
    speaking = [text for text in texts if asked <= stems(text) and text not in said]
    if not asked or not speaking:
        return None
    best = max(speaking, key=lambda text: len(told & stems(text)))
    here = QuotedPlace(text=said, **citation.model_dump(include=_NAMES))
    there = QuotedPlace(text=best, **passage.model_dump(include=_NAMES))
    return Conflict(said=here, otherwise=there)


async def _judged(case: Case, rivals: Sequence[Conflict], judge: judging.Judge) -> tuple[Conflict, ...]:
    """Those that the judge finds to contradict the answer. They are asked about in turn with what the answer says."""
    found: list[Conflict] = []
    for said in dict.fromkeys(rival.said for rival in rivals):
        against = [rival for rival in rivals if rival.said == said]
        places = [said, *(rival.otherwise for rival in against)]
        evidence = [line for number, place in enumerate(places, start=1) for line in _lines(number, place)]
        claims = [_CLAIM.format(number) for number in range(2, len(places) + 1)]
        asked = judging.JudgeRequest(evidence, claims, case.question.question)
        async with aclosing(judge.verdicts(asked, judging.JudgeUsage())) as verdicts:
            upheld = {verdict.claim async for verdict in verdicts if verdict.supported}
        found += [rival for number, rival in enumerate(against, start=1) if number in upheld]
    return tuple(found)


def _lines(number: int, place: QuotedPlace) -> tuple[str, str]:
    return f"Passage {number}: {place.head}", f"[{number}.1] {' '.join(place.text.split())}"
