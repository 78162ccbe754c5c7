"""The route for suggested questions, as they are kept. They are made in the background (`evaluation.suggestions`)."""

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated

from fastapi import APIRouter, Query, Request

from chapterverse.api.errors import responses
from chapterverse.api.pages import Contents, PageSummary
from chapterverse.api.services import EditionsOf, ServicesOf
from chapterverse.evaluation.suggesting import Suggestion
from chapterverse.evaluation.suggestions import Shelf
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
    limit: Annotated[int, Query(ge=1, le=50, description="At most so many.")] = 6,
    page: Annotated[
        list[Text] | None,
        Query(
            max_length=50, description="Addresses of pages, such as those that an answer cites: near questions first."
        ),
    ] = None,
) -> SuggestionList:
    """Questions that the book answers: each was tried. The list is empty until they are made, shortly after a start or
    a change of the book. With several books: of the latest version of each in turn, or of those that are named."""
    shelf: Shelf = request.app.state.suggestions
    kept = await asyncio.to_thread(shelf.read)
    if kept is None:
        return SuggestionList(suggestions=[])
    editions = [(one.book, one.version) for one in await editions_in(wanted, services.index)]
    offered = [[one for one in kept.suggestions if (one.book, one.version) == edition] for edition in editions]
    in_turn = [one for row in zip_longest(*offered) for one in row if one is not None]
    if page:
        contents: Contents = request.app.state.contents
        listed = await contents.read(services.index, wanted)
        in_turn = nearest_first(in_turn, [one.partition("#")[0] for one in page], listed.pages)
    return SuggestionList(suggestions=in_turn[:limit])


def nearest_first(
    offered: Sequence[Suggestion], pages: Sequence[str], listed: Sequence[PageSummary]
) -> list[Suggestion]:
    """Suggestions by how many pages, in reading order, lie between their page and the nearest of these. Those of
    another book come last."""
    places = {(one.url, one.book, one.version): place for place, one in enumerate(listed)}
    near = [(key, place) for key, place in places.items() if key[0] in pages]

    def distance(one: Suggestion) -> int:
        place = places.get((one.page, one.book, one.version))
        away = [abs(other - place) for key, other in near if place is not None and key[1:] == (one.book, one.version)]
        return min(away, default=len(listed))

    return sorted(offered, key=distance)
