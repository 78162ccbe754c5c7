"""Statements with one exact thing replaced by an invented one that stands nowhere in what was issued."""

import random
import re
from collections.abc import Callable, Iterator
from typing import Final

_NUMBER = re.compile(r"(?<![\w.`/-])\d+(?:\.\d+)?(?![\w`/-]|\.\d)")
_VERSION = re.compile(r"\bv?\d+\.\d+\.\d+\b")
_CODE = re.compile(r"`([A-Za-z_][\w.]*)`")
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_PATH = re.compile(r"(?<![\w/.:])/?(?:[\w.-]+/){1,}[\w.-]+")
_URL = re.compile(r"https?://[^\s)>`]+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b")

_SYLLABLES: Final = ("zor", "vel", "quim", "bax", "tulo", "fren", "yond", "wick", "ghar", "plon")


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


def inventions(text: str) -> Iterator[tuple[str, str]]:
    """One invented version of each kind that the statement has: what, and the text."""
    rng = random.Random(text)
    for kind, (pattern, invented) in _KINDS.items():
        found = list(pattern.finditer(text))
        if found:
            place = rng.choice(found)
            yield kind, text[: place.start()] + invented(rng) + text[place.end() :]
