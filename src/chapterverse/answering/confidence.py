"""The confidence of an answer: one number, and the same number in words (SPEC 5).

It comes from logistic curves. Without a language model they also decide whether to answer, from what the section reader
says (`keyless.json`, made by `bench/keyless/fit.py`). A model's answer is weighed by what became of its statements
(`model.json`, made by `bench/answers/fit.py`). Each file names what it was fitted on."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from chapterverse.answering.scope import Book, Scope, Selection
from chapterverse.evidence.gate import Counts
from chapterverse.language import content_words, stems
from chapterverse.models import ConfidenceLevel
from chapterverse.units import units_of_text

DISCLAIMER: Final = "The book says little about this. Check the passages behind the answer."

COVERED_LEAST: Final = -4.5  # logit that answers from a selection one unit of which has every word of the question
KEYLESS: Final = Path(__file__).with_name("keyless.json")
MODEL: Final = Path(__file__).with_name("model.json")
_BANDS: Final[tuple[tuple[float, ConfidenceLevel], ...]] = ((0.8, "high"), (0.6, "medium"))


@dataclass(frozen=True, slots=True)
class ModelSigns:
    """What became of a model's statements, as the curve takes it."""

    proven: float  # share of the statements that were shown, as written or replaced
    covered: float  # share of the question's words that the quotes or their places have
    replaced: float  # share of what was shown that was replaced
    verbatim: bool = False  # only the book's own words were shown

    @classmethod
    def of(cls, question: str, quotes: Iterable[str], counts: Counts) -> "ModelSigns":
        """The signs of an answer that shows something. The quotes come with their places in the book."""
        asked = stems(question)
        covered = len(asked & stems(" ".join(quotes))) / len(asked) if asked else 0.5
        proven = counts.shown / (counts.shown + counts.withheld)
        return cls(proven, covered, counts.replaced / counts.shown, counts.quoted == counts.shown)


def model_confidence(signs: ModelSigns) -> float:
    """That a model's answer is right and complete. A verbatim answer to the question is never called low."""
    least = _BANDS[-1][0] if signs.verbatim and signs.covered >= 0.5 else 0.01  # 0 is for a refusal
    return round(max(least, probability(fitted(MODEL), signs)), 4)


def level_of(value: float) -> ConfidenceLevel:
    """A confidence in words; a refusal has none."""
    if value <= 0.0:
        return "insufficient"
    return next((level for least, level in _BANDS if value >= least), "low")


@dataclass(frozen=True, slots=True)
class ReaderSigns:
    """What the section reader and the search say of a question, as the curves take it."""

    answers: float  # score of the best passage, a logit
    lead: float  # how far it lies before the next one, in logits
    missing: float  # words of the question that stand nowhere in the book
    follow_up: float = 0.0  # 1 if the question was read with the turns before it
    covered: bool = False  # one unit of the selection has all words of the question

    @classmethod
    def of(cls, scope: Scope, question: str) -> "ReaderSigns":
        """The signs of what was read; of nothing, those of a hopeless question."""
        if not scope.readings:
            return cls(-9.0, 0.0, 0.0)
        best, *others = scope.readings
        if isinstance(scope, Selection):
            asked, text = stems(question), scope.text
            covered = any(asked <= stems(text[unit.start : unit.end]) for unit in units_of_text(text))
            return cls(best.answers, 0.0, 0.0, covered=bool(asked) and covered)
        lead = best.score - others[0].score if others else 3.0
        return cls(best.score, min(3.0, lead), float(min(2, len(scope.missing))), float(scope.follow_up))


def probability(curve: Mapping[str, Any], signs: ReaderSigns | ModelSigns) -> float:
    """What a fitted curve says."""
    logit = curve["bias"] + sum(weight * getattr(signs, name) for name, weight in curve["weights"].items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def answers(scope: Scope, question: str, false_answers: float | None = None) -> bool:
    """Whether what was read is good enough to answer. `false_answers` is the share of questions without an answer in
    the book that the owner lets be answered; None for the usual one."""
    if isinstance(scope, Book) and not scope.follow_up and _unknown(content_words(question), scope.missing):
        return False
    signs = ReaderSigns.of(scope, question)
    if signs.covered:
        return signs.answers >= COVERED_LEAST
    if isinstance(scope, Selection):
        curve = fitted()["selection"]
        return probability(curve, signs) >= float(curve["threshold"])
    return probability(fitted()["answerable"], signs) >= threshold(false_answers)[0]


def _unknown(words: Sequence[str], missing: Sequence[str]) -> bool:
    """Whether a question has no word that the book has, such as "hello". Of a compound word, or one of a script without
    spaces, parts may be in the book; and a question of small words alone may ask for one of them ("what does else
    do?")."""
    return bool(words) and all(word in missing and word.isascii() and word.isalnum() for word in words)


def threshold(false_answers: float | None = None) -> tuple[float, float]:
    """The least probability that is answered, and the share of answerable questions that it refuses."""
    fit = fitted()["answerable"]
    rows: list[list[float]] = fit["rates"]  # threshold, share of false answers, share of false refusals
    wanted = fit["false_answers"] if false_answers is None else false_answers
    held = [row for row in rows if row[1] <= wanted] or rows[-1:]
    least = min(held, key=lambda row: row[0])
    return least[0], least[2]


def reader_confidence(scope: Scope, question: str) -> float:
    """That an excerpt is what the reader needs. It is the book's own words, so it is never called low."""
    curve = fitted()["right" if isinstance(scope, Book) else "selection"]
    return round(max(_BANDS[-1][0], probability(curve, ReaderSigns.of(scope, question))), 4)


@cache
def fitted(path: Path = KEYLESS) -> Mapping[str, Any]:
    """The curves of a file as they were fitted."""
    curves: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return curves
