"""The refusals, word for word, so that clients can rely on them, and what helps a reader who was refused."""

import re
from collections.abc import Sequence
from typing import Final

from chapterverse.answering.scope import Scope, Selection
from chapterverse.conversations.topic import shorten
from chapterverse.language import content_words, stem, stems
from chapterverse.models import RetrievedPassage, SearchResult

NOT_FOUND: Final = "I couldn't find relevant information in the documentation for your question."
NOT_IN_BOOK: Final = "I don't have information about that in the available documentation."
OFFER: Final = "Would you like me to search the full documentation?"
NOT_IN_SELECTION: Final = f"The provided selection does not contain information about [topic]. {OFFER}"

SELECTION_READ: Final = "Only the selection was read."  # how the advice about a selection begins

NEAREST: Final = 3  # sections that are named beside a refusal
_NAMED_WORDS: Final = 6  # of a question

_LONGEST_TOPIC = 120  # characters: a longer question is cut, the reader knows what was asked


def not_in_selection(question: str) -> str:
    """The refusal of a selection, with the offer that the next turn may accept. Its topic is what was asked."""
    asked = " ".join(question.split()).strip('"“”„')
    return NOT_IN_SELECTION.replace("[topic]", f"“{shorten(asked, _LONGEST_TOPIC)}”")


def _pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("[topic]"), r".{1,300}?").replace("'", "['’]").replace(r"\ ", r"\s+")


_SENTENCES = (NOT_FOUND, NOT_IN_BOOK, *re.split(r"(?<=\.) ", NOT_IN_SELECTION))
_REFUSAL = re.compile("|".join(map(_pattern, _SENTENCES)), re.IGNORECASE | re.DOTALL)


def is_refusal(sentence: str) -> bool:
    """Whether a sentence is one of a refusal's."""
    return _REFUSAL.fullmatch(sentence.strip(" *_")) is not None


def nearest_sections(found: SearchResult) -> list[RetrievedPassage]:
    """The sections that come nearest to a question, each once, best first."""
    best = {chunk.source_url: chunk for chunk in reversed(found.results)}
    urls = list(dict.fromkeys(chunk.source_url for chunk in found.results))[:NEAREST]
    return [RetrievedPassage.of(best[url]) for url in urls]


def advise(question: str, scope: Scope, nearest: Sequence[RetrievedPassage]) -> str:
    """What was searched for, and which words of the question the nearest sections, or the selection, have.

    The first line is for every reader; the lines after it name the sections where they cannot be links."""
    if isinstance(scope, Selection):
        return f"{SELECTION_READ} {_coverage('It', question, scope.text)}"
    searched = f"Searched for “{shorten(question, _LONGEST_TOPIC)}”"
    if not nearest:
        return f"{searched}: no section of the book fits."
    urls = {section.source_url for section in nearest}
    texts = [f"{chunk.breadcrumb} {chunk.chunk_text}" for chunk in scope.found.results if chunk.source_url in urls]
    said = f"{searched}. {_coverage('The nearest sections', question, ' '.join(texts))}"
    return "\n".join([said, *(f"- {section.place}: {section.source_url}" for section in nearest)])


def _coverage(what: str, question: str, text: str) -> str:
    known = stems(text)
    asked = list({stem(word): word for word in content_words(question)}.values())
    covered = [word for word in asked if known & stems(word)]
    missing = [word for word in asked if word not in covered]
    speak, do = ("speak", "do") if what.endswith("s") else ("speaks", "does")
    if not covered:
        return f"{what} {speak} of nothing that was asked for."
    if not missing:
        return f"{what} {speak} of {_listed(covered)}, but {do} not answer this."
    return f"{what} {speak} of {_listed(covered)}, not of {_listed(missing)}."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in words[:_NAMED_WORDS]) + ("…" if len(words) > _NAMED_WORDS else "")
