"""The route for suggested questions, as they are kept. They are made in the background (`evaluation.suggestions`)."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request

from chapterverse.api.errors import responses
from chapterverse.evaluation.suggesting import Suggestion
from chapterverse.evaluation.suggestions import Shelf
from chapterverse.models import Frozen

router = APIRouter(tags=["book"])


class SuggestionList(Frozen):
    """Questions to begin with."""

    suggestions: list[Suggestion]


@router.get("/suggestions", responses=responses(400, 401))
async def suggestions(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=50, description="At most so many.")] = 6,
    page: Annotated[str, Query(max_length=2000, description="Address of a page: its questions come first.")] = "",
) -> SuggestionList:
    """Questions that the book answers: each was tried. The list is empty until they are made, shortly after a start or
    a change of the book."""
    shelf: Shelf = request.app.state.suggestions
    kept = await asyncio.to_thread(shelf.read)
    found = sorted(kept.suggestions, key=lambda one: one.page != page.partition("#")[0]) if kept else []
    return SuggestionList(suggestions=found[:limit])
