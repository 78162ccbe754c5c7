"""The story of one question, top to bottom: remember, understand, search, decide, ask, verify, keep.

Owns the order of these steps and the events a reader gets. `prepare` does what may fail before the first byte; `stream`
does the rest and never raises: it ends in one `done` or one `error`. The JSON answer is the fold of the same events.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from chapterverse import agent
from chapterverse.advising import advise, announce, nearest_sections
from chapterverse.agent import Exchange, Finished, IssuedPassage, Rewritten, Task, Wrote
from chapterverse.citing import cite_passages, cite_selection, passage_of, selection_passage
from chapterverse.confidence import overall
from chapterverse.config import GENERATION_SECONDS, REQUEST_SECONDS
from chapterverse.errors import ChapterverseError, ConversationsUnavailable, InternalError, error_named
from chapterverse.followups import Standalone, standalone
from chapterverse.grounding import Grounder, Shown, Unit
from chapterverse.models import (
    MAX_QUERY_CHARS,
    AnswerMetadata,
    ChatRequest,
    ChatResponse,
    ChunkEvent,
    ChunkResult,
    ConfidenceLevel,
    DoneEvent,
    ErrorEvent,
    Event,
    Mode,
    RetrievalRequest,
    RetrievedEvent,
    SearchFilters,
    SearchResult,
    SourceCitation,
    SourcesEvent,
    Status,
)
from chapterverse.refusals import NOT_FOUND, NOT_IN_BOOK, OFFER, not_in_selection, topic_of_question
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.services import Services
from chapterverse.sureness import fit_of_sources
from chapterverse.topic import EXCHANGES, topic_of
from chapterverse.transcript import MORE, asks_for_more
from chapterverse.turns import SearchRecord, Turn

log = logging.getLogger(__name__)

KEEPING_SECONDS: Final = 1.0  # of the answer's time, left to verify its end and to store the turn
PARTING_SECONDS: Final = 0.2  # of them, left to say goodbye when the turn cannot be stored
DISCLAIMER: Final = "The book says little about this. Check the passages behind the answer."


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that is ready to be answered. `found` is None when only the reader's selection counts."""

    request: ChatRequest
    session_id: str
    mode: Mode  # as used: a reader who accepts the offer leaves the selection
    question: str  # that stands alone
    followup: str  # why it does not stand alone, empty if it does
    turns: tuple[Turn, ...]
    remembered: bool  # whether the conversation is kept here and could be read
    started: float
    deadline: float  # on the same clock
    found: SearchResult | None = None
    retrieval_ms: float = 0.0
    rewritten: Rewritten = field(default_factory=lambda: Rewritten("", llm_calls=0))  # what understanding took


async def prepare(
    request: ChatRequest, services: Services, seconds: float = REQUEST_SECONDS, told: Sequence[Turn] | None = None
) -> Prepared:
    """Read the conversation, make the question stand alone, and search. Whatever fails here is a plain error.

    `seconds` are left for the whole answer. `told` are the earlier turns where the caller keeps the conversation: then
    nothing is read from the database, and nothing is stored."""
    started = time.perf_counter()
    turns, remembered = await _remember(request, services) if told is None else (tuple(told), False)
    mode, asked = _understand(request, turns)
    prepared = Prepared(
        request=request,
        session_id=request.session_id or str(uuid4()),
        mode=mode,
        question=asked.question,
        followup=asked.why,
        turns=turns,
        remembered=remembered,
        started=started,
        deadline=started + seconds,
    )
    if mode == "selected_text":
        return prepared
    if asked.is_followup and asked.question != request.query and services.model.writes:
        rewritten = await agent.rewrite(request.query, _exchanges(turns), services.model)
        prepared = replace(prepared, rewritten=rewritten, question=rewritten.question or asked.question)
    searching = time.perf_counter()
    # What the last answer rested on stays a candidate: a follow-up is often about it.
    also = turns[-1].evidence if asked.is_followup else ()
    found = await retrieve_with_retry(_search_request(prepared, services), services.embedder, services.index, also)
    return replace(prepared, found=found, retrieval_ms=(time.perf_counter() - searching) * 1000)


async def stream(prepared: Prepared, services: Services) -> AsyncGenerator[Event, None]:
    """Answer as events. Closing the generator early cancels the model's run."""
    answer = _Answer(prepared, services)
    try:
        async with aclosing(answer.events()) as events:
            async for event in events:
                yield event
    except ChapterverseError as failure:
        yield ErrorEvent(error_code=failure.code, message=failure.message, retry_after=failure.retry_after)
    except Exception:  # the one place where nothing may escape: a stream always ends in `done` or `error`
        log.exception("an answer failed")
        yield ErrorEvent(error_code=InternalError.code, message="Something went wrong on our side.")


async def fold(events: AsyncIterator[Event]) -> ChatResponse:
    """The JSON answer that the events amount to; raises the error that they end in."""
    text: list[str] = []
    sources: list[SourceCitation] = []
    async for event in events:
        match event:
            case ChunkEvent():
                text.append(event.content)
            case SourcesEvent():
                sources = list(event.sources)
            case DoneEvent():
                summary = event.model_dump(exclude={"type"})
                return ChatResponse(answer="".join(text), sources=sources, **summary)
            case ErrorEvent():
                raise error_named(event.error_code, event.message, event.retry_after)
    raise InternalError("The answer ended without an end.")


@dataclass(slots=True)
class _Answer:
    """One answer on its way: what was issued, what was shown, what it took."""

    prepared: Prepared
    services: Services
    chunks: dict[int, ChunkResult] = field(default_factory=dict)  # by the number issued for this answer
    grounder: Grounder = field(init=False)
    text: list[str] = field(default_factory=list)
    searches: list[SearchRecord] = field(default_factory=list)
    tokens: int = 0
    written: int = 0  # of the tokens
    calls: int = 0
    stopped: bool = False
    generation_ms: float = 0.0

    def __post_init__(self) -> None:
        self.grounder = Grounder([], self.services.judge)

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events of the answer, in order."""
        found = self.prepared.found
        if found is not None:
            self.searches.append(_record(found))
            yield RetrievedEvent(passages=[announce(chunk) for chunk in found.results])
        refusal = self._refusal_before_asking()
        if refusal is None:
            async with aclosing(self._ask()) as shown:
                async for text in shown:
                    self.text.append(text)
                    yield ChunkEvent(content=text)
            if not self.text:
                refusal = self._refusal()
        if refusal is not None:
            self.text.append(refusal)
            yield ChunkEvent(content=refusal)
        sources = self._sources()
        yield SourcesEvent(sources=sources)
        yield await self._done(sources, refused=refusal is not None)

    async def _ask(self) -> AsyncGenerator[str, None]:
        """Let the model write, and pass on what the passages bear out."""
        started = time.perf_counter()
        seconds = min(GENERATION_SECONDS, self.prepared.deadline - started - KEEPING_SECONDS)
        task = self._task()
        model, turns = self.services.model, self.services.settings.agent_max_turns
        try:
            async with aclosing(agent.run_agent(task, model, max_turns=turns, seconds=seconds)) as run:
                async for event in run:
                    match event:
                        case Wrote(text):
                            for shown in await self._verified(self.grounder.cut(text)):
                                yield shown
                        case Finished(tokens, calls, stopped, written):
                            self.tokens, self.written, self.calls, self.stopped = tokens, written, calls, bool(stopped)
                    if self.grounder.truncated:
                        # The run is cut off before it could tell: each search of the model's own was one call more.
                        self.calls = max(1, len(self.searches))
                        break
            for shown in await self._verified(self.grounder.cut_rest()):
                yield shown
        finally:
            self.generation_ms = (time.perf_counter() - started) * 1000

    async def _verified(self, units: Sequence[Unit]) -> list[str]:
        """What of a piece of the model's text may be shown. A second opinion takes long: it is asked in a thread."""
        grounder = self.grounder
        quick = grounder.is_quick(units)
        results = grounder.check(units) if quick else await asyncio.to_thread(grounder.check, units)
        return [result.text for result in results if isinstance(result, Shown)]

    def _task(self) -> Task:
        prepared = self.prepared
        context = self.services.settings.max_conversation_history // 2  # turns, of two messages each
        history = tuple(Exchange(turn.query, turn.response) for turn in prepared.turns[-context:] if context)
        if prepared.found is None:
            selection = prepared.request.selected_text or ""
            issued, passage = selection_passage(selection)
            self.grounder.add_passages([passage])
            return Task(prepared.question, (issued,), history, search=None)
        question = f"{prepared.question} {MORE}" if asks_for_more(prepared.request.query) else prepared.question
        return Task(question, self._issue(prepared.found), history, self._search_again)

    async def _search_again(self, query: str, top_k: int, filters: SearchFilters | None) -> tuple[IssuedPassage, ...]:
        """The model's own search. The reader's filters and threshold still hold."""
        wanted = _search_request(self.prepared, self.services)
        again = RetrievalRequest(
            query=query,
            top_k=top_k,
            score_threshold=wanted.score_threshold,
            filters=wanted.filters or filters,
        )
        found = await retrieve_with_retry(again, self.services.embedder, self.services.index)
        self.searches.append(_record(found))
        return self._issue(found)

    def _issue(self, found: SearchResult) -> tuple[IssuedPassage, ...]:
        """Give each passage its number for this answer; one that was issued before keeps it."""
        numbers = {chunk.chunk_id: number for number, chunk in self.chunks.items()}
        issued: list[IssuedPassage] = []
        for chunk in found.results:
            number = numbers.setdefault(chunk.chunk_id, len(numbers) + 1)
            self.chunks.setdefault(number, chunk)
            told, passage = passage_of(chunk, number)
            self.grounder.add_passages([passage])
            issued.append(told)
        return tuple(issued)

    def _refusal_before_asking(self) -> str | None:
        """What is said when no model needs to be asked."""
        found = self.prepared.found
        if found is None:
            return None
        if not found.results:
            return NOT_FOUND
        return None if found.confidence is None or found.confidence.should_answer else NOT_IN_BOOK

    def _refusal(self) -> str:
        if self.prepared.found is None:
            return not_in_selection(topic_of_question(self.prepared.request.query))
        return NOT_IN_BOOK

    def _sources(self) -> list[SourceCitation]:
        if self.prepared.found is None:
            return cite_selection(self.grounder.citations, self.prepared.request.selected_text or "")
        return cite_passages(self.grounder.citations, self.chunks)

    async def _done(self, sources: list[SourceCitation], *, refused: bool) -> DoneEvent:
        cut_short = self.stopped or self.grounder.truncated
        status: Status = "refused" if refused else "truncated" if cut_short else "answered"
        value, level = self._confidence(sources, refused)
        asked, found = self.prepared.question, self.prepared.found
        turn = self._turn(sources, status, value)
        stored = await _keep(turn, self.prepared, self.services)
        return DoneEvent(
            mode=self.prepared.mode,
            session_id=self.prepared.session_id,
            timestamp=datetime.now(UTC),
            confidence=value,
            confidence_level=level,
            should_answer=not refused,
            disclaimer=DISCLAIMER if level == "low" else None,
            status=status,
            advice=advise(asked, found, self.prepared.request.selected_text) if refused else None,
            nearest=nearest_sections(found) if refused else [],
            metadata=AnswerMetadata(
                query_time_ms=round(_since(self.prepared.started), 3),
                retrieval_time_ms=round(self.prepared.retrieval_ms, 3),
                generation_time_ms=round(self.generation_ms, 3),
                chunks_retrieved=turn.chunks_retrieved,
                model=self.services.model.name,
                tokens_used=self.tokens + self.prepared.rewritten.tokens_used,
                tokens_written=self.written + self.prepared.rewritten.tokens_written,
                llm_calls=self.calls + self.prepared.rewritten.llm_calls,
                sentences_withheld=self.grounder.withheld,
                stored=stored,
            ),
        )

    def _confidence(self, sources: list[SourceCitation], refused: bool) -> tuple[float, ConfidenceLevel]:
        """How sure the answer is: of its evidence, and of the share of sentences that it bore out."""
        if refused:
            return 0.0, "insufficient"
        judged = self.grounder.shown + self.grounder.withheld
        share = (self.grounder.shown - self.grounder.replaced) / judged if judged else 0.0
        prepared, found = self.prepared, self.prepared.found
        fit = fit_of_sources(prepared.question, sources, self.chunks if found else prepared.request.selected_text or "")
        value = overall(fit, share, selected=found is None, followup=bool(prepared.followup))
        return value, found.confidence.confidence_level if found and found.confidence else "high"

    def _turn(self, sources: list[SourceCitation], status: Status, value: float) -> Turn:
        prepared = self.prepared
        cited = {citation.passage_number for citation in self.grounder.citations}
        return Turn(
            session_id=prepared.session_id,
            query=prepared.request.query,
            response="".join(self.text).strip(),
            sources=tuple(source.model_dump(mode="json") for source in sources),
            mode=prepared.mode,
            selected_text=prepared.request.selected_text,
            chunks_retrieved=max(len(self.chunks), prepared.found.total_results if prepared.found else 0),
            latency_ms=_since(prepared.started),
            confidence=value,
            status=status,
            standalone_query=prepared.question,
            searches=tuple(self.searches),
            evidence=tuple(self.chunks[number].chunk_id for number in sorted(cited) if number in self.chunks),
        )


def _understand(request: ChatRequest, turns: tuple[Turn, ...]) -> tuple[Mode, Standalone]:
    """How a question is to be answered, and how it stands alone."""
    history = _exchanges(turns)
    asked = standalone(request.query, history)
    if turns and turns[-1].response.endswith(OFFER) and asked.why == "accepts":
        return "general", replace(standalone(turns[-1].query, history[:-1]), is_followup=True)
    if request.mode == "selected_text":
        return request.mode, replace(asked, question=request.query)
    return request.mode, asked


def _exchanges(turns: tuple[Turn, ...]) -> list[Exchange]:
    """The turns to be understood from. The oldest may itself have been a follow-up on one that is not remembered."""
    return [
        Exchange(turn.query if at else turn.standalone_query or turn.query, turn.response)
        for at, turn in enumerate(turns)
    ]


async def _remember(request: ChatRequest, services: Services) -> tuple[tuple[Turn, ...], bool]:
    """The last turns of the session. Without a database questions are answered all the same."""
    if request.session_id is None:
        return (), True
    try:
        wanted = max(services.settings.max_conversation_history, 2 * (EXCHANGES - 1))
        return tuple(await services.conversations.recent(request.session_id, wanted)), True
    except ConversationsUnavailable as failure:
        log.warning("the conversation could not be read: %s", failure.message)
        return (), False


async def _keep(turn: Turn, prepared: Prepared, services: Services) -> bool:
    """Store the turn; whether it is kept is told to the reader."""
    if not prepared.remembered:
        return False
    left = prepared.deadline - PARTING_SECONDS - time.perf_counter()
    try:
        async with asyncio.timeout(max(0.0, left)):
            await services.conversations.store(turn)
            if len(prepared.turns) + 1 >= EXCHANGES:
                questions = [*(earlier.query for earlier in prepared.turns), turn.query]
                await services.conversations.set_topic(turn.session_id, topic_of(questions))
    except (ConversationsUnavailable, TimeoutError) as failure:
        log.warning("a turn was not stored: %s", failure)
        return False
    return True


def _search_request(prepared: Prepared, services: Services) -> RetrievalRequest:
    request, settings = prepared.request, services.settings
    threshold = request.score_threshold if request.score_threshold is not None else settings.agent_score_threshold
    return RetrievalRequest(
        query=prepared.question[:MAX_QUERY_CHARS],
        top_k=request.top_k if "top_k" in request.model_fields_set else settings.agent_top_k,
        score_threshold=threshold,
        filters=request.filters,
    )


def _record(found: SearchResult) -> SearchRecord:
    scores = [chunk.similarity_score for chunk in found.results]
    mean = sum(scores) / len(scores) if scores else None
    return SearchRecord(found.query, found.total_results, mean, datetime.now(UTC))


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
