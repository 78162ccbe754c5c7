"""From evidence to citations: the exact sentences, where they lie, and the passage around them.

Owns how a citation looks. Never decides what supports what.
"""

import re
from collections.abc import Mapping, Sequence

from chapterverse.agent import IssuedPassage
from chapterverse.grounding import Citation, Passage, lines_of
from chapterverse.ingestion.hostile import flags_of
from chapterverse.models import ChunkResult, SelectedTextCitation, SourceCitation

SNIPPET = 500  # characters of a passage shown with its citation (SPEC 2.1)

_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


def passage_of(chunk: ChunkResult, number: int) -> tuple[IssuedPassage, Passage]:
    """A chunk under its number, as the model sees it and as the judge does."""
    issued = IssuedPassage(number, chunk.chunk_text, chunk.breadcrumb, chunk.source_url, chunk.similarity_score)
    barred = _talking_to_the_model(chunk.chunk_text) if chunk.flags else ()
    return issued, Passage(number, chunk.chunk_text, chunk.breadcrumb, barred)


def selection_passage(selection: str) -> tuple[IssuedPassage, Passage]:
    """The reader's selection as the only passage."""
    issued = IssuedPassage(1, selection, "", "selected_text", 1.0)
    return issued, Passage(1, selection, "", _talking_to_the_model(selection))


def cite_passages(citations: Sequence[Citation], chunks: Mapping[int, ChunkResult]) -> list[SourceCitation]:
    """The sources of an answer from the book, in marker order."""
    return [_cite_chunk(citation, chunks[citation.passage_number]) for citation in citations]


def cite_selection(citations: Sequence[Citation], selection: str) -> list[SourceCitation]:
    """The sources of an answer from a selection, in marker order; offsets count into the selection."""
    cited: list[SourceCitation] = []
    for citation in citations:
        first, last = lines_of(selection, citation.start, citation.end)
        cited.append(
            SelectedTextCitation(
                source_url="selected_text",
                page_title="User Selection",
                section_heading="",
                chunk_text=_around(selection, citation.start, citation.end),
                relevance_score=1.0,
                chunk_index=0,
                breadcrumb="User Selection",
                module="",
                rank=1,
                quote=selection[citation.start : citation.end],
                quote_start=citation.start,
                quote_end=citation.end,
                char_start=citation.start,
                char_end=citation.end,
                line_start=first,
                line_end=last,
            )
        )
    return cited


def _cite_chunk(citation: Citation, chunk: ChunkResult) -> SourceCitation:
    return SourceCitation(
        source_url=chunk.source_url,
        page_title=chunk.page_title,
        section_heading=chunk.section_heading,
        chunk_text=_around(chunk.chunk_text, citation.start, citation.end),
        relevance_score=chunk.similarity_score,
        chunk_index=chunk.chunk_index,
        breadcrumb=chunk.breadcrumb,
        module=chunk.module,
        rank=chunk.rank,
        quote=chunk.chunk_text[citation.start : citation.end],
        quote_start=chunk.char_start + citation.start,
        quote_end=chunk.char_start + citation.end,
        page_id=chunk.page_id,
    )


def _around(text: str, start: int, end: int) -> str:
    """At most `SNIPPET` characters with the evidence in their middle, cut at blanks where there are any."""
    if len(text) <= SNIPPET:
        return text
    spare = max(0, SNIPPET - (end - start))
    left = max(0, min(start - spare // 2, len(text) - SNIPPET))
    right = min(len(text), left + SNIPPET)
    if 0 < left < start and (blank := text.find(" ", left, start)) != -1:
        left = blank + 1
    if end < right < len(text) and (blank := text.rfind(" ", end, right)) != -1:
        right = blank
    return text[left:right]


def _talking_to_the_model(text: str) -> tuple[tuple[int, int], ...]:
    """Paragraphs that address an assistant rather than the reader: never evidence. Not their sentences alone, because
    what it is told to say comes after the order to say it."""
    breaks = [0, *(place for gap in _BETWEEN_PARAGRAPHS.finditer(text) for place in gap.span()), len(text)]
    paragraphs = zip(breaks[::2], breaks[1::2], strict=True)
    return tuple((start, end) for start, end in paragraphs if flags_of(text[start:end]))
