"""Asks all questions of a set, several at once, in the same way as readers do.

Nothing is stored: earlier turns are passed in. A question that fails is recorded as a case and does not end the run.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from chapterverse.answering import Prepared, fold, prepare, stream
from chapterverse.conversations.turns import Turn
from chapterverse.errors import ChapterverseError
from chapterverse.evaluation.cases import Case, Citation, FoundPassage, MarkedStretch
from chapterverse.evaluation.questions import Question
from chapterverse.models import ChatRequest, ChatResponse, ChunkResult, RetrievalRequest, SourceCitation
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.services import Services


async def ask_all(
    questions: Sequence[Question], services: Services, concurrency: int = 1
) -> AsyncGenerator[Case, None]:
    """Yield the cases as they are finished, with at most `concurrency` at once. Closing the generator cancels those
    that are running."""
    waiting = iter(questions)
    running: set[asyncio.Task[Case]] = set()
    try:
        while True:
            while len(running) < concurrency and (question := next(waiting, None)):
                running.add(asyncio.create_task(ask(question, services)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def ask(question: Question, services: Services) -> Case:
    """Ask one question."""
    try:
        prepared = await prepare(_request(question), services, turns=_turns(question))
        answer = await fold(stream(prepared, services))
        ways = await _other_ways(question, services)
    except ChapterverseError as failure:
        return Case(question=question, status="failed", error=f"{failure.code}: {failure.message}")
    return _case(question, prepared, answer).model_copy(update=ways)


async def _other_ways(question: Question, services: Services) -> dict[str, tuple[FoundPassage, ...]]:
    """Return the passages that a follow-up finds with other wordings, if the right page is known."""
    if not question.history or not question.page:
        return {}
    asked = {"alone": question.question} | ({"rewritten": question.rewrite} if question.rewrite else {})
    wanted = {name: RetrievalRequest(query=text, filters=question.filters) for name, text in asked.items()}
    return {name: await _found(request, services) for name, request in wanted.items()}


async def _found(request: RetrievalRequest, services: Services) -> tuple[FoundPassage, ...]:
    found = await retrieve_with_retry(request, services.embedder, services.index)
    return tuple(_passage(chunk) for chunk in found.results)


def _request(question: Question) -> ChatRequest:
    if question.selection is None:
        return ChatRequest(query=question.question, filters=question.filters)
    return ChatRequest(query=question.question, mode="selected_text", selected_text=question.selection)


def _turns(question: Question) -> list[Turn]:
    return [Turn(session_id="", query=asked, response=text) for asked, text in question.history]


def _passage(chunk: ChunkResult) -> FoundPassage:
    return FoundPassage(
        source_url=chunk.source_url,
        page_title=chunk.page_title,
        section_heading=chunk.section_heading,
        text=chunk.chunk_text,
        similarity=chunk.similarity_score,
        book=chunk.book,
        version=chunk.version,
    )


def _citation(source: SourceCitation) -> Citation:
    at = source.quote_start
    marks = [
        MarkedStretch(start=mark.start, end=mark.end, text=source.quote[mark.start - at : mark.end - at])
        for mark in source.highlights
    ]
    return Citation(
        source_url=source.source_url,
        page_title=source.page_title,
        section_heading=source.section_heading,
        quote=source.quote,
        page_id=source.page_id,
        book=source.book,
        version=source.version,
        marks=tuple(marks),
    )


def _case(question: Question, prepared: Prepared, answer: ChatResponse) -> Case:
    metadata = answer.metadata
    return Case(
        question=question,
        searched=prepared.question,
        passages=[_passage(chunk) for chunk in (prepared.found.results if prepared.found else ())],
        status=answer.status,
        answer=answer.answer.strip(),
        citations=[_citation(source) for source in answer.sources],
        confidence=answer.confidence,
        level=answer.confidence_level,
        latency_ms=metadata.query_time_ms,
        retrieval_ms=metadata.retrieval_time_ms,
        generation_ms=metadata.generation_time_ms,
        tokens=metadata.tokens_used,
        tokens_written=metadata.tokens_written,
        calls=metadata.llm_calls,
        withheld=metadata.sentences_withheld,
    )
