"""Arguments of the tools. The models that call the tools read the descriptions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from chapterverse.book import page_id_for
from chapterverse.fields import OneOrMore, Query, Selection, SessionId, Text, TopK, faults_in, invalid
from chapterverse.index import Index
from chapterverse.models import ChatRequest, RetrievalRequest, SearchFilters, Strict
from chapterverse.retrieval import editions_in

_FILTERS = (
    'Use only passages that match, for example {"module": "ros2"} or {"page_title": ["Nodes", "Topics"]}. '
    '{"book": "guide", "version": "1.0"} uses one edition; default: the latest version of each book, see list_books.'
)


class SearchArguments(Strict):
    """Arguments of `search_documentation`."""

    query: Query = Field(description="What to look for: a question or a few words.")
    top_k: TopK = Field(5, description="How many passages to return.")
    filters: SearchFilters | None = Field(None, description=_FILTERS)

    def request(self) -> RetrievalRequest:
        """The arguments as a search request."""
        return RetrievalRequest(query=self.query, top_k=self.top_k, filters=self.filters)


def _strip(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


class AskArguments(Strict):
    """Arguments of `ask_book`."""

    model_config = ConfigDict(str_strip_whitespace=False)  # blanks count in the offsets of a selection

    question: Annotated[Query, BeforeValidator(_strip)] = Field(description="The question, in the reader's words.")
    selected_text: Selection | None = Field(
        None, description="Answer from this text alone, not from the book; at most 10,000 characters."
    )
    filters: SearchFilters | None = Field(None, description=_FILTERS)
    session_id: SessionId | None = Field(
        None, description="The session_id of an earlier answer, so that a follow-up question is understood."
    )

    def request(self) -> ChatRequest:
        """The arguments as a chat request."""
        return ChatRequest(
            query=self.question,
            session_id=self.session_id,
            mode="general" if self.selected_text is None else "selected_text",
            selected_text=self.selected_text,
            filters=self.filters,
        )


class ReadArguments(Strict):
    """Arguments of `read_page`."""

    page_id: Text | None = Field(None, description="As search results and citations give it.")
    url: Text | None = Field(None, description="Address of the page, with or without a section's anchor.")
    book: OneOrMore | None = Field(None, description="With url: the book; default: all of them.")
    version: OneOrMore | None = Field(None, description="With url: the version; default: the latest one.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.page_id) == bool(self.url):
            raise ValueError("give either page_id or url")
        return self

    async def id(self, index: Index) -> str:
        """Return the id of the page. If several books have a page at the address, use the first."""
        if self.page_id:
            return self.page_id
        scope = await editions_in(SearchFilters(book=self.book, version=self.version), index)
        ids = [page_id_for((self.url or "").partition("#")[0], edition.key) for edition in scope]
        if len(ids) == 1:
            return ids[0]
        found = {page.page_id for page in await index.pages()}
        return next((page_id for page_id in ids if page_id in found), ids[0])


class NoArguments(Strict):
    """`list_books` has no arguments."""


@contextmanager
def reading_arguments() -> Iterator[None]:
    """Turn errors in the arguments into `ValidationFailed`."""
    try:
        yield
    except ValidationError as failure:
        raise invalid([fault | {"field": fault["field"] or "arguments"} for fault in faults_in(failure)]) from None
