"""Resolves follow-ups: what a question takes over from the conversation.

With a language model, a question that seems to depend on earlier ones is rewritten. Without one, nothing is rewritten:
the section reader reads the results of several searches together with the earlier questions (`reading.py`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from chapterverse.conversations.turns import Turn
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.language import content_words, stems
from chapterverse.models import SearchFilters

EARLIER: Final = 2  # earlier questions that the section reader sees
MOST_SHOWN: Final = 200  # characters of the last answer that it sees

_ASSENT = re.compile(
    r"\b(?:y|yes|yea|yeah|yep|yup|sure|ok|okay|fine|please|absolutely|definitely|certainly|of course|go ahead|why not|"
    r"do (?:it|that|so)|search)\b",
    re.IGNORECASE,
)
_ASKS_OR_DENIES = re.compile(r"\b(?:what|who|whom|whose|which|where|when|why|how|no|not|never)\b", re.IGNORECASE)
_OFFERED = stems("search the full documentation, the whole book, thanks")  # words of the offer, which add nothing new
# A word that refers to something said before, or a beginning that continues it.
_LEANS = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|she|him|her|his|this|that|these|those|one|ones|other|others|same|else|"
    r"first|second|third|last|former|latter)\b|^\W*(?:and|but|so|or|also|then|what about|how about|why|instead)\b",
    re.IGNORECASE,
)
_DEFINES = re.compile(r"(?:what|who)(?:['’]s| is| are| was| were) \w", re.IGNORECASE)  # "what is Gazebo?" stands alone
_LONGEST: Final = 60  # words of the search query for a follow-up, unless the question itself is longer


def accepts(query: str) -> bool:
    """Whether a reply accepts the offer of a search: it begins with assent and names nothing new."""
    reply = query.strip().lower()
    rest = _ASSENT.sub(" ", reply)
    return bool(_ASSENT.match(reply)) and stems(rest) <= _OFFERED and not _ASKS_OR_DENIES.search(rest)


def leans(query: str) -> bool:
    """Whether a question may depend on earlier ones. A wrong guess costs a call, which returns it unchanged."""
    names_little = len(content_words(query)) <= 1 and not _DEFINES.match(query)
    return names_little or _LEANS.search(query) is not None


def together(turns: Sequence[Turn], question: str) -> str:
    """Return the search query of a follow-up that no model rewrites: it adds the search query of the last question."""
    return _within(question, turns[-1].standalone_query or turns[-1].query)


def near(turns: Sequence[Turn], question: str) -> list[str]:
    """Return the search query that adds the breadcrumb of the last answer's first source; none without a source."""
    return [_within(question, str(source.get("breadcrumb", ""))) for source in turns[-1].sources[:1]]


def _within(question: str, context: str) -> str:
    """Return the question with as much of the context as fits."""
    room = max(_LONGEST, len(question.split()))
    return " ".join(f"{question} ({context})".split()[:room])[:MAX_QUERY_CHARS]


def earlier_questions(turns: Sequence[Turn]) -> list[str]:
    """Return the last questions, oldest first. A turn that accepted an offer counts as the question it was about."""
    return [(accepts(turn.query) and turn.standalone_query) or turn.query for turn in turns[-EARLIER:]]


def kept_filters(filters: SearchFilters | None, turns: Sequence[Turn]) -> SearchFilters | None:
    """Return the filters of a question. A conversation keeps its book and version until a question names others; a book
    without a version means its latest version."""
    if not turns or (filters and filters.book):
        return filters
    last = next((search.filters for turn in reversed(turns) for search in turn.searches[-1:]), None)
    kept = SearchFilters.of_editions(last)
    return kept.but(filters) if kept else filters


def in_context(question: str, turns: Sequence[Turn]) -> str:
    """Return a follow-up as the section reader reads it: with the earlier questions, newest first, and the first cited
    unit of the last answer with its breadcrumb."""
    shown = [
        f"{source.get('breadcrumb', '')}: {_marked(source)}" for source in (turns[-1].sources[:1] if turns else ())
    ]
    return " / ".join([question, *reversed(earlier_questions(turns)), *shown])


def _marked(source: Mapping[str, Any]) -> str:
    """Return the first highlighted unit of a source."""
    quote, marks = str(source.get("quote", "")), source.get("highlights")
    if marks:
        start = int(source.get("quote_start", 0))
        quote = quote[max(0, marks[0]["start"] - start) : max(0, marks[0]["end"] - start)]
    return " ".join(quote.split())[:MOST_SHOWN]
