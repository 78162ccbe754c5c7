"""The refusals, which clients can rely on word for word, and the advice that is shown with them."""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from chapterverse.answering.scope import Scope, Selection
from chapterverse.conversations.topic import shorten
from chapterverse.evidence.gate import word_share
from chapterverse.evidence.passages import Evidence
from chapterverse.language import content_words, stem, stems
from chapterverse.models import ChunkResult, NearSection, SearchResult
from chapterverse.trained import UNREAD
from chapterverse.writing import Reading
from chapterverse.writing.cutting import cut_excerpt

NOT_FOUND: Final = "I couldn't find relevant information in the documentation for your question."
NOT_IN_BOOK: Final = "I don't have information about that in the available documentation."
OFFER: Final = "Would you like me to search the full documentation?"
NOT_IN_SELECTION: Final = f"The provided selection does not contain information about [topic]. {OFFER}"

NOTHING_LEFT: Final = "The filters or the threshold of the question leave no passage of the book."
SELECTION_READ: Final = "Only the selection was read."  # how the advice about a selection begins

NEAREST: Final = 3  # sections that are named with a refusal
NEAR: Final = 0.6  # minimum relevance of a section that is named
NEARLY: Final = -3.0  # minimum score, a logit, of a section that is quoted; of others only the heading is shown
LONGEST_UNIT: Final = 300  # characters of a unit that is quoted from it
_NAMED_WORDS: Final = 3  # maximum of a question's words that are named

_LONGEST_TOPIC = 120  # characters: a longer question is cut, the reader knows what was asked


def not_in_selection(question: str) -> str:
    """Return the refusal for a selection, with the offer that the next turn may accept. Its topic is the question."""
    asked = " ".join(question.split()).strip('"“”„')
    return NOT_IN_SELECTION.replace("[topic]", f"“{shorten(asked, _LONGEST_TOPIC)}”")


def _pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("[topic]"), r".{1,300}?").replace("'", "['’]").replace(r"\ ", r"\s+")


_SENTENCES = (NOT_FOUND, NOT_IN_BOOK, *re.split(r"(?<=\.) ", NOT_IN_SELECTION))
_REFUSAL = re.compile("|".join(map(_pattern, _SENTENCES)), re.IGNORECASE | re.DOTALL)


def is_refusal(sentence: str) -> bool:
    """Whether a sentence belongs to a refusal."""
    return _REFUSAL.fullmatch(sentence.strip(" *_")) is not None


def nearest_sections(
    question: str, found: SearchResult, readings: Sequence[Reading] = (), least: float = NEAR
) -> list[NearSection]:
    """Return the sections nearest to a question, each once, best first, with their nearest words. Sections below
    `least` are left out; if all are below it, the best result is returned."""
    near: dict[tuple[str, str], NearSection] = {}
    results = list(zip_longest(found.results, readings))
    for chunk, reading in [one for one in results if one[0].relevance_score >= least] or results[:1]:
        if (place := (chunk.page_id, chunk.section_heading)) not in near and len(near) < NEAREST:
            near[place] = NearSection.of(chunk).model_copy(update={"quote": _nearest_words(question, chunk, reading)})
    return list(near.values())


def _nearest_words(question: str, chunk: ChunkResult, reading: Reading | None) -> str:
    """Return the unit of a chunk that comes nearest to the question, with what it needs to be understood. Return
    nothing if the section reader is sure that it does not answer."""
    if reading and reading.score < NEARLY:
        return ""
    (passage,) = Evidence(question).issue([chunk])
    units = [unit for unit in passage.units if len(unit.text) <= LONGEST_UNIT]
    read = reading.units if reading else {}
    best = max(units, key=lambda unit: (read.get(unit.start, UNREAD), word_share(question, unit)), default=None)
    excerpt = cut_excerpt(passage, {best.start: 0.0}, question, "", fill=False) if best else None
    return excerpt.statement.text if excerpt else ""


def advise(question: str, scope: Scope, nearest: Sequence[NearSection]) -> str:
    """Say what was searched for, and which words of the question are not in the nearest sections or the selection.

    The first line is for every client; the other lines list the sections for clients that cannot show links."""
    if isinstance(scope, Selection):
        return f"{SELECTION_READ} {_lack('It does', question, scope.text)}"
    searched = f"Searched for “{shorten(question, _LONGEST_TOPIC)}”."
    urls = {section.source_url for section in nearest}
    texts = [f"{chunk.breadcrumb} {chunk.chunk_text}" for chunk in scope.found.results if chunk.source_url in urls]
    lack = _lack("The nearest sections do", question, " ".join(texts)) if scope.found.results else NOTHING_LEFT
    return "\n".join([f"{searched} {lack}", *(f"- {one.place}: {one.source_url}{one.quoted()}" for one in nearest)])


def _lack(subject: str, question: str, text: str) -> str:
    """Say which words of a question are not in a text."""
    known = stems(text)
    asked = {stem(word): word for word in content_words(question)}
    missing = [word for word in asked.values() if not known & stems(word)]
    return f"{subject} not mention {_listed(missing)}." if missing else f"{subject} not answer this."


def _listed(words: Sequence[str]) -> str:
    named = [f"“{word}”" for word in words[:_NAMED_WORDS]]
    return " or ".join(filter(None, (", ".join(named[:-1]), named[-1])))
