"""Reads the navigation of MkDocs, mdBook, Docusaurus, VitePress and Starlight.

YAML is read with the safe loader and without aliases. A configuration in JavaScript is never run. Its strings are read
in order: those that name a page of the book give the order of pages, and the labels of the objects around them are the
chapters. If a file cannot be read, the navigation is empty.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import yaml
from markdown_it.token import Token

from chapterverse.ingestion.authored import about
from chapterverse.ingestion.document import Tree
from chapterverse.ingestion.formats import format_of_file
from chapterverse.ingestion.generators import address_of
from chapterverse.ingestion.links import find_file
from chapterverse.ingestion.navigation import NavigationEntry
from chapterverse.ingestion.ordering import order_of
from chapterverse.ingestion.readers import frontmatter
from chapterverse.ingestion.readers.markdown import tokens_of

_MAX_BYTES: Final = 500_000
_MAX_ENTRIES: Final = 20_000
_MAX_FRONT_MATTER: Final = 3_000  # characters
_MAX_DEPTH: Final = 20
_MAX_BRACKETS: Final = 60  # nesting depth that is tracked in a script
_LEVELS_UP: Final = 3
_SCRIPTS: Final = ("js", "ts", "mjs", "cjs", "mts", "json")
_LITERATE: Final = ("SUMMARY.md", "index.md", "README.md")  # files that may list the pages of their folder
_LINK = re.compile(r"\]\(<?([^()<>\s]{1,300})>?\)")
_COMMENT = re.compile(r"/\*.{0,20000}?\*/|(?<![:'\"\w])//[^\n]*", re.DOTALL)
_TOKEN = re.compile(  # a bracket or a string, with the key before it
    r"""(?:(?<![\w$])(?P<key>[\w$]++|['"][^'"\n]{1,200}+['"])[ \t]*+:\s*+)?"""
    r"""(?:(?P<open>[\[{])|(?:'([^'\n]{0,500})'|"([^"\n]{0,500})"|`([^`$]{0,500})`)(?!\s*:))|(?P<close>[\]}])"""
)
_IMPORTED_SIDEBAR = re.compile(  # import { sidebar } from './sidebar'
    r"""^import[ \t]+(?:\{[^{}]{0,300}\bsidebar\b[^{}]{0,300}\}|sidebar)[ \t]+from[ \t]+"""
    r"""['"](\.{1,2}/[\w./-]{1,200})['"]""",
    re.MULTILINE,
)
_LANGUAGE = re.compile(r"""\bdefaultLocale:[ \t]*['"]([\w-]{1,20})['"]""")
_PAGE_KEYS: Final = {"", "id", "slug", "link", "to", "href"}  # keys of strings that may name a page
_FOLDER_KEYS: Final = {"dirName", "directory"}  # keys of strings that name a folder of pages
_LABEL_KEYS: Final = {"label", "text"}  # keys of strings that name a chapter or a page
_MEMBER_KEYS: Final = {"items", "autogenerate"}  # keys of the content of a chapter


@dataclass(slots=True)
class _Bracket:
    """An open object or list of a script."""

    sign: str
    key: str
    label: str = ""


def mkdocs(root: Path) -> list[NavigationEntry]:
    """The pages in the `nav` of `mkdocs.yml`; all pages by file name if it has no `nav`."""
    text = _beside(root, ("mkdocs.yml", "mkdocs.yaml"))
    found = _load_yaml(text) if "nav:" in text else None
    nav = found.get("nav") if isinstance(found, dict) else None
    entries = list(_nav_entries(nav, root, ()))[:_MAX_ENTRIES]
    return entries or (
        [NavigationEntry(path) for path in sorted(_pages(root), key=_mkdocs_place)] if text and not nav else []
    )


def _mkdocs_place(path: str) -> list[tuple[int, int, str]]:
    """A sort key: the index page, then files by name, then folders by name."""
    *folders, name = path.split("/")
    first = 0 if name.rpartition(".")[0] in ("index", "README") else 1
    return [*((1, 0, folder) for folder in folders), (0, first, name)]


def _nav_entries(items: Any, root: Path, parents: tuple[str, ...]) -> Iterator[NavigationEntry]:
    if len(parents) > _MAX_DEPTH or not isinstance(items, list):
        return
    for item in items:
        pairs = item.items() if isinstance(item, dict) else [("", item)]
        for title, target in pairs:
            if isinstance(target, list):
                yield from _nav_entries(target, root, (*parents, str(title)))
            elif isinstance(target, str) and target.endswith("/") and (pages := _in_folder(root, target)):
                above = (*parents, str(title)) if title else parents
                yield from (NavigationEntry(path, "", above) for path in pages)
            elif isinstance(target, str) and (path := _page_at(root, target)):
                yield NavigationEntry(path, str(title or ""), parents)


def _in_folder(root: Path, folder: str) -> list[str]:
    """The pages of a folder that a `nav` names, for plug-ins such as literate-nav: in the order of the links of its
    `SUMMARY.md` or index, then by name."""
    start = f"{folder.strip('./')}/"
    pages = sorted((path for path in _pages(root) if path.startswith(start)), key=_mkdocs_place)
    lists = (name for name in _LITERATE if f"{start}{name}" in pages)
    linked = [found[1] for found in _LINK.finditer(_read(root / start / next(lists, "none")))]
    places = {_page_at(root, f"{start}{target}"): place for place, target in reversed([*enumerate(linked)])}
    return sorted(pages, key=lambda path: -1 if path == _page_at(root, folder) else places.get(path, len(linked)))


def mdbook(root: Path) -> list[NavigationEntry]:
    """The pages that `SUMMARY.md` links. In its lists the first link of an item is a chapter, to which the items inside
    of it belong. Any other link is a prefix or suffix chapter, which belongs to no part. A separator right below such a
    chapter makes it a heading for Markdown, but not for mdBook."""
    entries: list[NavigationEntry] = []
    above: list[tuple[int, str]] = []
    part: tuple[str, ...] = ()
    titled = False
    tokens = tokens_of(_read(root / "SUMMARY.md"))
    for place, token in enumerate(tokens):
        if token.type not in ("heading_open", "paragraph_open"):
            continue
        links = list(_links_of(tokens[place + 1].children or ()))
        separated = links and token.markup == "-"
        if token.type == "heading_open" and not separated:  # the first heading may be the title of the file
            part, above = (_words_of(tokens[place + 1].children),) if entries or titled else (), []
            titled = True
        else:
            if token.level:
                links = links[:1] if tokens[place - 1].type == "list_item_open" else []
            elif links:
                part, above = (), []
            for title, target in links:
                above = [level for level in above if level[0] < token.level]
                if target and (path := find_file(Tree(str(root)), unquote(target.partition("#")[0]))):
                    entries.append(NavigationEntry(path, title, (*part, *(name for _, name in above))))
                above += [(token.level, title)] if token.level else []
    return entries[:_MAX_ENTRIES]


def _links_of(children: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """The texts and targets of the links of a paragraph."""
    opened = 0
    for place, child in enumerate(children):
        if child.type == "link_open":
            opened = place
        elif child.type == "link_close":
            yield _words_of(children[opened:place]), str(children[opened].attrGet("href") or "")


def _words_of(children: Sequence[Token] | None) -> str:
    return " ".join("".join(child.content or " " * ("break" in child.type) for child in children or ()).split())


def docusaurus(root: Path) -> list[NavigationEntry]:
    """The pages in `sidebars.js`, which names them by their ids."""
    text = _beside(root, tuple(f"sidebars.{ending}" for ending in _SCRIPTS))
    return _of_script(text, root, _docusaurus_ids(root)) if text else []


def vitepress(root: Path) -> list[NavigationEntry]:
    """The pages in the `sidebar` of `.vitepress/config`."""
    text = _sidebar_text(_place_beside(root, tuple(f".vitepress/config.{ending}" for ending in _SCRIPTS)))
    return _of_script(text, root, {})


def starlight(root: Path) -> list[NavigationEntry]:
    """The pages in the `sidebar` of `astro.config`, which names them without the folder of the default language."""
    place = _place_beside(root, tuple(f"astro.config.{ending}" for ending in _SCRIPTS), levels=4)
    text = _sidebar_text(place)
    language = _LANGUAGE.search(_read(place)) if place else None
    if language and (root / language[1]).is_dir():
        entries = _of_script(text, root / language[1], {})
        return [replace(entry, path=f"{language[1]}/{entry.path}") for entry in entries]
    return _of_script(text, root, {})


def _sidebar_text(place: Path | None) -> str:
    """The text of a configuration from its sidebar on, followed by the file that the sidebar is imported from."""
    text = _read(place) if place else ""
    imported = _IMPORTED_SIDEBAR.search(text)
    if place and imported:
        names = (imported[1], *(f"{imported[1]}.{ending}" for ending in _SCRIPTS))
        beside = next((file for name in names if (file := place.parent / name).is_file()), None)
        if beside and beside.resolve().is_relative_to(place.parent.resolve()):
            text = f"{text}\n{_read(beside)}"
    return text[at:] if (at := text.find("sidebar", imported.end() if imported else 0)) >= 0 else ""


def _of_script(text: str, root: Path, ids: dict[str, str]) -> list[NavigationEntry]:
    entries: dict[str, NavigationEntry] = {}
    around: list[_Bracket] = []
    for found in _TOKEN.finditer(_COMMENT.sub("", text)):
        key = (found["key"] or "").strip("'\"")
        if found["open"]:
            around.append(_Bracket(found["open"], key))
        elif found["close"]:
            del around[-1:]
        elif shown := found[3] or found[4] or found[5]:
            if key in _LABEL_KEYS and around:
                around[-1].label = shown
            for path in _named_pages(root, key, shown, ids):
                entries.setdefault(path, NavigationEntry(path, "", _chapters(around[:_MAX_BRACKETS])))
        if len(entries) >= _MAX_ENTRIES:
            break
    return list(entries.values())


def _named_pages(root: Path, key: str, said: str, ids: dict[str, str]) -> list[str]:
    """The paths of the pages that a string of a script names."""
    if key in _FOLDER_KEYS:
        return _below(root, said)
    path = "" if key in _LABEL_KEYS else ids.get(said) or (_page_at(root, said) if key in _PAGE_KEYS else "")
    return [path] if path else []


def _chapters(around: Sequence[_Bracket]) -> tuple[str, ...]:
    """The labels of the chapters around a position: `{label: "Guide", items: [HERE]}`, or `{Guide: [HERE]}`."""
    labels: list[str] = []
    outer = ""
    for bracket, inner in pairwise(around):
        if bracket.sign == "{" and inner.key in _MEMBER_KEYS:
            labels.append(bracket.label)
        elif bracket.sign == "{" and inner.sign == outer == "[":
            labels.append(inner.key)
        outer = bracket.sign
    return tuple(filter(None, labels))


def _docusaurus_ids(root: Path) -> dict[str, str]:
    """Paths of pages by id. Ids are paths without numbers and extensions; an `id` in a page replaces the last part."""
    ids: dict[str, str] = {}
    for path in _pages(root):
        if PurePosixPath(path).name.startswith("_"):
            continue
        stem = PurePosixPath(path).with_suffix("").as_posix()
        plain = address_of(f"{stem}/x.md", "markdown", "docusaurus").removesuffix("/x")
        ids.setdefault(stem, path)
        ids.setdefault(plain, path)
        if own := re.search(r"^id:[ \t]*['\"]?([\w./-]+)", _read(root / path, _MAX_FRONT_MATTER), re.MULTILINE):
            ids[(PurePosixPath(plain).parent / own[1]).as_posix()] = path
    return ids


def _below(root: Path, folder: str) -> list[str]:
    """The pages of a folder in the order of their numbers and names."""
    start = "" if folder.strip("./") == "" else f"{folder.strip('./')}/"
    named = (path for path in _pages(root) if path.startswith(start))
    pages = [path for path in named if not PurePosixPath(path).name.startswith("_")]
    folders = {parent: about(root / parent).number for path in pages for parent in PurePosixPath(path).parents}

    def place(path: str) -> str:
        above = [folders[parent] for parent in reversed(PurePosixPath(path).parents[:-1])]
        return order_of(path, above, frontmatter.split(_read(root / path, _MAX_FRONT_MATTER))[0].number)

    return sorted(pages, key=place)


def _pages(root: Path) -> tuple[str, ...]:
    found = (place for place in root.rglob("*.md*") if format_of_file(place.name))
    return tuple(sorted(place.relative_to(root).as_posix() for place in found if "node_modules" not in place.parts))


def _page_at(root: Path, target: str) -> str:
    """The path of the file that a link of a navigation names; empty if there is none."""
    path = target.partition("#")[0].partition("?")[0].strip().lstrip("/").removeprefix("./")
    if "://" in target or len(path) > 300 or " " in path:
        return ""
    return find_file(Tree(str(root)), path.rstrip("/") or "index.md")


def _beside(root: Path, names: tuple[str, ...]) -> str:
    """The text of the first of these files in the root or in a folder above it."""
    place = _place_beside(root, names)
    return _read(place) if place else ""


def _place_beside(root: Path, names: tuple[str, ...], levels: int = _LEVELS_UP) -> Path | None:
    folders = (root, *root.absolute().parents[:levels])
    return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)


def _read(place: Path, limit: int = _MAX_BYTES) -> str:
    try:
        with place.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""


class _Loader(yaml.SafeLoader):
    """The safe loader without aliases, which can expand a small file. Unknown tags are ignored."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


_nothing: Callable[..., None] = lambda *_: None  # noqa: E731
_Loader.add_multi_constructor("", _nothing)


def _load_yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
