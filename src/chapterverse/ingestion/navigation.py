"""Reads the order and the chapters of a source's pages from the site's navigation.

Each generator has its own file: Sphinx `toctree` directives, mdBook `SUMMARY.md`, MkDocs `nav`, Docusaurus `sidebars`,
Antora `nav.adoc`. `_READERS` names the function for each. These functions never raise: if a navigation cannot be read,
the list is empty, and pages are sorted by their paths.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from chapterverse.ingestion.document import Generator


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One page of a navigation."""

    path: str  # of its file, relative to the root, with its extension
    title: str = ""  # in the navigation; empty: the page's own
    parents: tuple[str, ...] = ()  # titles of the entries and captions above it, outermost first
    module: str = ""  # its chapter; empty: from its path


class Navigation(Protocol):
    """Reads a navigation: every page once, in reading order."""

    def __call__(self, root: Path) -> list[NavigationEntry]:
        """The pages below a source's root."""


_READERS: dict[Generator, str] = {  # modules of this package and their functions
    "sphinx": "readers.sphinx.project:navigation",
    "mkdocs": "sidebars:mkdocs",
    "mdbook": "sidebars:mdbook",
    "docusaurus": "sidebars:docusaurus",
    "vitepress": "sidebars:vitepress",
    "starlight": "sidebars:starlight",
    "antora": "readers.asciidoc.project:navigation",
    "plain": "readers.asciidoc.project:navigation",
}


def navigation(root: Path, generator: Generator) -> list[NavigationEntry]:
    """The navigation of a source; empty if there is none."""
    if generator not in _READERS:
        return []
    module, _, name = _READERS[generator].partition(":")
    return cast(Navigation, getattr(import_module(f"{__package__}.{module}"), name))(root)


def entries(root: Path, generator: Generator) -> dict[str, NavigationEntry]:
    """The navigation entries by the paths of their pages, in order."""
    found: dict[str, NavigationEntry] = {}
    for entry in navigation(root, generator):
        found.setdefault(entry.path, entry)
    return found
