"""Makes statements in which one exact detail is replaced by an invented one that occurs nowhere in the issued passages.

Some inventions resemble nothing in the book. Others are close to it: short numbers, and prefixes of its numbers,
identifiers and flags.
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import Final

# Excludes the writer's own numbering: "1. …", "Option 2".
_NUMBER = re.compile(r"(?<!^)(?<!^\*\*)(?<!option )(?<!step )(?<![\w.`/-])\d+(?:\.\d+)?(?![\w`/-]|\.\d)", re.IGNORECASE)
_VERSION = re.compile(r"\bv?\d+\.\d+\.\d+\b")
_CODE = re.compile(r"`([A-Za-z_][\w.]*)`")
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_PATH = re.compile(r"(?<![\w/.:])/?(?:[\w.-]+/){1,}[\w.-]+")
_URL = re.compile(r"https?://[^\s)>`]+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b")

_SYLLABLES: Final = ("zor", "vel", "quim", "bax", "tulo", "fren", "yond", "wick", "ghar", "plon")
_WORDS: Final = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def _word(rng: random.Random) -> str:
    return "".join(rng.sample(_SYLLABLES, 2))


_KINDS: Final[dict[str, tuple[re.Pattern[str], Callable[[random.Random], str]]]] = {
    "number": (_NUMBER, lambda rng: str(rng.randint(7_301, 98_765))),
    "version": (_VERSION, lambda rng: f"{rng.randint(31, 99)}.{rng.randint(41, 99)}.{rng.randint(51, 99)}"),
    "identifier": (_CODE, lambda rng: f"`{_word(rng)}_{_word(rng)}`"),
    "flag": (_FLAG, lambda rng: f"--{_word(rng)}-{_word(rng)}"),
    "path": (_PATH, lambda rng: f"/opt/{_word(rng)}/{_word(rng)}.conf"),
    "url": (_URL, lambda rng: f"https://{_word(rng)}.example/{_word(rng)}"),
    "name": (_NAME, lambda rng: _word(rng).capitalize()),
}


def inventions(text: str, issued: str) -> Iterator[tuple[str, str]]:
    """One invented version of the statement for each kind of detail that it contains, as (kind, text)."""
    rng = random.Random(text)
    for kind, (pattern, invented) in _KINDS.items():
        if found := list(pattern.finditer(text)):
            place = rng.choice(found)
            yield kind, text[: place.start()] + invented(rng) + text[place.end() :]
    yield from _near(text, issued, rng)


def _near(text: str, issued: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Return versions with a detail that is close to one of the book but occurs nowhere in it."""
    if found := list(_NUMBER.finditer(text)):
        place = rng.choice(found)
        short = [str(number) for number in rng.sample(range(2, 100), 98)]
        begun = [place[0][:end] for end in range(1, len(place[0])) if place[0][end - 1] != "."]
        for kind, numbers in (("short number", short), ("beginning of a number", begun)):
            if number := next((one for one in numbers if not _has_number(issued, one)), ""):
                yield kind, text[: place.start()] + number + text[place.end() :]
    for kind, pattern, group in (("beginning of an identifier", _CODE, 1), ("beginning of a flag", _FLAG, 0)):
        if found := list(pattern.finditer(text)):
            place = rng.choice(found)
            begun = [place[group][:end] for end in range(len(place[group]) - 1, 2, -1)]
            if cut := next((one for one in begun if one[-1].isalnum() and not _has_token(issued, one)), ""):
                yield kind, text[: place.start(group)] + cut + text[place.end(group) :]


def _has_number(issued: str, number: str) -> bool:
    """Whether a text contains a number, as digits not next to other digits or as a word."""
    in_words = int(float(number)) < len(_WORDS) and re.search(rf"\b{_WORDS[int(float(number))]}\b", issued.lower())
    return bool(in_words) or re.search(rf"(?<![\d.,])0*{re.escape(number)}(?:\.0+)?(?!\d|[.,]\d)", issued) is not None


def _has_token(issued: str, token: str) -> bool:
    """Whether a text contains a whole word, identifier or flag, ignoring case, or possibly one of its inflections."""
    bare = token.lower().strip("-_.")
    ends = r"(?:s|es|d|ed|ing|e|ly)?(?![\w-])"
    return re.search(rf"(?<![a-z]){re.escape(bare)}{ends}", re.sub(r"[._]", " ", issued.lower())) is not None
