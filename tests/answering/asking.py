"""Asks questions in process, and checks properties that every answer must have."""

import re
from collections.abc import Sequence
from typing import Any

from chapterverse.answering import fold, prepare, stream
from chapterverse.models import (
    ChatRequest,
    ChatResponse,
    ChunkEvent,
    DoneEvent,
    Event,
    RetrievedEvent,
    SelectedTextCitation,
    SourceCitation,
    SourcesEvent,
)
from chapterverse.services import Services

_MARKER = re.compile(r"\[(\d+)\]")


async def events_of(services: Services, query: str, **fields: Any) -> list[Event]:
    """Return all events of one answer."""
    prepared = await prepare(ChatRequest(query=query, **fields), services)
    return [event async for event in stream(prepared, services)]


async def ask(services: Services, query: str, **fields: Any) -> ChatResponse:
    """Return one answer."""
    return await fold(stream(await prepare(ChatRequest(query=query, **fields), services), services))


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.content for event in events if isinstance(event, ChunkEvent))


def sources_of(events: Sequence[Event]) -> list[SourceCitation]:
    (sources_event,) = [event for event in events if isinstance(event, SourcesEvent)]
    return list(sources_event.sources)


def done_of(events: Sequence[Event]) -> DoneEvent:
    assert isinstance(events[-1], DoneEvent), events[-1]
    return events[-1]


def check_order(events: Sequence[Event], *, selected: bool = False) -> None:
    """Check the order of the events: `retrieved` unless there is a selection, then chunks, sources and one `done`."""
    kinds = [event.type for event in events]
    chunks = kinds.count("chunk")
    assert chunks
    assert kinds == [*([] if selected else ["retrieved"]), *["chunk"] * chunks, "sources", "done"]


async def check_sources(events: Sequence[Event], services: Services) -> None:
    """Check that sources are in marker order, quotes are at their offsets in their pages, and `retrieved` had the
    passages."""
    sources, retrieved = sources_of(events), events[0]
    check_markers(text_of(events), len(sources))
    assert isinstance(retrieved, RetrievedEvent)
    announced = {(passage.source_url, passage.section_heading, passage.score) for passage in retrieved.passages}
    for source in sources:
        page = await services.index.page(source.page_id)
        assert page is not None
        assert source.quote and page.text[source.quote_start : source.quote_end] == source.quote
        assert len(source.chunk_text) <= 500
        assert source.chunk_text in page.text
        assert source.quote in source.chunk_text if len(source.quote) <= 500 else source.chunk_text in source.quote
        assert (source.source_url, source.section_heading, source.relevance_score) in announced
        assert source.source_url.partition("#")[0] == page.url
        assert source.page_title == page.title


def check_selection(sources: Sequence[SourceCitation], selection: str) -> None:
    """Check that every quote is in the selection at its offsets and lines."""
    for source in sources:
        assert isinstance(source, SelectedTextCitation)
        assert selection[source.char_start : source.char_end] == source.quote != ""
        assert (source.source_url, source.page_title) == ("selected_text", "User Selection")
        assert source.relevance_score == 1.0
        assert source.line_start is not None and source.line_end is not None
        lines = re.split(r"\r\n|\r|\n", selection)
        assert source.quote.split()[0] in lines[source.line_start - 1]
        assert source.quote.split()[-1] in lines[source.line_end - 1]
        assert len(source.chunk_text) <= 500


def check_markers(text: str, sources: int) -> None:
    """Check that the markers in a text are numbered 1 to `sources`, in the order of their first use."""
    numbers = [int(number) for number in _MARKER.findall(re.sub(r"`[^`]*`", "", text))]
    assert list(dict.fromkeys(numbers)) == list(range(1, sources + 1))
