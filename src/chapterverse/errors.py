"""All errors, each with its code, its HTTP status and whether a retry may help.

Adapters translate vendor errors into these classes; interfaces turn them into response bodies and exit codes.

    ChapterverseError
    ├── ValidationFailed            validation_error        400
    │   └── InvalidFilterError
    ├── Unauthorized                unauthorized            401
    ├── NotFound                    not_found               404
    ├── RateLimited                 rate_limited            429
    ├── Overloaded                  overloaded              503
    ├── RetrievalUnavailable        retrieval_unavailable   503
    │   ├── IndexDamaged                                    retried
    │   ├── IndexUnavailable                                retried
    │   ├── IndexTimeout                                    retried
    │   ├── IndexMissing
    │   ├── IndexOutdatedError
    │   └── EmbeddingMismatchError
    ├── EmbeddingError              embedding_failed        503   retried, unless refused
    ├── AgentUnavailable            agent_unavailable       503   retried, unless refused
    ├── ConversationsUnavailable    conversations_unavailable 503 not over /chat, which answers without history
    ├── InternalError               internal_error          500
    ├── ConfigurationError          configuration_error     start only, never over HTTP
    └── IngestionError              ingestion_failed        command line only
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class ChapterverseError(Exception):
    """Base class of all errors. `message` can be shown to readers; it contains no secret."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details else None
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable


class ValidationFailed(ChapterverseError):
    """The request is invalid; the message says what to change."""

    code = "validation_error"
    status = 400
    exit_code = 2


class InvalidFilterError(ValidationFailed):
    """A filter with an unknown key or an invalid value."""


class Unauthorized(ChapterverseError):
    """API keys are configured, and no key or a wrong one was sent."""

    code = "unauthorized"
    status = 401
    exit_code = 3


class NotFound(ChapterverseError):
    """The requested thing does not exist."""

    code = "not_found"
    status = 404
    exit_code = 4


class RateLimited(ChapterverseError):
    """Too many requests; `retry_after` says when the next one is accepted."""

    code = "rate_limited"
    status = 429
    exit_code = 5


class Overloaded(ChapterverseError):
    """The queue in front of the concurrency limit is full."""

    code = "overloaded"
    status = 503
    exit_code = 5


class RetrievalUnavailable(ChapterverseError):
    """The book cannot be searched right now."""

    code = "retrieval_unavailable"
    status = 503
    exit_code = 6


class IndexDamaged(RetrievalUnavailable):
    """The stored book is damaged. It is opened again, which reports the damage or finds the last good generation."""

    retryable = True


class IndexUnavailable(RetrievalUnavailable):
    """The vector engine cannot be reached, or its process died."""

    retryable = True


class IndexTimeout(RetrievalUnavailable):
    """The vector engine did not answer in time."""

    retryable = True


class IndexMissing(RetrievalUnavailable):
    """No book has been ingested yet, or its collection was removed."""


class EmbeddingMismatchError(RetrievalUnavailable):
    """The index was made with another embedding model; the message names the command that re-embeds."""


class IndexOutdatedError(RetrievalUnavailable):
    """The index was made by an older version; the message names the command that rebuilds it."""

    retryable = False


class EmbeddingError(ChapterverseError):
    """The embedding model or service failed."""

    code = "embedding_failed"
    status = 503
    exit_code = 7
    retryable = True


class AgentUnavailable(ChapterverseError):
    """The language model failed."""

    code = "agent_unavailable"
    status = 503
    exit_code = 8
    retryable = True


class ConversationsUnavailable(ChapterverseError):
    """The conversations cannot be read or stored right now; questions are answered without them."""

    code = "conversations_unavailable"
    status = 503
    exit_code = 11


class InternalError(ChapterverseError):
    """An unexpected error. The client gets a request id, never a stack trace."""

    UNEXPECTED: ClassVar[str] = "Something went wrong on our side."


class ConfigurationError(ChapterverseError):
    """An invalid setting; the message starts with the variable's name."""

    code = "configuration_error"
    exit_code = 9


class IngestionError(ChapterverseError):
    """An ingest run that failed as a whole; a single bad page is a row of the ledger instead."""

    code = "ingestion_failed"
    exit_code = 10


def error_named(code: str, message: str, retry_after: float | None = None) -> ChapterverseError:
    """The error with a code, for example the code of an `error` event."""
    kinds: list[type[ChapterverseError]] = [ChapterverseError]
    for kind in kinds:
        if kind is not ChapterverseError and kind.code == code:
            return kind(message, retry_after=retry_after)
        kinds.extend(kind.__subclasses__())
    return InternalError(message)


# Names of the first specification, for programs that import them.
QdrantConnectionError = IndexUnavailable
QdrantTimeoutError = IndexTimeout
CollectionNotFoundError = IndexMissing
