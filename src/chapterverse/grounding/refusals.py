"""The three refusals, word for word as the specification has them, and how to know one in a model's text.

Owns the texts. Never decides whether to refuse.
"""

import re

NOTHING_FOUND = "I couldn't find relevant information in the documentation for your question."
NOT_IN_BOOK = "I don't have information about that in the available documentation."
_SELECTION = (
    "The provided selection does not contain information about {topic}. "
    "Would you like me to search the full documentation?"
)
_TOPIC = r".{1,300}?"


def not_in_selection(topic: str) -> str:
    """The refusal of a question that the selection does not answer."""
    return _SELECTION.format(topic=topic)


def _pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("{topic}"), _TOPIC).replace("'", "['’]").replace(r"\ ", r"\s+")


_WHOLE = re.compile("|".join(map(_pattern, (NOTHING_FOUND, NOT_IN_BOOK, _SELECTION))), re.IGNORECASE | re.DOTALL)
_SENTENCES = re.compile(
    "|".join(map(_pattern, (NOTHING_FOUND, NOT_IN_BOOK, *re.split(r"(?<=\.) ", _SELECTION)))), re.IGNORECASE | re.DOTALL
)


def is_refusal(text: str) -> bool:
    """Whether a text is one of the refusals and nothing else."""
    return _WHOLE.fullmatch(text.strip()) is not None


def refuses(sentence: str) -> bool:
    """Whether a sentence is one of a refusal's."""
    return _SENTENCES.fullmatch(sentence.strip()) is not None
