"""One row of training or test data: a question or statement, a passage, and what is known about the pair.

Owns the row and its part of the split. Knows nothing of tokens.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

FOLDS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """`y`: the passage answers the question, or bears the statement out."""

    name: str  # of the set
    group: str  # article, document, conversation: never on both sides of a split
    text: str
    passage: str
    y: int
    answer: tuple[int, int] | None = None  # characters of the passage, where the short answer is known
    evidence: tuple[tuple[int, int], ...] | None = None  # sentences of the passage that answer; None: not known
    kind: str = ""
    id: str = ""
    made: bool = False  # a variant made by rule from real data: for training only


def spans_of(sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Where each sentence is when they are joined by blanks."""
    spans, at = [], 0
    for sentence in sentences:
        spans.append((at, at + len(sentence)))
        at += len(sentence) + 1
    return spans


# SQuAD has eight articles only: two in each part, fixed before the first run. What ships never saw part 0.
ARTICLES = {
    "Warsaw": 0, "European_Union_law": 0, "Islamism": 1, "Harvard_University": 1,
    "Steam_engine": 2, "French_and_Indian_War": 2, "Immune_system": 3, "Computational_complexity_theory": 3,
}  # fmt: skip


def fold(row: Row) -> int:
    """Which quarter of its set a row is in, by its group's name alone."""
    if row.group in ARTICLES:
        return ARTICLES[row.group]
    return int(hashlib.sha256(f"{row.name.removeprefix('damaged ')}|{row.group}".encode()).hexdigest()[:8], 16) % FOLDS
