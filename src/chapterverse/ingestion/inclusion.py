"""Opens files that a page includes, only inside of the ingested folder.

Refuses files that are hidden, too large, outside of the folder (also through a symbolic link), or already open (a
loop). Each page has a budget of files and characters, so that includes cannot multiply. Files outside of the folder are
listed in the ledger (`refused_files`).
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote

from chapterverse.ingestion.document import Document, Unreadable
from chapterverse.ingestion.readers.cleaning import decode

MAX_BYTES: Final = 2_000_000  # of one file
MAX_CHARS: Final = 5_000_000  # of all includes of a page
MAX_FILES: Final = 500  # of all includes of a page
MAX_DEPTH: Final = 8  # of includes inside includes

_refused: ContextVar[dict[str, None]] = ContextVar("files outside of the folder")


@contextmanager
def refused_files() -> Iterator[dict[str, None]]:
    """Collect the names of files outside of the folder that a document includes."""
    token = _refused.set({})
    try:
        yield _refused.get()
    finally:
        _refused.reset(token)


def refuse(wanted: str) -> None:
    """Record a file outside of the folder."""
    _refused.get({})[wanted] = None


def is_readable(place: Path, within: Path) -> bool:
    """Whether a path is a regular file inside of a folder, neither hidden nor too large. Both paths are resolved."""
    if not place.is_relative_to(within) or any(part.startswith(".") for part in place.relative_to(within).parts):
        return False
    try:
        return place.is_file() and place.stat().st_size <= MAX_BYTES
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Included:
    """A file that was opened for a page."""

    path: Path
    text: str


@dataclass(slots=True)
class Inclusion:
    """The includes of one page."""

    document: Document
    _root: Path = field(init=False)  # the folder of the source
    _within: Path = field(init=False)  # the folder that files must be in
    _open: list[Path] = field(default_factory=list)  # the chain of open files, the page first
    _files: int = 0
    _chars: int = 0

    def __post_init__(self) -> None:
        if tree := self.document.tree:
            self._root, self._within = Path(tree.root).resolve(), Path(tree.within or tree.root).resolve()
            self._open.append(Path(tree.root, self.document.path).resolve())

    def read(self, wanted: str, roots: Sequence[str] = ()) -> Included | None:
        """Read an included file; None if it is refused or missing.

        Its path is relative to the including file or a folder above it, or to the root if it begins with `/`. `roots`:
        folders below the root that are searched first."""
        if len(self._open) > MAX_DEPTH or self._files >= MAX_FILES:
            return None
        outside = False
        for place in self._candidates(unquote(wanted.strip()), roots):
            outside = outside or not place.is_relative_to(self._within)
            if place in self._open or not is_readable(place, self._within):
                continue
            self._files += 1
            try:
                text = decode(place.read_bytes())
            except (OSError, Unreadable):
                return None
            if self._chars + len(text) > MAX_CHARS:
                return None
            self._chars += len(text)
            return Included(place, text)
        if outside:
            refuse(wanted.strip().removeprefix("/"))
        return None

    @contextmanager
    def inside(self, included: Included) -> Iterator[None]:
        """Treat an included file as open while its own includes are read."""
        self._open.append(included.path)
        try:
            yield
        finally:
            self._open.pop()

    def _candidates(self, wanted: str, roots: Sequence[str]) -> Iterator[Path]:
        if self.document.tree is None or not wanted or "\0" in wanted or len(wanted) > 500:
            return
        root, within = self._root, self._within
        folder_here = self._open[-1].parent
        bare = wanted.lstrip("/")
        folders = [root / folder for folder in roots]
        if wanted.startswith("/"):
            folders += [root, within]
        else:
            folders += [folder_here, *(above for above in folder_here.parents if above.is_relative_to(within))]
        for folder in folders:
            yield Path(os.path.realpath(folder / PurePosixPath(bare)))  # `resolve` raises for circular links
