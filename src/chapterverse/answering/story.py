"""Answers one question, step by step: load the conversation, resolve follow-ups, search, write, prove, store.

`prepare` does everything that may fail before the first byte. `stream` does the rest and never raises: it ends with one
`done` or one `error` event. The JSON answer is built from the same events.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final
from uuid import uuid4

from chapterverse.answering import confidence, refusals
from chapterverse.answering.followups import accepts, kept_filters, leans, together
from chapterverse.answering.reading import read_book, read_selection
from chapterverse.answering.scope import Scope, Selection, WholeBook
from chapterverse.conversations.topic import EXCHANGES, topic_of
from chapterverse.conversations.turns import SearchRecord, Turn
from chapterverse.errors import (
    AgentUnavailable,
    ChapterverseError,
    ConversationsUnavailable,
    InternalError,
    ValidationFailed,
    error_named,
)
from chapterverse.evidence.citations import Renderer
from chapterverse.evidence.gate import Gate
from chapterverse.evidence.passages import Evidence, IssuedPassage
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.models import (
    NO_SELECTION,
    AnswerMetadata,
    AnswerStatement,
    ChatRequest,
    ChatResponse,
    ChunkEvent,
    ChunkResult,
    DoneEvent,
    ErrorEvent,
    Event,
    Highlight,
    Mode,
    NearSection,
    RetrievalRequest,
    RetrievedEvent,
    RetrievedPassage,
    SearchFilters,
    SearchResult,
    SourceCitation,
    SourcesEvent,
    Status,
)
from chapterverse.retrieval import editions_in, false_answers_in, persist, retrieve_with_retry
from chapterverse.services import Services
from chapterverse.settings import GENERATION_SECONDS, REQUEST_SECONDS
from chapterverse.writing import Finished, Task

log = logging.getLogger(__name__)

FINISH_SECONDS: Final = 1.0  # reserved at the end for proving the last statements and storing the turn
STORE_TIMEOUT_RESERVE: Final = 0.2  # part of it, reserved for sending the last event if storing fails
NEIGHBOURS: Final = 600  # characters on each side of a passage, within its section, that a language model also sees
PLAINLY_OFF: Final = 0.55  # minimum relevance of the best passage to ask a model; 0.6 bounds related questions


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that is ready to be answered."""

    request: ChatRequest
    session_id: str
    mode: Mode  # the mode used: a reader who accepts the offer leaves the selection
    asked: str  # the question as the reader asked it; for an accepted offer, the question before it
    question: str  # as a standalone question
    turns: tuple[Turn, ...]  # the turns before it
    topic: str  # of the conversation, if it has become long enough to have one
    remembered: bool  # whether the conversation is stored here and could be read
    continues: bool  # whether it had turns
    started: float
    deadline: float  # on the same clock
    scope: Scope
    filters: SearchFilters | None = None  # of this question, and of the conversation it belongs to
    retrieval_ms: float = 0.0
    rewriting: Finished = field(default_factory=Finished)  # usage of the call that made the question standalone

    def shown_turns(self, messages: int) -> tuple[Turn, ...]:
        """Return the last turns that fit if a model is shown this many messages, two for each turn."""
        return self.turns[-(messages // 2) :] if messages > 1 else ()

    @property
    def found(self) -> SearchResult | None:
        """The search results; None if only the reader's selection is used."""
        return self.scope.found if isinstance(self.scope, WholeBook) else None


async def prepare(
    request: ChatRequest, services: Services, seconds: float = REQUEST_SECONDS, turns: Sequence[Turn] | None = None
) -> Prepared:
    """Load the conversation, make the question standalone, and search. Failures are raised as ordinary errors.

    `seconds` is the time for the whole answer. A caller that keeps the conversation itself passes the earlier `turns`:
    then nothing is read from the database, and nothing is stored."""
    started = time.perf_counter()
    known, remembered = await _remember(request, services) if turns is None else (tuple(turns), False)
    questions = [*(turn.query for turn in known), request.query]
    turns = known[-services.settings.agent_max_turns :]
    mode, question = request.mode, request.query
    offered = bool(turns) and (turns[-1].mode, turns[-1].status) == ("selected_text", "refused")
    if offered and accepts(question):  # the refused question is asked again, at its place in the conversation
        mode, question, turns = "general", turns[-1].query, turns[:-1]
    elif mode == "selected_text" and not request.has_selection:
        raise ValidationFailed(f"selected_text: {NO_SELECTION}")
    prepared = Prepared(
        request=request,
        session_id=request.session_id or str(uuid4()),
        mode=mode,
        asked=question,
        question=question,
        turns=turns,
        topic=topic_of(questions) if len(questions) >= EXCHANGES else "",
        remembered=remembered,
        continues=bool(known),
        started=started,
        deadline=started + seconds,
        scope=Selection(request.selected_text or ""),
        filters=kept_filters(request.filters, turns),
    )
    reads = services.writer.needs_readings
    if mode == "selected_text":
        text = request.selected_text or ""
        return replace(prepared, scope=await read_selection(question, text, services.reader)) if reads else prepared
    return await (_read if reads else _search)(prepared, services)


async def _search(prepared: Prepared, services: Services) -> Prepared:
    """Search for a writer that uses a language model. The model first rewrites a follow-up as a standalone question."""
    turns, query = prepared.turns, prepared.question
    if follows := bool(turns) and leans(query):
        # The oldest turn may itself be a follow-up on a turn that the model does not see.
        oldest, *later = prepared.shown_turns(services.settings.max_conversation_history) or turns[-1:]
        oldest = replace(oldest, query=oldest.standalone_query or oldest.query)
        question, took = await services.writer.rewrite(query, [oldest, *later])
        prepared = replace(prepared, rewriting=took, question=question or together(turns, query))
    searching = time.perf_counter()
    # The evidence of the last answer stays a candidate: a follow-up is often about it.
    also = turns[-1].evidence if follows else ()
    found = await retrieve_with_retry(_search_request(prepared, services), services.embedder, services.index, also)
    return replace(prepared, scope=WholeBook(found), retrieval_ms=_since(searching))


async def _read(prepared: Prepared, services: Services) -> Prepared:
    """Search, and let the section reader rank the results."""
    searching = time.perf_counter()
    turns, asked = prepared.turns, prepared.asked
    if not leans(asked) and any(asked.casefold() == turn.query.casefold() for turn in turns):
        turns = ()  # the same question again gets the same answer, not a follow-up's
    scope = await read_book(_search_request(prepared, services), turns, services, services.reader)
    question = together(turns, asked) if turns and leans(asked) else asked
    return replace(prepared, turns=turns, question=question, scope=scope, retrieval_ms=_since(searching))


def stream(prepared: Prepared, services: Services) -> AsyncGenerator[Event, None]:
    """Answer as events. Closing the generator early cancels the writer."""
    return ended(_Answer(prepared, services).events(), prepared.deadline)


async def ended(events: AsyncGenerator[Event, None], deadline: float) -> AsyncGenerator[Event, None]:
    """Yield the events, and end with one `done` or `error` before the deadline (of `time.perf_counter`) in any case."""
    event: Event | None = None
    async with aclosing(events):
        while not isinstance(event, DoneEvent | ErrorEvent):
            try:
                async with asyncio.timeout(max(0.0, deadline - time.perf_counter())):
                    event = await anext(events)
            except ChapterverseError as failure:
                event = ErrorEvent(error_code=failure.code, message=failure.message, retry_after=failure.retry_after)
            except TimeoutError:
                message = f"The answer took longer than {REQUEST_SECONDS:g} seconds."
                event = ErrorEvent(error_code=AgentUnavailable.code, message=message)
            except Exception:  # nothing may escape; also raised if the events end without a last one
                log.exception("an answer failed")
                event = ErrorEvent(error_code=InternalError.code, message=InternalError.UNEXPECTED)
            yield event


async def fold(events: AsyncIterator[Event]) -> ChatResponse:
    """Collect the events into the JSON answer. Raises the error if they end with one."""
    text = ""
    sources: list[SourceCitation] = []
    statements: list[AnswerStatement] = []
    async for event in events:
        match event:
            case ChunkEvent(content=content, kind=kind, cites=cites):
                before, text = len(text), text + content
                start, end = before + len(content) - len(content.lstrip()), len(text)
                lit = [Highlight(start=mark.start + before, end=mark.end + before) for mark in event.highlights]
                if kind is not None:
                    statements.append(AnswerStatement(start=start, end=end, kind=kind, sources=cites, highlights=lit))
            case SourcesEvent():
                sources = list(event.sources)
            case DoneEvent():
                summary = event.model_dump(exclude={"type"})
                return ChatResponse(answer=text, sources=sources, statements=statements, **summary)
            case ErrorEvent():
                raise error_named(event.error_code, event.message, event.retry_after)
    raise InternalError("The answer ended without an end.")


class _Answer:
    """The state of one answer while it is produced."""

    def __init__(self, prepared: Prepared, services: Services) -> None:
        self.prepared, self.services = prepared, services
        asked, selected = prepared.request.query, isinstance(prepared.scope, Selection)
        self.refusal = refusals.not_in_selection(asked) if selected else refusals.NOT_IN_BOOK
        self.evidence = Evidence(prepared.question)
        self.renderer = Renderer(self.evidence.passages)
        self.seconds = min(GENERATION_SECONDS, prepared.deadline - time.perf_counter() - FINISH_SECONDS)
        self.gate = Gate(
            self.evidence,
            services.judge,
            deadline=asyncio.get_running_loop().time() + self.seconds + FINISH_SECONDS / 2,
            is_refusal=refusals.is_refusal,
        )
        self.text = ""
        self.searches = [_record(prepared.found, prepared.filters)] if prepared.found else []
        self.generation_ms = 0.0

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events of the answer, in order."""
        refusal = await self._refusal_before_writing()
        started = time.perf_counter()
        # The model is asked before the passages are sent to the reader, because both take time.
        shown = None if refusal else self.gate.prove(self.services.writer.write(await self._task()))
        try:
            if found := self.prepared.found:
                yield RetrievedEvent(passages=[RetrievedPassage.of(chunk) for chunk in found.results])
            if shown is not None:
                async with aclosing(shown):
                    async for proven in shown:
                        piece = self.renderer.write(proven)
                        self.text += piece.content
                        yield piece
        finally:
            await self.gate.close()
            self.generation_ms = _since(started) if shown is not None else 0.0
        if not self.gate.counts.shown:
            refusal = refusal or self.refusal
        last = ChunkEvent(content=refusal) if refusal else self.renderer.name_versions()
        if last is not None:
            self.text += last.content
            yield last
        yield SourcesEvent(sources=list(self.renderer.sources))
        yield await self._done(refused=refusal is not None)

    async def _task(self) -> Task:
        prepared, scope = self.prepared, self.prepared.scope
        selected = [self.evidence.issue_text(scope.text)] if isinstance(scope, Selection) else []
        return Task(
            question=prepared.asked if scope.readings else prepared.question,
            evidence=self.evidence,
            passages=await self._issue(prepared.found.results) if prepared.found else selected,
            refusal=self.refusal,
            seconds=self.seconds,
            history=prepared.shown_turns(self.services.settings.max_conversation_history),
            search=self._search_again if prepared.found else None,
            readings=scope.readings,
        )

    async def _search_again(self, wanted: RetrievalRequest) -> Sequence[IssuedPassage]:
        """Run a search that the writer asks for. The reader's filters and threshold still apply, and the writer cannot
        choose the editions."""
        limits = _search_request(self.prepared, self.services)
        free = wanted.filters and wanted.filters.model_copy(update={"book": None, "version": None})
        held = {"score_threshold": limits.score_threshold, "filters": limits.filters or free}
        again = wanted.model_copy(update=held)
        found = await retrieve_with_retry(again, self.services.embedder, self.services.index)
        self.searches.append(_record(found, again.filters))
        return await self._issue(found.results)

    async def _issue(self, chunks: Sequence[ChunkResult]) -> list[IssuedPassage]:
        """Issue the passages with the text around them: the whole section if the writer needs readings, else
        `NEIGHBOURS` characters on each side."""
        new, issued = len(self.evidence.passages), self.evidence.issue(chunks)
        room = None if self.services.writer.needs_readings else NEIGHBOURS
        ids = list(dict.fromkeys(chunk.page_id for chunk in chunks))
        reads = (persist(partial(self.services.index.page, one)) for one in ids)
        pages = dict(zip(ids, await asyncio.gather(*reads), strict=True))
        for passage in self.evidence.passages[new:]:
            page = pages[passage.chunk.page_id] if passage.chunk else None
            if page is not None:
                self.evidence.widen(passage, page, room)
        return [self.evidence.passages[passage.number - 1] for passage in issued]

    async def _refusal_before_writing(self) -> str | None:
        """Return a refusal if the writer need not be asked, else None."""
        found = self.prepared.found
        if found is not None and not found.results:
            return refusals.NOT_FOUND
        if self.services.writer.needs_readings:
            filters, index = self.prepared.filters, self.services.index
            rate = false_answers_in(await persist(lambda: editions_in(filters, index))) if found else None
            return None if confidence.answers(self.prepared.scope, self.prepared.asked, rate) else self.refusal
        off = found and found.confidence and found.confidence.max_similarity < PLAINLY_OFF
        return refusals.NOT_IN_BOOK if off else None

    async def _nearest(self) -> list[NearSection]:
        """Return the sections nearest to a refused question. If the filters exclude everything, search without them."""
        found = self.prepared.found
        if found is None:
            return []
        if not found.results:
            within = SearchFilters.of_editions(dict(self.prepared.filters or ()))  # a refusal stays in its book
            anything = RetrievalRequest(query=self.prepared.question[:MAX_QUERY_CHARS], filters=within)
            try:
                found = await retrieve_with_retry(anything, self.services.embedder, self.services.index)
            except ChapterverseError:
                return []
        return refusals.nearest_sections(self.prepared.asked, found, self.prepared.scope.readings)

    async def _done(self, *, refused: bool) -> DoneEvent:
        prepared, counts, usage = self.prepared, self.gate.counts, self.gate.usage
        # A run that a limit cut off reports no usage: it made one call, and one more for each search of its own.
        took = self.gate.finished or Finished(llm_calls=max(1, len(self.searches)) if self.generation_ms else 0)
        cut_short = took.stopped or self.gate.truncated
        status: Status = "refused" if refused else "truncated" if cut_short else "answered"
        value = 0.0 if refused else self._confidence()
        nearest = await self._nearest() if refused else []
        turn = self._turn(status, value)
        stored = await _keep(turn, prepared, self.services)
        level = confidence.level_of(value)
        return DoneEvent(
            mode=prepared.mode,
            session_id=prepared.session_id,
            turn_id=turn.turn_id if stored else None,
            timestamp=datetime.now(UTC),
            confidence=value,
            confidence_level=level,
            should_answer=not refused,
            disclaimer=confidence.DISCLAIMER if level == "low" else None,
            status=status,
            advice=refusals.advise(prepared.question, prepared.scope, nearest) if refused else None,
            nearest=nearest,
            editions=prepared.found.editions if prepared.found else [],
            metadata=AnswerMetadata(
                query_time_ms=round(_since(prepared.started), 3),
                retrieval_time_ms=round(prepared.retrieval_ms, 3),
                generation_time_ms=round(self.generation_ms, 3),
                chunks_retrieved=turn.chunks_retrieved,
                model=self.services.writer.name,
                tokens_used=took.tokens_used + prepared.rewriting.tokens_used,
                tokens_written=took.tokens_written + prepared.rewriting.tokens_written,
                llm_calls=took.llm_calls + prepared.rewriting.llm_calls,
                judge_calls=usage.calls,
                judge_tokens=usage.tokens,
                sentences_withheld=counts.withheld,
                sentences_replaced=counts.replaced,
                stored=stored,
            ),
        )

    def _confidence(self) -> float:
        if self.services.writer.needs_readings:
            return confidence.reader_confidence(self.prepared.scope, self.prepared.asked)
        quotes = (f"{source.breadcrumb} {source.quote}" for source in self.renderer.sources)
        return confidence.model_confidence(confidence.ModelSigns.of(self.prepared.question, quotes, self.gate.counts))

    def _turn(self, status: Status, value: float) -> Turn:
        prepared, found = self.prepared, self.prepared.found
        cited = [self.evidence.passages[number - 1].chunk for number, *_ in self.renderer.spans]
        return Turn(
            session_id=prepared.session_id,
            query=prepared.request.query,
            response=self.text.strip(),
            sources=tuple(source.model_dump(mode="json") for source in self.renderer.sources),
            mode=prepared.mode,
            selected_text=prepared.request.selected_text,
            chunks_retrieved=max(len(self.evidence.passages), found.total_results) if found else 0,
            latency_ms=_since(prepared.started),
            confidence=value,
            status=status,
            standalone_query=prepared.question,
            searches=tuple(self.searches),
            evidence=tuple(dict.fromkeys(chunk.chunk_id for chunk in cited if chunk)),
            metadata=dict(prepared.request.metadata or {}),
            turn_id=str(uuid4()),
        )


async def _remember(request: ChatRequest, services: Services) -> tuple[tuple[Turn, ...], bool]:
    """Return the last turns of the session, and whether they could be read. An answer needs no database."""
    if request.session_id is None:
        return (), True
    try:
        wanted = max(services.settings.agent_max_turns, EXCHANGES - 1)
        return tuple(await services.conversations.recent(request.session_id, 2 * wanted)), True
    except ConversationsUnavailable as failure:
        log.warning("the conversation could not be read: %s", failure.message)
        return (), False


async def _keep(turn: Turn, prepared: Prepared, services: Services) -> bool:
    """Store the turn, and return whether it was stored."""
    if not prepared.remembered:
        return False
    try:
        async with asyncio.timeout(_left_to_store(prepared)):
            await services.conversations.store(turn, continues=prepared.continues)
    except (ConversationsUnavailable, TimeoutError) as failure:
        log.warning("a turn was not stored: %s", failure)
        return False
    if prepared.topic:
        try:
            async with asyncio.timeout(_left_to_store(prepared)):
                await services.conversations.set_topic(turn.session_id, prepared.topic)
        except (ConversationsUnavailable, TimeoutError) as failure:
            log.warning("the topic of a conversation was not stored: %s", failure)
    return True


def _left_to_store(prepared: Prepared) -> float:
    return max(0.0, prepared.deadline - STORE_TIMEOUT_RESERVE - time.perf_counter())


def _search_request(prepared: Prepared, services: Services) -> RetrievalRequest:
    request, settings = prepared.request, services.settings
    threshold = request.score_threshold if request.score_threshold is not None else settings.agent_score_threshold
    return RetrievalRequest(
        query=prepared.question[:MAX_QUERY_CHARS],
        top_k=request.top_k if "top_k" in request.model_fields_set else settings.agent_top_k,
        score_threshold=threshold,
        filters=prepared.filters,
    )


def _record(found: SearchResult, filters: SearchFilters | None) -> SearchRecord:
    scores = [chunk.similarity_score for chunk in found.results]
    mean = sum(scores) / len(scores) if scores else None
    narrowed = filters.model_dump(exclude_none=True) if filters else None
    editions = tuple(one.model_dump() for one in found.editions)
    return SearchRecord(found.query, found.total_results, mean, datetime.now(UTC), narrowed, editions)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
