"""Options for reading a source."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from chapterverse import __version__
from chapterverse.ingestion.document import Format, Generator
from chapterverse.ingestion.formats import PACKED

__all__ = ["Generator", "SourceOptions", "too_large"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options for reading a source."""

    base_url: str = (
        ""  # folders and files: address at which the pages are published; empty: pages are cited by their path
    )
    module: str = ""  # for all pages; empty: from each page's path
    generator: Generator = "auto"  # folders: the site generator, which decides addresses and anchors
    include: Sequence[str] = ()  # glob patterns for paths in the source; `*` matches slashes; empty: all
    exclude: Sequence[str] = ()
    max_pages: int = 20_000
    max_bytes: int = 20_000_000  # of one text page
    max_book_bytes: int = 100_000_000  # of one PDF, EPUB or docx
    allow_private: bool = False  # websites: also on loopback and private networks
    concurrency: int = 4  # websites: concurrent requests
    delay: float = 0.1  # websites: seconds from one request to the next
    retry_delay: float = 1.0  # websites: seconds before the first retry; doubles
    page_timeout: float = 30.0  # websites: seconds for one response, from the first byte sent to the last received
    user_agent: str = f"Chapterverse/{__version__}"

    def wants(self, path: str) -> bool:
        """Whether the patterns include a path."""
        included = not self.include or any(fnmatchcase(path, pattern) for pattern in self.include)
        return included and not any(fnmatchcase(path, pattern) for pattern in self.exclude)

    def limit(self, form: Format) -> int:
        """The maximum size of a page of this format, in bytes."""
        return self.max_book_bytes if form in PACKED else self.max_bytes


def too_large(size: int, limit: int) -> str:
    """The reason for the ledger for a page over the limit. The size is 0 if it is not known."""
    measured = f"{size / 1e6:.1f} MB, over" if size else "over"
    return f"{measured} the limit of {limit / 1e6:g} MB"
