"""Resolves the targets of links and images: to web addresses, or to pages and files of the same book.

Readers keep a target as it is written, or write `path:PATH#ANCHOR` if they know the file (relative to the root of the
source). A target with another scheme than http, https or mailto is dropped; the text of the link is kept.
"""

import os
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from chapterverse.ingestion.document import Document, Generator, Tree
from chapterverse.ingestion.formats import format_of_file
from chapterverse.ingestion.generators import address_of, slug_in, with_slug

PATH: Final = "path:"
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_WEB = ("http:", "https:", "mailto:")
_PAGE_ENDINGS = (".md", ".mdx", ".rst", ".adoc", ".html", ".markdown")
_INDEXES = ("index.md", "index.mdx", "README.md", "_index.md", "index.rst", "index.html")
_WEB_ENDINGS = (".html", ".htm", ".md", ".mdx")  # a link may point to the generated page instead of the file
_MAX_TARGET = 2_000  # characters
_HEAD = 20_000  # characters of a file in which front matter is looked for
_SLUG = re.compile(r"/?[\w.~@-]+(?:/[\w.~@-]+)*/?|/")


def page_address(tree: Tree, path: str, slug: str = "") -> str:
    """The address of a file below the root. `slug`: the address in the page's front matter."""
    form = format_of_file(path)
    if not tree.base:
        readable = path.encode(errors="replace").decode()
        return f"{tree.name}/{readable}" if tree.name else readable
    below = path if form is None else address_of(path, form, tree.generator)
    below = quote(below, errors="replace")
    return f"{tree.base}/{with_slug(below, slug, tree.generator) if _SLUG.fullmatch(slug) else below}"


@dataclass(frozen=True, slots=True)
class Links:
    """Resolves the targets of one page."""

    document: Document
    url: str  # of the page

    def resolve(self, target: str) -> str:
        """The address of a target; empty if it cannot be resolved."""
        try:
            found = self._resolve(target.strip())
            urlsplit(found)
        except ValueError:  # a placeholder for an address: https://[HOST]/
            return ""
        return found

    def _resolve(self, target: str) -> str:
        if not target or len(target) > _MAX_TARGET:
            return ""
        if target.startswith("#"):
            return f"{self.url}{target}"
        if target.startswith("//"):
            return f"https:{target}"
        target = target.removeprefix("pathname://")  # Docusaurus: a file that is not a page
        if scheme := _SCHEME.match(target):
            if target.startswith(PATH):
                return self._of_file(target.removeprefix(PATH))
            return target if scheme[0].lower() in _WEB else ""
        return self._relative(target)

    def _relative(self, target: str) -> str:
        tree = self.document.tree
        if tree is None:
            return urljoin(self.url, target) if "://" in self.url else ""
        path, query, anchor = _split(target)
        if not path:
            return f"{self.url}{query}{anchor}"
        if path.startswith("@site/"):  # Docusaurus: relative to the project; static files are published at its root
            path = re.sub(r"@site(?:/docs|/static)?(?=/)", "", path, count=1)
            target = f"{quote(path)}{query}{anchor}"
        for wanted in self._places(path, tree):
            if found := find_file(tree, wanted):
                return f"{page_address(tree, found, slug_of(tree, found))}{query}{anchor}"
        if not tree.base:
            return self._public(path, tree)
        if path.endswith((".md", ".mdx")) and (places := self._places(path, tree)):  # a page that is not in the folder
            return f"{page_address(tree, places[0])}{query}{anchor}"
        if tree.generator == "mdbook" and path.endswith(".md"):  # a page of another book beside this one
            target = f"{path.removesuffix('.md')}.html{query}{anchor}"
        site = tree.base if path.startswith("/") and self._is_below(path) else self.url
        return urljoin(f"{site}/" if site == tree.base else site, target)

    def _public(self, path: str, tree: Tree) -> str:
        """The path of a static file, for a book that is not published; empty if there is none."""
        for folder in ("static", "public") if path.startswith("/") else ():
            below = posixpath.normpath(f"{folder}/{path.lstrip('/')}")
            if below.startswith(folder) and any(
                _is_file(root, below) for root in (tree.root, tree.within or tree.root)
            ):
                return f"{tree.name}/{below}" if tree.name else below
        return ""

    def _of_file(self, target: str) -> str:
        tree = self.document.tree
        if tree is None:
            return ""
        path, query, anchor = _split(target)
        path = posixpath.normpath(path)
        if path.startswith(("..", "/")):
            return ""
        found = find_file(tree, path) or path
        return f"{page_address(tree, found, slug_of(tree, found))}{query}{anchor}"

    def _places(self, path: str, tree: Tree) -> list[str]:
        """Possible paths of a target below the root: relative to the file, or to the page generated from it."""
        if path.startswith("/"):
            below = posixpath.normpath(path.lstrip("/"))
            scope = urlsplit(tree.base).path.strip("/")
            inner = below.removeprefix(f"{scope}/") if scope else below
            return list(dict.fromkeys((inner, below)))
        folder, name = posixpath.split(self.document.path)
        near_file = posixpath.normpath(posixpath.join(folder, path))
        page = posixpath.join(folder, posixpath.splitext(name)[0])
        is_folder = tree.generator in ("mkdocs", "hugo", "starlight") and not name.lower().startswith(
            ("index", "_index")
        )
        near_page = posixpath.normpath(posixpath.join(page, path)) if is_folder else near_file
        from_root = posixpath.normpath(path)  # as in Docusaurus
        near = (near_file, near_page) if posixpath.splitext(path)[1] else (near_page, near_file)
        return [place for place in dict.fromkeys((*near, from_root)) if not place.startswith("..")]

    def _is_below(self, path: str) -> bool:
        tree = self.document.tree
        return tree is not None and path.startswith(f"{urlsplit(tree.base).path}/")


def find_file(tree: Tree, path: str) -> str:
    """The file for a path below the root, which may lack its extension; empty if there is none."""
    if path.startswith(("/", "..")) or "\0" in path:
        return ""
    stem, ending = posixpath.splitext(path)
    names = [path, *(f"{path}{end}" for end in _PAGE_ENDINGS), *(posixpath.join(path, index) for index in _INDEXES)]
    if ending in _WEB_ENDINGS:
        names += [f"{stem}{ending}" for ending in _PAGE_ENDINGS]
        if posixpath.basename(stem) == "index":
            names += [posixpath.join(posixpath.dirname(path), index) for index in _INDEXES]
    return next((posixpath.normpath(name) for name in names if _is_file(tree.root, name)), "")


def slug_of(tree: Tree, path: str) -> str:
    """The slug in a page's front matter; empty if there is none, or if the book is not published."""
    if not tree.base:
        return ""
    return _slug_in(tree.root, path, tree.generator) if path.endswith((".md", ".mdx")) else ""


@lru_cache(maxsize=50_000)
def _is_file(root: str, path: str) -> bool:
    return os.path.isfile(os.path.join(root, path))  # noqa: PTH113, PTH118 - called thousands of times


@lru_cache(maxsize=50_000)
def _slug_in(root: str, path: str, generator: Generator) -> str:
    from chapterverse.ingestion.readers import frontmatter

    try:
        with Path(root, path).open(encoding="utf-8-sig", errors="replace") as file:
            return slug_in(frontmatter.split(file.read(_HEAD))[0].values, path, generator)
    except OSError:
        return ""


def forget() -> None:
    """Clear the caches of files, before a new run."""
    _is_file.cache_clear()
    _slug_in.cache_clear()


def _split(target: str) -> tuple[str, str, str]:
    """Path, `?query` and `#anchor` of a target."""
    rest, mark, anchor = target.partition("#")
    path, question, query = rest.partition("?")
    return unquote(path), f"{question}{query}" if query else "", f"{mark}{anchor}" if anchor else ""
