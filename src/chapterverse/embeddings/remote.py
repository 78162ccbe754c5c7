"""Shared by embedding services over HTTP: batches, concurrency, timeouts, retries and errors.

Every failure becomes an `EmbeddingError` here. Each engine passes a `Wire` that knows its provider's requests and
responses. Keys and a service's own error messages are neither logged nor shown.
"""

import asyncio
import hashlib
import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar

import httpx2
import numpy as np
import orjson

from chapterverse.book import Fingerprint
from chapterverse.embeddings import Vectors
from chapterverse.errors import ConfigurationError, EmbeddingError

Purpose = Literal["query", "passage"]
T = TypeVar("T")

# Everything the HTTP client can raise. OSError includes TimeoutError and errors of the system.
HTTP_FAULTS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpx2.CookieConflict, OSError)
_WRONG_ADDRESS = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.TooManyRedirects)
_BROKEN_OFF = (httpx2.RemoteProtocolError, httpx2.DecodingError, httpx2.StreamError)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits of one kind of call, in seconds."""

    call: float  # one try
    deadline: float  # all tries and the pauses between them
    tries: int = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time and load. A question has 5 s for its whole retrieval, so embedding it must take less."""

    query: Patience = Patience(call=2.0, deadline=4.0)
    passages: Patience = Patience(call=10.0, deadline=60.0)  # the rate limit of a free tier lasts up to a minute
    probe: Patience = Patience(call=2.0, deadline=2.0, tries=1)
    backoff: float = 0.25  # seconds; the maximum of the first pause, doubled with every try
    concurrency: int = 4  # concurrent calls for passages; a question never waits for them


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class EmbeddingService:
    """The service, its model and its key."""

    provider: str  # "cohere"
    name: str  # for people
    base_url: str
    model: str
    dimension: int
    api_key: str = field(repr=False)

    def __post_init__(self) -> None:
        # The client's own error would contain the invalid key.
        if not all("!" <= character <= "~" for character in self.api_key):
            raise ConfigurationError(
                f"{self.key_variable} contains a blank or another character that is not valid in a key."
            )
        try:
            url = httpx2.URL(self.base_url)
        except httpx2.InvalidURL:
            url = httpx2.URL()
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ConfigurationError(
                f"{self.provider.upper()}_BASE_URL must be an http or https address without a user name or password."
            )

    @property
    def key_variable(self) -> str:
        """The name of the setting with the key."""
        return f"{self.provider.upper()}_API_KEY"

    @property
    def fingerprint(self) -> Fingerprint:
        """Provider, model and dimension. The address is not included: behind a gateway a model gives the same
        vectors."""
        digest = hashlib.sha256(f"{self.provider}\n{self.model}\n{self.dimension}".encode()).hexdigest()
        return Fingerprint(model=self.model, dimension=self.dimension, digest=digest[:32])

    def error(self, message: str, *, retryable: bool, status: int | None = None) -> EmbeddingError:
        """An error that says which service failed and how."""
        message = message[0].upper() + message[1:]  # it may begin with "the embedding server"
        return EmbeddingError(message, retryable=retryable, details={"provider": self.provider, "status": status})


@dataclass(frozen=True, slots=True)
class Wire:
    """A provider's requests and responses, and its limits."""

    path: str
    request: Callable[[Sequence[str], Purpose], Mapping[str, Any]]
    rows: Callable[[Any], Sequence[Any]]  # the vectors in a response; raises LookupError, TypeError or ValueError
    texts: int  # in one call
    text_bytes: int  # of one text; the rest is cut off
    call_bytes: int  # of all texts of a call


class RemoteEmbedder:
    """Base of the embedders that call a service over HTTP."""

    def __init__(self, service: EmbeddingService, wire: Wire, limits: Limits) -> None:
        self.service = service
        self._wire = wire
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._client = httpx2.AsyncClient(
            base_url=service.base_url,
            headers={"Authorization": f"Bearer {service.api_key}"} if service.api_key else {},
            timeout=None,  # its timeouts are per read and miss a slow response; ours are for a whole call
        )

    @property
    def fingerprint(self) -> Fingerprint:
        """Provider, model and dimension."""
        return self.service.fingerprint

    async def embed_query(self, text: str) -> Vectors:
        """The vector of a question."""
        (batch,) = batches([text], self._wire)
        return (await self._embed(batch, "query", self._limits.query)).reshape(-1)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The vectors of all texts, in order. The first failure cancels the other calls."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._batch(batch)) for batch in batches(texts, self._wire)]
        except ExceptionGroup as failures:
            first = failures.exceptions[0]
            raise first from first.__cause__
        nothing = np.empty((0, self.service.dimension), dtype=np.float32)
        return np.concatenate([nothing, *(task.result() for task in tasks)])

    async def _probe(self, path: str, *, may_be_absent: bool = False) -> None:
        """Send a request that costs nothing. `may_be_absent`: 404 and 405 are not errors."""

        def check(answer: httpx2.Response) -> None:
            if not (answer.is_success or (may_be_absent and answer.status_code in (404, 405))):
                raise refusal(self.service, answer)

        await self._ask(self._client.build_request("GET", path), self._limits.probe, check)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        async with self._slots:  # held during the pauses, too, so that an overloaded service gets fewer calls
            return await self._embed(texts, "passage", self._limits.passages)

    async def _embed(self, texts: Sequence[str], purpose: Purpose, patience: Patience) -> Vectors:
        request = self._client.build_request(
            "POST",
            self._wire.path,
            content=orjson.dumps(self._wire.request(texts, purpose)),
            headers={"Content-Type": "application/json"},
        )
        return await self._ask(request, patience, lambda answer: self._vectors(answer, len(texts)))

    async def _ask(self, request: httpx2.Request, patience: Patience, read: Callable[[httpx2.Response], T]) -> T:
        """Send the request, with retries, until it succeeds, is refused, or the time is over."""
        now = asyncio.get_running_loop().time
        end = now() + patience.deadline
        for attempt in range(1, patience.tries + 1):
            try:
                async with asyncio.timeout(min(patience.call, end - now())):
                    answer = await self._client.send(request)
                return read(answer)
            except HTTP_FAULTS as fault:
                failure = translate(self.service, fault)
                failure.__cause__ = fault
            except EmbeddingError as refused:
                failure = refused
            jitter = random.uniform(0, self._limits.backoff * 2 ** (attempt - 1))  # noqa: S311 - spreads calls, no secret
            pause = (failure.retry_after or 0.0) + jitter
            if not failure.retryable or attempt == patience.tries or now() + pause >= end:
                break
            _log.info("%s Try %d of %d in %.2f s.", failure.message, attempt + 1, patience.tries, pause)
            await asyncio.sleep(pause)
        raise failure

    def _vectors(self, answer: httpx2.Response, count: int) -> Vectors:
        """The unit vectors of a response. They are checked, because a wrong vector would be stored unnoticed."""
        if not answer.is_success:
            raise refusal(self.service, answer)
        name, status = self.service.name, answer.status_code
        try:
            vectors = np.asarray(self._wire.rows(orjson.loads(answer.content)), dtype=np.float64)
        except (LookupError, TypeError, ValueError) as fault:
            message = f"{name} sent a response that cannot be read."
            raise self.service.error(message, retryable=True, status=status) from fault
        if vectors.ndim != 2 or len(vectors) != count:
            message = f"{name} did not send one vector for each of {count} texts."
            raise self.service.error(message, retryable=True, status=status)
        if vectors.shape[1] != self.service.dimension:
            message = (
                f"{name} sent vectors of {vectors.shape[1]} dimensions for the model {self.service.model}, "
                f"not of {self.service.dimension}."
            )
            if self.service.provider == "openai":  # Cohere's dimension is not a setting
                message += f" Set OPENAI_EMBEDDING_DIMENSION={vectors.shape[1]}."
            raise self.service.error(message, retryable=False, status=status)
        with np.errstate(over="ignore"):  # an infinite length is handled below
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self.service.error(f"{name} sent a vector that cannot be normalised.", retryable=True, status=status)
        return np.asarray(vectors / lengths, dtype=np.float32)


def batches(texts: Sequence[str], wire: Wire) -> Iterator[list[str]]:
    """The texts in order, each cut to the maximum length, in groups that fit into one call."""
    batch: list[str] = []
    size = 0
    for text in texts:
        # A lone surrogate, which a broken page may contain, cannot be encoded and becomes a question mark.
        encoded = text.encode("utf-8", "replace")[: wire.text_bytes]
        if batch and (len(batch) == wire.texts or size + len(encoded) > wire.call_bytes):
            yield batch
            batch, size = [], 0
        batch.append(encoded.decode("utf-8", "ignore"))
        size += len(encoded)
    if batch:
        yield batch


def translate(service: EmbeddingService, fault: Exception) -> EmbeddingError:
    """The `EmbeddingError` for an exception of the HTTP client."""
    if isinstance(fault, TimeoutError | httpx2.TimeoutException):
        return service.error(f"{service.name} did not answer in time.", retryable=True)
    if isinstance(fault, _WRONG_ADDRESS):
        return service.error(f"{service.name} cannot be used at the configured address.", retryable=False)
    if isinstance(fault, _BROKEN_OFF):
        return service.error(f"{service.name} did not complete its response.", retryable=True)
    return service.error(f"{service.name} cannot be reached.", retryable=True)


def refusal(service: EmbeddingService, answer: httpx2.Response) -> EmbeddingError:
    """The `EmbeddingError` for a response that is not a success."""
    status = answer.status_code
    message, retryable = explain_status(status, service.name, service.key_variable, service.model)
    failure = service.error(message, retryable=retryable, status=status)
    failure.retry_after = seconds_until(answer.headers.get("Retry-After", ""), datetime.now(UTC))
    return failure


def explain_status(status: int, name: str, key_variable: str, model: str) -> tuple[str, bool]:
    """A message for a status other than success, and whether a retry may help."""
    retryable = status in (408, 409, 429) or status >= 500
    if status in (401, 403):
        message = f"{key_variable} was refused by {name}."
    elif status == 404:
        message = f"{name} does not serve the model {model} at the configured address."
    elif status == 429:
        message = f"{name} accepts no more requests at the moment."
    elif retryable:
        message = f"{name} failed (HTTP {status})."
    else:
        message = f"{name} refused the request (HTTP {status})."
    return message, retryable


def seconds_until(retry_after: str, now: datetime) -> float | None:
    """Return the seconds to wait by a Retry-After header, a number or a date; None if it is empty or invalid."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            moment = parsedate_to_datetime(retry_after)
        except (ValueError, OverflowError):
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
