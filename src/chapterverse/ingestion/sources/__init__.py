"""Where pages come from: one contract for websites, folders and files."""

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
    """A body of pages that can be read again and again.

    What a run reports says what becomes of a page of before: a `Document` or `Unchanged` is there; `Failed` could
    not be had and is kept; `Skipped` is not wanted; one that is not reported at all is gone. The last two may be
    removed only when the run was `complete`."""

    @property
    def key(self) -> str:
        """Names the source for good: the same place has the same key in every run."""

    @property
    def description(self) -> str:
        """What it is, for people."""

    @property
    def complete(self) -> bool:
        """After `documents` was exhausted: whether every page there is was seen."""

    @property
    def expected(self) -> int | None:
        """How many outcomes `documents` will give, as soon as that is known."""

    def image(self, address: str) -> Path | None:
        """The file of an image that a page shows; None where the source has none at this address."""

    def documents(self, known: Mapping[str, PageRecord]) -> AsyncGenerator[Fetched, None]:
        """All pages. `known` are those of this source that are in the index, by address; one that the server says
        is as it was is reported as `Unchanged`. Close the generator (`contextlib.aclosing`) to stop early."""


def open_source(spec: str, options: SourceOptions) -> Source:
    """The source a user named: an http(s) address, a folder, a file or an `llms.txt`.

    Raises IngestionError when there is none."""
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
    """What a local `llms.txt` lists: pages of a website, or files beside it."""
    with path.open("rb") as file:
        named = listed(file.read(MAX_BYTES).decode("utf-8", "replace"))
    if web := [target for target in named if target.startswith(("http://", "https://"))]:
        return Website(web[0], options, web)
    files = tuple(glob.escape(target.removeprefix("./")) for target in named)
    if not files:
        raise IngestionError(f"{path} lists no page")
    return Folder(path.parent, replace(options, include=files))
