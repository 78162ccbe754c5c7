"""What a question asks for: its topic words, and the kind of answer that would satisfy it.

Owns the reading of questions. Never sees a passage.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from chapterverse.extractive.words import Word, stem, stems, words

Kind = Literal["number", "person", "time", "place", "reason", "manner", "definition", "yes_no", "choice", "topic"]

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
    (_TIME, "time"),
    (_YES_NO, "yes_no"),
    (_ASKED, "choice"),
)

# What an answer may name instead of the adjective that was asked for.
_MEASURES: Final = {
    "long": "length duration second minute hour day year month week m metre meter km ms s",
    "far": "distance range m km metre meter mile moves travel",
    "heavy": "mass weight weigh kg g ton pound",
    "fast": "speed velocity rate m/s hz second",
    "quick": "speed latency rate ms second",
    "slow": "speed rate latency second",
    "often": "rate frequency hz time every second minute hour day week",
    "old": "age year",
    "big": "size dimension area volume byte gb mb",
    "large": "size dimension area volume byte gb mb",
    "small": "size dimension",
    "tall": "height m metre meter feet",
    "high": "height level m metre meter feet",
    "deep": "depth m metre meter feet",
    "wide": "width m metre meter feet",
    "thick": "thickness mm",
    "hot": "temperature degree",
    "cold": "temperature degree",
    "close": "distance m metre meter",
    "strong": "strength force power",
    "expensive": "price cost fee dollar euro usd eur free",
    "accurate": "accuracy error percent %",
    "frequent": "rate frequency hz",
}
_PRICE = re.compile(r"\b(?:costs?|price|pay|charged?|worth)\b", re.IGNORECASE)
_NO_NOUN = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|may|must|of|to|in|times?)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart."""

    text: str
    kind: Kind
    words: tuple[Word, ...]  # of all its sentences
    asked: tuple[Word, ...]  # of the sentence that asks
    unit: str | None  # stem of what is counted: "how many hours"
    measure: str | None  # stem of the measure asked for: "how heavy"
    also: frozenset[str]  # stems of which an answer may use one instead: "mass", "kg"
    noun: str | None  # stem of the kind of thing asked for: "which company"
    defined: str | None  # what a definition is asked of
    attribute: str | None  # stem of what is asked of a thing: "the step of Gazebo"

    @property
    def numbers(self) -> frozenset[str]:
        """The numbers that it names itself."""
        return frozenset(word.stem for word in self.words if word.is_number)


def understand(text: str) -> Question:
    """Take a question apart."""
    asking = _asking(text)
    kind, unit = _kind(asking)
    measure, also = _measure(asking)
    definition = _DEFINITION.match(asking)
    defined = next(filter(None, definition.groups()), None) if definition else None
    if defined and kind in ("topic", "choice"):
        kind = "definition"
    named = _ASKED.search(asking)
    attribute = _ATTRIBUTE.match(asking)
    found = tuple(words(text))
    start = text.find(asking)
    asked = tuple(word for word in found if start <= word.start < start + len(asking)) if start >= 0 else found
    return Question(
        text=text,
        kind=kind,
        words=found,
        asked=asked,
        unit=unit,
        measure=measure,
        also=also,
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


def _measure(asking: str) -> tuple[str | None, frozenset[str]]:
    """What is measured, and the words that an answer may use for it."""
    much = _HOW_MUCH.search(asking)
    if much is None:
        return None, frozenset()
    if much["measure"].lower() == "much" and (price := _PRICE.search(asking)):
        return stem(price[0]), stems(_MEASURES["expensive"])
    measure = much["measure"].lower().removesuffix("ly")
    return (stem(measure), stems(_MEASURES[measure])) if measure in _MEASURES else (None, frozenset())


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
        return "number", stem(quantity["noun"])
    for pattern, kind in _OTHER_KINDS:
        if pattern.search(asking):
            return kind, None
    return "topic", None
