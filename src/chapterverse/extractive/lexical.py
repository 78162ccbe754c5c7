"""The picker that needs no training: words, meaning and the kind of answer, weighed by hand.

Owns the weights and the decision to answer at all. When the best sentence is not good enough, nothing is picked,
because a wrong answer costs the reader more than none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from chapterverse.embeddings import Embedder
from chapterverse.extractive.candidates import Candidate, candidates
from chapterverse.extractive.matching import Match, compare
from chapterverse.extractive.picking import MOST_SENTENCES, Pick
from chapterverse.extractive.question import understand
from chapterverse.transcript import IssuedPassage

# Tuned on the example book and looked at on SQuAD 2.0 and CLAPNQ (bench/extractive.py).
MEANING: Final = 0.5  # weight of the cosine between question and sentence
COVERAGE: Final = 0.5
FITS: Final = 0.12
RANK: Final = 0.02  # for each passage that the search found better
ENOUGH: Final = 0.38  # the least score of the best sentence of an answer
BESIDE: Final = 0.75  # of the best score: what another sentence of the answer must reach
EMBEDDED: Final = 16  # sentences that are compared by meaning, 5–10 ms each on one core
USUAL: Final = 3  # sentences of an answer

_WANTS_CODE = re.compile(
    r"\bhow (?:do|can|should|would|to)\b|\b(?:command|code|example|snippet|syntax|script)s?\b", re.IGNORECASE
)
_POINTS_BACK = re.compile(r"(?:It|Its|They|Their|This|These|Those|That|He|She|Such|Both|Here)\b")


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence with its final score."""

    match: Match
    score: float


class LexicalPicker:
    """Picks sentences by a weighted sum."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def pick(self, question: str, passages: Sequence[IssuedPassage]) -> list[Pick]:
        """The sentences of the answer, in reading order."""
        found = candidates(passages)
        chosen = _choose(await self.rank(question, found))
        shows_code = bool(_WANTS_CODE.search(question))
        picks: list[Pick] = []
        for candidate in _in_order(chosen, found)[:MOST_SENTENCES]:
            picks.append(Pick(candidate.passage.number, candidate.text))
            if candidate.code and (shows_code or candidate.announces):
                picks.append(Pick(candidate.passage.number, candidate.code, is_code=True))
        return picks

    async def rank(self, question: str, found: Sequence[Candidate]) -> list[Scored]:
        """The sentences that may answer, best first."""
        asked = understand(question)
        likely = sorted((m for m in compare(asked, found) if not m.barred), key=_by_words, reverse=True)[:EMBEDDED]
        if not likely or not asked.words:
            return []
        wanted = await self._embedder.embed_query(question)
        vectors = await self._embedder.embed_passages([match.candidate.text for match in likely])
        scored = [
            Scored(m, _by_words(m) + MEANING * float(cosine))
            for m, cosine in zip(likely, vectors @ wanted, strict=True)
        ]
        return sorted(scored, key=lambda scored: scored.score, reverse=True)


def _by_words(match: Match) -> float:
    return COVERAGE * match.coverage + FITS * match.fits - RANK * match.candidate.rank


def _choose(best: Sequence[Scored]) -> list[Candidate]:
    """The best sentence if it is good enough, and those that come close to it."""
    if not best or best[0].score < ENOUGH:
        return []
    least = max(ENOUGH, BESIDE * best[0].score)
    row_named = best[0].match.candidate.is_row and best[0].match.fits == 1.0
    chosen = [best[0].match.candidate]
    for scored in best[1:]:
        candidate = scored.match.candidate
        # When the question names a row of a table, the rows beside it answer other questions.
        beside = row_named and candidate.is_row and scored.match.fits < 1.0
        if scored.score >= least and not beside and not candidate.announces:
            chosen.append(candidate)
    return chosen[:USUAL]


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
    """The sentences before one, back to the first that can be understood on its own."""
    before = {c.text: c for c in found if c.rank == candidate.rank}
    while _POINTS_BACK.match(candidate.text) and candidate.before in before:
        candidate = before[candidate.before]
        yield candidate
