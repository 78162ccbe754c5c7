"""The picker of the extractive model: rules find the sentences that may answer, the trained reader decides among them.

Owns which sentences are read, how many are said, and the decision to answer at all. In the book the rules decide that
and the reader only where they doubt; in a selection the reader does. When nothing is good enough, nothing is picked,
because a wrong answer costs the reader more than none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from chapterverse.embeddings import Embedder
from chapterverse.extractive.candidates import Candidate, candidates
from chapterverse.extractive.judging import ANSWERED, ENOUGH, Judged, answerability, score_by_words
from chapterverse.extractive.matching import Match, compare
from chapterverse.extractive.picking import MOST_SENTENCES, Pick
from chapterverse.extractive.question import Question, understand
from chapterverse.extractive.reading import Read, Reader, windows
from chapterverse.transcript import IssuedPassage

BESIDE: Final = 0.75  # of the best score by rules: what another sentence of an answer from the book must reach
NEAR: Final = 5.0  # logits below the best sentence that another one of the answer may have
EMBEDDED: Final = 16  # sentences that are compared by meaning, 2–5 ms each on one core
WINDOWS: Final = 6  # that are read, up to 30 ms each on one core
USUAL: Final = 3  # sentences of an answer
NEXT: Final = 2  # sentences for who asks for more

_WANTS_CODE = re.compile(
    r"\bhow (?:do|can|should|would|to)\b|\b(?:command|code|example|snippet|syntax|script)s?\b", re.IGNORECASE
)


class ReaderPicker:
    """Picks sentences by rules and by the trained reader."""

    def __init__(self, embedder: Embedder, reader: Reader) -> None:
        self._embedder, self._reader = embedder, reader

    async def pick(
        self, question: str, passages: Sequence[IssuedPassage], *, selected: bool = False, said: str = ""
    ) -> list[Pick]:
        """The sentences of the answer, in reading order."""
        everything = candidates(passages)
        found = [candidate for candidate in everything if candidate.text not in said]
        chosen = _what_follows(everything, said)
        if not chosen:
            chosen = await (self._from_selection if selected else self._from_book)(question, found)
        shows_code = bool(_WANTS_CODE.search(question))
        picks: list[Pick] = []
        for candidate in _in_order(chosen, found)[:MOST_SENTENCES]:
            picks.append(Pick(candidate.passage.number, candidate.text))
            if candidate.code and (shows_code or candidate.announces):
                picks.append(Pick(candidate.passage.number, candidate.code, is_code=True))
        return picks

    async def _from_book(self, question: str, found: Sequence[Candidate]) -> list[Candidate]:
        """Sentences that the rules find good enough. Only those that compete, or that they doubt, are read."""
        weighed = [one for one in await self._weigh(question, found, barred=False) if one.by_rules >= ENOUGH]
        if not weighed:
            return []
        least = BESIDE * max(one.by_rules for one in weighed)
        rivals = [one for one in weighed if one.by_rules >= least]
        if len(rivals) > 1 or rivals[0].match.doubted:
            rivals = await self._read(question, rivals, found)
        if all(one.match.doubted for one in rivals) and answerability(question, rivals) < ANSWERED:
            return []
        return _choose(rivals)

    async def _from_selection(self, question: str, found: Sequence[Candidate]) -> list[Candidate]:
        """Sentences of a text that the reader finds to answer; it knows prose alone, so rows are the rules' to find."""
        weighed = await self._weigh(question, found, barred=True)
        if rows := [one for one in weighed if one.names_row and one.by_rules >= ENOUGH]:
            return [max(rows, key=lambda one: one.by_rules).match.candidate]
        if sure := [one for one in weighed if one.match.sure and one.by_rules >= ENOUGH]:
            return _choose(await self._read(question, sure, found) if len(sure) > 1 else sure)
        judged = await self._read(question, weighed, found)
        if judged and _is_beside(understand(question), judged[0].match):
            return []
        return _choose(judged) if judged and answerability(question, judged) >= ANSWERED else []

    async def _weigh(self, question: str, found: Sequence[Candidate], *, barred: bool) -> list[Judged]:
        """The likeliest sentences by their words, with their cosines; with or without those that are barred."""
        asked = understand(question)
        matches = [match for match in compare(asked, found) if barred or not match.barred]
        likely = sorted(matches, key=score_by_words, reverse=True)[:EMBEDDED]
        if not likely or not asked.words:
            return []
        wanted = await self._embedder.embed_query(question)
        vectors = await self._embedder.embed_passages([match.candidate.text for match in likely])
        return [Judged(match, float(cosine)) for match, cosine in zip(likely, vectors @ wanted, strict=True)]

    async def _read(self, question: str, weighed: Sequence[Judged], found: Sequence[Candidate]) -> list[Judged]:
        """The same sentences as the reader sees them, best first."""
        runs = list(_runs(weighed, found))[:WINDOWS]
        reads: dict[Candidate, Read] = {}
        scored = await self._reader.read(question, [[candidate.text for candidate in run] for run in runs])
        for run, scores in zip(runs, scored, strict=True):
            for candidate, read in zip(run, scores, strict=True):
                known = reads.get(candidate)
                reads[candidate] = read if known is None or read.sentence > known.sentence else known
        judged = [replace(one, read=reads.get(one.match.candidate, one.read)) for one in weighed]
        return sorted(judged, key=lambda one: one.score, reverse=True)


def _runs(weighed: Sequence[Judged], found: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """The windows of the passages that hold these sentences, those of the best sentence first."""
    told: set[tuple[int, int]] = set()
    for one in sorted(weighed, key=lambda one: one.by_rules, reverse=True):
        wanted = one.match.candidate
        passage = [candidate for candidate in found if candidate.rank == wanted.rank]
        for window in windows([candidate.text for candidate in passage]):
            run = [passage[at] for at in window]
            if wanted in run and (wanted.rank, window.start) not in told:
                told.add((wanted.rank, window.start))
                yield run


def _choose(judged: Sequence[Judged]) -> list[Candidate]:
    """The best sentence and those that come close to it."""
    best = judged[0]
    chosen = [best.match.candidate]
    for one in judged[1:]:
        candidate = one.match.candidate
        # When the question names a row of a table, other rows answer other questions, and so does what is doubted.
        beside = best.names_row and (one.match.doubted or (candidate.is_row and not one.names_row))
        # What says "is not a …" to who asks "is it a …?" may be further: the reader looks for the words.
        near = 2 * NEAR if one.match.fits == 1.0 > best.match.fits else NEAR
        if one.score >= best.score - near and not beside and not candidate.announces:
            chosen.append(candidate)
    return chosen[:USUAL]


def _is_beside(question: Question, best: Match) -> bool:
    """Whether the rules see that a brief question is not answered; the reader knows longer ones."""
    return question.brief and (best.barred or (question.kind == "number" and not best.whole))


def _what_follows(found: Sequence[Candidate], said: str) -> list[Candidate]:
    """Who asks for more is told what the book says next, after the sentence that was said last."""
    told = [candidate for candidate in found if candidate.text in said]
    if not told:
        return []
    last = max(told, key=lambda candidate: said.rfind(candidate.text))
    rest = (one for one in found if one.rank == last.rank and one.place > last.place and one.text not in said)
    return list(islice(rest, NEXT))


def _in_order(chosen: Sequence[Candidate], found: Sequence[Candidate]) -> list[Candidate]:
    """By passage and place. A sentence that points back brings the one it points to, one that announces brings what
    it announces."""
    wanted = set(chosen)
    for candidate in chosen:
        wanted.update(_pointed_at(candidate, found))
        if candidate.announces and not candidate.code:
            wanted.update(c for c in found if c.rank == candidate.rank and c.lead.startswith(candidate.text))
    return sorted(wanted, key=lambda candidate: (candidate.rank, candidate.place))


def _pointed_at(candidate: Candidate, found: Sequence[Candidate]) -> Iterator[Candidate]:
    """The sentences before one, back to the first that can be understood on its own. None is left out between them:
    what says "it" is only shown right after what it points to (`grounding`)."""
    before = {c.text: c for c in found if c.rank == candidate.rank}
    while candidate.points_back and candidate.before in before:
        candidate = before[candidate.before]
        yield candidate
