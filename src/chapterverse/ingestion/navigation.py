"""The order and the chapters of a source's pages as its site shows them.

Each generator says it in a file of its own: Sphinx in `toctree` directives, mdBook in `SUMMARY.md`, MkDocs in `nav`,
Docusaurus in `sidebars`, Antora in `nav.adoc`. A reader of such files is a function of the root, which `_READERS`
names. It never raises: what cannot be read gives an empty list, and pages are ordered by their paths.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from chapterverse.ingestion.document import Generator


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One page of a navigation."""

    path: str  # of its file, relative to the root, with its ending
    title: str = ""  # as the navigation shows it; empty: the page's own
    parents: tuple[str, ...] = ()  # titles of the entries and captions above it, outermost first
    module: str = ""  # the chapter that it belongs to; empty: as its path says


class Navigation(Protocol):
    """Reads a navigation: every page once, in the order in which a reader would turn them."""

    def __call__(self, root: Path) -> list[NavigationEntry]:
        """The pages below a source's root."""


_READERS: dict[Generator, str] = {  # modules of this package and their functions
    "sphinx": "readers.sphinx.project:navigation",
    "mkdocs": "sidebars:mkdocs",
    "mdbook": "sidebars:mdbook",
    "docusaurus": "sidebars:docusaurus",
    "vitepress": "sidebars:vitepress",
    "starlight": "sidebars:starlight",
    "antora": "readers.asciidoc.book:navigation",
    "plain": "readers.asciidoc.book:navigation",
}


def navigation(root: Path, generator: Generator) -> list[NavigationEntry]:
    """The navigation of a source; empty where there is none."""
    if generator not in _READERS:
        return []
    module, _, name = _READERS[generator].partition(":")
    return cast(Navigation, getattr(import_module(f"{__package__}.{module}"), name))(root)


def entries(root: Path, generator: Generator) -> dict[str, NavigationEntry]:
    """Every page of the navigation by its path, in order."""
    found: dict[str, NavigationEntry] = {}
    for entry in navigation(root, generator):
        found.setdefault(entry.path, entry)
    return found
