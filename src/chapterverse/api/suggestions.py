"""The route for suggested questions. They are made in the background (`evaluation.suggestion_store`)."""

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated

from fastapi import APIRouter, Query, Request

from chapterverse.api.dependencies import EditionsOf, ServicesOf
from chapterverse.api.errors import responses
from chapterverse.api.pages import Contents, PageSummary
from chapterverse.evaluation.suggesting import Suggestion
from chapterverse.evaluation.suggestion_store import Shelf
from chapterverse.fields import Text
from chapterverse.models import Frozen
from chapterverse.retrieval import editions_in

router = APIRouter(tags=["book"])


class SuggestionList(Frozen):
    """Questions to begin with."""

    suggestions: list[Suggestion]


@router.get("/suggestions", responses=responses(400, 401, 503))
async def suggestions(
    request: Request,
    services: ServicesOf,
    wanted: EditionsOf,
    limit: Annotated[int, Query(ge=1, le=50, description="The maximum number of questions.")] = 6,
    page: Annotated[
        list[Text] | None,
        Query(
            max_length=50,
            description="Addresses of pages, such as those that an answer cites: questions near them come first.",
        ),
    ] = None,
) -> SuggestionList:
    """Questions that the book answers; each was tested. The list is empty until they are made, shortly after a start or
    a change of the book. With several books: from the latest version of each in turn, or from those that are named."""
    shelf: Shelf = request.app.state.suggestions
    stored = await asyncio.to_thread(shelf.read)
    if stored is None:
        return SuggestionList(suggestions=[])
    editions = [(edition.book, edition.version) for edition in await editions_in(wanted, services.index)]
    offered = [
        [question for question in stored.suggestions if (question.book, question.version) == edition]
        for edition in editions
    ]
    in_turn = [question for row in zip_longest(*offered) for question in row if question is not None]
    if page:
        contents: Contents = request.app.state.contents
        listed = await contents.read(services.index, wanted)
        in_turn = nearest_first(in_turn, [address.partition("#")[0] for address in page], listed.pages)
    return SuggestionList(suggestions=in_turn[:limit])


def nearest_first(
    offered: Sequence[Suggestion], pages: Sequence[str], listed: Sequence[PageSummary]
) -> list[Suggestion]:
    """Sort suggestions by the distance, in reading order, between their page and the nearest of `pages`. Those of
    another book come last. `listed`: all pages in reading order."""
    places = {(page.url, page.book, page.version): number for number, page in enumerate(listed)}
    near = [(key, place) for key, place in places.items() if key[0] in pages]

    def distance(question: Suggestion) -> int:
        edition = (question.book, question.version)
        place = places.get((question.page, *edition))
        distances = [abs(other - place) for key, other in near if place is not None and key[1:] == edition]
        return min(distances, default=len(listed))

    return sorted(offered, key=distance)
