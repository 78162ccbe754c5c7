"""Asks the product without a key and returns the results."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chapterverse import answering
from chapterverse.answering.confidence import ReaderSigns
from chapterverse.conversations.turns import Turn
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion import pipeline
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources import open_source
from chapterverse.models import ChatRequest, ChatResponse, ChunkResult, SourceCitation
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import open_services

from .sets import Question


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its result."""

    question: Question
    response: ChatResponse
    signs: ReaderSigns
    search: tuple[str, ...] = field(default=())  # texts of the passages that were read, best first
    standalone: str = ""  # the question that was searched for
    evidence: tuple[str, ...] = ()  # ids of the passages that the answer quotes

    @property
    def answered(self) -> bool:
        """Whether it was answered."""
        return self.response.status != "refused"


@asynccontextmanager
async def opened(home: Path, pages: Path | None) -> AsyncIterator[Services]:
    """Open the services of a book, which is ingested first if needed."""
    if pages is not None and not (home / "index").exists():
        index, embedder = EdgeIndex(home / "index"), LocalEmbedder()
        try:
            source = open_source(str(pages), SourceOptions())
            await pipeline.ingest([source], pipeline.Workshop(index, embedder, home))
        finally:
            await index.close()
            await embedder.close()
    keyless = dict.fromkeys(("gemini_api_key", "openai_api_key", "cohere_api_key", "qdrant_url", "database_url"))
    async with open_services(Settings.load(chapterverse_home=home, **keyless)) as services:
        yield services


async def ask(services: Services, question: Question, turns: Sequence[Turn] = (), selection: str = "") -> Asked:
    """Ask one question, with earlier turns or a selection if given."""
    if selection:
        request = ChatRequest(query=question.text, mode="selected_text", selected_text=selection)
    else:
        request = ChatRequest(query=question.text)
    prepared = await answering.prepare(request, services, turns=turns)
    response = await answering.fold(answering.stream(prepared, services))
    chunks = prepared.found.results if prepared.found else []
    signs = ReaderSigns.of(prepared.scope, prepared.asked)
    quoted = tuple(chunk.chunk_id for chunk in chunks if any(_quotes(source, chunk) for source in response.sources))
    return Asked(question, response, signs, tuple(one.chunk_text for one in chunks), prepared.question, quoted)


def _quotes(source: SourceCitation, chunk: ChunkResult) -> bool:
    within = source.quote_start < chunk.char_end and chunk.char_start < source.quote_end
    return source.page_id == chunk.page_id and within


async def converse(services: Services, dialogue: Sequence[Question]) -> list[Asked]:
    """Ask the turns of a dialogue. The history of each turn has the answers that the product really gave."""
    turns: list[Turn] = []
    asked: list[Asked] = []
    for question in dialogue:
        one = await ask(services, question, turns)
        asked.append(one)
        turns.append(
            Turn(
                session_id=one.response.session_id,
                query=question.text,
                response=one.response.answer,
                sources=tuple(source.model_dump(mode="json") for source in one.response.sources),
                status=one.response.status,
                standalone_query=one.standalone,
                evidence=one.evidence,
            )
        )
    return asked
