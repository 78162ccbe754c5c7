"""The trained reader over sentences: which of them answer a question, each read among its neighbours.

Owns the windows that are read and how scores of tokens become scores of sentences. Never decides whether to answer.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from chapterverse.trained import CrossEncoder, Scored

WORDS: Final = 150  # of a window; with a question of usual length it fits the model's 256 tokens
SPAN: Final = 0.3  # weight of the best span beside the evidence, as the model was measured (training/README.md)
EVIDENCE: Final = 0.5  # weight of a sentence's evidence in the score of what was read


@dataclass(frozen=True, slots=True)
class Read:
    """What the reader thinks of one sentence, in logits."""

    passage: float  # that what was read with it answers the question
    evidence: float  # that it is part of the answer, mean of its tokens
    span: float  # of the best answer inside it, over there being none

    @property
    def sentence(self) -> float:
        """That this sentence answers; for comparing sentences."""
        return self.evidence + SPAN * self.span

    @property
    def answers(self) -> float:
        """That there is an answer, and that it is here."""
        return self.passage + SPAN * self.span + EVIDENCE * self.evidence


UNREAD: Final = Read(-20.0, -20.0, -20.0)  # lower than anything that was read


class Reader:
    """Reads runs of sentences."""

    def __init__(self, model: CrossEncoder) -> None:
        self._model = model

    async def read(self, question: str, runs: Sequence[Sequence[str]]) -> list[list[Read]]:
        """For each run of sentences, in order, each sentence's scores."""
        pairs = [(question, " ".join(run)) for run in runs]
        scored = await asyncio.to_thread(self._model.score, pairs)
        return [_by_sentence(one, run) for one, run in zip(scored, runs, strict=True)]


def windows(sentences: Sequence[str], words: int = WORDS) -> list[range]:
    """Runs of sentences that fit a window, each beginning with the last sentence of the one before."""
    found: list[range] = []
    start = 0
    while start < len(sentences):
        end, used = start, 0
        while end < len(sentences) and (end == start or used + len(sentences[end].split()) <= words):
            used += len(sentences[end].split())
            end += 1
        found.append(range(start, end))
        if end == len(sentences):
            break
        start = max(start + 1, end - 1)
    return found


def _by_sentence(scored: Scored, sentences: Sequence[str]) -> list[Read]:
    reads: list[Read] = []
    low = 0
    for sentence in sentences:
        high = low + len(sentence)
        inside = (scored.spans[:, 0] >= low) & (scored.spans[:, 1] <= high)
        reads.append(_read(scored, inside) if inside.any() else UNREAD)
        low = high + 1
    return reads


def _read(scored: Scored, inside: NDArray[np.bool_]) -> Read:
    best_end = np.maximum.accumulate(scored.ends[inside][::-1])[::-1]  # at or after each start
    span = float((scored.starts[inside] + best_end).max()) - scored.nothing
    return Read(scored.logit, float(scored.evidence[inside].mean()), span)
