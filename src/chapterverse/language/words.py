"""Words of a text, stop words and stems, for comparing texts by their words."""

import re
from functools import lru_cache
from typing import Final

import snowballstemmer

# A word with the characters that may join its parts: ROS_DOMAIN_ID, 60204-1, 9.81, C++, isaac_ros.launch.
_WORD = re.compile(r"[^\W_](?:[\w.\-/'’:]*[\w+#])?")
_PARTS = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STEMMER: Final = snowballstemmer.stemmer("english")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# Words that carry no topic: grammar, asking, and verbs so general that they fit every sentence.
EMPTY_WORDS: Final = word_set(
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


def content_words(text: str) -> list[str]:
    """Return the words of a text without stop words. An abbreviation in capitals ("IT", "US") is not a stop word."""
    words: list[str] = _WORD.findall(text)
    return [word for word in words if word.lower() not in EMPTY_WORDS or (len(word) > 1 and word.isupper())]


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words and of their parts."""
    return frozenset(stem for word in content_words(text) for stem in _stems_of(word))


def stem(word: str) -> str:
    """Return the stem that all forms of a word have in common."""
    return _stems_of(word)[0]


@lru_cache(maxsize=32_768)
def _stems_of(raw: str) -> tuple[str, ...]:
    """Return the stem of a word and those of its parts: ROS_DOMAIN_ID, FixedUpdate, best-effort."""
    whole = raw.replace("’", "'").removesuffix("'s").rstrip(".'-/:")
    pieces = [part for run in _PARTS.findall(whole) for part in _CAMEL.split(run)]
    return tuple(_STEMMER.stemWord(part.lower()) for part in (whole, *(pieces if len(pieces) > 1 else ())))
