"""Routes for the book itself: search it, list books and pages, read a page, get an image."""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path, Request, Response

from chapterverse.api.access.guard import admitted
from chapterverse.api.dependencies import EditionsOf, PageId, ServicesOf
from chapterverse.api.errors import responses
from chapterverse.api.pages import BookList, Contents, PageList, RenderedPage, list_books, render_page
from chapterverse.errors import NotFound
from chapterverse.ingestion.images import MEDIA_TYPES, stored_image
from chapterverse.models import RetrievalRequest, SearchResult
from chapterverse.retrieval import find_passages
from chapterverse.services import Services

router = APIRouter(tags=["book"])

IMAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
IMAGE: Final[dict[str, Any]] = {
    "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}},
    "description": "The image.",
}
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
    """Find the passages that fit a question best, by meaning and by words. No language model is used."""
    async with admitted(request):
        return await find_passages(wanted, services.embedder, services.index)


@router.get("/books", responses=responses(401, 503))
async def books(request: Request) -> BookList:
    """List the books with their versions, the latest first. The name of a book ingested without one is empty."""
    services: Services = request.app.state.services  # all books, even under `/editions/NAME/`
    return list_books((await services.index.manifest()).shelf)


@router.get("/pages", responses=responses(400, 401, 503))
async def pages(request: Request, services: ServicesOf, wanted: EditionsOf) -> PageList:
    """List the pages of the book with their sections, in reading order. With several books: the pages of the latest
    version of each, or of the editions that are named."""
    contents: Contents = request.app.state.contents
    return await contents.read(services.index, wanted)


@router.get("/pages/{page_id}", responses=responses(400, 401, 404, 503))
async def page(
    page_id: PageId,
    services: ServicesOf,
) -> RenderedPage:
    """Read one page: its stored text, which the offsets of citations refer to, its sections, its blocks, and the marks
    for formatting and links."""
    return await render_page(page_id, services.index, services.settings.chapterverse_home)


@router.get("/images/{name}", response_class=Response, responses={200: IMAGE, **responses(400, 401, 404)})
async def image(
    name: Annotated[str, Path(max_length=40, description="As the marks and blocks of a page give it.")],
    services: ServicesOf,
) -> Response:
    """An image of the book. An SVG image can neither run scripts nor load anything."""
    path = await asyncio.to_thread(stored_image, services.settings.chapterverse_home, name)
    if path is None:
        raise NotFound(f"There is no image {name} in the book.")
    data = await asyncio.to_thread(path.read_bytes)
    headers = {"Cache-Control": "private, max-age=3600", "Content-Security-Policy": IMAGE_POLICY}
    return Response(data, media_type=MEDIA_TYPES[path.suffix], headers=headers)
