"""The title of a conversation: its first question that asks something."""

import re
from collections.abc import Sequence
from typing import Final

EXCHANGES: Final = 5  # a topic is named once there are so many
MAX_CHARS: Final = 200  # of a topic (SPEC 6)

_LEAST_WORDS: Final = 3  # "hello", "ok thanks" and "tell me" are no title
_WORD = re.compile(r"\w+")
_BLANKS = re.compile(r"\s+")


def topic_of(questions: Sequence[str]) -> str:
    """The first question of some length, else the longest; one line of at most 200 characters."""
    told = [_BLANKS.sub(" ", question).strip() for question in questions]
    asked = next((question for question in told if len(_WORD.findall(question)) >= _LEAST_WORDS), None)
    return shorten(asked or max(told, key=len, default=""))


def shorten(text: str, most: int = MAX_CHARS) -> str:
    """A text within a limit, cut at the end of a word."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
