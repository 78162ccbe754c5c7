"""The route for suggested questions, as they are kept. They are made in the background (`evaluation.suggestions`)."""

import asyncio
from itertools import zip_longest
from typing import Annotated

from fastapi import APIRouter, Query, Request

from chapterverse.api.errors import responses
from chapterverse.api.services import EditionsOf, ServicesOf
from chapterverse.evaluation.suggesting import Suggestion
from chapterverse.evaluation.suggestions import Shelf
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
    page: Annotated[str, Query(max_length=2000, description="Address of a page: its questions come first.")] = "",
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
    found = sorted(in_turn, key=lambda one: one.page != page.partition("#")[0])
    return SuggestionList(suggestions=found[:limit])
