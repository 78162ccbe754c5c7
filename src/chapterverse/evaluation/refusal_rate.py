"""Estimates how many answerable questions are refused without a key, at the book's rate of false answers."""

import hashlib
from dataclasses import dataclass
from typing import Final

from chapterverse.answering.confidence import answers, fitted, threshold
from chapterverse.answering.reading import read_book
from chapterverse.book import Page
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.models import RetrievalRequest, SearchFilters
from chapterverse.retrieval import editions_in, false_answers_in
from chapterverse.services import Engines
from chapterverse.trained import shared_reader

HEADINGS: Final = 8  # how many headings of the book are asked as questions


@dataclass(frozen=True, slots=True)
class RefusalRate:
    """The rates of false answers and false refusals at the book's setting."""

    false_answers: float  # share of unanswerable questions, on the sets that the curve was fitted on
    false_refusals: float  # share of answerable questions, on the same sets
    refused: int  # of this book's own headings, asked as questions
    asked: int


async def refusal_rate(engines: Engines, filters: SearchFilters | None = None) -> RefusalRate:
    """Measure the rates for these editions."""
    scope = await editions_in(filters, engines.index)
    wanted, keys = false_answers_in(scope), {edition.key for edition in scope}
    asked = _headings([page for page in await engines.index.pages() if page.edition in keys])
    searches = [RetrievalRequest(query=heading, filters=filters) for heading in asked]
    read = [await read_book(search, (), engines, shared_reader()) for search in searches]
    refused = sum(not answers(scope, heading, wanted) for heading, scope in zip(asked, read, strict=True))
    rate = wanted if wanted is not None else fitted()["answerable"]["false_answers"]
    return RefusalRate(rate, threshold(wanted)[1], refused, len(asked))


def _headings(pages: list[Page]) -> list[str]:
    """Return a pseudo-random choice of headings, always the same for the same book."""
    found = {section.heading[:MAX_QUERY_CHARS] for page in pages for section in page.sections}
    telling = [heading for heading in found if len(heading.split()) > 1]
    return sorted(telling, key=lambda text: hashlib.sha256(text.encode("utf-8", "replace")).digest())[:HEADINGS]
