"""Reads sitemaps and sitemap indexes, plain or gzipped. Addresses outside of the site are ignored."""

import asyncio
import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from chapterverse.ingestion.readers.safe_xml import TooComplex, limited_xml_parser
from chapterverse.ingestion.sources.addresses import Site, normalise
from chapterverse.ingestion.sources.fetching import Fetcher, Refused, Unavailable
from chapterverse.ingestion.sources.network import RefusedAddress

_MAX_BYTES = 52_428_800  # of one sitemap, uncompressed: the protocol's 50 MiB
_MAX_FILES = 500
_MAX_DEPTH = 3  # nested indexes are not allowed, but exist
_MAX_PAGES = 500_000
_ABSENT = (401, 403, 404, 410)


@dataclass(frozen=True, slots=True)
class Listing:
    """The pages that were found."""

    urls: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # sitemaps that could not be read completely, and why

    @property
    def complete(self) -> bool:
        """Whether all sitemaps could be read."""
        return not self.failed


@dataclass(slots=True)
class Sitemap:
    """A sitemap, read up to the first error."""

    pages: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    is_complete: bool = False


async def list_pages(fetcher: Fetcher, site: Site, announced: Iterable[str]) -> Listing:
    """The pages of a site from the sitemaps that robots.txt names, or else from sitemaps at the usual addresses; empty
    if no sitemap lists a page of this part of the site."""
    usual = dict.fromkeys((f"{site.origin}{site.scope}/sitemap.xml", f"{site.origin}/sitemap.xml"))
    failed: dict[str, str] = {}
    for starts in (list(announced), *([url] for url in usual)):
        listing = await _gather(fetcher, site, starts)
        if listing.urls:
            return listing
        failed |= listing.failed
    return Listing((), failed)


async def _gather(fetcher: Fetcher, site: Site, starts: list[str]) -> Listing:
    urls: dict[str, None] = {}
    failed: dict[str, str] = {}
    seen: set[str] = set()
    queue = deque((url, 0) for url in starts)
    while queue:
        address, depth = queue.popleft()
        url = normalise(address)
        if not url or url in seen or not site.owns(url):
            continue
        if len(seen) >= _MAX_FILES or len(urls) >= _MAX_PAGES or depth > _MAX_DEPTH:
            failed[url] = "not read: the site has too many sitemaps"
            break
        seen.add(url)
        try:
            sitemap = await _read(fetcher, url)
        except Unavailable as failure:
            failed[url] = f"the sitemap cannot be read: {failure}"
            continue
        if sitemap is None:
            if depth:  # a sitemap listed in an index must exist
                failed[url] = "not a sitemap, but listed as one"
            continue
        if not sitemap.is_complete:
            failed[url] = "the sitemap is not valid XML; only its beginning was read"
        urls.update((page, None) for page in map(site.place, sitemap.pages) if page)
        queue.extend((child, depth + 1) for child in sitemap.children)
    return Listing(tuple(urls), failed)


async def _read(fetcher: Fetcher, url: str) -> Sitemap | None:
    """Fetch a sitemap. Returns None if there is none. Raises Unavailable if it cannot be fetched."""
    try:
        reply = await fetcher.get(url, _MAX_BYTES)
    except (Refused, RefusedAddress):
        return None
    except Unavailable as failure:
        if failure.status in _ABSENT:
            return None
        raise
    return await asyncio.to_thread(parse_sitemap, reply.data)


def parse_sitemap(data: bytes) -> Sitemap | None:
    """The addresses in a sitemap; None if the data is something else, such as an HTML page."""
    packed = data[:2] == b"\x1f\x8b"
    reading = _Reading()
    parser = limited_xml_parser(reading.open, reading.close, reading.text.append)
    parser.StartDoctypeDeclHandler = reading.refuse  # sitemaps have none
    try:
        parser.Parse(_unpack(data) if packed else data, True)
        reading.found.is_complete = True
    except (_NotASitemap, TooComplex):
        return None
    except (expat.ExpatError, LookupError, ValueError):  # LookupError, ValueError: an unknown encoding
        return reading.found if reading.started else None
    return reading.found


class _NotASitemap(Exception):
    """The data is not a sitemap."""


class _Reading:
    """The state of the parser, and its results."""

    def __init__(self) -> None:
        self.found = Sitemap()
        self.started = False
        self.text: list[str] = []
        self._path: list[str] = []

    def open(self, name: str, _: dict[str, str]) -> None:
        self._path.append(name.rpartition(" ")[2])
        self.text.clear()
        self.started = True
        if self._path[0] not in ("urlset", "sitemapindex"):
            raise _NotASitemap

    def close(self, _: str) -> None:
        match self._path:
            case ["urlset", "url", "loc"]:
                self.found.pages.append("".join(self.text).strip())
            case ["sitemapindex", "sitemap", "loc"]:
                self.found.children.append("".join(self.text).strip())
        self._path.pop()

    def refuse(self, *_: object) -> None:
        raise _NotASitemap


def _unpack(data: bytes) -> bytes:
    """Decompress data up to the limit; truncated data is detected by the parser."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _MAX_BYTES)
    except zlib.error:
        return b""
