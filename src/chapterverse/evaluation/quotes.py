"""Finds a quote in the current book: in its place, elsewhere, changed, or gone.

A quote is first searched for word for word, ignoring differences in blanks. If that fails, the most similar text on its
page, or on pages that a search for the quote finds, is taken as the changed quote.
"""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from chapterverse.book import Page, edition_names
from chapterverse.embeddings import Embedder
from chapterverse.fields import MAX_QUERY_CHARS
from chapterverse.index import Index
from chapterverse.language import stems
from chapterverse.models import RetrievalRequest, SearchFilters
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.units import blocks_of_text, cut_units

State = Literal["stands", "moved", "changed", "gone"]

ALIKE: Final = 0.5  # least similarity in words, and least share of the words that carry meaning, of a changed quote
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Quote:
    """A text of a page at an earlier time: `page_text[start:end] == text`. The edition is that of the page."""

    page_id: str
    start: int
    end: int
    text: str
    edition: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a quote and where it is now."""

    state: State
    page: Page | None = None
    start: int = 0
    end: int = 0

    @property
    def now(self) -> str:
        """The text that is there now; empty if the quote is gone."""
        return self.page.text[self.start : self.end] if self.page else ""


async def locate(quote: Quote, embedder: Embedder, index: Index) -> Standing:
    """Find a quote in the book."""
    own = await index.page(quote.page_id)
    if own and own.text[quote.start : quote.end] == quote.text and whole(quote.text).match(own.text, quote.start):
        return Standing("stands", own, quote.start, quote.end)
    pages = [own] if own else []
    if own is None or _nearest(quote, own) is None:
        pages += [page async for page in _found(quote, embedder, index)]
    for page in pages:
        if (place := _nearest(quote, page)) is not None:
            in_place = page is own and place[0] == quote.start
            return Standing("stands" if in_place else "moved", page, *place)
    for page in pages:  # the quote's own page first
        if (place := _closest(quote, page)) is not None:
            return Standing("changed", page, *place)
    return Standing("gone")


async def _found(quote: Quote, embedder: Embedder, index: Index) -> AsyncIterator[Page]:
    """Yield the other pages of the quote's edition that a search for the quote finds, best first. Yield nothing if the
    edition no longer exists under its name."""
    wanted = quote.text.replace("\x00", " ").strip()[:MAX_QUERY_CHARS]
    is_held = quote.edition in {edition.key for edition in (await index.manifest()).shelf}
    if not wanted or (quote.edition and not is_held):
        return
    book, version = edition_names(quote.edition)
    within = SearchFilters(book=[book], version=[version]) if is_held else None
    found = await retrieve_with_retry(RetrievalRequest(query=wanted, filters=within), embedder, index)
    for page_id in dict.fromkeys(chunk.page_id for chunk in found.results):
        if page_id != quote.page_id and (page := await index.page(page_id)) is not None:
            yield page


def whole(text: str) -> re.Pattern[str]:
    """Return a pattern for a text with other blanks. A word or number at its beginning or end must not go on: `30` is
    not found in `300` or `30.5`."""
    before = r"(?<![A-Za-z0-9_])" if re.match(r"\s*[A-Za-z0-9_]", text) else ""
    after = r"(?![A-Za-z0-9_]|[.,]\d)" if re.search(r"[A-Za-z0-9_]\s*$", text) else ""
    return re.compile(before + r"\s+".join(map(re.escape, text.split())) + after)


def _nearest(quote: Quote, page: Page) -> tuple[int, int] | None:
    """Return the position of the quote on a page, ignoring differences in blanks. Of several, return the one nearest to
    the earlier position."""
    spans = [found.span() for found in whole(quote.text).finditer(page.text)] if quote.text.strip() else []
    return min(spans, key=lambda span: abs(span[0] - quote.start), default=None)


def _closest(quote: Quote, page: Page) -> tuple[int, int] | None:
    """Return the range of a page that is most similar to the quote, or None if none is similar enough."""
    wanted, about = _words(quote.text), stems(quote.text)
    size = max(1, len(cut_units(quote.text, blocks_of_text(quote.text))))
    best, place = ALIKE, None
    matcher: SequenceMatcher[str] = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for start, end in _stretches(page, size):
        if len(about & stems(page.text[start:end])) < ALIKE * len(about):  # only words such as "the" are the same
            continue
        matcher.set_seq1(_words(page.text[start:end]))
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (alike := matcher.ratio()) > best:
            best, place = alike, (start, end)
    return place


def _stretches(page: Page, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of about `size` units."""
    units = cut_units(page.text, page.blocks)
    for first in range(len(units)):
        for count in {max(1, size - 1), size, size + 1}:
            if first + count <= len(units):
                yield units[first].start, units[first + count - 1].end


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
