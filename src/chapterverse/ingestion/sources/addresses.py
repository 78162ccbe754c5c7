"""Normalises addresses of web pages, and decides which belong to the site."""

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

_TRACKING = re.compile(r"(utm_[^=]*|gclid|fbclid|mc_cid|mc_eid)(=|$)", re.IGNORECASE)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_FILE = re.compile(r"\.(x?html?|php|aspx?|mdx?|rst|txt|pdf|epub)$", re.IGNORECASE)
_INDEX = re.compile(r"/index\.x?html?$", re.IGNORECASE)
_MAX_LENGTH = 2000  # characters; longer addresses usually come from endless links


def normalise(url: str, page: str = "") -> str:
    """Normalise an http(s) address, which may be relative to `page`: no fragment, user, tracking parameters, default
    port or `..`. Returns an empty string for anything else."""
    try:
        parts = urlsplit(urljoin(page, url.strip()))
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode()
    except ValueError:  # includes UnicodeError
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
    """A key that is equal for all addresses of a page: without scheme, `www.`, trailing slash and `index.html`."""
    parts = urlsplit(url)
    path = _INDEX.sub("/", parts.path).rstrip("/")
    return f"{parts.netloc.removeprefix('www.')}{path}?{parts.query}"


@dataclass(frozen=True, slots=True)
class Site:
    """The part of a website that is read: an origin and a path."""

    origin: str  # https://example.org
    scope: str  # "/docs", or "" for the whole site

    @classmethod
    def around(cls, start: str) -> "Site":
        """The site of a normalised start page. For a page with a file name, its folder."""
        parts = urlsplit(start)
        path = posixpath.dirname(parts.path) if _FILE.search(parts.path) else parts.path
        return cls(f"{parts.scheme}://{parts.netloc}", path.rstrip("/"))

    def moved(self, url: str) -> "Site":
        """The site after its start page redirected to `url`: the same part, unless `url` is outside of it."""
        there = Site.around(url)
        return Site(there.origin, self.scope) if self.covers(url) else there

    def owns(self, url: str) -> bool:
        """Whether an address is on this site, with or without TLS or `www.`."""
        return _host(url) == _host(self.origin)

    def covers(self, url: str) -> bool:
        """Whether an address is in the part that is read."""
        return self.owns(url) and f"{urlsplit(url).path}/".startswith(f"{self.scope}/")

    def place(self, url: str) -> str:
        """The address normalised to this site's origin; empty if it is not in the part that is read."""
        url = normalise(url)
        if not url or not self.covers(url):
            return ""
        parts = urlsplit(url)
        return f"{self.origin}{parts.path}" + (f"?{parts.query}" if parts.query else "")

    def path_of(self, url: str) -> str:
        """The path of a page relative to the part that is read."""
        return unquote(urlsplit(url).path.removeprefix(self.scope)).strip("/") or "index"


def _host(url: str) -> str:
    return urlsplit(url).netloc.removeprefix("www.")


def _resolve(path: str) -> str:
    """A path without `.`, `..` and doubled slashes."""
    if "//" not in path and "/." not in path:
        return path or "/"
    clean = "/" + posixpath.normpath(path).lstrip("/")
    return clean if clean == "/" or not path.endswith(("/", "/.", "/..")) else f"{clean}/"


def _escape(text: str) -> str:
    """Normalise percent escapes: characters are escaped only where needed, in upper case."""
    return _ESCAPE.sub(lambda escape: escape.group().upper(), quote(text, safe="/%:@!$&'()*+,;=~?"))
