"""Translates errors of a Qdrant server and of the network."""

from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError

import httpx
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from chapterverse.errors import (
    ChapterverseError,
    EmbeddingMismatchError,
    IndexMissing,
    IndexTimeout,
    IndexUnavailable,
    RetrievalUnavailable,
)

# What the client raises for a response that is not JSON, not text, or has no result.
_UNREADABLE = (JSONDecodeError, UnicodeDecodeError, AssertionError)
_FOREIGN = "The server at QDRANT_URL does not answer like a Qdrant server"


@contextmanager
def server_errors(collection: str) -> Iterator[None]:
    """Translate failures of calls about a collection to `RetrievalUnavailable` or a subclass."""
    try:
        yield
    except (ApiException, QdrantException, TimeoutError, *_UNREADABLE) as error:
        raise translate(error, collection) from error


def translate(error: Exception, collection: str) -> ChapterverseError:
    """Return our error for an error of the client."""
    if isinstance(error, TimeoutError):
        return IndexTimeout("The Qdrant server did not answer in time")
    if isinstance(error, ResourceExhaustedResponse):
        return IndexUnavailable("The Qdrant server is overloaded", retry_after=float(error.retry_after_s))
    if isinstance(error, UnexpectedResponse):
        return _refusal(error, collection)
    if isinstance(error, ResponseHandlingException):
        if isinstance(error.source, httpx.TimeoutException):
            return IndexTimeout("The Qdrant server did not answer in time")
        if isinstance(error.source, httpx.TransportError):
            return IndexUnavailable("The Qdrant server cannot be reached")
    return RetrievalUnavailable(_FOREIGN)


def _refusal(error: UnexpectedResponse, collection: str) -> ChapterverseError:
    status = error.status_code or 0
    reason = _reason(error)
    if status == 404:
        return IndexMissing(f"The Qdrant server has no collection {collection}")
    if status in (401, 403):
        return RetrievalUnavailable("The Qdrant server refused the key: check QDRANT_API_KEY")
    if status == 400 and "dimension" in reason.lower():
        return EmbeddingMismatchError(f"The index was made with another embedding model: {reason}")
    if status >= 500 or status == 429:
        return IndexUnavailable(f"The Qdrant server answered with status {status}")
    return RetrievalUnavailable(f"The Qdrant server refused the request (status {status}): {reason}")


def _reason(error: UnexpectedResponse) -> str:
    """The reason that the server sent, if it sent one."""
    try:
        return str(error.structured()["status"]["error"])
    except (ValueError, KeyError, TypeError):
        return error.reason_phrase
