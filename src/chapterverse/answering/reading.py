"""Search and read for an answer without a key: candidates of one or several searches, ranked by the section reader.

A follow-up has candidates from three searches: the question with the place of the last answer, with the questions
before it, and alone. The reader reads them with what was said before. Where the book does not compare the two things
that a question compares, each is looked up by itself.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Final

from chapterverse.answering.followups import in_context, leans, near, together
from chapterverse.answering.scope import Book, Selection
from chapterverse.conversations.turns import Turn
from chapterverse.fields import MAX_TOP_K
from chapterverse.language import content_words
from chapterverse.models import ChunkResult, RetrievalRequest, SearchResult
from chapterverse.retrieval import editions_in, retrieve_with_retry
from chapterverse.services import Engines
from chapterverse.trained import UNREAD, Passage, Read, SectionReader
from chapterverse.units import units_of_text
from chapterverse.writing import Reading

CANDIDATES: Final = 8  # passages that may be read for a question that stands alone
STEPS: Final = (0, 2, 4)  # those that cost least are read first, two for two cores, and so on
SURE: Final = 4.0  # logit by which a passage answers for sure; others are read only if they could win with it
NEAR: Final = 8  # for a follow-up: of the search near the last answer,
AFTER: Final = 5  # of that with the questions before,
ALONE: Final = 3  # and of that for the question alone
FAR_COST: Final = 8.0  # logits that lying farther from the question than the nearest passage costs, per cosine

# "compare A and B", "the difference between A and B", "A vs B"
_SIDES = re.compile(
    r"(?:\b(?:compare|comparing|between) (?P<one>[^?,;]{2,60}?) (?:and|with|to|or)"
    r"|(?P<first>[^?,;]{2,60}?) (?:vs\.?|versus)) (?P<other>[^?,;]{2,60})$",
    re.IGNORECASE,
)

Mark = tuple[str, Mapping[str, int]]  # what the last answer marked: the page's id, and a highlight of a source


async def read_book(request: RetrievalRequest, turns: Sequence[Turn], engines: Engines, reader: SectionReader) -> Book:
    """Search and read, after these turns. The passages come best first, at most as many as the request wants."""
    whole = await _read_whole(request, turns, engines, reader)
    compared = any(one.answers > 0 for one in whole.readings)
    if not (turns or compared) and (named := _SIDES.search(" ".join(request.query.split()).rstrip("?!. "))):
        asked = [f"What is {side}?" for side in (named["one"] or named["first"], named["other"])]
        parts = [request.model_copy(update={"query": one}) for one in asked]
        return _better(whole, [await _read_whole(part, (), engines, reader) for part in parts])
    return whole


def _better(whole: Book, sides: Sequence[Book]) -> Book:
    """What was read for a question that compares, or if they are better, the best passages for each side. Those answer
    as well as the worse of them."""
    if any(not side.readings for side in sides):
        return whole
    least = min(side.readings[0].score for side in sides)
    if whole.readings and whole.readings[0].score >= least:
        return whole
    best = {side.found.results[0].content_hash: side for side in sides}.values()
    readings = tuple(replace(side.readings[0], answers=least, score=least) for side in best)
    return Book(whole.found.with_results([side.found.results[0] for side in best]), readings, whole.missing)


async def _read_whole(
    request: RetrievalRequest, turns: Sequence[Turn], engines: Engines, reader: SectionReader
) -> Book:
    scope = [edition.key for edition in await editions_in(request.filters, engines.index)]
    absent = engines.index.missing(content_words(request.query), scope)
    found, missing = await asyncio.gather(_candidates(request, turns, engines), absent)
    read = zip(found.results, await read_passages(request.query, turns, found.results, reader), strict=True)
    best = sorted(read, key=lambda pair: -pair[1].score)[: request.top_k]
    chunks, readings = [chunk for chunk, _ in best], tuple(reading for _, reading in best)
    return Book(found.with_results(chunks), readings, tuple(missing), follow_up=bool(turns))


async def read_passages(
    question: str, turns: Sequence[Turn], chunks: Sequence[ChunkResult], reader: SectionReader
) -> list[Reading]:
    """Read the passages for the question, after what was said before it. One that lies so far away that it cannot win
    any more is not read, and ranks last."""
    nearest = max((chunk.similarity_score for chunk in chunks), default=0.0)
    # Passages of several searches cannot be compared by their distance.
    costs = [0.0 if turns else FAR_COST * (nearest - chunk.similarity_score) for chunk in chunks]
    order = sorted(range(len(chunks)), key=lambda at: costs[at])
    readings = [Reading(UNREAD, UNREAD - cost, {}) for cost in costs]
    asked, last = in_context(question, turns), turns[-1].sources if turns else ()
    marked = [(source.get("page_id", ""), mark) for source in last for mark in source.get("highlights") or ()]
    for part in (order[start:end] for start, end in pairwise((*STEPS, len(order)))):
        if not part or max(one.score for one in readings) >= SURE - costs[part[0]]:
            break
        reads = await asyncio.to_thread(reader.read, [(asked, _passage(chunks[at])) for at in part])
        for at, read in zip(part, reads, strict=True):
            readings[at] = _reading(chunks[at], read, marked, costs[at])
    return readings


async def read_selection(question: str, text: str, reader: SectionReader) -> Selection:
    """Read the reader's own selection."""
    units = tuple((unit.start, unit.end) for unit in units_of_text(text))
    read = (await asyncio.to_thread(reader.read, [(question, Passage(text, units))]))[0]
    scores = {start: score for (start, _), score in zip(units, read.units, strict=True)}
    return Selection(text, (Reading(read.answers, read.answers, scores),))


async def _candidates(request: RetrievalRequest, turns: Sequence[Turn], engines: Engines) -> SearchResult:
    """The passages to read: of one search, or for a follow-up, of three."""
    if not turns:
        wide = request.model_copy(update={"top_k": min(MAX_TOP_K, max(CANDIDATES, request.top_k))})
        return await retrieve_with_retry(wide, engines.embedder, engines.index)
    question, joined = request.query, together(turns, request.query)
    wanted = [(joined, AFTER), (question, ALONE), *((one, NEAR) for one in near(turns, question))]
    searches = [request.model_copy(update={"query": query, "top_k": most}) for query, most in wanted]
    also = turns[-1].evidence  # what the last answer rested on stays a candidate
    results = await asyncio.gather(
        *(retrieve_with_retry(one, engines.embedder, engines.index, also) for one in searches)
    )
    rows = zip_longest(*(found.results for found in results))
    merged = {chunk.content_hash: chunk for row in rows for chunk in row if chunk is not None}
    query = joined if leans(question) else question
    return results[0].with_results([*merged.values()]).model_copy(update={"query": query})


def _passage(chunk: ChunkResult) -> Passage:
    # From the page's title on: names of chapters above it make the reader refuse more.
    place = chunk.breadcrumb[max(0, chunk.breadcrumb.find(" ".join(chunk.page_title.split()))) :]
    front = "".join(f"{part}\n" for part in (place, chunk.lead) if part)
    units = ((unit.start - chunk.char_start, unit.end - chunk.char_start) for unit in chunk.units)
    return Passage(chunk.chunk_text, tuple(units), front)


def _reading(chunk: ChunkResult, read: Read, marked: Sequence[Mark], cost: float) -> Reading:
    """What was read of a passage, with the units that the last answer marked."""
    units, marks = chunk.units, [mark for page, mark in marked if page == chunk.page_id]
    again = (one.start for one in units if any(it["start"] < one.end and one.start < it["end"] for it in marks))
    scores = {unit.start: score for unit, score in zip(units, read.units, strict=True)}
    return Reading(read.answers, read.answers - cost, scores, frozenset(again))
