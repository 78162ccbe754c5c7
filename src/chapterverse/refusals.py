"""What is said when there is no answer, word for word, so that clients can rely on it.

Owns the three sentences of the specification and the naming of a question's topic. Never decides whether to refuse.
"""

import re
from typing import Final

NOT_FOUND: Final = "I couldn't find relevant information in the documentation for your question."
NOT_IN_BOOK: Final = "I don't have information about that in the available documentation."
OFFER: Final = "Would you like me to search the full documentation?"

_LONGEST_TOPIC = 120  # characters: a longer question is cut, the reader knows what was asked

_BLANKS = re.compile(r"\s+")
_GREETING = re.compile(
    r"^(?:(?:hi|hello|hey)\b[\s,!.]*)?(?:please\b[\s,]*)?"
    r"(?:(?:can|could|would|will) you (?:please )?(?=tell|explain|describe|show|define|say)|"
    r"(?:do you know|i(?:'d| would) like to know|i want to know|i wonder)[\s,]+(?:please )?)?",
    re.IGNORECASE,
)
# Requests that name their topic after a fixed beginning.
_ASKS = re.compile(
    r"^(?:(?:please )?(?:tell me(?: more| something)?|say (?:more|something)|talk|explain(?: to me)?|"
    r"describe(?: to me)?|define|show me|summari[sz]e|give me (?:details|information|an overview))"
    r"(?: (?:about|on|of))?|"
    r"(?:what|who|where)(?:'s|’s| is| are| was| were)(?: meant by)?|what about|how about|"
    r"is there (?:anything|something|information) (?:about|on)) (?P<topic>\S.*)$",
    re.IGNORECASE,
)
_MEANS = re.compile(r"^what (?:does|do|did) (?P<topic>\S.*?) (?:mean|stand for)$", re.IGNORECASE)
_HOW_TO = re.compile(r"^how (?:do|can|should|could|would|must) (?:i|we|you|one) (?P<topic>\S.*)$", re.IGNORECASE)
_ASKING = re.compile(
    r"^(?:what|who|whom|whose|where|when|why|how|which|is|are|was|were|do|does|did|can|could|will|would|should|has|have|"
    r"had|may|must|in|at|on|for|by|to|from|into|with)\b",
    re.IGNORECASE,
)


def not_in_selection(topic: str) -> str:
    """The refusal of a selection, with the offer that the next turn may accept."""
    return f"The provided selection does not contain information about {topic}. {OFFER}"


def topic_of_question(question: str) -> str:
    """What a question is about, such that it can follow "information about"."""
    asked = _BLANKS.sub(" ", question).strip().strip("\"'“”„")
    bare = _GREETING.sub("", asked, count=1).rstrip(" ?!.…")
    if not any(character.isalnum() for character in bare):
        return "that"
    if about := _ASKS.match(bare):
        return shorten(about["topic"])
    if means := _MEANS.match(bare):
        return shorten(means["topic"])
    if way := _HOW_TO.match(bare):
        return shorten(f"how to {way['topic']}")
    if asked.endswith("?") or _ASKING.match(bare):
        return f"“{shorten(bare)}?”"
    return shorten(bare)


def shorten(topic: str) -> str:
    """A topic of a length that fits into a sentence."""
    if len(topic) <= _LONGEST_TOPIC:
        return topic
    return topic[:_LONGEST_TOPIC].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
