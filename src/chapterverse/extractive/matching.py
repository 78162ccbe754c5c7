"""How well a sentence fits a question, by words, by meaning and by the kind of answer it could give.

Owns the score of one sentence and what rules it out. Never chooses between sentences.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final

from chapterverse.extractive.candidates import Candidate
from chapterverse.extractive.question import Question
from chapterverse.extractive.words import RELATIONS, Word, says_number, stem, stems, words

# How much a word of the question counts when it stands there, of 1 in the sentence itself.
_BEFORE: Final = 0.7  # in the sentence before it, or the head of its table
_HEADING: Final = 0.5
_ELSEWHERE: Final = 0.25  # in the same passage
_NAME_WEIGHT: Final = 1.5  # names, identifiers and numbers against plain words

_RELATIONS = frozenset(stem(word) for word in RELATIONS)
_HEAD: Final = 5  # letters that words must share to be akin
_SHORT: Final = 3  # a question of so few words stands or falls with each of them

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*|\b[^\W\d_]+\b")
# "the next one" counts nothing.
_SOME_ONE = re.compile(r"\b(?:the|an?|this|that|each|every|another|any|no|which)(?: \w+)? one\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_OFTEN, _EVERY = stem("often"), stem("every")
_DIMENSIONS = stems("deep depth wide width high height tall thick thickness")  # that share their units with others
_LETTERS = re.compile(r"[^\W\d_]+")
_STANDS_FOR = re.compile(r"\bstand for\b", re.IGNORECASE)
_REASON = re.compile(
    r"\b(?:because|since|so that|due to|therefore|thus|hence|reason|caused?s?|leads? to|results? (?:in|from)|owing to|"
    r"in order to|otherwise|which (?:is why|looks|makes|means|gives))\b|, so\b|^If\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"century|decade|year|month|week|day|hour|minute|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
    r"when|while|before|after|until|once|during|as soon as|today|every)s?\b|\bseconds\b",
    re.IGNORECASE,
)
_ASKING = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b|\b(?:century|decade)\b", re.IGNORECASE)
_A_YEAR = stem("year")
_PLACE = re.compile(
    r"\b(?:in|at|on|from|near|inside|under|before|after|above|below|behind|between|within|into|to)\b", re.IGNORECASE
)
_DOING = re.compile(
    r"`|^(?:to|use|set|run|pass|call|add|make|put|give|choose|check|start|open|create|write|install|type|select)\b|"
    r"\b(?:by \w+ing|using|with|through|must|should|can)\b",
    re.IGNORECASE,
)
_THAN = re.compile(r"\b(?:(?P<er>\w+er)|(?:more|less) (?P<more>\w+)|better|worse)\b[^?]*\bthan\b", re.IGNORECASE)
# "when it is not set": only what speaks of an absence can answer that.
_IF_ABSENT = re.compile(
    r"\b(?:when|if|while|where|once)\b[^?,;]*?(?:\b(?:not|no|nobody|nothing|never|without)\b|n['’]t\b)", re.IGNORECASE
)
_ABSENCE = re.compile(
    r"\b(?:not|no|nobody|nothing|none|never|neither|nor|without|cannot|unless|otherwise|default\w*|missing|absent|empty|"
    r"lack\w*|fail\w*|instead|only|un\w+)\b|n['’]t\b",
    re.IGNORECASE,
)
_IS = r"\b(?:is|are|was|were)(?:n['’]t)?"
_IS_A = re.compile(rf"{_IS} .*?\ban? (?P<what>[^?]+?)\s*\?", re.IGNORECASE)
# What may stand between a term and the verb that defines it: an apposition, a remark in brackets, another name.
_DEFINES = (
    r"(?:,[^,]{1,80},)?(?: \([^)]*\))?(?:,? (?:or|also called|short for) [^,]+,)? "
    r"(?:is|are|was|were|means?|refers? to|stands? for|describes?|denotes?)\b"
)


class Terms:
    """The words of a text, to look other words up in."""

    __slots__ = ("_long", "_stems")

    def __init__(self, text: str) -> None:
        self._stems = stems(text)
        self._long = tuple(sorted(term for term in self._stems if len(term) >= _HEAD and term.isalpha()))

    def has(self, word: Word) -> bool:
        """The word itself, all parts of a compound, or, for plain words, one that differs in its last letters."""
        if word.stem in self._stems:
            return True
        if len(word.pieces) > 1 and word.pieces <= self._stems:
            return True
        if word.particular or len(word.stem) < _HEAD:
            return False
        head = word.stem[:_HEAD]
        near = islice(self._long, bisect_left(self._long, head), None)
        return any(_akin(word.stem, term) for term in takewhile(lambda term: term.startswith(head), near))

    def any_of(self, wanted: Iterable[str]) -> bool:
        """Whether one of these stems is there."""
        return not self._stems.isdisjoint(wanted)


@lru_cache(maxsize=4096)
def _terms(text: str) -> Terms:
    """The same sentences come up for many questions, and twice for each: to choose among them and to be sure of it."""
    return Terms(text)


def _akin(one: str, other: str) -> bool:
    """Whether two stems differ only in their last letters: explod and explos, simul and simulat."""
    shared = max(_HEAD, min(len(one), len(other)) - 1)
    return one[:shared] == other[:shared]


@dataclass(frozen=True, slots=True)
class Match:
    """A sentence beside the question."""

    candidate: Candidate
    coverage: float  # 0–1: of the question's words, by weight, and by how near they stand
    fits: float  # 0–1: whether it can be the kind of answer asked for
    barred: bool  # it lacks something without which it cannot be the answer
    doubted: bool  # it lacks something that an answer may say in other words
    whole: bool  # it has every word of the question, itself or in what it points back to
    sure: bool = False  # the question is brief, it is whole, and it has what only an answer has


def compare(question: Question, found: Sequence[Candidate], among: Sequence[Candidate] = ()) -> list[Match]:
    """Sentences beside the question, in their order. How rare a word is counts `among` all that was read, which is
    them if it is not given."""
    asked = tuple({word.stem: word for word in question.words}.values())
    own = [_terms(candidate.text) for candidate in found]
    shown = {candidate.passage.number: candidate.passage for candidate in found}
    passages = {number: _terms(f"{passage.breadcrumb} {passage.text}") for number, passage in shown.items()}
    everything = [_terms(candidate.text) for candidate in among] or own
    weights = {word.stem: _rarity(word, everything) for word in asked}
    above = {heading: _terms(heading) for heading in {candidate.heading for candidate in found}}
    total = sum(weights.values())
    matches: list[Match] = []
    for candidate, terms in zip(found, own, strict=True):
        circles = (
            terms,
            _terms(f"{candidate.lead} {candidate.before}"),
            above[candidate.heading],
            passages[candidate.passage.number],
        )
        levels = {word.stem: _level(word, question, circles) for word in asked}
        match = Match(
            candidate=candidate,
            coverage=sum(weights[word] * level for word, level in levels.items()) / total if total else 0.0,
            fits=_fits(question, candidate),
            barred=_barred(question, candidate, circles, levels),
            doubted=_doubted(question, levels),
            whole=_whole(candidate, levels),
        )
        matches.append(replace(match, sure=_sure(question, match, terms)))
    return matches


def _rarity(word: Word, texts: Sequence[Terms]) -> float:
    holding = sum(text.has(word) for text in texts)
    return math.log(1 + (len(texts) + 0.5) / (holding + 0.5)) * (_NAME_WEIGHT if word.particular else 1.0)


def _level(word: Word, question: Question, circles: Sequence[Terms]) -> float:
    measure = question.measure
    also = measure.also if measure and word.stem == measure.asked else frozenset()
    for terms, level in zip(circles, (1.0, _BEFORE, _HEADING, _ELSEWHERE), strict=True):
        if terms.has(word) or terms.any_of(also):
            return level
    return 0.0


def _barred(question: Question, candidate: Candidate, circles: Sequence[Terms], levels: dict[str, float]) -> bool:
    """A name, an attribute, a counted thing, a comparison or an absence that the question turns on and the sentence
    does not know."""
    near = _HEADING if question.kind in ("number", "time") else _ELSEWHERE
    if any(levels[word.stem] < near for word in question.asked if word.particular):
        return True
    if question.attribute not in _RELATIONS and levels.get(question.attribute or "", 1.0) < _HEADING:
        return True
    compared = _THAN.search(question.text)
    if compared and not _among({stem(compared["er"] or compared["more"] or "better")}, circles[:2]):
        return True
    if _IF_ABSENT.search(question.text) and not _ABSENCE.search(candidate.text):
        return True
    if _STANDS_FOR.search(question.text) and not expands(question.defined or "", candidate.text):
        return True
    return not _could_answer(question, candidate, circles)


def _doubted(question: Question, levels: dict[str, float]) -> bool:
    """A short question of which a word is missing nearby, or a name that is only elsewhere in the passage."""
    if any(levels[word.stem] < _HEADING for word in question.asked if word.particular):
        return True
    return len(levels) <= _SHORT and any(level < _HEADING for word, level in levels.items() if word not in _RELATIONS)


def _whole(candidate: Candidate, levels: dict[str, float]) -> bool:
    """What stands above a sentence is its own only where it points back, or where that announced it."""
    least = _HEADING if candidate.points_back or candidate.lead else 1.0
    return all(level >= least for word, level in levels.items() if word not in _RELATIONS)


def _sure(question: Question, match: Match, own: Terms) -> bool:
    """Whether no reader is needed to see that a sentence answers a brief question: all of its words are there, and so
    is the measure, the count, the reason or the definition that it asks for."""
    if match.barred or match.doubted or not match.whole or not question.brief:
        return False
    measure = question.measure
    if measure and not own.any_of(measure.told):
        return False
    match question.kind:
        case "number":
            return measure is not None or _counted(question, match.candidate.text)
        case "reason" | "definition":
            return match.fits == 1.0
        case "topic":
            return not _ASKING.search(question.text)
        case _:
            return False


def _counted(question: Question, text: str) -> bool:
    """Whether a number stands before what is counted: "two driven wheels"."""
    raws = _NUMBER.findall(text)
    places = [at for at, raw in enumerate(raws) if stem(raw) == question.unit]
    ahead = [raws[max(0, at - 3) : at] for at in places]
    return any(raw in _new_numbers(question, text) for near in ahead if "per" not in near for raw in near)


def _could_answer(question: Question, candidate: Candidate, circles: Sequence[Terms]) -> bool:
    """Whether a sentence holds what every answer of its kind must hold: a number, a time, a name."""
    match question.kind:
        case "number":
            return _counts(question, candidate, circles)
        case "time":
            if question.noun == _A_YEAR:
                return bool(_YEAR.search(candidate.text))
            digits = any(raw[0].isdigit() for raw in _new_numbers(question, candidate.text))
            return digits or bool(_TIME.search(candidate.text))
        case "person":
            return _new_name(question, candidate.text, spoken=True)
        case "place":
            return candidate.is_row or bool(_PLACE.search(candidate.text))
        case _:
            return True


def _counts(question: Question, candidate: Candidate, circles: Sequence[Terms]) -> bool:
    """Whether a sentence holds a number that the question does not, of the thing that it asks about."""
    measure, own = question.measure, circles[0]
    if measure and measure.asked == _OFTEN and own.any_of({_EVERY, *measure.told}):
        return True  # "every night"
    if not _new_numbers(question, candidate.text) or (question.unit and not _among({question.unit}, circles[:3])):
        return False
    if question.brief and _HOW_MANY.search(question.text) and not candidate.is_row:
        return _counted(question, candidate.text)
    if measure is None or own.any_of(measure.told):
        return True
    return _among(measure.also, circles[:2] if candidate.lead else circles[:1]) and not own.any_of(_DIMENSIONS)


def _among(wanted: Iterable[str], circles: Sequence[Terms]) -> bool:
    return any(terms.any_of(wanted) for terms in circles)


def _fits(question: Question, candidate: Candidate) -> float:
    """How well a sentence has the form of an answer: 1 for a form that little else has, 0.5 for a common one."""
    text = candidate.text
    if candidate.is_row and _about(question, text):
        return 1.0
    match question.kind:
        case "definition":
            term = question.defined or ""
            fits = 1.0 * (defines(term, text) or (not term.islower() and expands(term, text)))
        case "reason":
            fits = 1.0 * bool(_REASON.search(text))
        case "manner":
            fits = 0.5 * bool(_DOING.search(text))
        case "place":
            fits = 0.5 * bool(_PLACE.search(text))
        case "choice":
            fits = 0.5 * _new_name(question, text)
        case "yes_no":
            fits = 1.0 * says_whether(question, text)
        case _:
            fits = 0.0
    return fits


def says_whether(question: Question, text: str) -> bool:
    """Whether a sentence says that something is, or is not, what the question asks it to be."""
    asked = _IS_A.match(question.text)
    return bool(asked and re.search(rf"{_IS} (?:not )?an? {re.escape(asked['what'])}\b", text, re.IGNORECASE))


def defines(term: str, text: str) -> bool:
    """Whether a sentence says what a thing is: it begins with it and goes on with "is", "means" or a colon."""
    return bool(re.match(rf"(?:an? |the )?{re.escape(term)}s?(?:: |{_DEFINES})", text, re.IGNORECASE))


def expands(term: str, text: str) -> bool:
    """Whether words of a text, one after another, begin with the letters of an abbreviation."""
    initials = "".join(word[0] for word in _LETTERS.findall(text))
    return len(term) > 1 and term.lower() in initials.lower()


def _about(question: Question, row: str) -> bool:
    """Whether the question names what a row is about."""
    label = words(row.partition(":")[0])
    named = {word.stem for word in question.words} | (question.measure.also if question.measure else frozenset())
    return bool(label) and all(word.stem in named for word in label)


def _new_numbers(question: Question, text: str) -> list[str]:
    counts = _NUMBER.findall(_SOME_ONE.sub(" ", text))
    new = [raw for raw in counts if says_number(raw) and stem(raw) not in question.numbers]
    return new or [raw for raw in counts if question.unit and raw == "several"]


def _new_name(question: Question, text: str, *, spoken: bool = False) -> bool:
    """Whether there is a name that the question does not have; a spoken one is no identifier."""
    known = {word.stem for word in question.words}
    names = (word for word in words(text) if word.particular and not word.is_number and word.stem not in known)
    return any(not spoken or word.raw.replace("-", "").isalpha() for word in names)
