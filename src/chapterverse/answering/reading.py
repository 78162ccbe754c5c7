"""Search and read for an answer without a key: candidates of one or several searches, ranked by the section reader.

A follow-up has candidates from three searches: the question alone, the question after the one before it, and the page
of the last answer. The reader reads them with the earlier questions in front, and the question alone. Units that the
last answer marked count less, and never make up the answer alone.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

from chapterverse.answering.confidence import SHORT_SELECTION
from chapterverse.answering.followups import earlier_questions, in_context, leans, together
from chapterverse.models import MAX_QUERY_CHARS, MAX_TOP_K, ChunkResult, RetrievalRequest, SearchFilters, SearchResult
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.services import Engines
from chapterverse.trained import UNREAD, Passage, Read, SectionReader
from chapterverse.turns import Turn
from chapterverse.units import blocks_of_text, cut_units
from chapterverse.writing import Reading

CANDIDATES: Final = 8  # passages that may be read for a question that stands alone
FIRST: Final = 4  # of them, those that cost least are read first
HARDLY: Final = 3.0  # logit that hardly any passage gets: the others are read only if one of them could win with it
OF_EACH: Final = 4  # and of each search for a follow-up
RANK_COST: Final = 0.4  # logits that each place of a single search costs
FAR_COST: Final = 8.0  # logits that lying farther from the question than the nearest passage costs, per cosine
TOLD_COST: Final = 1.5  # logits that a unit loses which the last answer marked
NEWS_COST: Final = 1.5  # logits that a page of news costs: it names everything and explains little
ALONE_COST: Final = 1.0  # logits that reading the question without its context costs
LEANING_COST: Final = 3.0  # the same, for a question that seems to lean on the ones before
CODE_GAIN: Final = 0.5  # logits that code gains where the reader asks to be shown something

_NEWS = re.compile(r"\b(?:change ?log|release[ -]?notes?|releases|what['’]?s new|news|index of|blog)\b", re.IGNORECASE)
_SHOW = re.compile(r"\b(?:show|example|snippet|code|command|syntax)\b", re.IGNORECASE)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Context:
    """What came before a question."""

    earlier: tuple[str, ...] = ()  # questions, oldest first
    turns: tuple[Turn, ...] = ()
    pages: tuple[str, ...] = ()  # addresses of the pages that the last answer cites
    chunks: tuple[str, ...] = ()  # ids of the chunks that it cites
    told: dict[str, list[Span]] = field(default_factory=dict)  # what answered before, by page id

    def together(self, question: str) -> str:
        """The question as it is searched for with what came before."""
        return together(self.turns, question)[:MAX_QUERY_CHARS]


def context_of(turns: Sequence[Turn]) -> Context:
    """What a question may lean on; there is at least one turn."""
    told: dict[str, list[Span]] = {}
    for source in turns[-1].sources:
        marks = source.get("highlights") or []
        told.setdefault(str(source.get("page_id", "")), []).extend((mark["start"], mark["end"]) for mark in marks)
    pages = dict.fromkeys(str(source["source_url"]).split("#")[0] for source in turns[-1].sources)
    return Context(tuple(earlier_questions(turns)), tuple(turns), tuple(pages), turns[-1].evidence, told)


@dataclass(frozen=True, slots=True)
class ReadBook:
    """What was found, in the order of the section reader."""

    found: SearchResult  # no more passages than were asked for
    readings: tuple[Reading, ...]


async def read_book(
    question: str, context: Context, request: RetrievalRequest, engines: Engines, reader: SectionReader
) -> ReadBook:
    """Search and read. The passages come back best first, at most as many as the request wants."""
    found = await _candidates(question, context, request, engines)
    chunks = found.results
    if context.earlier:
        readings = await _read_follow_up(question, context, chunks, reader)
    else:
        readings = await _read_alone(question, chunks, reader)
    order = sorted(range(len(chunks)), key=lambda at: (-readings[at].score, at))[: request.top_k]
    ranked = [chunks[at].model_copy(update={"rank": rank}) for rank, at in enumerate(order, start=1)]
    result = found.model_copy(update={"results": ranked, "total_results": len(ranked)})
    return ReadBook(result, tuple(readings[at] for at in order))


async def _read_alone(question: str, chunks: Sequence[ChunkResult], reader: SectionReader) -> list[Reading]:
    """Read for a question that stands alone. A passage pays for its place and for its distance from the question; one
    that pays so much that it cannot win any more is not read, and ranks last."""
    nearest = max((chunk.similarity_score for chunk in chunks), default=0.0)
    costs = [RANK_COST * at + FAR_COST * (nearest - chunk.similarity_score) for at, chunk in enumerate(chunks)]
    order = sorted(range(len(chunks)), key=lambda at: (costs[at], at))
    readings = [Reading(UNREAD, UNREAD - cost, {}) for cost in costs]
    for part in (order[:FIRST], order[FIRST:]):
        if not part or max(one.score for one in readings) >= HARDLY - costs[part[0]]:
            break
        reads = await asyncio.to_thread(reader.read, [(question, _passage(chunks[at])) for at in part])
        for at, read in zip(part, reads, strict=True):
            reading = _reading(chunks[at], read, {}, show=False)
            readings[at] = replace(reading, score=reading.score - costs[at])
    return readings


async def _read_follow_up(
    question: str, context: Context, chunks: Sequence[ChunkResult], reader: SectionReader
) -> list[Reading]:
    """Read with the earlier questions in front, and the first passages also for the question alone."""
    passages = [_passage(chunk) for chunk in chunks]
    asked = in_context(context.earlier, question)
    pairs = [(asked, passage) for passage in passages]
    alone = [(question, passage) for passage in passages[:OF_EACH]]
    reads = await asyncio.to_thread(reader.read, [*pairs, *alone])
    show = _SHOW.search(question) is not None
    readings = [_reading(chunk, read, context.told, show) for chunk, read in zip(chunks, reads, strict=False)]
    told, cost = (context.told, LEANING_COST) if leans(question) else ({}, ALONE_COST)
    for at, read in enumerate(reads[len(pairs) :]):
        other = _less(_reading(chunks[at], read, told, show), cost)
        readings[at] = max(readings[at], other, key=lambda reading: reading.score)
    return readings


async def read_selection(question: str, text: str, reader: SectionReader) -> Reading:
    """Read the reader's own selection."""
    units = tuple((unit.start, unit.end) for unit in cut_units(text, blocks_of_text(text)))
    # The model was trained on passages of some length: a sentence or two is read several times over.
    copies = min(8, SHORT_SELECTION // max(1, len(text)) + 1)
    step = len(text) + 2
    spans = tuple((start + copy * step, end + copy * step) for copy in range(copies) for start, end in units)
    passage = Passage("\n\n".join([text] * copies), spans)
    read = (await asyncio.to_thread(reader.read, [(question, passage)]))[0]
    scores: dict[int, float] = {}
    for (start, _), score in zip(units * copies, read.units, strict=True):
        scores[start] = max(score, scores.get(start, UNREAD))
    return Reading(read.answers, read.answers, scores)


# ── candidates ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _candidates(question: str, context: Context, request: RetrievalRequest, engines: Engines) -> SearchResult:
    if not context.earlier:
        wide = request.model_copy(update={"top_k": min(MAX_TOP_K, max(CANDIDATES, request.top_k))})
        return await retrieve_with_retry(wide, engines.embedder, engines.index)
    narrow = request.model_copy(update={"top_k": OF_EACH})
    joined = narrow.model_copy(update={"query": context.together(question)})
    searches = [narrow, joined]
    if context.pages and not (request.filters and request.filters.source_url):
        given = request.filters or SearchFilters()
        here = given.model_copy(update={"source_url": list(context.pages)})
        searches.append(joined.model_copy(update={"filters": here}))
    # What the last answer rested on stays a candidate.
    alone, *others = await asyncio.gather(
        *(
            retrieve_with_retry(one, engines.embedder, engines.index, context.chunks if one is joined else ())
            for one in searches
        )
    )
    rows = zip_longest(*(found.results for found in (alone, *others)))
    each = {chunk.content_hash: chunk for row in rows for chunk in row if chunk is not None}
    first = {chunk.content_hash: chunk for chunk in alone.results}
    merged = list({**first, **each}.values())
    query = joined.query if leans(question) else question
    return alone.model_copy(update={"results": merged, "total_results": len(merged), "query": query})


def _passage(chunk: ChunkResult) -> Passage:
    front = "".join(f"{part}\n" for part in (chunk.breadcrumb, chunk.lead) if part)
    return Passage(chunk.chunk_text, tuple(_spans(chunk)), front)


def _spans(chunk: ChunkResult) -> list[Span]:
    if chunk.units:
        return [(unit.start - chunk.char_start, unit.end - chunk.char_start) for unit in chunk.units]
    return [(unit.start, unit.end) for unit in cut_units(chunk.chunk_text, blocks_of_text(chunk.chunk_text))]


def _reading(chunk: ChunkResult, read: Read, told: Mapping[str, Sequence[Span]], show: bool) -> Reading:
    """What counts of a passage: units that answered before count less, and the passage by as much less."""
    before = told.get(chunk.page_id, ())
    units: dict[int, float] = {}
    repeats: set[int] = set()
    for (start, end), score in zip(_spans(chunk), read.units, strict=True):
        left, right = start + chunk.char_start, end + chunk.char_start
        repeated = any(first < right and left < last for first, last in before)
        code = show and chunk.chunk_text[start:end].lstrip().startswith(("```", "~~~"))
        units[left] = score + CODE_GAIN * code - TOLD_COST * repeated
        repeats |= {left} if repeated else set()
    lost = max(read.units, default=UNREAD) - max(units.values(), default=UNREAD)
    news = NEWS_COST if _NEWS.search(f"{chunk.page_title} {chunk.source_url.split('#')[0].replace('-', ' ')}") else 0.0
    answers = read.answers - max(0.0, lost)
    return Reading(answers, answers - news, units, frozenset(repeats))


def _less(reading: Reading, cost: float) -> Reading:
    return replace(reading, answers=reading.answers - cost, score=reading.score - cost)
