"""What a reader is told beside a refusal: what was searched for, the nearest sections, what of the question they cover.

Owns that advice. Words decide, not meaning: a word of the question counts as covered where it stands in a section or in
a heading above it. Never decides whether to refuse, and never changes the refusal's own words.
"""

from collections.abc import Sequence
from typing import Final

from chapterverse.extractive import Terms, topic_words
from chapterverse.models import ChunkResult, RetrievedPassage, SearchResult
from chapterverse.refusals import shorten

SECTIONS: Final = 3  # that are named
_WORDS: Final = 6  # of a question that are named


def announce(chunk: ChunkResult) -> RetrievedPassage:
    """A passage as it is named to a reader."""
    return RetrievedPassage(
        page_title=chunk.page_title,
        section_heading=chunk.section_heading,
        source_url=chunk.source_url,
        score=chunk.similarity_score,
    )


def nearest_sections(found: SearchResult | None) -> list[RetrievedPassage]:
    """The sections that come nearest to a question, each once, best first; none where none was searched for."""
    chunks = found.results if found else []
    sections = {chunk.source_url: chunk for chunk in reversed(chunks)}  # the best passage of a section stays
    return [announce(chunk) for chunk in chunks if sections[chunk.source_url] is chunk][:SECTIONS]


def advise(question: str, found: SearchResult | None, selection: str | None) -> str:
    """Of a search, or else of the selection that was all there was to read.

    The first line is for every reader; the lines after it name the sections where they cannot be links."""
    if found is None:
        return f"Only the selection was read. {_coverage('It', question, [selection or ''])}"
    nearest = nearest_sections(found)
    if not nearest:
        return f"Searched for “{shorten(question)}”: no section of the book fits."
    urls = {section.source_url for section in nearest}
    texts = [f"{chunk.breadcrumb} {chunk.chunk_text}" for chunk in found.results if chunk.source_url in urls]
    told = f"Searched for “{shorten(question)}”. {_coverage('The nearest sections', question, texts)}"
    return "\n".join([told, *(f"- {_place(section)}: {section.source_url}" for section in nearest)])


def _coverage(what: str, question: str, texts: Sequence[str]) -> str:
    terms = [Terms(text) for text in texts]
    asked = list({word.stem: word for word in topic_words(question)}.values())
    covered = [word.raw for word in asked if any(term.has(word) for term in terms)]
    missing = [word.raw for word in asked if word.raw not in covered]
    verbs = ("speak", "do") if what.endswith("s") else ("speaks", "does")
    if not covered:
        return f"{what} {verbs[0]} of nothing that was asked for."
    if not missing:
        return f"{what} {verbs[0]} of {_listed(covered)}, but {verbs[1]} not answer this."
    return f"{what} {verbs[0]} of {_listed(covered)}, not of {_listed(missing)}."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in words[:_WORDS]) + ("…" if len(words) > _WORDS else "")


def _place(section: RetrievedPassage) -> str:
    if section.section_heading in ("", section.page_title):
        return section.page_title
    return f"{section.page_title} › {section.section_heading}"
