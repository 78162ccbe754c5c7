"""A sentence beside the question with all that is known of it, and whether the best of them answers.

Owns the weights between rules, cosine and the trained reader. Never looks for sentences.

What was fitted on what (docs/decisions/0017-reader.md): the weights of the rules, and how they mix with the reader,
on the example book; whether a text answers at all, on SQuAD 2.0 without the articles that the reader never saw.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chapterverse.extractive.matching import Match
from chapterverse.extractive.reading import UNREAD, Read

COVERAGE: Final = 0.5
COSINE: Final = 0.5
FITS: Final = 0.12
RANK: Final = 0.02  # for each passage that the search found better
ENOUGH: Final = 0.38  # the least score by rules of the best sentence of an answer

LOGITS: Final = 10.0  # of the reader, that a score by rules of 1 weighs as much as
BARRED: Final = 5.0  # logits that a sentence loses when it is barred

ANSWERED: Final = -0.2  # the least `answerability` of a selection that answers

_NEGATION = re.compile(
    r"\b(?:not|no|never|without|neither|nor|none|cannot|except|unless|fail\w*|lack\w*|unlike)\b|n['’]t\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A sentence with its scores."""

    match: Match
    cosine: float  # between the question and the sentence
    read: Read = UNREAD

    @property
    def by_rules(self) -> float:
        """By words, meaning and the kind of answer."""
        return score_by_words(self.match) + COSINE * self.cosine

    @property
    def names_row(self) -> bool:
        """Whether it is a row of a table, the one that the question names."""
        match = self.match
        return match.candidate.is_row and match.fits == 1.0 and not match.barred and not match.doubted

    @property
    def score(self) -> float:
        """By the rules and by the reader, for comparing sentences."""
        return self.read.sentence + LOGITS * self.by_rules - BARRED * self.match.barred


def score_by_words(match: Match) -> float:
    """The part of a score that needs no model."""
    return COVERAGE * match.coverage + FITS * match.fits - RANK * match.candidate.rank


def answerability(question: str, best_first: Sequence[Judged]) -> float:
    """That these sentences answer the question, as a logit."""
    best = best_first[0].match
    turned = bool(_NEGATION.search(question)) and not _NEGATION.search(best.candidate.text)
    return (
        -0.818
        + 0.139 * max(judged.read.answers for judged in best_first)
        + 2.372 * max(judged.cosine for judged in best_first)
        - 0.218 * best.barred
        - 0.562 * best.doubted
        - 2.449 * turned
    )
