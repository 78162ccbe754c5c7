"""What a conversation is about, in a few words, without a model.

Owns the choice of words alone. Never reads or stores a conversation.
"""

import re
from collections import Counter
from collections.abc import Sequence

EXCHANGES = 5  # a topic is named once there are so many
MAX_CHARS = 200  # of a topic (SPEC 6)

_WORDS = 6  # that are named beside the first question
_WORD = re.compile(r"[^\W_][\w.+#/-]*[^\W_]|[^\W_]")
# Words of asking, and words that bind others: they tell nothing about the topic.
_EMPTY = frozenset(
    _WORD.findall("""
    a about after again all also always an and any are as ask at be because been before being between book both
    but by can chapter could detail did difference different do does doing example examples explain few find
    first for from get give go had has have help here how i if in into is it its just know last let like long
    made make many may me mean means might more most much must my need next no not now of on one only or other
    our out over part please same say section should show so some such take tell than thank thanks that the
    their them then there these they thing things this those through to too under until up us use used uses
    using very want was way we well were what when where which while who whose why will with work works would
    yes you your
    """)
)


def topic_of(questions: Sequence[str]) -> str:
    """The first question, and the words that recur in the others; at most 200 characters."""
    told = [question for question in questions if _content_words(question)]
    if not told:
        return _cut(" ".join(questions[:1]))
    first = " ".join(told[0].split())
    seen = {word.casefold() for word in _content_words(first)}
    # A word counts once per question; among equals the earlier one comes first, as Counter keeps their order.
    spelling: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for question in told[1:]:
        words = {word.casefold(): word for word in _content_words(question)}
        counts.update(key for key in words if key not in seen)
        spelling = words | spelling
    more = [spelling[key] for key, _ in counts.most_common(_WORDS)]
    return _cut(f"{first} ({', '.join(more)})") if more else _cut(first)


def _content_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word.casefold() not in _EMPTY]


def _cut(text: str) -> str:
    """Within the limit, at the end of a word."""
    if len(text) <= MAX_CHARS:
        return text
    return text[: MAX_CHARS - 1].rsplit(" ", 1)[0] + "…"
