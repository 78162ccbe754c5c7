"""Addresses of web pages: one spelling for each, and which of them belong to the site that is being read."""

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

_TRACKING = re.compile(r"(utm_[^=]*|gclid|fbclid|mc_cid|mc_eid)(=|$)", re.IGNORECASE)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_FILE = re.compile(r"\.(x?html?|php|aspx?|mdx?|rst|txt|pdf|epub)$", re.IGNORECASE)
_INDEX = re.compile(r"/index\.x?html?$", re.IGNORECASE)
_MAX_LENGTH = 2000  # longer ones are made by programs, in loops


def normalise(url: str, page: str = "") -> str:
    """The one spelling of an http(s) address, which may be relative to the page it was found on: no fragment, no
    user, no tracking, no default port, no `..`. Anything that is not such an address becomes the empty string."""
    try:
        parts = urlsplit(urljoin(page, url.strip()))
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        return ""
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not host or len(url) > _MAX_LENGTH:
        return ""
    if ":" in host:
        host = f"[{host}]"
    if port and port != {"http": 80, "https": 443}[scheme]:
        host = f"{host}:{port}"
    query = "&".join(pair for pair in parts.query.split("&") if pair and not _TRACKING.match(pair))
    return urlunsplit((scheme, host, _escape(_resolve(parts.path)), _escape(query), ""))


def identity(url: str) -> str:
    """What two addresses of one page have in common: equal whatever the scheme, `www.`, a trailing slash or
    `index.html`."""
    parts = urlsplit(url)
    path = _INDEX.sub("/", parts.path).rstrip("/")
    return f"{parts.netloc.removeprefix('www.')}{path}?{parts.query}"


@dataclass(frozen=True, slots=True)
class Site:
    """The part of a website that is read: an origin and the path at or below which its pages lie."""

    origin: str  # https://example.org
    scope: str  # "/docs", or "" for the whole site

    @classmethod
    def around(cls, start: str) -> "Site":
        """The site of a normalised start page. A page with a file name stands for its folder."""
        parts = urlsplit(start)
        path = posixpath.dirname(parts.path) if _FILE.search(parts.path) else parts.path
        return cls(f"{parts.scheme}://{parts.netloc}", path.rstrip("/"))

    def moved(self, url: str) -> "Site":
        """The site when its start page turned out to be at `url`: the same part of it, unless the page left that."""
        there = Site.around(url)
        return Site(there.origin, self.scope) if self.covers(url) else there

    def owns(self, url: str) -> bool:
        """Whether an address is on this site, with or without TLS or `www.`."""
        return _host(url) == _host(self.origin)

    def covers(self, url: str) -> bool:
        """Whether an address is in the part that is read."""
        return self.owns(url) and f"{urlsplit(url).path}/".startswith(f"{self.scope}/")

    def place(self, url: str) -> str:
        """The address as this site spells it; empty when it is not in the part that is read."""
        url = normalise(url)
        if not url or not self.covers(url):
            return ""
        parts = urlsplit(url)
        return f"{self.origin}{parts.path}" + (f"?{parts.query}" if parts.query else "")

    def path_of(self, url: str) -> str:
        """Where a page lies inside the part that is read."""
        return urlsplit(url).path.removeprefix(self.scope).strip("/") or "index"


def _host(url: str) -> str:
    return urlsplit(url).netloc.removeprefix("www.")


def _resolve(path: str) -> str:
    """A path without `.`, `..` and doubled slashes."""
    if "//" not in path and "/." not in path:
        return path or "/"
    clean = "/" + posixpath.normpath(path).lstrip("/")
    return clean if clean == "/" or not path.endswith(("/", "/.", "/..")) else f"{clean}/"


def _escape(text: str) -> str:
    """Percent escapes where they are needed, and in capitals."""
    return _ESCAPE.sub(lambda escape: escape.group().upper(), quote(text, safe="/%:@!$&'()*+,;=~?"))
