"""The book as Markdown for other tools: `llms.txt` is a list, `llms-full.txt` the book, `/pages/{page_id}.md` a page.

`llms.txt` follows llmstxt.org: a title, a summary, and a section of links for each chapter. Links are relative, so that
they work behind a proxy and below `/editions/NAME/`.
"""

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from chapterverse import __version__
from chapterverse.api.access.guard import admitted
from chapterverse.api.dependencies import PageId, ServicesOf
from chapterverse.api.edition_paths import edition_of
from chapterverse.api.errors import responses
from chapterverse.api.listing import ShownPages, by_module, list_for
from chapterverse.api.page_markdown import Address, link, one_line, page_markdown
from chapterverse.api.pages import PageSummary, RenderedPage, first_paragraph, render_page
from chapterverse.api.web import NOT_CHANGED
from chapterverse.errors import NotFound
from chapterverse.services import Services

router = APIRouter(tags=["book"])

_HEADINGS: Final = 6  # listed for each page
_MARKDOWN: Final = "text/markdown; charset=utf-8"
_PLAIN: Final = "text/plain; charset=utf-8"


def _described(kind: str, about: str) -> dict[int | str, dict[str, Any]]:
    content = {kind.partition(";")[0]: {"schema": {"type": "string"}}}
    return {200: {"content": content, "description": about}, 304: NOT_CHANGED}


@router.get(
    "/llms.txt",
    response_class=Response,
    responses=_described(_PLAIN, "The list, in Markdown.") | responses(400, 401, 503),
)
async def llms_txt(request: Request, services: ServicesOf) -> Response:
    """List the book for other tools, as llmstxt.org defines it: title, summary, and for each chapter the links to its
    pages as Markdown."""
    headers = await _caching(request, services)
    if _is_known(request, headers):
        return Response(status_code=304, headers=headers)
    listing = await list_for(request, services)
    return Response(await _listed(listing, services), headers=headers, media_type=_PLAIN)


@router.get(
    "/llms-full.txt",
    response_class=Response,
    responses=_described(_PLAIN, "All pages, in Markdown.") | responses(400, 401, 429, 503),
)
async def llms_full_txt(request: Request, services: ServicesOf) -> Response:
    """The whole book in one file: every page as Markdown, in reading order."""
    headers = await _caching(request, services)
    if _is_known(request, headers):
        return Response(status_code=304, headers=headers)
    async with admitted(request):
        listing = await list_for(request, services)
    return StreamingResponse(_all_pages(listing, services), headers=headers, media_type=_PLAIN)


@router.get(
    "/pages/{page_id}.md",
    response_class=Response,
    responses=_described(_MARKDOWN, "The page, in Markdown.") | responses(400, 401, 404, 503),
)
async def page_md(
    page_id: PageId,
    request: Request,
    services: ServicesOf,
) -> Response:
    """One page as Markdown: title, source address, and the stored text with its links and images."""
    headers = await _caching(request, services)
    if _is_known(request, headers):
        return Response(status_code=304, headers=headers)
    page = await render_page(page_id, services.index, services.settings.chapterverse_home)
    listing = await list_for(request, services)
    return Response(page_markdown(page, _addresses(page, listing, ""), "../"), headers=headers, media_type=_MARKDOWN)


async def _listed(listing: ShownPages, services: Services) -> str:
    about = f"{len(listing.pages)} pages."
    if listing.pages and not listing.several:
        first = await render_page(listing.pages[0].page_id, services.index, services.settings.chapterverse_home)
        about = one_line(first_paragraph(first)) or about
    parts = [
        f"# {one_line(listing.title)}",
        f"> {about}",
        "Each link leads to one page as Markdown. All pages in one file: [llms-full.txt](llms-full.txt).",
    ]
    for _, label, pages in listing.by_edition():
        for chapter in by_module(pages):
            named = (label if listing.several else "", chapter[0].category)
            parts.append(f"## {one_line(' · '.join(filter(None, named)) or 'Pages')}")
            parts.append("\n".join(_line(page) for page in chapter))
    return "\n\n".join(parts) + "\n"


def _line(page: PageSummary) -> str:
    headings = [one_line(section.heading) for section in page.sections if section.anchor and section.level == 2]
    note = ", ".join(headings[:_HEADINGS]) + (", …" if len(headings) > _HEADINGS else "")
    return f"- {link(page.title, f'pages/{page.page_id}.md')}{f': {note}' if note else ''}"


async def _all_pages(listing: ShownPages, services: Services) -> AsyncIterator[str]:
    """The pages one by one, so that a large book is never in memory at once."""
    for number, summary in enumerate(listing.pages):
        try:
            page = await render_page(summary.page_id, services.index, services.settings.chapterverse_home)
        except NotFound:  # an ingest removed the page meanwhile
            continue
        yield "\n" * bool(number) + page_markdown(page, _addresses(page, listing, "pages/"), "")


def _addresses(page: RenderedPage, listing: ShownPages, folder: str) -> Address:
    """Return a function for the address of a link: the Markdown of a page of the same edition, or an external
    address."""

    def address(target: str) -> str:
        url, _, anchor = target.partition("#")
        if page_id := listing.page_at(url, page):
            return f"{folder}{page_id}.md" + (f"#{anchor}" if anchor else "")
        return target if target.lower().startswith(("https://", "http://", "mailto:")) else ""

    return address


async def _caching(request: Request, services: Services) -> dict[str, str]:
    """The headers for caching. The ETag depends on the generation of the book, the address, the release and the book's
    title."""
    manifest = await services.index.manifest()
    title = services.settings.book_title or ""
    state = "\x1f".join((manifest.generation, request.scope["path"], _edition(request), __version__, title))
    tag = f'W/"{hashlib.sha256(state.encode()).hexdigest()[:24]}"'
    # If keys are configured, shared caches must not store the book.
    return {"ETag": tag, "Cache-Control": "private, no-cache" if services.settings.api_keys else "no-cache"}


def _edition(request: Request) -> str:
    edition = edition_of(request.scope)
    return edition.model_dump_json() if edition else ""


def _is_known(request: Request, headers: dict[str, str]) -> bool:
    return headers["ETag"] in request.headers.get("if-none-match", "")
