"""The confidence of an answer: one number, and the same number in words (SPEC 5).

It comes from fitted logistic curves. Without a language model, `keyless.json` (made by `bench/keyless/fit.py`) uses the
section reader's scores, also to decide whether to answer. For a model's answer, `model.json` (made by
`bench/answers/fit.py`) uses the results of the gate. Each file names the data it was fitted on."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from chapterverse.answering.scope import Scope, Selection, WholeBook
from chapterverse.evidence.gate import Counts
from chapterverse.language import content_words, stems
from chapterverse.models import ConfidenceLevel
from chapterverse.units import units_of_text

DISCLAIMER: Final = "The book says little about this. Check the passages behind the answer."

COVERED_LEAST: Final = -4.5  # minimum logit to answer from a selection with every word of the question in one unit
KEYLESS: Final = Path(__file__).with_name("keyless.json")
MODEL: Final = Path(__file__).with_name("model.json")
_LETTERS = re.compile(r"[^\W_]{2}|[^\W\d_a-zA-Z]")  # "a" or "??" asks nothing; "S3" may, and one character in Chinese
_BANDS: Final[tuple[tuple[float, ConfidenceLevel], ...]] = ((0.8, "high"), (0.6, "medium"))


@dataclass(frozen=True, slots=True)
class ModelSigns:
    """The features of a model's answer that the curve in `model.json` uses."""

    proven: float  # share of the statements that were shown, as written or replaced
    covered: float  # share of the question's words that occur in the quotes or their breadcrumbs
    replaced: float  # share of the shown statements that were replaced by quotes
    verbatim: bool = False  # only the book's own words were shown

    @classmethod
    def of(cls, question: str, quotes: Iterable[str], counts: Counts) -> "ModelSigns":
        """Compute the features of an answer with at least one shown statement. Each quote includes its breadcrumb."""
        asked = stems(question)
        covered = len(asked & stems(" ".join(quotes))) / len(asked) if asked else 0.5
        proven = counts.shown / (counts.shown + counts.withheld)
        return cls(proven, covered, counts.replaced / counts.shown, counts.quoted == counts.shown)


def model_confidence(signs: ModelSigns) -> float:
    """Return the probability that an answer is right and complete. A verbatim answer that has at least half of the
    question's words is never rated low."""
    least = _BANDS[-1][0] if signs.verbatim and signs.covered >= 0.5 else 0.01  # 0 is for a refusal
    return round(max(least, probability(fitted(MODEL), signs)), 4)


def level_of(value: float) -> ConfidenceLevel:
    """Return a confidence as a level. A refusal has confidence 0 and the level `insufficient`."""
    if value <= 0.0:
        return "insufficient"
    return next((level for least, level in _BANDS if value >= least), "low")


@dataclass(frozen=True, slots=True)
class ReaderSigns:
    """The features of what was found and read that the curves in `keyless.json` use."""

    answers: float  # score of the best passage, a logit
    lead: float  # its lead over the next passage, in logits
    missing: float  # number of the question's words that are not in the book, at most 2
    follow_up: float = 0.0  # 1 if the question was read with the turns before it
    covered: bool = False  # one unit of the selection has all words of the question

    @classmethod
    def of(cls, scope: Scope, question: str) -> "ReaderSigns":
        """Compute the features. If nothing was read, return those of a question without an answer."""
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
    """Return the probability that a fitted curve gives."""
    logit = curve["bias"] + sum(weight * getattr(signs, name) for name, weight in curve["weights"].items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def answers(scope: Scope, question: str, false_answers: float | None = None) -> bool:
    """Whether what was read is good enough to answer. `false_answers` is the share of unanswerable questions that the
    owner allows to be answered; None means the default."""
    if isinstance(scope, WholeBook) and not scope.follow_up and _unknown(question, scope.missing):
        return False
    signs = ReaderSigns.of(scope, question)
    if signs.covered:
        return signs.answers >= COVERED_LEAST
    if isinstance(scope, Selection):
        curve = fitted()["selection"]
        return probability(curve, signs) >= float(curve["threshold"])
    return probability(fitted()["answerable"], signs) >= threshold(false_answers)[0]


def _unknown(question: str, missing: Sequence[str]) -> bool:
    """Whether a question has no word, or no content word that is in the book ("hello").

    False if a content word is a compound or not ASCII, because parts of it may be in the book, and for a question
    without content words, which may ask about a function word ("what does else do?")."""
    words = content_words(question)
    absent = all(word in missing and word.isascii() and word.isalnum() for word in words)
    return _LETTERS.search(question) is None or (bool(words) and absent)


def threshold(false_answers: float | None = None) -> tuple[float, float]:
    """Return the lowest probability that is answered, and the share of answerable questions that it refuses."""
    fit = fitted()["answerable"]
    rows: list[list[float]] = fit["rates"]  # threshold, share of false answers, share of false refusals
    wanted = fit["false_answers"] if false_answers is None else false_answers
    held = [row for row in rows if row[1] <= wanted] or rows[-1:]
    least = min(held, key=lambda row: row[0])
    return least[0], least[2]


def reader_confidence(scope: Scope, question: str) -> float:
    """Return the probability that an excerpt answers. It is the book's own text, so it is never rated low."""
    curve = fitted()["right" if isinstance(scope, WholeBook) else "selection"]
    return round(max(_BANDS[-1][0], probability(curve, ReaderSigns.of(scope, question))), 4)


@cache
def fitted(path: Path = KEYLESS) -> Mapping[str, Any]:
    """Load the fitted curves of a file."""
    curves: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return curves
