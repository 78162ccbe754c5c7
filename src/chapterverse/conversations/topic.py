"""The title of a conversation: its first question that asks something."""

import re
from collections.abc import Sequence
from typing import Final

EXCHANGES: Final = 5  # turns after which a topic is set
MAX_CHARS: Final = 200  # of a topic (SPEC 6)

_LEAST_WORDS: Final = 3  # "hello", "ok thanks" and "tell me" are not titles
_WORD = re.compile(r"\w+")
_BLANKS = re.compile(r"\s+")


def topic_of(questions: Sequence[str]) -> str:
    """Return the first question of at least three words, else the longest; one line of at most 200 characters."""
    titles = [_BLANKS.sub(" ", question).strip() for question in questions]
    title = next((question for question in titles if len(_WORD.findall(question)) >= _LEAST_WORDS), None)
    return shorten(title or max(titles, key=len, default=""))


def shorten(text: str, most: int = MAX_CHARS) -> str:
    """Cut a text at the end of a word, if it is longer than the limit."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
