"""What the tools take. The descriptions are read by the models that call them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from chapterverse.api.errors import problem
from chapterverse.book import page_id_for
from chapterverse.errors import ValidationFailed
from chapterverse.models import (
    ChatRequest,
    Query,
    RetrievalRequest,
    SearchFilters,
    Selection,
    SessionId,
    Strict,
    Text,
    TopK,
)

_FILTERS = 'Use only passages that match, for example {"module": "ros2"} or {"page_title": ["Nodes", "Topics"]}.'


class SearchArguments(Strict):
    """Of `search_documentation`."""

    query: Query = Field(description="What to look for: a question or a few words.")
    top_k: TopK = Field(5, description="How many passages to return.")
    filters: SearchFilters | None = Field(None, description=_FILTERS)

    def request(self) -> RetrievalRequest:
        """The search that is meant."""
        return RetrievalRequest(query=self.query, top_k=self.top_k, filters=self.filters)


def _strip(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


class AskArguments(Strict):
    """Of `ask_book`."""

    model_config = ConfigDict(str_strip_whitespace=False)  # blanks of a selection count for offsets

    question: Annotated[Query, BeforeValidator(_strip)] = Field(description="The question, in the reader's words.")
    selected_text: Selection | None = Field(
        None, description="Answer from this text alone, not from the book; at most 10,000 characters."
    )
    filters: SearchFilters | None = Field(None, description=_FILTERS)
    session_id: SessionId | None = Field(
        None, description="The session_id of an earlier answer, so that a follow-up question is understood."
    )

    def request(self) -> ChatRequest:
        """The question that is meant."""
        return ChatRequest(
            query=self.question,
            session_id=self.session_id,
            mode="general" if self.selected_text is None else "selected_text",
            selected_text=self.selected_text,
            filters=self.filters,
        )


class ReadArguments(Strict):
    """Of `read_page`."""

    page_id: Text | None = Field(None, description="As search results and citations give it.")
    url: Text | None = Field(None, description="Address of the page, with or without a section's anchor.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.page_id) == bool(self.url):
            raise ValueError("give either page_id or url")
        return self

    def id(self) -> str:
        """The id of the page that is meant."""
        return self.page_id or page_id_for((self.url or "").partition("#")[0])


@contextmanager
def reading_arguments() -> Iterator[None]:
    """Have what is wrong with arguments told as everywhere."""
    try:
        yield
    except ValidationError as failure:
        faults = [
            {"field": ".".join(map(str, error["loc"])) or "arguments", "problem": problem(error)}
            for error in failure.errors()
        ]
        message = "; ".join(f"{fault['field']}: {fault['problem']}" for fault in faults)
        raise ValidationFailed(message, details={"errors": faults}) from None
