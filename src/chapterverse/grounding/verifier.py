"""The trained judge beside the deterministic one: what it may let through, and what it reads.

Owns two powers, each behind a threshold; docs/decisions/0018-verifier.md tells what they gain and cost. It lets a
sentence through that the rules found wanting in its wording alone (`likeness`). And it finds a failed one likely, so
that the book's own sentence may take its place sooner. Never overrules a broken number, name, identifier, negation,
quantity or condition, and is not asked about a sentence that the rules bear out, least of all one that stands in the
book word for word.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chapterverse.grounding.alignment import words_shared
from chapterverse.grounding.likeness import is_alike
from chapterverse.grounding.passages import Evidence, Judge, Passage, Verdict
from chapterverse.grounding.statements import Statement, points_back, vocabulary
from chapterverse.grounding.support import LIKELY_NEAR, MOST_WORDS, Rules, nearest, unframed, usable
from chapterverse.grounding.words import Token, tokens

WINDOW = 120  # words of a passage that are read with a claim
_ENOUGH = 10  # words of the window that need not be filled
_LENGTH = 0.004  # how much a word more weighs against a statement in the window


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which score on, in log odds, the verifier may do what it may."""

    sure: float = 3.0  # lets through what only its wording sets apart: 99 of 100 unsupported sentences score less
    likely: float = 0.0  # lets the book speak sooner: 9 of 10 unsupported sentences score less


class Scored(Protocol):
    """What an encoder says of a pair."""

    @property
    def logit(self) -> float:
        """How likely the second text bears out the first, as log odds."""
        ...


class Encoder(Protocol):
    """Scores pairs of a claim and a text; may block."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Scored]:
        """The scores in the order of the pairs."""
        ...


class Verifier:
    """Judges by rules first, and asks the trained encoder where they leave something open. Blocks while it does."""

    def __init__(self, encoder: Encoder, rules: Judge | None = None, thresholds: Thresholds | None = None) -> None:
        self._encoder = encoder
        self._rules: Judge = rules or Rules()
        self._least = thresholds or Thresholds()

    def judge(self, claim: str, passages: Sequence[Passage]) -> Verdict:
        """Find the evidence for a claim, looking at the passages in the order given."""
        verdict = self._rules.judge(claim, passages)
        if verdict.supported:
            return verdict
        said = unframed(claim)
        words = tokens(said)
        if len(words) > MOST_WORDS or (closest := _closest(words, passages)) is None:
            return verdict
        passage, statement, before = closest
        known = frozenset(key for one in passages for key in vocabulary(one.text, one.context))
        alike = is_alike(words, statement, known)
        if not alike and nearest(claim, passages, ()) is not None:
            return verdict  # the book's own sentence takes its place, whatever the verifier says
        score = self._score(said, window(words, passage))
        if not alike or score < self._least.sure:
            return Verdict(why=verdict.why, likely=score >= self._least.likely)
        pointed = points_back(words) and before is not None and not statement.first
        antecedent = (before.start, before.end) if pointed and before else None
        return Verdict((Evidence(passage, statement.start, statement.end, antecedent),))

    def _score(self, claim: str, text: str) -> float:
        return self._encoder.score([(claim, text)])[0].logit


def _closest(claim: Sequence[Token], passages: Sequence[Passage]) -> tuple[Passage, Statement, Statement | None] | None:
    """The statement that has the most of a claim's words, with the one before it; None where none has enough."""
    best, found = LIKELY_NEAR, None
    for passage in passages:
        for statement, before in usable(passage):
            share = words_shared(claim, statement) if statement.form in ("sentence", "item") else 0.0
            if share > best or (share == best and found is None):
                best, found = share, (passage, statement, before)
    return found


def window(claim: Sequence[Token], passage: Passage) -> str:
    """The statements of a passage nearest to a claim with their neighbours, in their order: about 120 words."""
    spans = list(dict.fromkeys((statement.start, statement.end) for statement, _ in usable(passage)))
    texts = [" ".join(passage.text[start:end].split()) for start, end in spans]
    lengths = [len(text.split()) for text in texts]
    if sum(lengths) <= WINDOW:
        return " ".join(texts)
    keys: dict[tuple[int, int], set[str]] = {span: set() for span in spans}
    for statement, _ in usable(passage):
        keys[statement.start, statement.end].update(statement.places)
    spread = Counter(key for one in keys.values() for key in one)
    wanted = {key for token in claim if token.content for key in token.keys}
    weights = [sum(spread[key] ** -0.5 for key in wanted & keys[span]) for span in spans]
    kept: set[int] = set()
    room = WINDOW
    for best in sorted(range(len(spans)), key=lambda at: -weights[at] / (1 + _LENGTH * lengths[at])):
        for at in (best, best - 1, best + 1):
            if 0 <= at < len(spans) and at not in kept and lengths[at] <= room:
                kept.add(at)
                room -= lengths[at]
        if room < _ENOUGH:
            break
    return " ".join(texts[at] for at in sorted(kept)) or " ".join(max(texts, key=len).split()[:WINDOW])
