"""Routes over the book itself: search it, list its pages, read one."""

from typing import Annotated

from fastapi import APIRouter, Body, Path, Request

from chapterverse.api.errors import responses
from chapterverse.api.limits import admitted
from chapterverse.api.pages import Contents, read_page
from chapterverse.api.services import ServicesOf
from chapterverse.models import PageList, PageText, RetrievalRequest, SearchResult
from chapterverse.retrieval import retrieve_with_retry

router = APIRouter(tags=["book"])

_EXAMPLES = {
    "plain": {"summary": "A question", "value": {"query": "What is ROS 2?"}},
    "filtered": {
        "summary": "In one module, three passages",
        "value": {"query": "How are nodes tested?", "top_k": 3, "filters": {"module": ["ros2", "simulation"]}},
    },
}


@router.post("/search", responses=responses(400, 401, 413, 429, 503))
async def search(
    wanted: Annotated[RetrievalRequest, Body(openapi_examples=_EXAMPLES)],
    request: Request,
    services: ServicesOf,
) -> SearchResult:
    """Find the passages that fit a question best, by meaning and by words. No language model is asked."""
    async with admitted(request):
        return await retrieve_with_retry(wanted, services.embedder, services.index)


@router.get("/pages", responses=responses(401, 503))
async def pages(request: Request, services: ServicesOf) -> PageList:
    """List the pages of the book with their sections, in reading order."""
    contents: Contents = request.app.state.contents
    return await contents.read(services.index)


@router.get("/pages/{page_id}", responses=responses(400, 401, 404, 503))
async def page(
    page_id: Annotated[str, Path(min_length=36, max_length=36, description="As `/pages` and `/search` give it.")],
    services: ServicesOf,
) -> PageText:
    """Read one page: its stored text, into which the offsets of every citation count, and its sections."""
    return await read_page(page_id, services.index)
