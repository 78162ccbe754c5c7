"""How a refusal is known in a model's text.

Owns the recognition alone: the sentences are in `chapterverse.refusals`. Never decides whether to refuse.
"""

import re

from chapterverse.refusals import NOT_FOUND, NOT_IN_BOOK, not_in_selection

_SELECTION = not_in_selection("{topic}")
_TOPIC = r".{1,300}?"


def _pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("{topic}"), _TOPIC).replace("'", "['’]").replace(r"\ ", r"\s+")


_WHOLE = re.compile("|".join(map(_pattern, (NOT_FOUND, NOT_IN_BOOK, _SELECTION))), re.IGNORECASE | re.DOTALL)
_SENTENCES = re.compile(
    "|".join(map(_pattern, (NOT_FOUND, NOT_IN_BOOK, *re.split(r"(?<=\.) ", _SELECTION)))), re.IGNORECASE | re.DOTALL
)


def is_refusal(text: str) -> bool:
    """Whether a text is one of the refusals and nothing else."""
    return _WHOLE.fullmatch(text.strip()) is not None


def refuses(sentence: str) -> bool:
    """Whether a sentence is one of a refusal's."""
    return _SENTENCES.fullmatch(sentence.strip()) is not None
