"""Search and read for an answer without a key: candidates of one or several searches, ranked by the section reader.

A follow-up has candidates from three searches: the question alone, the question after the one before it, and the page
of the last answer. The reader reads them with the earlier questions in front, and the question alone. Units that the
last answer marked count less, and never make up the answer alone.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from chapterverse.answering.confidence import SHORT_SELECTION
from chapterverse.answering.followups import earlier_questions, leans, together
from chapterverse.answering.scope import Book, Selection
from chapterverse.evidence.passages import units_in
from chapterverse.language import content_words
from chapterverse.models import MAX_TOP_K, ChunkResult, RetrievalRequest, SearchFilters, SearchResult
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
PAGE_GAIN: Final = 1.0  # logits that a follow-up gives to a passage of the page of the last answer
FAR_COST: Final = 8.0  # logits that lying farther from the question than the nearest passage costs, per cosine
TOLD_COST: Final = 1.5  # logits that a unit loses which the last answer marked
NEWS_COST: Final = 1.5  # logits that a page of news costs: it names everything and explains little
ALONE_COST: Final = 1.0  # logits that reading the question without its context costs
LEANING_COST: Final = 3.0  # the same, for a question that seems to lean on the ones before
CODE_GAIN: Final = 0.5  # logits that code gains where the reader asks to be shown something

_NEWS = re.compile(r"\b(?:change ?log|release[ -]?notes?|releases|what['’]?s new|news|index of|blog)\b", re.IGNORECASE)
_SHOW = re.compile(r"\b(?:show|example|snippet|code|command|syntax)\b", re.IGNORECASE)

Span = tuple[int, int]
Told = Mapping[str, Sequence[Span]]  # what the last answer marked, by page id


async def read_book(
    question: str, turns: Sequence[Turn], request: RetrievalRequest, engines: Engines, reader: SectionReader
) -> Book:
    """Search and read, after these turns. The passages come best first, at most as many as the request wants."""
    words = [word.raw for word in content_words(question)]
    found, missing = await asyncio.gather(_candidates(question, turns, request, engines), engines.index.missing(words))
    chunks = found.results
    readings = await _read(question, turns, chunks, reader)
    order = sorted(range(len(chunks)), key=lambda at: (-readings[at].score, at))[: request.top_k]
    ranked = [chunks[at].model_copy(update={"rank": rank}) for rank, at in enumerate(order, start=1)]
    result = found.model_copy(update={"results": ranked, "total_results": len(ranked)})
    return Book(result, tuple(readings[at] for at in order), tuple(missing))


async def _read(
    question: str, turns: Sequence[Turn], chunks: Sequence[ChunkResult], reader: SectionReader
) -> list[Reading]:
    """Read the passages for the question after the ones before it, and those found by the question alone for it alone.
    One that pays so much that it cannot win any more is not read, and ranks last."""
    costs = _costs(turns, chunks)
    order = sorted(range(len(chunks)), key=lambda at: (costs[at], at))
    readings = [Reading(UNREAD, UNREAD - cost, {}) for cost in costs]
    asked = " / ".join([*earlier_questions(turns), question])
    show = _SHOW.search(question) is not None and bool(turns)
    told, leaning = _told(turns), leans(question)
    told_alone, alone_cost = (told, LEANING_COST) if leaning else ({}, ALONE_COST)
    for part in (order[:FIRST], order[FIRST:]):
        if not part or max(one.score for one in readings) >= HARDLY - costs[part[0]]:
            break
        alone = [at for at in part if turns and at < OF_EACH]
        pairs = [(asked, _passage(chunks[at])) for at in part] + [(question, _passage(chunks[at])) for at in alone]
        reads = await asyncio.to_thread(reader.read, pairs)
        for at, read in zip(part, reads, strict=False):
            readings[at] = _less(_reading(chunks[at], read, told, show), score=costs[at])
        for at, read in zip(alone, reads[len(part) :], strict=True):
            other = _reading(chunks[at], read, told_alone, show)
            other = _less(other, answers=alone_cost, score=alone_cost + costs[at])
            readings[at] = max(readings[at], other, key=lambda reading: reading.score)
    return readings


def _costs(turns: Sequence[Turn], chunks: Sequence[ChunkResult]) -> list[float]:
    """What each passage pays for its place and its distance from the question. Those of several searches, for a
    follow-up, cannot be compared that way; but a follow-up is likely to stay on the page of the last answer."""
    if turns:
        here = _pages(turns)
        return [-PAGE_GAIN if chunk.source_url.split("#")[0] in here else 0.0 for chunk in chunks]
    nearest = max((chunk.similarity_score for chunk in chunks), default=0.0)
    return [RANK_COST * at + FAR_COST * (nearest - chunk.similarity_score) for at, chunk in enumerate(chunks)]


async def read_selection(question: str, text: str, reader: SectionReader) -> Selection:
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
    return Selection(text, Reading(read.answers, read.answers, scores))


async def _candidates(
    question: str, turns: Sequence[Turn], request: RetrievalRequest, engines: Engines
) -> SearchResult:
    if not turns:
        wide = request.model_copy(update={"top_k": min(MAX_TOP_K, max(CANDIDATES, request.top_k))})
        return await retrieve_with_retry(wide, engines.embedder, engines.index)
    narrow = request.model_copy(update={"top_k": OF_EACH})
    joined = narrow.model_copy(update={"query": together(turns, question)})
    searches = [narrow, joined]
    pages = _pages(turns)
    if pages and not (request.filters and request.filters.source_url):
        given = request.filters or SearchFilters()
        here = given.model_copy(update={"source_url": pages})
        searches.append(joined.model_copy(update={"filters": here}))
    # What the last answer rested on stays a candidate.
    recalled = {id(joined): turns[-1].evidence}
    alone, *others = await asyncio.gather(
        *(retrieve_with_retry(one, engines.embedder, engines.index, recalled.get(id(one), ())) for one in searches)
    )
    rows = zip_longest(*(found.results for found in (alone, *others)))
    each = {chunk.content_hash: chunk for row in rows for chunk in row if chunk is not None}
    first = {chunk.content_hash: chunk for chunk in alone.results}
    merged = list({**first, **each}.values())
    query = joined.query if leans(question) else question
    return alone.model_copy(update={"results": merged, "total_results": len(merged), "query": query})


def _pages(turns: Sequence[Turn]) -> list[str]:
    """Addresses of the pages of the last answer."""
    return list({str(source["source_url"]).split("#")[0]: None for source in (turns[-1].sources if turns else ())})


def _told(turns: Sequence[Turn]) -> Told:
    told: dict[str, list[Span]] = {}
    for source in turns[-1].sources if turns else ():
        marks = source.get("highlights") or []
        told.setdefault(str(source.get("page_id", "")), []).extend((mark["start"], mark["end"]) for mark in marks)
    return told


def _passage(chunk: ChunkResult) -> Passage:
    front = "".join(f"{part}\n" for part in (chunk.breadcrumb, chunk.lead) if part)
    return Passage(chunk.chunk_text, tuple(_spans(chunk)), front)


def _spans(chunk: ChunkResult) -> list[Span]:
    return [(unit.start - chunk.char_start, unit.end - chunk.char_start) for unit in units_in(chunk)]


def _reading(chunk: ChunkResult, read: Read, told: Told, show: bool) -> Reading:
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


def _less(reading: Reading, *, answers: float = 0.0, score: float = 0.0) -> Reading:
    return replace(reading, answers=reading.answers - answers, score=reading.score - score)
