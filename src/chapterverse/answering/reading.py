"""Searches and reads for an answer without a language model; the section reader ranks the passages found.

A follow-up is searched for three times: with the breadcrumb of the last answer, with the last question, and alone. The
section reader also sees the earlier questions. If no passage answers a question that compares two things, each of the
two is searched for separately.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Final

from chapterverse.answering.followups import in_context, leans, near, together
from chapterverse.answering.scope import Selection, WholeBook
from chapterverse.conversations.turns import Turn
from chapterverse.fields import MAX_TOP_K
from chapterverse.language import content_words
from chapterverse.models import ChunkResult, RetrievalRequest, SearchResult
from chapterverse.retrieval import editions_in, persist, retrieve_with_retry
from chapterverse.services import Engines
from chapterverse.trained import UNREAD, Passage, Read, SectionReader
from chapterverse.units import units_of_text
from chapterverse.writing import Reading

CANDIDATES: Final = 12  # passages that may be read for a standalone question
STEPS: Final = (0, 2, 4, 8)  # starts of the batches: the two nearest passages first (for two cores), then more
SURE: Final = 3.0  # logit of a certain answer; a passage is read only if it could win with this logit
NEAR: Final = 8  # candidates for a follow-up: from the search near the last answer,
AFTER: Final = 5  # from the search with the last question,
ALONE: Final = 3  # and from the search for the question alone
FAR_COST: Final = 8.0  # logits subtracted per unit of cosine similarity below the nearest passage

# "compare A and B", "the difference between A and B", "A vs B"
_SIDES = re.compile(
    r"(?:\b(?:compare|comparing|between) (?P<one>[^?,;]{2,60}?) (?:and|with|to|or)"
    r"|(?P<first>[^?,;]{2,60}?) (?:vs\.?|versus)) (?P<other>[^?,;]{2,60})$",
    re.IGNORECASE,
)

Mark = tuple[str, Mapping[str, int]]  # a highlight of the last answer: the page's id and the highlight


async def read_book(
    request: RetrievalRequest, turns: Sequence[Turn], engines: Engines, reader: SectionReader
) -> WholeBook:
    """Search for the question and read the passages found, in the context of these turns. Passages come best first."""
    whole = await _read_whole(request, turns, engines, reader)
    compared = any(one.answers > 0 for one in whole.readings)
    if (
        request.top_k > 1
        and not (turns or compared)
        and (named := _SIDES.search(" ".join(request.query.split()).rstrip("?!. ")))
    ):
        asked = [f"What is {side}?" for side in (named["one"] or named["first"], named["other"])]
        parts = [request.model_copy(update={"query": one}) for one in asked]
        return _better(whole, [await _read_whole(part, (), engines, reader) for part in parts])
    return whole


def _better(whole: WholeBook, sides: Sequence[WholeBook]) -> WholeBook:
    """Return the reading for the whole comparison or, if they are better, the best passages for its two sides. Both
    then get the lower of their two scores."""
    if any(not side.readings for side in sides):
        return whole
    least = min(side.readings[0].score for side in sides)
    if whole.readings and whole.readings[0].score >= least:
        return whole
    best = {side.found.results[0].content_hash: side for side in sides}.values()
    readings = tuple(replace(side.readings[0], answers=least, score=least) for side in best)
    return WholeBook(whole.found.with_results([side.found.results[0] for side in best]), readings, whole.missing)


async def _read_whole(
    request: RetrievalRequest, turns: Sequence[Turn], engines: Engines, reader: SectionReader
) -> WholeBook:
    scope = [edition.key for edition in await persist(lambda: editions_in(request.filters, engines.index))]
    absent = persist(lambda: engines.index.missing(content_words(request.query), scope))
    found, missing = await asyncio.gather(_candidates(request, turns, engines), absent)
    read = zip(found.results, await read_passages(request.query, turns, found.results, reader), strict=True)
    best = sorted(read, key=lambda pair: -pair[1].score)[: request.top_k]
    chunks, readings = [chunk for chunk, _ in best], tuple(reading for _, reading in best)
    return WholeBook(found.with_results(chunks), readings, tuple(missing), follow_up=bool(turns))


async def read_passages(
    question: str, turns: Sequence[Turn], chunks: Sequence[ChunkResult], reader: SectionReader
) -> list[Reading]:
    """Read the passages for the question, in the context of these turns. A passage that is too far away to win is not
    read and ranks last."""
    nearest = max((chunk.similarity_score for chunk in chunks), default=0.0)
    # The similarities of passages from several searches are not comparable.
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
    """Let the section reader read the selection."""
    units = tuple((unit.start, unit.end) for unit in units_of_text(text))
    read = (await asyncio.to_thread(reader.read, [(question, Passage(text, units))]))[0]
    scores = {start: score for (start, _), score in zip(units, read.units, strict=True)}
    return Selection(text, (Reading(read.answers, read.answers, scores),))


async def _candidates(request: RetrievalRequest, turns: Sequence[Turn], engines: Engines) -> SearchResult:
    """Return the passages to read: from one search or, for a follow-up, from three."""
    if not turns:
        wide = request.model_copy(update={"top_k": min(MAX_TOP_K, max(CANDIDATES, request.top_k))})
        return await retrieve_with_retry(wide, engines.embedder, engines.index)
    question, joined = request.query, together(turns, request.query)
    wanted = [(joined, AFTER), (question, ALONE), *((one, NEAR) for one in near(turns, question))]
    searches = [request.model_copy(update={"query": query, "top_k": most}) for query, most in wanted]
    also = turns[-1].evidence  # the evidence of the last answer stays a candidate
    results = await asyncio.gather(
        *(retrieve_with_retry(one, engines.embedder, engines.index, also) for one in searches)
    )
    rows = zip_longest(*(found.results for found in results))
    merged = {chunk.content_hash: chunk for row in rows for chunk in row if chunk is not None}
    query = joined if leans(question) else question
    return results[0].with_results([*merged.values()]).model_copy(update={"query": query})


def _passage(chunk: ChunkResult) -> Passage:
    # Start with the page's title: the chapter names before it make the section reader refuse more often.
    place = chunk.breadcrumb[max(0, chunk.breadcrumb.find(" ".join(chunk.page_title.split()))) :]
    front = "".join(f"{part}\n" for part in (place, chunk.lead) if part)
    units = ((unit.start - chunk.char_start, unit.end - chunk.char_start) for unit in chunk.units)
    return Passage(chunk.chunk_text, tuple(units), front)


def _reading(chunk: ChunkResult, read: Read, marked: Sequence[Mark], cost: float) -> Reading:
    """Return the reading of a passage, with the units that the last answer highlighted."""
    units, marks = chunk.units, [mark for page, mark in marked if page == chunk.page_id]
    again = (one.start for one in units if any(it["start"] < one.end and one.start < it["end"] for it in marks))
    scores = {unit.start: score for unit, score in zip(units, read.units, strict=True)}
    return Reading(read.answers, read.answers - cost, scores, frozenset(again))
