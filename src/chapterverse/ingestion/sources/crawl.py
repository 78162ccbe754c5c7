"""Crawls a website.

Keeps the frontier, skips duplicates, limits concurrent requests, and decides whether all pages were seen.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from chapterverse.book import PageRecord
from chapterverse.ingestion.document import Document, Failed, Fetched, Format, Skipped, Unchanged, Unreadable
from chapterverse.ingestion.formats import PACKED, format_of_answer
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers.html import canonical, links
from chapterverse.ingestion.sources.addresses import Site, identity, normalise
from chapterverse.ingestion.sources.fetching import FORBIDDEN, Fetcher, Refused, Reply, Unavailable
from chapterverse.ingestion.sources.network import RefusedAddress

_GONE = (404, 410)
_PATIENCE = 200  # total cost of consecutive failures after which the crawl stops; a success resets it
_SLOW_FAILURE = 10  # cost of a failure with retries or a timeout; a plain 404 costs 1
_NOT_PAGES = re.compile(  # links that are not followed
    r"\.(png|jpe?g|gif|svg|webp|ico|css|m?js|json|xml|zip|t?gz|bz2|xz|7z|rar|exe|dmg|deb|whl|jar|iso|mp[34]|webm|mov"
    r"|avi|wav|ogg|woff2?|ttf|eot|docx?|pptx?|xlsx?|csv)$",
    re.IGNORECASE,
)
_NAMES_ENCODING = re.compile(rb"<(?:meta\b[^<>]*charset|\?xml\b[^<>]*encoding)\s*=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Visit:
    """The result of fetching one address."""

    asked: str
    outcome: Fetched | None  # None: an earlier page that no longer exists
    links: tuple[str, ...] = ()
    original: str = ""  # the canonical address that the page names
    cost: int = 0  # of a failure, for `_PATIENCE`


class Crawl:
    """One crawl of a site. `complete` is valid after `run` has ended."""

    def __init__(
        self,
        fetcher: Fetcher,
        site: Site,
        source: str,
        options: SourceOptions,
        known: Mapping[str, PageRecord],
        *,
        follow: bool,
    ) -> None:
        self._fetcher = fetcher
        self._site = site
        self._source = source
        self._options = options
        self._known = known
        self._follow = follow
        self._frontier: deque[str] = deque()
        self._seen: set[str] = set()  # identities of all addresses that were in the frontier
        self._pending: set[str] = set()  # identities of the addresses in the frontier and of the running requests
        self._read: set[str] = set()  # identities of all pages whose text was returned
        self._copies: dict[str, list[str]] = {}  # identity of a pending page → addresses of its copies
        self._started = self._had = self._missed = 0
        self._patience = _PATIENCE
        self._blind = False  # whether there may be unseen pages

    @property
    def complete(self) -> bool:
        """Whether earlier pages that were not seen no longer exist. False if more pages failed than succeeded."""
        return not self._blind and self._had >= self._missed

    async def run(self, first: Reply | None, listed: Sequence[str]) -> AsyncGenerator[Fetched, None]:
        """Fetch the listed pages and, with `follow`, every page that can be reached from these or the first one."""
        if first is not None:
            self._seen.add(identity(first.url))
            self._started += 1
            for outcome in self._settle(await self._understand(first.url, first)):
                yield outcome
        for skipped in self._add(listed):
            yield skipped
        running: set[asyncio.Task[_Visit]] = set()
        try:
            while self._start(running):
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    for outcome in self._settle(task.result()):
                        yield outcome
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        self._frontier.extend(copy for copies in self._copies.values() for copy in copies)
        if self._frontier:
            self._blind = True
            yield self._rest()

    def _start(self, running: set[asyncio.Task[_Visit]]) -> bool:
        """Start further requests up to the limit; returns whether any is running."""
        room = min(self._options.concurrency - len(running), self._options.max_pages - self._started)
        for _ in range(min(room, len(self._frontier)) if self._patience > 0 else 0):
            running.add(asyncio.create_task(self._visit(self._frontier.popleft())))
            self._started += 1
        return bool(running)

    def _rest(self) -> Fetched:
        """One outcome for all unread pages, with the address of the first."""
        left = f"{len(self._frontier):,} pages were not read"
        if self._patience <= 0:
            return Failed(self._frontier[0], f"the site fails too often, stopped; {left}")
        return Skipped(self._frontier[0], f"limit of {self._options.max_pages:,} pages reached; {left}")

    async def _visit(self, url: str) -> _Visit:
        try:
            reply = await self._fetcher.get_page(url, None if self._follow else self._conditions)
        except (Refused, RefusedAddress) as refusal:
            self._blind = self._blind or (self._follow and url in self._known)  # the links of an earlier page
            return _Visit(url, Skipped(url, str(refusal)))
        except Unavailable as failure:
            gone = failure.status in _GONE
            self._blind = self._blind or (self._follow and not gone)  # the links of the page are not known
            return _Visit(
                url,
                None if gone and url in self._known else Failed(url, str(failure)),
                cost=_SLOW_FAILURE if failure.status in (0, 429) or failure.status >= 500 else 1,
            )
        return await self._understand(url, reply)

    def _conditions(self, url: str) -> dict[str, str]:
        """Headers for a conditional request. Not used if links must be followed, because a 304 has no links, or with a
        module, because an earlier run may have had another one."""
        record = None if self._options.module else self._known.get(url)
        headers = {"If-None-Match": record.etag, "If-Modified-Since": record.last_modified} if record else {}
        return {name: value for name, value in headers.items() if value and value.isascii()}

    async def _understand(self, asked: str, reply: Reply) -> _Visit:
        if not self._site.covers(reply.url):
            return _Visit(asked, Skipped(asked, f"redirects out of the part that is read: {reply.url}"))
        if reply.unchanged:
            return _Visit(asked, Unchanged(reply.url))
        form = format_of_answer(reply.url, reply.content_type)
        assert form is not None  # otherwise the fetcher would have refused it
        document = Document(
            url=reply.url,
            path=self._site.path_of(reply.url),
            source=self._source,
            format=form,
            data=_in_utf8(reply, form),
            module=self._options.module,
            etag="" if self._options.module else reply.etag,
            last_modified="" if self._options.module else reply.last_modified,
        )
        outcome = document if self._options.wants(document.path) else Skipped(reply.url, "excluded")
        if form != "html":
            return _Visit(asked, outcome)
        try:
            original = await asyncio.to_thread(canonical, document)
            looks = self._follow or self._fetcher.restricted
            onward = await asyncio.to_thread(links, document) if looks else []
        except Unreadable:  # the reader will report it; its links are not known
            self._blind = self._blind or self._follow
            return _Visit(asked, outcome)
        return _Visit(asked, outcome, tuple(onward), normalise(original, page=reply.url))

    def _settle(self, visit: _Visit) -> Iterator[Fetched]:
        """The outcomes of a visit; adds its links to the frontier."""
        if visit.cost:
            self._missed += 1
            self._patience -= visit.cost
        self._pending.discard(identity(visit.asked))
        outcome = visit.outcome
        if isinstance(outcome, Document | Unchanged):
            self._had += 1
            self._patience = _PATIENCE
            outcome = self._unless_copy(outcome, visit)
        elif isinstance(outcome, Failed) and outcome.url in self._known:  # its earlier text is kept
            self._read.add(identity(outcome.url))
        if outcome is not None:
            yield outcome
        yield from self._settle_copies(visit.asked)
        linked = [link for link in visit.links if not _NOT_PAGES.search(link)]
        yield from self._add(linked) if self._follow else self._forbidden(linked)

    def _unless_copy(self, page: Document | Unchanged, visit: _Visit) -> Fetched | None:
        """The page, or the outcome for a copy of another one; None if it has or will have an outcome elsewhere."""
        twin = self._twin(page.url, visit.original)
        if twin and identity(twin) not in self._read:
            self._copies.setdefault(identity(twin), []).append(visit.asked)
            return None
        returned = identity(visit.asked) in self._read  # another address redirected to this one
        self._read |= {identity(visit.asked), identity(page.url)}
        if twin:
            return None if returned else Skipped(visit.asked, f"same page as {twin}")
        return page

    def _settle_copies(self, url: str) -> Iterator[Skipped]:
        """The outcomes of the copies of a page. If the page was not read, they are fetched again as pages of their own,
        because their texts were not kept."""
        for copy in self._copies.pop(identity(url), ()):
            if identity(url) not in self._read:
                self._pending.add(identity(copy))
                self._frontier.append(copy)
            elif identity(copy) not in self._read:
                self._read.add(identity(copy))
                yield Skipped(copy, f"same page as {url}")

    def _twin(self, url: str, original: str) -> str:
        """The address under which this page was or will be read; empty if there is none. A canonical link to the site's
        root is ignored, because some sites have it on all pages by mistake."""
        if identity(url) in self._read:
            return url
        name = identity(original)
        root = identity(f"{self._site.origin}{self._site.scope}")
        return original if (name in self._read or name in self._pending) and name not in (identity(url), root) else ""

    def _forbidden(self, urls: Iterable[str]) -> Iterator[Fetched]:
        """Outcomes for linked pages that robots.txt forbids."""
        for url in filter(None, map(self._site.place, urls)):
            if identity(url) not in self._seen and self._fetcher.forbids(url):
                self._seen.add(identity(url))
                yield Skipped(url, FORBIDDEN)

    def _add(self, urls: Iterable[str]) -> list[Fetched]:
        """Add new pages to the frontier. Returns outcomes for those that the patterns exclude."""
        excluded: list[Fetched] = []
        for url in filter(None, map(self._site.place, urls)):
            if identity(url) in self._seen:
                continue
            if len(self._seen) >= 10 * self._options.max_pages:  # too many generated links
                self._blind = True
                break
            self._seen.add(identity(url))
            if self._options.wants(self._site.path_of(url)):
                self._pending.add(identity(url))
                self._frontier.append(url)
            else:
                excluded.append(Skipped(url, "excluded"))
        return excluded


def _in_utf8(reply: Reply, form: Format) -> bytes:
    """Convert a text from the encoding in the server's header to UTF-8. A text that is UTF-8, and an HTML page that
    names its own encoding, are not changed, because the header is often a default for all files."""
    if form in PACKED or (form == "html" and _NAMES_ENCODING.search(reply.data, 0, 2048)):
        return reply.data
    for encoding in (reply.charset if reply.data.isascii() else "", "utf-8", reply.charset):
        with suppress(LookupError, UnicodeError):
            return reply.data.decode(encoding).encode()
    return reply.data
