"""How site generators lay out a project, and which address they give to a file.

Owns the rules of Docusaurus, MkDocs and Sphinx by their defaults. Never reads a file's content: an address set in
front matter is the reader's business.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from chapterverse.ingestion.document import AnchorStyle, Format
from chapterverse.ingestion.options import Generator

_CONFIGURATIONS: dict[Generator, tuple[str, ...]] = {
    "docusaurus": tuple(f"docusaurus.config.{ending}" for ending in ("js", "ts", "mjs", "cjs")),
    "mkdocs": ("mkdocs.yml", "mkdocs.yaml"),
    "sphinx": ("conf.py",),
}
_LEVELS_UP = 2
_OUTPUT = frozenset(("build", "dist", "site", "out", "public"))
_NUMBER_PREFIX = re.compile(r"\d+\s*[-_.]+\s*(?=[^-_.\s])")  # 01-intro, 1. intro
_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d")  # 2024-05-notes, 7.0-migration: part of the name


@dataclass(frozen=True, slots=True)
class Layout:
    """A folder as its generator sees it."""

    root: Path  # where the pages lie
    name: str  # what the folder is called in addresses
    generator: Generator  # never "auto"
    output: Path | None = None  # the folder in which the generator's own output lies, beside its configuration

    def is_output(self, folder: Path) -> bool:
        """Whether a folder holds what the generator made of the pages."""
        return folder.parent == self.output and folder.name in _OUTPUT


def lay_out(folder: Path, wanted: Generator) -> Layout:
    """The layout of a folder. A Docusaurus or MkDocs project is read at its `docs`, and is the same source whether
    the project or its `docs` was named."""
    folder = folder if folder.name not in ("", "..") else folder.resolve()
    generator, project = _find(folder, wanted)
    if project is None or generator == "sphinx":
        return Layout(folder, folder.name, generator, project)
    if folder == project and (folder / "docs").is_dir():
        folder = folder / "docs"
    return Layout(folder, project.name if folder == project / "docs" else folder.name, generator, project)


def _find(folder: Path, wanted: Generator) -> tuple[Generator, Path | None]:
    """The generator and where its configuration lies: in the folder or a little above it."""
    above = folder.absolute()
    for place in (folder, *(above.parents[:_LEVELS_UP])):
        for generator, names in _CONFIGURATIONS.items():
            if wanted in ("auto", generator) and any((place / name).is_file() for name in names):
                return generator, place
    return ("plain" if wanted == "auto" else wanted), None


def address_of(path: str, form: Format, generator: Generator) -> str:
    """The address of a file below the site's, as the generator makes it of the path."""
    folders, _, name = path.rpartition("/")
    prefix = f"{folders}/" if folders else ""
    if generator in ("docusaurus", "mkdocs") and form == "html" and name == "index.html":
        return prefix
    if generator == "plain" or form not in ("markdown", "mdx", "rst"):
        return path
    stem = name.rpartition(".")[0]
    if generator == "sphinx":
        return f"{prefix}{stem}.html"
    if generator == "mkdocs":
        return prefix if stem in ("index", "README") else f"{prefix}{stem}/"
    inside = "".join(f"{_unnumbered(folder)}/" for folder in folders.split("/") if folder)
    if stem.lower() in ("index", "readme", folders.rpartition("/")[2].lower()):
        return inside
    return f"{inside}{_unnumbered(stem)}"


def _unnumbered(name: str) -> str:
    """A name without the number that only sorts it."""
    return name if _DATE_OR_VERSION.match(name) else _NUMBER_PREFIX.sub("", name, count=1)


def anchors_of(form: Format, generator: Generator) -> AnchorStyle:
    """How the headings of a file are named in its address."""
    if generator == "mkdocs":
        return "mkdocs"
    return "sphinx" if generator == "sphinx" or (generator == "plain" and form == "rst") else "github"
