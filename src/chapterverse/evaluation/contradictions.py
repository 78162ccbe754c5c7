"""Finds passages of the book that contradict an answer.

With a judge, the judge decides. Without one, two passages contradict each other if they use mostly the same words with
different numbers. Other contradictions need a model.
"""

import re
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from chapterverse.errors import AgentUnavailable
from chapterverse.evaluation.cases import Case, Citation, FoundPassage
from chapterverse.evidence import judge as judging
from chapterverse.evidence.exact import normal_number
from chapterverse.language import stems
from chapterverse.models import Frozen, Place
from chapterverse.units import blocks_of_text, cut_units

_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_NAMES: Final = {"source_url", "page_title", "section_heading", "book", "version"}
_CLAIM: Final = "Passages 1 and {} answer the question differently: they cannot both be right."


class QuotedPlace(Place):
    """A text of the book and its place."""

    text: str


class Conflict(Frozen):
    """The evidence of an answer, and a passage that contradicts it."""

    said: QuotedPlace
    otherwise: QuotedPlace


async def conflicts_of(case: Case, judge: judging.Judge | None) -> tuple[Conflict, ...]:
    """Return the passages that were found for a question and contradict its answer."""
    if not case.answered:
        return ()
    others = [_rival(case, citation, passage) for citation in case.citations for passage in case.passages]
    rivals = list(dict.fromkeys(rival for rival in others if rival is not None))
    if judge is not None and rivals:
        try:
            return await _judged(case, rivals, judge)
        except AgentUnavailable:
            pass  # contradictions that need no judge are still reported
    asked = case.question.question
    return tuple(rival for rival in rivals if other_numbers(asked, rival.said.text, rival.otherwise.text))


def other_numbers(question: str, one: str, two: str) -> bool:
    """Whether two texts say the same thing with different numbers: they share most of their words, and each has a
    number that neither the other nor the question has."""
    numbers = [set(map(normal_number, _NUMBER.findall(text))) for text in (one, two, question)]
    words = [stems(_NUMBER.sub(" ", text)) for text in (one, two)]
    differ = bool(numbers[0] - numbers[1] - numbers[2]) and bool(numbers[1] - numbers[0] - numbers[2])
    return differ and 2 * len(words[0] & words[1]) > len(words[0] | words[1])


def _rival(case: Case, citation: Citation, passage: FoundPassage) -> Conflict | None:
    """Return the part of a passage that is about the same subject as the answer, if the passage is from another
    section; else None. Different versions of a book do not contradict each other."""
    if passage.book == citation.book and passage.version != citation.version:
        return None
    if (passage.book, passage.source_url) == (citation.book, citation.source_url) or not citation.marks:
        return None
    shown = " ".join(mark.text for mark in citation.marks)
    answer_stems = stems(shown)
    asked = answer_stems & stems(case.question.question)
    texts = [passage.text[unit.start : unit.end] for unit in cut_units(passage.text, blocks_of_text(passage.text))]
    speaking = [text for text in texts if asked <= stems(text) and text not in shown]
    if not asked or not speaking:
        return None
    best = max(speaking, key=lambda text: len(answer_stems & stems(text)))
    here = QuotedPlace(text=shown, **citation.model_dump(include=_NAMES))
    there = QuotedPlace(text=best, **passage.model_dump(include=_NAMES))
    return Conflict(said=here, otherwise=there)


async def _judged(case: Case, rivals: Sequence[Conflict], judge: judging.Judge) -> tuple[Conflict, ...]:
    """Return the passages that contradict the answer according to the judge."""
    found: list[Conflict] = []
    for text in dict.fromkeys(rival.said for rival in rivals):
        against = [rival for rival in rivals if rival.said == text]
        places = [text, *(rival.otherwise for rival in against)]
        evidence = [line for number, place in enumerate(places, start=1) for line in _lines(number, place)]
        claims = [_CLAIM.format(number) for number in range(2, len(places) + 1)]
        asked = judging.JudgeRequest(evidence, claims, case.question.question)
        async with aclosing(judge.verdicts(asked, judging.JudgeUsage())) as verdicts:
            upheld = {verdict.claim async for verdict in verdicts if verdict.supported}
        found += [rival for number, rival in enumerate(against, start=1) if number in upheld]
    return tuple(found)


def _lines(number: int, place: QuotedPlace) -> tuple[str, str]:
    return f"Passage {number}: {place.place}", f"[{number}.1] {' '.join(place.text.split())}"
