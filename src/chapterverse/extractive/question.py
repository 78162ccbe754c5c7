"""What a question asks for: its topic words, and the kind of answer that would satisfy it.

Owns the reading of questions. Never sees a passage.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from chapterverse.extractive.words import EMPTY, Word, stem, words

Kind = Literal["number", "person", "time", "place", "reason", "manner", "definition", "yes_no", "choice", "topic"]

BRIEF: Final = 2  # words with a meaning of their own

_SENTENCE = re.compile(r"[^.?!]+(?:[.?!]+(?!\s|$)[^.?!]*)*[.?!]*")
_LEAD = re.compile(r"^(?:and|but|so|then|also|well|ok|okay|hi|hello|please)\b[\s,]*", re.IGNORECASE)
_HOW_MUCH = re.compile(
    r"\bhow (?P<measure>many|much|long|far|heavy|fast|quick(?:ly)?|slow(?:ly)?|often|old|big|large|small|tall|high|"
    r"deep|wide|thick|hot|cold|close|strong|expensive|accurate(?:ly)?|frequent(?:ly)?)\b(?: (?P<noun>[\w-]+))?",
    re.IGNORECASE,
)
_QUANTITY = re.compile(
    r"\b(?:what|which)(?:'s| is| was| are| were)?(?: the)?(?: [\w-]+){0,3}? "
    r"(?P<noun>percentage|number|amount|quantity|year|date|version|versions|port|rate|price|cost|size|length|width|"
    r"height|depth|weight|mass|speed|frequency|distance|duration|age|population|temperature|resolution|score)\b",
    re.IGNORECASE,
)
_WEIGHS = re.compile(r"^what (?:does|do|did|would) .*\b(?:weigh|cost)\b", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:what|which|whose)\s+(?P<noun>(?!(?:is|are|was|were|do|does|did|can|has|have|kind|type|sort)\b)[\w-]+)",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^(?:what(?:'s|’s| is| are| was| were) (?:an? |the )?(?P<is>[^?]{1,60}?)|"
    r"what (?:does|do) (?P<mean>[^?]{1,60}?) (?:mean|stand for)|define (?P<define>.{1,60}))\??$",
    re.IGNORECASE,
)
# "the physics step of Gazebo": who knows nothing of the step has no answer.
_ATTRIBUTE = re.compile(r"^what(?:'s|’s| is| are| was| were) the [^?]*?(?P<noun>[\w-]+) of ", re.IGNORECASE)
# The word that asks stands at the head of its sentence or after a comma; elsewhere it only joins clauses.
_ASKS = re.compile(
    r"(?:^(?:(?:and|at|by|for|from|in|into|of|on|since|to|under|until|with) )?|[,:;] (?:and )?)"
    r"(?P<word>why|how come|who|whom|whose|when|where|how|what|which)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"^(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|may|must)(?:n't)? ", re.IGNORECASE
)
_REASON = re.compile(r"^(?:for )?(?:what|which) (?:(?:is|was|are) the )?(?:reason|cause)", re.IGNORECASE)
_TIME = re.compile(r"\b(?:what|which) (?:year|date|day|month|century|decade|time)\b", re.IGNORECASE)
_KINDS: Final[dict[str, Kind]] = {
    "why": "reason",
    "how come": "reason",
    "who": "person",
    "whom": "person",
    "whose": "person",
    "when": "time",
    "where": "place",
    "how": "manner",
}

_OTHER_KINDS: Final[tuple[tuple[re.Pattern[str], Kind], ...]] = (
    (_REASON, "reason"),
    (_WEIGHS, "number"),
    (_TIME, "time"),
    (_YES_NO, "yes_no"),
    (_ASKED, "choice"),
)

# Measures: the adjectives that ask for one after "how", the words that name it, what else tells it beyond doubt, and
# what may tell it as well as another one.
_MEASURES: Final = (
    ("long", "length duration", "", "second minute hour day year month week m metre meter km ms s"),
    ("lasting", "duration", "", "second minute hour day year month week ms s"),
    ("far close", "distance", "", "range m km metre meter mile moves travel"),
    ("heavy", "weigh weight mass", "kg kilogram g gram ton tonne pound lb", ""),
    ("fast quick slow", "speed velocity", "m/s km/s km/h mph", "rate latency hz ms second"),
    ("often frequent", "frequency", "hz daily hourly weekly monthly", "rate time every second minute hour day week"),
    ("old", "age", "aged", "year"),
    ("big large small", "size", "dimension", "area volume byte gb mb"),
    ("tall", "height", "high", ""),
    ("high", "height", "tall above", "level"),
    ("deep", "depth", "below", ""),
    ("wide", "width", "across", ""),
    ("thick", "thickness", "", "mm"),
    ("hot cold", "temperature", "degree celsius fahrenheit", ""),
    ("strong", "strength", "", "force power"),
    ("expensive", "price cost", "fee dollar euro usd eur free", ""),
    ("accurate", "accuracy", "", "error percent"),
)
_BY_ADJECTIVE: Final = {adjective: row for row in _MEASURES for adjective in row[0].split()}
_BY_NAME: Final = {stem(name): row for row in _MEASURES for name in row[1].split()}
_PRICE = re.compile(
    r"\b(?:costs?|price|pay|charged?|worth)\b|\bmuch(?= (?:is|are) (?:it|this|that|they|these|those|one)\b)",
    re.IGNORECASE,
)
_BEING: Final = frozenset({"is", "are", "was", "were", "a", "an", "the"})
_NO_NOUN = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|may|must|of|to|in|times?)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure that is asked for."""

    asked: str  # stem of the word that asks: "heavy"
    told: frozenset[str]  # stems that tell it beyond doubt: "heavy", "mass", "kg"
    also: frozenset[str]  # these, and those that may tell it as well as something else


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart."""

    text: str
    kind: Kind
    words: tuple[Word, ...]  # of all its sentences
    asked: tuple[Word, ...]  # of the sentence that asks
    unit: str | None  # stem of what is counted: "how many hours"
    measure: Measure | None  # what is measured: "how heavy", "the weight"
    noun: str | None  # stem of the kind of thing asked for: "which company"
    defined: str | None  # what a definition is asked of
    attribute: str | None  # stem of what is asked of a thing: "the step of Gazebo"

    @property
    def brief(self) -> bool:
        """Whether it has so few words that each must be there; the trained reader knows longer questions alone."""
        return 0 < len({word.stem for word in self.words}) <= BRIEF

    @property
    def numbers(self) -> frozenset[str]:
        """The numbers that it names itself."""
        return frozenset(word.stem for word in self.words if word.is_number)


@lru_cache(maxsize=256)
def understand(text: str) -> Question:
    """Take a question apart."""
    if text.isupper() and not EMPTY.isdisjoint(text.lower().split()):
        text = text.lower()  # shouted: its capitals name nothing
    asking = _asking(text)
    kind, unit = _kind(asking)
    definition = _DEFINITION.match(asking)
    defined = next(filter(None, definition.groups()), None) if definition else None
    if defined and kind in ("topic", "choice"):
        kind = "definition"
    named = _ASKED.search(asking)
    attribute = _ATTRIBUTE.match(asking)
    start = text.find(asking)
    measure = _measure(asking)
    found = tuple(words(text))
    if measure and not found:  # "How much is it?"
        found = (Word(measure.asked, measure.asked, start, start, particular=False, pieces=frozenset()),)
    asked = tuple(word for word in found if start <= word.start < start + len(asking)) if start >= 0 else found
    return Question(
        text=text,
        kind=kind,
        words=found,
        asked=asked,
        unit=unit,
        measure=measure,
        noun=stem(named["noun"]) if named else None,
        defined=defined,
        attribute=stem(attribute["noun"]) if attribute else None,
    )


def _asking(text: str) -> str:
    """The sentence that asks: the last one with a question mark, else the last one."""
    found = [part.strip() for part in _SENTENCE.findall(text) if part.strip()]
    questions = [part for part in found if part.endswith("?")]
    chosen = (questions or found or [text])[-1]
    return _LEAD.sub("", chosen)


def _measure(asking: str) -> Measure | None:
    """What is measured: asked for by "how" and an adjective, or by its name."""
    much = _HOW_MUCH.search(asking)
    adjective = much["measure"].lower().removesuffix("ly") if much else ""
    if adjective == "much" and (price := _PRICE.search(asking)):
        return _told(price[0].lower(), _BY_ADJECTIVE["expensive"])
    if much and adjective == "long" and (much["noun"] or "is").lower() not in _BEING:
        return _told(adjective, _BY_ADJECTIVE["lasting"])  # "how long does it take"
    if adjective in _BY_ADJECTIVE:
        return _told(adjective, _BY_ADJECTIVE[adjective])
    name = next((word for word in words(asking) if word.stem in _BY_NAME), None)
    if name is None or adjective == "many":
        return None
    adjectives, names, beyond_doubt, _ = _BY_NAME[name.stem]
    return _told(name.raw, ("", f"{adjectives.split()[0]} {names}", beyond_doubt, ""))


def _told(asked: str, row: tuple[str, str, str, str]) -> Measure:
    """A measure with the words that tell it. The other adjectives that ask for it tell something else."""
    told = frozenset(stem(word) for word in f"{asked} {row[1]} {row[2]}".split())
    return Measure(stem(asked), told, told | frozenset(stem(word) for word in row[3].split()))


def _kind(asking: str) -> tuple[Kind, str | None]:
    """The kind of answer, and the stem of what is counted."""
    if much := _HOW_MUCH.search(asking):
        noun = much["noun"] or ""
        if much["measure"].lower() in ("many", "much") and noun and not _NO_NOUN.fullmatch(noun):
            return "number", stem(noun)
        return "number", None
    asks = _ASKS.search(asking)
    if asks and asks["word"].lower() in _KINDS:
        return _KINDS[asks["word"].lower()], None
    quantity = _QUANTITY.search(asking)
    if quantity and not _TIME.search(asking):
        noun = stem(quantity["noun"])
        return "number", None if noun in _BY_NAME else noun
    for pattern, kind in _OTHER_KINDS:
        if pattern.search(asking):
            return kind, None
    return "topic", None
