"""Requests to a website, with rate limiting, robots.txt, redirects, retries and size limits.

Translates all exceptions of httpx2.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
from protego import Protego

from chapterverse.ingestion.formats import format_of_answer
from chapterverse.ingestion.options import SourceOptions, too_large
from chapterverse.ingestion.sources.addresses import Site, normalise

_RETRIES = 2
_MAX_REDIRECTS = 5
_MAX_WAIT = 30.0  # seconds; a longer `Retry-After` is a failure
_REDIRECTS = (301, 302, 303, 307, 308)


FORBIDDEN = "robots.txt"  # reason for the ledger


class Refused(Exception):
    """The page is left out on purpose; the message is the reason for the ledger."""


class Unavailable(Exception):
    """The page could not be fetched. `status`: the HTTP status, 0 without a response; `tried`: number of tries."""

    def __init__(self, why: str, *, status: int = 0, tried: int = 1) -> None:
        super().__init__(why)
        self.status = status
        self.tried = tried


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful response: a page, or 304."""

    url: str  # after redirects
    unchanged: bool = False
    content_type: str = ""  # lower case, without parameters
    charset: str = ""
    data: bytes = b""
    etag: str = ""
    last_modified: str = ""


Take = Callable[[httpx2.Response, str, str], Awaitable[bytes]]  # also address and content type; may raise Refused
Conditions = Callable[[str], Mapping[str, str]]  # address → headers for a conditional request


class Fetcher:
    """Fetches addresses of one site, with pauses between requests."""

    def __init__(self, client: httpx2.AsyncClient, site: Site, options: SourceOptions) -> None:
        self._client = client
        self._site = site
        self._options = options
        self._pace = _Pace(options.delay)
        self._rules: Protego | None = None
        self._agent = options.user_agent.partition("/")[0]

    def obey(self, rules: Protego) -> None:
        """Use the rules of a robots.txt."""
        self._rules = rules
        self._pace.delay = max(self._pace.delay, min(rules.crawl_delay(self._agent) or 0.0, _MAX_WAIT))

    @property
    def restricted(self) -> bool:
        """Whether the site has a robots.txt."""
        return self._rules is not None

    def forbids(self, url: str) -> bool:
        """Whether the site's robots.txt forbids an address."""
        return self._rules is not None and not self._rules.can_fetch(url, self._agent)

    async def get(self, url: str, limit: int) -> Reply:
        """Fetch a file, at most as large as the limit. Raises Refused, Unavailable or RefusedAddress."""
        return await self._go(url, lambda response, *_: _body(response, limit), lambda _: {})

    async def get_start(self, url: str, length: int) -> Reply:
        """Fetch the first bytes of a file. Raises like `get`."""
        return await self._go(url, lambda response, *_: _start(response, length), lambda _: {})

    async def get_page(self, url: str, conditions: Conditions | None = None) -> Reply:
        """Fetch a page in a supported format, within the size limit of the format. Raises like `get`."""
        return await self._go(url, self._take_page, conditions or (lambda _: {}))

    async def _take_page(self, response: httpx2.Response, url: str, content_type: str) -> bytes:
        form = format_of_answer(url, content_type)
        if form is None:
            raise Refused(f"not a page: {content_type or 'no content type'}")
        return await _body(response, self._options.limit(form))

    async def _go(self, url: str, take: Take, conditions: Conditions) -> Reply:
        """Fetch an address with at most five redirects, all within the site."""
        for _ in range(_MAX_REDIRECTS + 1):
            if self.forbids(url):
                raise Refused(FORBIDDEN)
            answer = await self._persist(url, conditions(url), take)
            if isinstance(answer, Reply):
                return answer
            target = normalise(answer, page=url)
            if not target or not self._site.owns(target):
                raise Refused(f"redirects to another site: {answer}")
            url = target
        raise Unavailable(f"more than {_MAX_REDIRECTS} redirects", status=300)

    async def _persist(self, url: str, headers: Mapping[str, str], take: Take) -> Reply | str:
        """Fetch one address, with retries. For a redirect, return its unresolved target."""
        for tried in range(1, _RETRIES + 2):
            await self._pace.turn()
            try:
                async with asyncio.timeout(self._options.page_timeout):
                    return await self._ask(url, headers, take)
            except _Busy as busy:
                why, status, wait = f"HTTP {busy.status}", busy.status, busy.wait
            except (TimeoutError, httpx2.TransportError) as error:
                why, status, wait = _reason(error), 0, 0.0
            except (httpx2.InvalidURL, httpx2.DecodingError) as error:
                raise Unavailable(f"broken answer: {error}") from error
            if tried > _RETRIES:
                raise Unavailable(why, status=status, tried=tried)
            if wait > _MAX_WAIT:
                raise Unavailable(f"{why}, asks to wait {wait:.0f} s", status=status, tried=tried)
            if wait:
                self._pace.pause(wait)  # for all requests, because the whole site is busy
            else:
                jitter = random.uniform(0.5, 1.0)  # noqa: S311 (spreads retries; nothing secret)
                await asyncio.sleep(self._options.retry_delay * 2 ** (tried - 1) * jitter)
        raise AssertionError("unreachable")

    async def _ask(self, url: str, headers: Mapping[str, str], take: Take) -> Reply | str:
        async with self._client.stream("GET", url, headers=headers) as response:
            status = response.status_code
            if status == 304:
                return Reply(url, unchanged=True)
            if status in _REDIRECTS and "location" in response.headers:
                return response.headers["location"]
            if status == 429 or status >= 500:
                raise _Busy(status, _wait(response.headers.get("retry-after", "")))
            if status != 200:
                raise Unavailable(f"HTTP {status}", status=status)
            content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            data = await take(response, url, content_type)
            return Reply(
                url=url,
                content_type=content_type,
                charset=response.charset_encoding or "",
                data=data,
                etag=response.headers.get("etag", ""),
                last_modified=response.headers.get("last-modified", ""),
            )


class _Busy(Exception):
    """The server is busy (HTTP 429 or 5xx)."""

    def __init__(self, status: int, wait: float) -> None:
        super().__init__(status)
        self.status = status
        self.wait = wait


class _Pace:
    """Starts requests at least `delay` seconds apart."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._next = 0.0

    async def turn(self) -> None:
        now = asyncio.get_running_loop().time()
        start = max(now, self._next)
        self._next = start + self.delay
        await asyncio.sleep(start - now)

    def pause(self, seconds: float) -> None:
        self._next = max(self._next, asyncio.get_running_loop().time() + seconds)


async def _body(response: httpx2.Response, limit: int) -> bytes:
    """The decompressed body. The limit is on the decompressed size, against compression bombs."""
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise Refused(too_large(int(declared), limit))
    data = await _start(response, limit + 1)
    if len(data) > limit:
        raise Refused(too_large(0, limit))
    return data


async def _start(response: httpx2.Response, length: int) -> bytes:
    """The first bytes of the decompressed body."""
    data = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) >= length:
                break
    return bytes(data[:length])


def _wait(retry_after: str) -> float:
    """The seconds in a Retry-After header: a number or a date."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _reason(error: Exception) -> str:
    """The reason for a transport failure, for messages."""
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return "timed out"
    if isinstance(error, httpx2.ConnectError):
        return f"cannot connect: {error}" if str(error) else "cannot connect"
    return f"connection broke off: {error}" if str(error) else "connection broke off"
