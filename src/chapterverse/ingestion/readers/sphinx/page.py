"""The context of a Sphinx page, for directives and roles."""

import posixpath
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from chapterverse.ingestion.document import Document, Reference
from chapterverse.ingestion.inclusion import Included, Inclusion
from chapterverse.ingestion.readers.sphinx.project import doc_key
from chapterverse.ingestion.readers.sphinx.scanner import normal_name

DOMAIN: Final = re.compile(r"(?:py|c|cpp|js|rst|std|external(?:\+\w+)?):")
DOMAINS: Final = ("py", "c", "cpp", "js", "rst", "std")


def words(text: str) -> list[str]:
    """The names in a text, which are separated by spaces."""
    return text.split()


@dataclass(slots=True)
class Surroundings:
    """The context of one page."""

    document: Document | None = None
    language: str = ""  # default language of code
    module: str = ""
    classes: int = 0  # open class descriptions
    inclusion: Inclusion | None = None
    tables: list[str] = field(default_factory=list)  # removed from the text (`large_tables.py`)
    directives: set[str] = field(default_factory=set)  # names that are registered for this page
    opened: list[AbstractContextManager[None]] = field(default_factory=list)  # open includes

    @property
    def references(self) -> Mapping[str, Reference]:
        """The targets of cross-references."""
        return self.document.references if self.document else {}

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the project."""
        return self.document.settings if self.document else {}

    @property
    def folder(self) -> str:
        """The folder of the page, relative to the root."""
        return posixpath.dirname(self.document.path) if self.document else ""

    def open(self, wanted: str) -> Included | None:
        """Open a file that the page includes, relative to the page or to the root."""
        if self.inclusion is None or not wanted:
            return None
        return self.inclusion.read(wanted if wanted.startswith("/") else f"/{posixpath.join(self.folder, wanted)}")

    def target(self, uri: str) -> str:
        """The address of a file or image that the page names, for `links.py`."""
        if re.match(r"[A-Za-z][\w+.-]*:", uri) or not self.document or not self.document.tree:
            return uri
        place = uri.lstrip("/") if uri.startswith("/") else posixpath.join(self.folder, uri)
        return f"path:{posixpath.normpath(place)}" if uri else ""


def surroundings(document: Any) -> Surroundings:
    """The context of a docutils document."""
    return getattr(document.settings, "surroundings", None) or Surroundings()


def named_in(around: Surroundings, target: str) -> Reference | None:
    """The label or page with this name; None if there is none."""
    found = around.references.get(f"label:{normal_name(target)}")
    return found or around.references.get(doc_key(target, around.folder))
