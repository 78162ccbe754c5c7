"""The MCP server: tools for the book, and its pages as resources.

An error of a tool is a result with `isError` and the common error body; an error of a resource is a JSON-RPC error with
that body as its data. A `Call` hides the transport, so that the same tools serve stdio and HTTP.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext
from pydantic import BaseModel

from chapterverse import __version__
from chapterverse.api.feedback import keep_feedback
from chapterverse.api.inert import advice_of, inert, inert_line, link_to, marked, written
from chapterverse.api.mcp.arguments import (
    AskArguments,
    NoArguments,
    ReadArguments,
    SearchArguments,
    reading_arguments,
)
from chapterverse.api.pages import BookList, PageText, list_books, read_page
from chapterverse.book import edition_names
from chapterverse.editions import NAMELESS, edition_label
from chapterverse.errors import ChapterverseError, InternalError, NotFound
from chapterverse.models import ChatRequest, ChatResponse, ErrorResponse, FeedbackKept, FeedbackRequest, SearchResult
from chapterverse.retrieval import find_passages
from chapterverse.services import Services

log = logging.getLogger(__name__)

PAGES: Final = "chapterverse://pages/"  # a page's id follows
LISTED: Final = 1000  # resources in one answer; a cursor leads to the next ones
LONGEST_CURSOR: Final = 20  # characters

_INSTRUCTIONS = (
    "Answers from a book, or several. ask_book gives an answer whose every sentence was checked against the passage it "
    "cites; keep its [1] markers and name the sources. status `refused` means that the book does not say: do not "
    "answer from elsewhere as if it did. search_documentation finds passages, read_page gives a whole page. Where "
    "list_books lists several books or versions, the latest version of each is asked unless filters name others. "
    "When the user says that an answer was good or bad, tell the book's author with rate_answer."
)


class Call(Protocol):
    """One call of a client. Each transport provides its own services and limits."""

    @property
    def services(self) -> Services:
        """The services that answer the call."""

    def slot(self) -> AbstractAsyncContextManager[object]:
        """Return a context manager that holds a slot. Slots limit how many calls run at once."""

    async def answer(self, question: ChatRequest) -> ChatResponse:
        """Answer a question. This takes a slot itself."""

    def failed(self, failure: ChapterverseError) -> None:
        """Record that the call failed."""


Context = ServerRequestContext[Any, Any]
Run = Callable[[dict[str, Any], Call], Awaitable[types.CallToolResult]]


@dataclass(frozen=True, slots=True)
class BookServer:
    """The handlers. `call_of` makes a `Call` from the HTTP request, which is None over stdio."""

    call_of: Callable[[Any], Call]

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """List all tools."""
        return types.ListToolsResult(tools=[tool for tool, _ in _TOOLS.values()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run a tool. Its errors are returned as results, so that the calling model can see them and correct the
        call."""
        if params.name not in _TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name}. There are: {', '.join(_TOOLS)}.")
        call = self.call_of(context.request)
        try:
            return await _TOOLS[params.name][1](params.arguments or {}, call)
        except ChapterverseError as failure:
            error = failure
        except Exception:  # the SDK would send some clients the text of the exception
            log.exception("%s failed", params.name)
            error = InternalError(InternalError.UNEXPECTED)
        call.failed(error)
        body = _error_body(error)
        return types.CallToolResult(
            content=[_text(f"{error.code}: {error.message}")], structured_content=body, is_error=True
        )

    async def list_resources(
        self, context: Context, part: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the pages of the book, in reading order."""
        cursor = (part.cursor if part else None) or "0"
        if not cursor.isdecimal() or len(cursor) > LONGEST_CURSOR:
            raise MCPError(types.INVALID_PARAMS, f"{cursor[:LONGEST_CURSOR]} is not a cursor of this list.")
        start, end = int(cursor), int(cursor) + LISTED
        call = self.call_of(context.request)
        try:
            pages = await call.services.index.pages()
        except ChapterverseError as failure:
            raise _refused(failure, call) from None
        resources = [
            types.Resource(
                uri=PAGES + page.page_id,
                name=page.url,
                title=" › ".join(filter(None, (edition_label(*edition_names(page.edition)), page.title))),
                mime_type="text/plain",
            )
            for page in pages[start:end]
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=str(end) if end < len(pages) else None)

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the URI template of a page."""
        template = types.ResourceTemplate(
            name="page",
            title="A page of the book",
            uri_template=PAGES + "{page_id}",
            description="The stored text of a page, which the offsets of citations refer to.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, wanted: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the stored text of a page."""
        call = self.call_of(context.request)
        try:
            if not wanted.uri.startswith(PAGES):
                raise NotFound(f"There is no resource {wanted.uri}. Pages are at {PAGES}{{page_id}}.")
            page = await read_page(wanted.uri.removeprefix(PAGES), call.services.index)
        except ChapterverseError as failure:
            raise _refused(failure, call) from None
        # Plain text: offsets refer to it, and as Markdown its images and links would be active.
        text = types.TextResourceContents(uri=wanted.uri, mime_type="text/plain", text=page.text)
        return types.ReadResourceResult(contents=[text])


def book_server(call_of: Callable[[Any], Call]) -> Server[Any]:
    """Create the server, for any transport."""
    handlers = BookServer(call_of)
    return Server(
        "chapterverse",
        version=__version__,
        title="Chapterverse",
        instructions=_INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


# ── the tools ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _search(given: dict[str, Any], call: Call) -> types.CallToolResult:
    with reading_arguments():
        request = SearchArguments.model_validate(given).request()
    async with call.slot():
        found = await find_passages(request, call.services.embedder, call.services.index)
    passages = [
        f"{chunk.rank}. {inert_line(chunk.place)}\n{link_to(chunk.source_url)}\n\n{inert(chunk.chunk_text)}"
        for chunk in found.results
    ]
    return _result(found, *(passages or ["No passage of the book fits."]))


async def _ask(given: dict[str, Any], call: Call) -> types.CallToolResult:
    with reading_arguments():
        question = AskArguments.model_validate(given).request()
    answer = await call.answer(question)
    sources = [
        f"[{number}] {inert_line(source.place)}\n{link_to(source.source_url)}\n“{inert(source.quote)}”"
        for number, source in enumerate(answer.sources, start=1)
    ]
    advice = "\n".join(advice_of(answer)) if answer.advice else ""
    texts = [text for text in (answer.disclaimer, advice, "\n\n".join(sources)) if text]
    return _result(answer, written(inert(_marked(answer)), "[{}]"), *texts)


def _marked(answer: ChatResponse) -> str:
    """Return the text of an answer with the markers of each statement replaced."""
    text, last = "", 0
    for statement in answer.statements:
        text += marked(answer.answer[last : statement.end], statement.sources)
        last = statement.end
    return text + marked(answer.answer[last:], [])


async def _read(given: dict[str, Any], call: Call) -> types.CallToolResult:
    with reading_arguments():
        wanted = ReadArguments.model_validate(given)
    async with call.slot():
        index = call.services.index
        page = await read_page(await wanted.id(index), index, wanted.url or "")
    return _result(page, inert(page.text))


async def _books(given: dict[str, Any], call: Call) -> types.CallToolResult:
    with reading_arguments():
        NoArguments.model_validate(given)
    listed = list_books((await call.services.index.manifest()).shelf)
    lines = [
        f"- {inert_line(book.name or NAMELESS)}: {inert_line(', '.join(each.version or '-' for each in book.versions))}"
        for book in listed.books
    ]
    return _result(listed, "\n".join(lines))


async def _rate(given: dict[str, Any], call: Call) -> types.CallToolResult:
    with reading_arguments():
        feedback = FeedbackRequest.model_validate(given)
    kept = await keep_feedback(feedback, call.services)
    return _result(kept, f"Stored: {kept.rating}{f', {kept.reason}' if kept.reason else ''}.")


def _tool(
    name: str, description: str, takes: type[BaseModel], gives: type[BaseModel], *, reads: bool = True
) -> types.Tool:
    return types.Tool(
        name=name,
        description=description,
        input_schema=takes.model_json_schema(),
        output_schema=gives.model_json_schema(mode="serialization"),
        # A conversation is stored, but the caller's environment is not changed.
        annotations=types.ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False),
    )


_TOOLS: Final[dict[str, tuple[types.Tool, Run]]] = {
    "search_documentation": (
        _tool(
            "search_documentation",
            "Find the passages of the book that fit a question best, by meaning and by words. No language model is "
            "used. Each passage comes with its page, section and address.",
            SearchArguments,
            SearchResult,
        ),
        _search,
    ),
    "ask_book": (
        _tool(
            "ask_book",
            "Ask the book, or a selected text alone, and get an answer whose every sentence was checked against the "
            "passage it cites, or a refusal when the book does not say. [1], [2] in the answer are its sources, each "
            "with the exact quote.",
            AskArguments,
            ChatResponse,
        ),
        _ask,
    ),
    "read_page": (
        _tool(
            "read_page",
            "Read the stored text of one page in full, by its page_id or its url.",
            ReadArguments,
            PageText,
        ),
        _read,
    ),
    "list_books": (
        _tool(
            "list_books",
            "List the books on this server and their versions, the latest first, for the filters book and version.",
            NoArguments,
            BookList,
        ),
        _books,
    ),
    "rate_answer": (
        _tool(
            "rate_answer",
            "Store what the user thinks of an answer of ask_book, for the book's author: up or down, a reason, and "
            "a comment in the user's own words. turn_id is that of the answer.",
            FeedbackRequest,
            FeedbackKept,
            reads=False,
        ),
        _rate,
    ),
}


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _result(value: BaseModel, *texts: str) -> types.CallToolResult:
    content: list[types.ContentBlock] = [_text(text) for text in texts]
    return types.CallToolResult(content=content, structured_content=value.model_dump(mode="json"))


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _error_body(failure: ChapterverseError) -> dict[str, Any]:
    return ErrorResponse.of(failure).model_dump(mode="json")


def _refused(failure: ChapterverseError, call: Call) -> MCPError:
    call.failed(failure)
    code = types.INVALID_PARAMS if failure.status < 500 else types.INTERNAL_ERROR
    return MCPError(code, failure.message, _error_body(failure))
