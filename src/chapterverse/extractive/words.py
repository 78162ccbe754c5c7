"""Words as the picker compares them: lower case, without endings, and told apart into empty, plain and particular ones.

Owns the comparing of words. Never looks at more than one text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# A word, with what may hold it together inside: ROS_DOMAIN_ID, 60204-1, 9.81, C++, isaac_ros.launch.
_WORD = re.compile(r"[^\W_](?:[\w.\-/'’:]*[\w+#])?")
_PARTS = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBER = re.compile(r"[\d][\d.,:/-]*")


def _list(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that carry no topic: grammar, asking, and verbs so general that they fit every sentence.
EMPTY: Final = _list(
    """
    a about above after again all also although always am an and another any anybody anyone anything are around as at
    away back be became because become becomes been before being below between both but by call called came can cannot
    come comes could did do does doing done down during each either else etc ever every everything explain few for
    from full gave get gets give given gives go goes going gone good got had happen happened happens has have having he
    her here hers him his how i if in instead into is it its itself just kind know known less let like lot make
    makes making many may me mean means meant might mine more most much must my name named names near need needed
    needs never no nobody not nothing of off often on once one ones only onto or other others our ours out over own per
    please possible put really right said same saw say says see seem seems seen several shall she should show shown so
    some someone something sort still such take taken takes tell than that the their theirs them themselves then
    there these they thing things this those though through thus to together too toward towards under until up upon us
    use used uses using versus very via vs want was way ways we well went were what whatever when where whether which
    while who whom whose why will with within without work works would yes yet you your yours
    """
)

# Words that say what is to be told of the topic rather than what the topic is; an answer seldom repeats them.
RELATIONS: Final = _list(
    """
    advantage average author benefit category cause common comparison concept consequence considered define definition
    describe description detail difference different effect end example explain explanation feature first function
    goal help idea importance important information instance issue main major meaning method number origin overview
    part point problem process property purpose reason role saying set stand term topic type unique usage widely word
    """
)

_COUNTS: Final = _list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion "
    "half third quarter dozen once twice thrice double triple first second single couple both"
)
_IRREGULAR: Final = {
    word: base
    for base, words in {
        "begin": "began begun", "break": "broke broken", "build": "built", "buy": "bought", "choose": "chose chosen",
        "draw": "drew drawn", "drive": "drove driven", "find": "found discover discovers discovered discovery",
        "fly": "flew flown", "hold": "held",
        "keep": "kept", "lead": "led", "leave": "left", "lose": "lost", "make": "made", "meet": "met", "run": "ran",
        "sell": "sold", "send": "sent", "speak": "spoke spoken", "spend": "spent", "stand": "stood", "teach": "taught",
        "think": "thought", "win": "won", "write": "wrote written", "grow": "grew grown", "fall": "fell fallen",
        "rise": "rose risen", "bring": "brought", "catch": "caught", "die": "died death dead dying",
        "person": "people", "child": "children", "man": "men", "woman": "women", "axis": "axes",
    }.items()
    for word in words.split()
}  # fmt: skip
# Longest first.
_ENDINGS: Final = sorted(
    _list(
        "izations isations ization isation ations ation ators ator ities ity ments ment nesses ness ances ance ences "
        "ence ically ical ially ings ing edly ed ers er ors or ions ion ively ive ables able ibly ible ously "
        "ous ly es e s"
    ),
    key=lambda ending: (-len(ending), ending),
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, `text[start:end]`."""

    raw: str
    stem: str
    start: int
    end: int
    particular: bool  # a name, an identifier or a number
    pieces: frozenset[str]  # stems of what a compound consists of

    @property
    def is_number(self) -> bool:
        """Digits, or a number in letters."""
        return says_number(self.raw)


def words(text: str) -> list[Word]:
    """All words of a text that are not empty, compounds taken apart as well."""
    return list(_scan(text))


def topic_words(text: str) -> list[Word]:
    """The words of a question that say what it is about."""
    return [word for word in _scan(text) if word.raw.lower() not in RELATIONS]


def stems(text: str) -> frozenset[str]:
    """The stems of a text, of its empty words too."""
    return frozenset().union(*(_stems_of_word(found[0]) for found in _WORD.finditer(text)))


@lru_cache(maxsize=16_384)
def _stems_of_word(raw: str) -> tuple[str, ...]:
    return tuple(stem(part) for part in (raw, *_pieces(raw)))


def says_number(raw: str) -> bool:
    """Whether a word is a number, in digits or in letters."""
    return raw[:1].isdigit() or raw.lower() in _COUNTS


@lru_cache(maxsize=16_384)
def stem(raw: str) -> str:
    """What the forms of a word have in common. Crude on purpose: it only has to be the same on both sides."""
    word = raw.lower().replace("’", "'").removesuffix("'s").rstrip(".'-/:")
    word = _IRREGULAR.get(word, word)
    if not word.isalpha() or len(word) < 4:
        return word.replace(",", "") if _NUMBER.fullmatch(word) else word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return word[:-2]
    for ending in _ENDINGS:
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and any(letter in "aeiouy" for letter in root):
            word = root
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def _scan(text: str) -> Iterator[Word]:
    begins = True  # a capital says nothing at the head of a sentence
    last = 0
    for found in _WORD.finditer(text):
        raw = found[0]
        begins = begins or any(mark in text[last : found.start()] for mark in ".!?:|\n")
        if raw.lower() not in EMPTY or (len(raw) > 1 and raw.isupper()):
            pieces = frozenset(stem(piece) for piece in _pieces(raw))
            yield Word(raw, stem(raw), found.start(), found.end(), _is_particular(raw, begins), pieces)
        begins, last = False, found.end()


def _is_particular(raw: str, begins: bool) -> bool:
    if any(character.isdigit() or character == "_" for character in raw):
        return True
    letters = raw[1:]
    return any(letter.isupper() for letter in letters) or (raw[0].isupper() and not begins)


def _pieces(raw: str) -> list[str]:
    """The words inside a compound: ROS_DOMAIN_ID, FixedUpdate, best-effort."""
    whole = raw.replace("’", "'").removesuffix("'s")
    pieces = [part for run in _PARTS.findall(whole) for part in _CAMEL.split(run)]
    return pieces if len(pieces) > 1 else []
