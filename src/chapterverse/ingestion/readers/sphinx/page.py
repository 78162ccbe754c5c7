"""What the directives and roles of a Sphinx page know of the page and its project."""

import posixpath
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from chapterverse.ingestion.document import Document, Reference
from chapterverse.ingestion.inclusion import Included, Inclusion
from chapterverse.ingestion.readers.sphinx.project import doc_key, normal_name

DOMAIN: Final = re.compile(r"(?:py|c|cpp|js|rst|std|external(?:\+\w+)?):")
DOMAINS: Final = ("py", "c", "cpp", "js", "rst", "std")


def words(text: str) -> list[str]:
    """The names in a text."""
    return text.split()


@dataclass(slots=True)
class Surroundings:
    """What the directives and roles of one page know of it."""

    document: Document | None = None
    language: str = ""  # of code that does not say it
    module: str = ""
    classes: int = 0  # described classes around this place
    toctrees: int = 0  # that were met so far
    inclusion: Inclusion | None = None
    tables: list[str] = field(default_factory=list)  # that were taken out of the text (`large_tables.py`)
    opened: list[AbstractContextManager[None]] = field(default_factory=list)  # files that are being included

    @property
    def references(self) -> Mapping[str, Reference]:
        """What the names of other files mean."""
        return self.document.references if self.document else {}

    @property
    def settings(self) -> Mapping[str, str]:
        """Of the project."""
        return self.document.settings if self.document else {}

    @property
    def folder(self) -> str:
        """Of the page, below the root."""
        return posixpath.dirname(self.document.path) if self.document else ""

    def open(self, wanted: str) -> Included | None:
        """A file that the page names, beside it or from the root on."""
        if self.inclusion is None or not wanted:
            return None
        return self.inclusion.read(wanted if wanted.startswith("/") else f"/{posixpath.join(self.folder, wanted)}")

    def target(self, uri: str) -> str:
        """Where a file or image that the page names lies."""
        if re.match(r"[A-Za-z][\w+.-]*:", uri) or not self.document or not self.document.tree:
            return uri
        place = uri.lstrip("/") if uri.startswith("/") else posixpath.join(self.folder, uri)
        return f"path:{posixpath.normpath(place)}" if uri else ""


def surroundings(document: Any) -> Surroundings:
    """Those of a docutils document."""
    return getattr(document.settings, "surroundings", None) or Surroundings()


def named_in(around: Surroundings, target: str) -> Reference | None:
    """A label or a page, by its name."""
    found = around.references.get(f"label:{normal_name(target)}")
    return found or around.references.get(doc_key(target, around.folder))
