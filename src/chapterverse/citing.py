"""From evidence to citations: the exact sentences, where they lie, and the passage around them.

Owns how a citation looks. Never decides what supports what.
"""

from collections.abc import Mapping, Sequence

from chapterverse.grounding import Citation, Passage, lines_of
from chapterverse.ingestion.hostile import orders_in
from chapterverse.models import ChunkResult, SelectedTextCitation, SourceCitation
from chapterverse.transcript import IssuedPassage

SNIPPET = 500  # characters of a passage shown with its citation (SPEC 2.1)
OMITTED = "(…)"  # stands for what a passage says to the model


def passage_of(chunk: ChunkResult, number: int) -> tuple[IssuedPassage, Passage]:
    """A chunk under its number, as the model sees it and as the judge does."""
    text, barred = chunk.chunk_text, orders_in(chunk.chunk_text) if chunk.flags else ()
    breadcrumb = _without(chunk.breadcrumb, orders_in(chunk.breadcrumb)) if chunk.flags else chunk.breadcrumb
    issued = IssuedPassage(number, _without(text, barred), breadcrumb, chunk.source_url, chunk.similarity_score)
    return issued, Passage(number, text, breadcrumb, barred)


def selection_passage(selection: str) -> tuple[IssuedPassage, Passage]:
    """The reader's selection as the only passage."""
    barred = orders_in(selection)
    return IssuedPassage(1, _without(selection, barred), "", "selected_text", 1.0), Passage(1, selection, "", barred)


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


def _without(text: str, barred: Sequence[tuple[int, int]]) -> str:
    """What a model is shown of a text: not what talks to it. Where that stood, there is a sign."""
    for start, end in reversed(barred):
        text = f"{text[:start]}{OMITTED}{text[end:]}"
    return text
