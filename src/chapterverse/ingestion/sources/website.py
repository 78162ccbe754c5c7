"""A website as a source: robots.txt, the start page, then the pages of the sitemap and, if that is not complete, linked
pages.

A page that no longer exists (HTTP 404 or 410) has no outcome; `complete` says whether pages without an outcome no
longer exist.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from protego import Protego

from chapterverse.book import PageRecord
from chapterverse.errors import IngestionError
from chapterverse.ingestion.document import Failed, Fetched, Skipped
from chapterverse.ingestion.formats import format_of_answer
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources.addresses import Site, normalise
from chapterverse.ingestion.sources.crawl import Crawl
from chapterverse.ingestion.sources.fetching import Fetcher, Refused, Reply, Unavailable
from chapterverse.ingestion.sources.llms_txt import is_listing, listed
from chapterverse.ingestion.sources.network import RefusedAddress, guarded_client
from chapterverse.ingestion.sources.sitemap import Listing, list_pages

_MAX_ROBOTS = 512_000  # bytes; RFC 9309 asks for at least 500 KiB


class Website:
    """The pages of a site at or below a start page, or those that an `llms.txt` lists."""

    def __init__(self, start: str, options: SourceOptions, listed: Sequence[str] = ()) -> None:
        self._start = normalise(start)
        self._listed = listed  # the pages to read, if they are known
        if not self._start:
            raise IngestionError(f"not the address of a website: {start}")
        self._options = options
        self.key = self._start.rstrip("/")
        self.place = self._start
        self.complete = False
        self.expected: int | None = None  # known if there is a sitemap
        self.title = ""

    async def documents(self, known: Mapping[str, PageRecord]) -> AsyncGenerator[Fetched, None]:
        """Every page, in the order of the responses. Closing the generator closes all connections."""
        self.complete = False
        options = self._options
        async with guarded_client(
            allow_private=options.allow_private, user_agent=options.user_agent, connections=options.concurrency
        ) as client:
            site = Site.around(self._start)
            fetcher = Fetcher(client, site, options)
            announced = await self._read_robots(fetcher, site)
            first, site, listing = await self._begin(fetcher, site, announced)
            self.expected = len(listing.urls) or None
            if isinstance(first, Refused) and self._start not in listing.urls:
                yield Skipped(self._start, str(first))
            for address, why in listing.failed.items():
                yield Failed(address, why)
            crawl = Crawl(fetcher, site, self.key, options, known, follow=not listing.urls or not listing.complete)
            async with aclosing(crawl.run(first if isinstance(first, Reply) else None, listing.urls)) as pages:
                async for page in pages:
                    yield page
        self.complete = crawl.complete and listing.complete

    async def _begin(
        self, fetcher: Fetcher, site: Site, announced: Sequence[str]
    ) -> tuple[Reply | Exception | None, Site, Listing]:
        """The start page or the error (None: not needed), the part of the site that is read, and the listed pages."""
        if self._listed:
            return self._by_list(site, self._listed)
        first = await self._arrive(fetcher)
        listing = Listing()
        if isinstance(first, Reply):
            site = site.moved(first.url)
            if is_listing(first.url) and format_of_answer(first.url, first.content_type) != "html":
                return self._by_list(site, listed(first.data.decode("utf-8", "replace"), first.url))
        if not isinstance(first, Reply) or format_of_answer(first.url, first.content_type) == "html":
            listing = await list_pages(fetcher, site, announced)
        if not isinstance(first, Reply) and not listing.urls:
            raise IngestionError(f"{self._start} cannot be read: {first}")
        return first, site, listing

    def _by_list(self, site: Site, addresses: Sequence[str]) -> tuple[None, Site, Listing]:
        """The result of `_begin` for the pages that an `llms.txt` lists, anywhere on this site."""
        whole_site = Site(site.origin, "")
        urls = dict.fromkeys(filter(None, map(whole_site.place, addresses)))
        if not urls:
            raise IngestionError(f"{self._start} lists no page of its own site")
        return None, whole_site, Listing(tuple(urls))

    def image(self, _: str) -> Path | None:
        """None: images of a website are not fetched."""
        return None

    async def _read_robots(self, fetcher: Fetcher, site: Site) -> list[str]:
        """Read robots.txt and return its sitemaps. As the first request, it also checks whether the site exists."""
        try:
            reply = await fetcher.get_start(f"{site.origin}/robots.txt", _MAX_ROBOTS)
        except Refused:
            return []
        except RefusedAddress as refusal:
            raise IngestionError(str(refusal)) from refusal
        except Unavailable as failure:
            if not failure.status:
                raise IngestionError(f"{site.origin} cannot be reached: {failure}", retryable=True) from failure
            if (
                failure.status == 429 or failure.status >= 500
            ):  # RFC 9309: if the rules are unavailable, everything is forbidden
                raise IngestionError(
                    f"{site.origin}/robots.txt cannot be read ({failure}); try again later", retryable=True
                ) from failure
            return []
        lines = reply.data.decode("utf-8-sig", "replace").splitlines()
        whole = lines if len(reply.data) < _MAX_ROBOTS else lines[:-1]  # the limit may cut the last line
        rules = Protego.parse("\n".join(whole))
        fetcher.obey(rules)
        return list(rules.sitemaps)

    async def _arrive(self, fetcher: Fetcher) -> Reply | Exception:
        """Fetch the start page; returns the error if that fails. Unconditional, because its links may be needed."""
        try:
            return await fetcher.get_page(self._start)
        except RefusedAddress as refusal:
            raise IngestionError(str(refusal)) from refusal
        except (Refused, Unavailable) as obstacle:
            return obstacle
