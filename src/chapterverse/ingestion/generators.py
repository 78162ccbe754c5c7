"""Detects site generators, and computes the addresses that they give to files.

Uses the default rules of each generator. Only the title and the location of the pages are read from a project's
configuration.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from chapterverse.ingestion.anchors import github_slug
from chapterverse.ingestion.document import AnchorStyle, Format, Generator
from chapterverse.ingestion.formats import format_of_file

_SCRIPTS = ("js", "ts", "mjs", "cjs", "mts")
_CONFIGURATIONS: dict[Generator, tuple[str, ...]] = {
    "docusaurus": tuple(f"docusaurus.config.{ending}" for ending in _SCRIPTS),
    "mkdocs": ("mkdocs.yml", "mkdocs.yaml"),
    "mdbook": ("book.toml",),
    "hugo": ("hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json"),
    "vitepress": tuple(f".vitepress/config.{ending}" for ending in _SCRIPTS),
    "starlight": tuple(f"astro.config.{ending}" for ending in _SCRIPTS),
    "sphinx": ("conf.py",),
    "antora": ("antora.yml",),
}
_ANTORA = re.compile(r"(?:.*/)?modules/([^/]+)/pages/(.*)")
_PAGES: dict[Generator, str] = {  # default folder of a project's pages
    "docusaurus": "docs",
    "mkdocs": "docs",
    "mdbook": "src",
    "hugo": "content",
    "starlight": "src/content/docs",
}
_SPHINX_PAGES = ("source", "doc", "docs", "doc/source", "docs/source")
_PAGES_SETTING: dict[Generator, re.Pattern[str]] = {
    "mkdocs": re.compile(r"^docs_dir:[ \t]*['\"]?([\w./-]+)['\"]?[ \t]*$", re.MULTILINE),
    "mdbook": re.compile(r"^src[ \t]*=[ \t]*['\"]([\w./-]+)['\"][ \t]*$", re.MULTILINE),
    "hugo": re.compile(r"^['\"]?contentDir['\"]?[ \t]*[:=][ \t]*['\"]?([\w./-]+)['\"]?,?[ \t]*$", re.MULTILINE),
}
_TITLES: dict[Generator, str] = {"mkdocs": "site_name", "sphinx": "project"}  # key of the title; else `title`
_TITLE = r"""^[ \t]*{}[ \t]*[:=][ \t]*u?(?:'([^'\n]{{1,200}})'|"([^"\n]{{1,200}})"|`([^`$\n]{{1,200}})`)"""
_BARE_TITLE = r"^{}:[ \t]+([^'\"\s][^\n#]{{0,199}})"  # unquoted, in YAML
_HUGO_PARAMETERS = re.compile(r"^(?:params:|\[params\])[ \t]*\n((?:(?!\w+:|\[).*\n?)*)", re.MULTILINE)
_HUGO_PARAMETER = re.compile(
    r"""^(?:  |\t)?([\w.-]+)[ \t]*[:=][ \t]*(?:"([^"\n]{1,200})"|'([^'\n]{1,200})'|([^\s"'\[{|>#][^\n#]{0,199}))""",
    re.MULTILINE,
)
_MAX_CONFIGURATION = 200_000  # characters
_LEVELS_UP = 2
_SOURCES = ("markdown", "mdx", "rst", "asciidoc")
_OUTPUT = frozenset(("build", "book", "dist", "site", "out", "public"))
_NUMBER_PREFIX = re.compile(r"\A\d{1,12}\s*+[-_.]++\s*+(?=[^-_.\s])")  # 01-intro, 1. intro
_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d")  # 2024-05-notes, 7.0-migration: part of the name
_INDEX = ("index", "readme")


@dataclass(frozen=True, slots=True)
class Layout:
    """The site generator of a folder, and where its pages are."""

    root: Path  # folder of the pages
    name: str  # name of the folder in addresses
    generator: Generator  # never "auto"
    output: Path | None = None  # the project's folder, in which the generator writes its output

    def is_output(self, folder: Path) -> bool:
        """Whether a folder contains the files that the generator produced. A chapter may have the same name."""
        named = folder.parent == self.output and folder.name in _OUTPUT and folder != self.root
        return named and not any(format_of_file(name) in _SOURCES for _, _, names in os.walk(folder) for name in names)


def lay_out(folder: Path, wanted: Generator) -> Layout:
    """The layout of a folder. For a project, it is that of its folder of pages."""
    folder = _absolute(folder)
    generator, project = _find(folder, wanted)
    if generator == "sphinx" or (project is None and wanted == "auto"):
        pages = _sphinx_pages(folder)
        if pages != folder:
            return Layout(pages, folder.name, "sphinx", folder)
    if project is None or generator == "sphinx":
        return Layout(folder, folder.name, generator, project)
    pages = _pages_of(project, generator)
    if project.is_relative_to(folder) and pages.is_dir():
        folder = pages
    return Layout(folder, project.name if folder == pages else folder.name, generator, project)


def _absolute(folder: Path) -> Path:
    """The absolute path. A link keeps its name, because that is the name of the book."""
    if ".." not in folder.parts:
        return folder.absolute()
    return folder.resolve() if folder.name == ".." else folder.parent.resolve() / folder.name


def _find(folder: Path, wanted: Generator) -> tuple[Generator, Path | None]:
    """The generator, and the folder with its configuration (None if there is none): this folder or one above it."""
    for place in (folder, *folder.parents[:_LEVELS_UP]):
        for generator, names in _CONFIGURATIONS.items():
            if wanted in ("auto", generator) and any((place / name).is_file() for name in names):
                return generator, place
    for name in _CONFIGURATIONS.get(wanted, ()):  # the user named the generator: also look in subfolders
        for pattern in (f"*/{name}", f"*/*/{name}"):
            if found := sorted(place for place in folder.glob(pattern) if place.is_file()):
                return wanted, found[0].parent
    return ("plain" if wanted == "auto" else wanted), None


def _sphinx_pages(folder: Path) -> Path:
    """The folder of a Sphinx project's pages: the folder itself, or one of the usual folders in it."""

    def has_pages(place: Path) -> bool:
        return any(
            (place / f"{name}{ending}").is_file() for name in ("index", "contents") for ending in (".rst", ".md")
        )

    def is_configured(place: Path) -> bool:
        return any((above / "conf.py").is_file() for above in (place, place.parent))

    below = (folder / name for name in _SPHINX_PAGES)
    return folder if has_pages(folder) else next(filter(is_configured, filter(has_pages, below)), folder)


def _pages_of(project: Path, generator: Generator) -> Path:
    setting = _PAGES_SETTING.get(generator)
    for _, text in _configurations(project, generator) if setting else ():
        found = setting.search(text) if setting else None
        named = project / found[1] if found else project
        if found and named.is_dir() and named.resolve().is_relative_to(project.resolve()):
            return named
    return project / _PAGES.get(generator, "")


def title_of(layout: Layout) -> str:
    """The title in a project's configuration; empty if there is none."""
    key = _TITLES.get(layout.generator, "title")
    for place in dict.fromkeys(filter(None, (layout.root, layout.output, layout.root.parent))):
        for name, text in _configurations(place, layout.generator):
            bare = _BARE_TITLE.format(key) if name.endswith((".yml", ".yaml")) else r"(?!)"
            if found := re.search(f"{_TITLE.format(key)}|{bare}", text, re.MULTILINE):
                return " ".join(next(filter(None, found.groups())).split())
    return ""


def hugo_parameters(layout: Layout) -> dict[str, str]:
    """The values below `params` in the configuration of a Hugo site, which `{{< param "name" >}}` inserts."""
    found: dict[str, str] = {}
    for _, text in _configurations(layout.output, "hugo") if layout.output and layout.generator == "hugo" else ():
        block = _HUGO_PARAMETERS.search(text)
        for name, *values in _HUGO_PARAMETER.findall(block[1]) if block else ():
            found.setdefault(name, next(filter(None, values), "").strip())
    return found


def _configurations(project: Path, generator: Generator) -> Iterator[tuple[str, str]]:
    """The name and the text of each configuration file of a project."""
    for name in _CONFIGURATIONS.get(generator, ()):
        try:
            with (project / name).open(encoding="utf-8-sig", errors="replace") as file:
                yield name, file.read(_MAX_CONFIGURATION)
        except OSError:
            continue


def address_of(path: str, form: Format, generator: Generator) -> str:
    """The address of a file, relative to the site, by the rules of the generator."""
    folders, _, name = path.rpartition("/")
    prefix = f"{folders}/" if folders else ""
    if generator in ("docusaurus", "mkdocs") and form == "html" and name == "index.html":
        return prefix
    if generator == "antora" and form == "asciidoc" and (page := _ANTORA.fullmatch(path)):
        return f"{'' if page[1] == 'ROOT' else f'{page[1]}/'}{page[2].rpartition('.')[0]}.html"
    if generator in ("plain", "antora") or form not in ("markdown", "mdx", "rst"):
        return path
    stem = name.rpartition(".")[0]
    return _ADDRESSES[generator](folders, prefix, stem)


def _mdbook(_: str, prefix: str, stem: str) -> str:
    return f"{prefix}{'index' if stem.lower() == 'readme' else stem}.html"


def _hugo(_: str, prefix: str, stem: str) -> str:
    return (prefix if stem in ("index", "_index") else f"{prefix}{stem}/").lower().replace(" ", "-")


def _starlight(folders: str, _: str, stem: str) -> str:
    inside = "".join(f"{github_slug(folder)}/" for folder in folders.split("/") if folder)
    return inside if stem == "index" else f"{inside}{github_slug(stem)}/"


def _docusaurus(folders: str, _: str, stem: str) -> str:
    inside = "".join(f"{_unnumbered(folder)}/" for folder in folders.split("/") if folder)
    if stem.lower() in (*_INDEX, folders.rpartition("/")[2].lower()):
        return inside
    return f"{inside}{_unnumbered(stem)}"


def _unnumbered(name: str) -> str:
    """A name without its number for sorting."""
    return name if _DATE_OR_VERSION.match(name) else _NUMBER_PREFIX.sub("", name)


_ADDRESSES: dict[Generator, Callable[[str, str, str], str]] = {
    "docusaurus": _docusaurus,
    "mkdocs": lambda _, prefix, stem: prefix if stem in ("index", "README") else f"{prefix}{stem}/",
    "mdbook": _mdbook,
    "hugo": _hugo,
    "vitepress": lambda _, prefix, stem: prefix if stem == "index" else f"{prefix}{stem}.html",
    "starlight": _starlight,
    "sphinx": lambda _, prefix, stem: f"{prefix}{stem}.html",
}


def slug_in(values: Mapping[str, str], path: str, generator: Generator) -> str:
    """The address, or a part of it, that the front matter of a page sets by the rules of the generator, if any."""
    if generator not in ("docusaurus", "hugo", "starlight") or (generator == "hugo" and path.endswith("_index.md")):
        return ""
    is_named = generator == "docusaurus" and not f"/{address_of(path, 'markdown', generator)}".endswith("/")
    return values.get("slug") or (values.get("id", "") if is_named else "")


def with_slug(address: str, slug: str, generator: Generator) -> str:
    """A page's address, relative to the site, with its slug."""
    if generator == "starlight":
        return f"{slug.strip('/')}/".lstrip("/")
    if slug.startswith("/"):
        return slug[1:]
    if generator == "hugo":  # a folder for each page
        return f"{posixpath.join(posixpath.dirname(address.rstrip('/')), slug)}/"
    return posixpath.join(posixpath.dirname(address), slug)


def anchors_of(form: Format, generator: Generator) -> AnchorStyle:
    """The anchor style of a file's headings."""
    if generator in ("mkdocs", "vitepress"):
        return "mkdocs" if generator == "mkdocs" else "vitepress"
    return "sphinx" if generator == "sphinx" or (generator == "plain" and form == "rst") else "github"
