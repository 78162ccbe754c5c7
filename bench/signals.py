"""The verifier's score of a claim with what its words say, and a logistic sum of both.

Owns the signals and the fit. Pure but for the encoder that it is given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.claims import Claim
from chapterverse.grounding import Passage
from chapterverse.grounding.alignment import words_shared
from chapterverse.grounding.statements import vocabulary
from chapterverse.grounding.support import usable
from chapterverse.grounding.verifier import Encoder, window
from chapterverse.grounding.words import Token, tokens

Floats = NDArray[np.float64]
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Signals:
    """One line for each claim."""

    scores: Floats  # the verifier's
    contained: Floats  # share of the claim's content words in the passages
    rest: Floats  # what else its words say

    def of(self, wanted: NDArray[np.bool_]) -> Floats:
        """The signals of some claims, as columns."""
        return np.column_stack((self.scores, self.contained, self.rest))[wanted]


def signals(claims: Sequence[Claim], encoder: Encoder) -> Signals:
    """Read each claim with the nearest 120 words of its passages."""
    passages = [Passage(1, "\n\n".join(claim.passages)) for claim in claims]
    words = [tokens(claim.text) for claim in claims]
    pairs = [
        (claim.text, window(found, passage)) for claim, found, passage in zip(claims, words, passages, strict=True)
    ]
    scores: list[float] = []
    for at in range(0, len(pairs), _BATCH):
        scores += [scored.logit for scored in encoder.score(pairs[at : at + _BATCH])]
    said = np.array([_said(found, passage) for found, passage in zip(words, passages, strict=True)])
    return Signals(np.array(scores), said[:, 0], said[:, 1:])


def _said(claim: Sequence[Token], passage: Passage) -> tuple[float, ...]:
    known = vocabulary(passage.text, passage.context)
    content = [token for token in claim if token.content]
    missing = [token for token in content if not any(key in known for key in token.keys)]
    best = max((words_shared(claim, statement) for statement, _ in usable(passage)), default=0.0)
    return (
        1 - len(missing) / max(1, len(content)),
        best,
        float(any(token.kind in ("number", "code", "symbol") for token in missing)),
        float(any(token.keys[-1][1:2].isupper() for token in missing if token.kind == "word" and token.start)),
        float(sum(token.kind == "guard" and token.keys[0] not in known for token in claim)),
        np.log1p(len(missing)),
        np.log1p(len(content)),
    )


def fitted(columns: Floats, yes: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """A logistic sum of standardised columns, fitted by Newton's steps with a little weight decay."""
    middle, spread = columns.mean(0), columns.std(0) + 1e-9

    def ready(rows: Floats) -> Floats:
        return np.column_stack((np.ones(len(rows)), (rows - middle) / spread))

    inputs, weights = ready(columns), np.zeros(columns.shape[1] + 1)
    for _ in range(20):
        chance = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (chance - yes) + weights
        bend = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + np.eye(len(weights))
        weights -= np.linalg.solve(bend, slope)
    return lambda rows: np.asarray(ready(rows) @ weights, np.float64)
