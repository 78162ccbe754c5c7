"""Sources of pages: the protocol for websites, folders and files."""

import glob
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from chapterverse.book import PageRecord
from chapterverse.errors import IngestionError
from chapterverse.ingestion.document import Fetched
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources.folder import Folder
from chapterverse.ingestion.sources.llms_txt import MAX_BYTES, is_listing, listed
from chapterverse.ingestion.sources.website import Website

__all__ = ["Source", "SourceOptions", "open_source"]


class Source(Protocol):
    """A source that can be read repeatedly.

    The outcome decides about an earlier page: with `Document` or `Unchanged` it exists; with `Failed` it could not be
    read and is kept; with `Skipped` it is not wanted; without an outcome it no longer exists. In the last two cases it
    is removed, but only if the run was `complete`."""

    @property
    def key(self) -> str:
        """A permanent name: the same source has the same key in every run."""

    @property
    def place(self) -> str:
        """Where it is read from: an address or an absolute path. Two folders of one name have the same key."""

    @property
    def title(self) -> str:
        """What the source calls the book; empty if it does not say."""

    @property
    def complete(self) -> bool:
        """Whether all existing pages were seen; valid after `documents` is exhausted."""

    @property
    def expected(self) -> int | None:
        """The number of outcomes of `documents`; None if it is not known yet."""

    def image(self, address: str) -> Path | None:
        """The file of an image; None if the source has none at this address."""

    def documents(self, known: Mapping[str, PageRecord]) -> AsyncGenerator[Fetched, None]:
        """All pages. `known`: the pages of this source in the index, by address; if the server says that one has not
        changed, it is `Unchanged`. Close the generator (`contextlib.aclosing`) to stop early."""


def open_source(spec: str, options: SourceOptions) -> Source:
    """The source for an http(s) address, a folder, a file or an `llms.txt`.

    Raises IngestionError if there is none."""
    if spec.lower().startswith(("http://", "https://")):
        return Website(spec, options)
    if "://" in spec:
        raise IngestionError(f"only http and https addresses can be read: {spec}")
    path = Path(spec)
    if spec.startswith("~/"):
        path = path.expanduser()
    if not spec or not path.exists():
        raise IngestionError(f"no such file or folder: {spec}")
    return _by_list(path, options) if path.is_file() and is_listing(path.name) else Folder(path, options)


def _by_list(path: Path, options: SourceOptions) -> Source:
    """The pages of a website, or the files, that a local `llms.txt` lists."""
    with path.open("rb") as file:
        named = listed(file.read(MAX_BYTES).decode("utf-8", "replace"))
    if web := [target for target in named if target.startswith(("http://", "https://"))]:
        return Website(web[0], options, web)
    files = tuple(glob.escape(target.removeprefix("./")) for target in named)
    if not files:
        raise IngestionError(f"{path} lists no page")
    return Folder(path.parent, replace(options, include=files))
