"""What a question takes over from the conversation.

With a language model, a question that seems to lean on earlier ones is rewritten by it. Without one nothing is
rewritten: the section reader reads candidates of several searches together with the questions before (`reading.py`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from chapterverse.conversations.turns import Turn
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.language import content_words, stems
from chapterverse.models import SearchFilters

EARLIER: Final = 2  # questions that the section reader sees before the new one
MOST_SHOWN: Final = 200  # characters that it sees of the last answer

_ASSENT = re.compile(
    r"\b(?:y|yes|yea|yeah|yep|yup|sure|ok|okay|fine|please|absolutely|definitely|certainly|of course|go ahead|why not|"
    r"do (?:it|that|so)|search)\b",
    re.IGNORECASE,
)
_ASKS_OR_DENIES = re.compile(r"\b(?:what|who|whom|whose|which|where|when|why|how|no|not|never)\b", re.IGNORECASE)
_OFFERED = stems("search the full documentation, the whole book, thanks")  # names what was offered, nothing new
# A word that stands for something said before, or a beginning that goes on from it.
_LEANS = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|she|him|her|his|this|that|these|those|one|ones|other|others|same|else|"
    r"first|second|third|last|former|latter)\b|^\W*(?:and|but|so|or|also|then|what about|how about|why|instead)\b",
    re.IGNORECASE,
)
_DEFINES = re.compile(r"(?:what|who)(?:['’]s| is| are| was| were) \w", re.IGNORECASE)  # "what is Gazebo?" names it
_LONGEST: Final = 60  # words of a follow-up as it is searched for


def accepts(query: str) -> bool:
    """Whether a reader takes up what was offered: a reply that begins with assent and names nothing of its own."""
    reply = query.strip().lower()
    rest = _ASSENT.sub(" ", reply)
    return bool(_ASSENT.match(reply)) and stems(rest) <= _OFFERED and not _ASKS_OR_DENIES.search(rest)


def leans(query: str) -> bool:
    """Whether a question may not stand alone. One too many costs a call of the model, which returns it as it is."""
    names_little = len(content_words(query)) <= 1 and not _DEFINES.match(query)
    return names_little or _LEANS.search(query) is not None


def together(turns: Sequence[Turn], question: str) -> str:
    """A follow-up as it is searched for where no model rewrites it: with the last question as that was searched for."""
    return _within(question, turns[-1].standalone_query or turns[-1].query)


def near(turns: Sequence[Turn], question: str) -> list[str]:
    """A follow-up as it is searched for with the place of the last answer, if that had one."""
    return [_within(question, str(source.get("breadcrumb", ""))) for source in turns[-1].sources[:1]]


def _within(question: str, context: str) -> str:
    return " ".join(f"{question} ({context})".split()[:_LONGEST])[:MAX_QUERY_CHARS]


def earlier_questions(turns: Sequence[Turn]) -> list[str]:
    """The questions before this one that it may lean on, oldest first. A turn that took up an offer asked what the one
    before it asked."""
    return [(accepts(turn.query) and turn.standalone_query) or turn.query for turn in turns[-EARLIER:]]


def kept_filters(filters: SearchFilters | None, turns: Sequence[Turn]) -> SearchFilters | None:
    """The filters of a question. A conversation keeps its book and version: what a question does not name is as it was
    for the one before. Who names a book names its version, too, or means the latest."""
    if not turns or (filters and filters.book):
        return filters
    last = next((search.filters for turn in reversed(turns) for search in turn.searches[-1:]), None)
    kept = SearchFilters.of_editions(last)
    return kept.but(filters) if kept else filters


def in_context(question: str, turns: Sequence[Turn]) -> str:
    """A follow-up as the section reader reads it: with the questions before it, newest first, and what the last answer
    said and where."""
    shown = [
        f"{source.get('breadcrumb', '')}: {_marked(source)}" for source in (turns[-1].sources[:1] if turns else ())
    ]
    return " / ".join([question, *reversed(earlier_questions(turns)), *shown])


def _marked(source: Mapping[str, Any]) -> str:
    """The first unit that a source was cited for."""
    quote, marks = str(source.get("quote", "")), source.get("highlights")
    if marks:
        start = int(source.get("quote_start", 0))
        quote = quote[max(0, marks[0]["start"] - start) : max(0, marks[0]["end"] - start)]
    return " ".join(quote.split())[:MOST_SHOWN]
