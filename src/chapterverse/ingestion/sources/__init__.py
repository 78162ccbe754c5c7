"""Sources of pages: the protocol for websites, folders and files."""

import glob
import os
import posixpath
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from chapterverse.book import PageRecord
from chapterverse.errors import IngestionError
from chapterverse.ingestion.document import Fetched
from chapterverse.ingestion.generators import lay_out
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources.addresses import Site
from chapterverse.ingestion.sources.folder import Folder
from chapterverse.ingestion.sources.llms_txt import MAX_BYTES, NAME, is_listing, listed
from chapterverse.ingestion.sources.website import Website

__all__ = ["Source", "SourceOptions", "open_source"]


class Source(Protocol):
    """A source that can be read repeatedly.

    The outcome decides what happens to an earlier version of a page. `Document` and `Unchanged`: the page exists.
    `Failed`: the page could not be read, and the earlier version is kept. `Skipped`: the page is not wanted. No
    outcome: the page no longer exists. In the last two cases it is removed, but only if the run was `complete`."""

    @property
    def key(self) -> str:
        """A permanent name: the same source has the same key in every run."""

    @property
    def place(self) -> str:
        """The address or absolute path that it is read from. Folders with the same name have the same key."""

    @property
    def title(self) -> str:
        """The title of the book according to the source; empty if the source has none."""

    @property
    def complete(self) -> bool:
        """Whether all existing pages were seen; valid after `documents` is exhausted."""

    @property
    def expected(self) -> int | None:
        """The number of outcomes of `documents`; None if it is not known yet."""

    def image(self, address: str) -> Path | None:
        """The file of an image; None if the source has none at this address."""

    def documents(self, known: Mapping[str, PageRecord]) -> AsyncGenerator[Fetched, None]:
        """The outcomes of all pages. `known`: the pages of this source in the index, by address. A page that has not
        changed, according to the server, is `Unchanged`. Close the generator (`contextlib.aclosing`) to stop early."""


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
    if not spec or not os.path.exists(path):  # noqa: PTH110 - Path.exists raises
        raise IngestionError(f"no such file or folder: {spec}")
    return _by_list(path, options) if path.is_file() and is_listing(path.name) else Folder(path, options)


def _by_list(path: Path, options: SourceOptions) -> Source:
    """The source for the pages of a website, or for the files, that a local `llms.txt` lists."""
    with path.open("rb") as file:
        named = listed(file.read(MAX_BYTES).decode("utf-8", "replace"))
    if web := [target for target in named if target.startswith(("http://", "https://"))]:
        origins = Counter(Site.around(target).origin for target in web)
        return Website(f"{origins.most_common(1)[0][0]}/{NAME}", options, web)
    root = lay_out(path.parent, options.generator).root
    files = [posixpath.normpath(unquote(target).lstrip("/")) for target in named]
    files += [os.path.relpath(path.parent.absolute() / name, root) for name in files]
    wanted = tuple(glob.escape(name) for name in dict.fromkeys(files) if options.wants(name))
    if not wanted:
        raise IngestionError(f"{path} lists no page")
    return Folder(path.parent, replace(options, include=wanted))
