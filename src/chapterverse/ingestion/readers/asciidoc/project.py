"""The AsciiDoc files of a folder as a project: which files are pages, their order, and the targets of references.

An included file is a separate page if it begins with a heading of the upper levels; otherwise it is a fragment of the
page that includes it. A document that includes chapters gives them their order, their names and its attributes. In an
Antora component the pages are in `pages`, in the order of its navigation files.
"""

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

import yaml

from chapterverse.ingestion.document import Document, Unreadable
from chapterverse.ingestion.inclusion import Inclusion, is_readable
from chapterverse.ingestion.navigation import NavigationEntry
from chapterverse.ingestion.readers.asciidoc.blocks import ANCHOR, attributes_of, underline_level
from chapterverse.ingestion.readers.asciidoc.source import ENTRY, AsciidocSource, Attributes, antora_path, resolve
from chapterverse.ingestion.readers.asciidoc.text import Inline, generated_anchor
from chapterverse.ingestion.readers.cleaning import decode

ENDINGS: Final = (".adoc", ".asciidoc", ".asc")
_MAX_FILES: Final = 20_000
_MAX_STEPS: Final = 5_000  # includes that are followed from one file
_PAGE_LEVEL: Final = 3  # `===`: an included file with a deeper first heading is a fragment
_FRAGMENT_FOLDERS = frozenset(("partials", "includes", "snippets", "fragments", "examples", "attributes", "shared"))

_VERBATIM = re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|`{3}[\w+#-]*")
_HEADING = re.compile(r"(={1,6})[ \t]++(\S.*?)(?:(?<![ \t])[ \t]++\1)?")
_INLINE_ANCHOR = re.compile(
    r"\[\[([^\W\d][\w:.-]*+)(?:,[ \t]*+([^\[\]]{1,500}+))?\]\]|\banchor:([\w:.-]{1,300}+)\[([^\]]{0,500}+)\]"
)
_ID = re.compile(r"\[(?=.*\]\Z)[\w\" ,%.=-]*?(?:#([\w:.-]++)|id=[\"']?([\w:.-]++)).*\]")
_INCLUDE = re.compile(
    r"(?P<condition>ifn?def::[^\s\[]++\[)?include::(?P<target>[^\s\[](?:[^\[]*[^\s\[])?)\[(?P<given>.*)\](?(condition)\])"
)
_NAV = re.compile(r"(?:(\*{1,6}|-)[ \t]++|\.(?![. ]))(.+)")  # an item, or the title of a list
_NAV_PAGE = re.compile(r"xref:([^\[\s]{1,500}+)\[([^\]]{0,500}+)\]")


@dataclass(slots=True)
class Heading:
    """A heading or a titled block that can be referred to."""

    text: str
    id: str = ""
    level: int = 0  # 0: not a heading


@dataclass(slots=True)
class Scan:
    """The result of scanning a file without parsing it."""

    headings: list[Heading] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)  # (kind, name, value), in order
    level: int = 0  # of the heading at the start of the file; 0 if there is none


@dataclass(slots=True)
class AsciidocProject:
    """The AsciiDoc files of one folder."""

    root: Path  # resolved
    scans: dict[str, Scan] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)  # page → page that includes it
    fragments: dict[str, str] = field(default_factory=dict)  # file that is not a page → a page that includes it, or ""
    children: dict[str, list[str]] = field(default_factory=dict)
    components: dict[str, dict[str, object]] = field(default_factory=dict)  # Antora: folder → its `antora.yml`
    _contexts: dict[str, Attributes] = field(default_factory=dict)
    _ids: dict[str, dict[str, str]] = field(default_factory=dict)
    _chapters: dict[str, str] | None = None
    _everywhere: dict[str, tuple[str, str]] | None = None

    @property
    def component_names(self) -> dict[str, str]:
        """Antora: the folders of the components and their names."""
        return {folder: str(described.get("name", "")) for folder, described in self.components.items()}

    def is_page(self, path: str) -> bool:
        """Whether a file is a separate page."""
        return path in self.scans and path not in self.fragments

    def is_chapter(self, path: str) -> bool:
        """Whether a file is a chapter of a document: a separate page, whose text is not repeated where it is
        included."""
        return path in self.parents

    def text(self, path: str) -> str | None:
        """The text of a file of this project; None if it is missing, a link, or outside of the folder."""
        place = self.root / path
        try:
            if place.is_symlink() or not is_readable(Path(os.path.realpath(place)), self.root):
                return None
            return decode(place.read_bytes())
        except (OSError, Unreadable, ValueError):
            return None

    def context(self, path: str) -> Attributes:
        """The attributes that a page gets from the documents that include it."""
        if path not in self._contexts:
            self._contexts[path] = self._context(path)
        return Attributes(self._contexts[path])

    def _context(self, path: str) -> Attributes:
        parent = self.parents.get(path, "")
        if not parent:
            return self._component_attributes(path)
        self._contexts[path] = Attributes()  # prevents an endless recursion if the scan missed a loop
        found = self.context(parent)
        result = Attributes(found)

        def met(other: str, attributes: Attributes) -> None:
            if other == path:
                result.clear()
                result.update(attributes)

        source = AsciidocSource(self.text, found, self.is_chapter, met, self.component_names)
        try:
            source.lines(self.text(parent) or "", parent)
        except Unreadable:
            return result
        result.pop("leveloffset", None)
        return result

    def _component_attributes(self, path: str) -> Attributes:
        attributes = Attributes()
        for folder, described in self.components.items():
            if path.startswith(folder):
                attributes.update({"site-gen-antora": "", "page-component-name": str(described.get("name", ""))})
                given = described.get("asciidoc")
                values = given.get("attributes") if isinstance(given, dict) else None
                for name, value in (values if isinstance(values, dict) else {}).items():
                    if value is None or value is False:
                        attributes.put(f"!{name}", "")
                    else:
                        attributes.put(str(name), "" if value is True else str(value).removesuffix("@"))
        return attributes

    def page_of(self, path: str) -> str:
        """The page that contains a file's text."""
        seen: set[str] = set()
        while path in self.fragments and path not in seen:
            seen.add(path)
            path = self.fragments[path]
        return path

    def ids(self, path: str) -> dict[str, str]:
        """The anchors of a file, with the titles that references show. The file's own title has an empty anchor."""
        if path not in self._ids:
            self._ids[path] = self._found_ids(path)
        return self._ids[path]

    def _found_ids(self, path: str) -> dict[str, str]:
        attributes = self.context(self.page_of(path) or path)
        for kind, name, value in self.scans[path].events:
            if kind == "entry":
                attributes.put(name, value)
        say = Inline(attributes, lambda target: ("", target), lambda kind, target: target)
        found: dict[str, str] = {}
        taken: set[str] = set()
        for number, heading in enumerate(self.scans[path].headings):
            title = say.bare(heading.text)
            if heading.level and (number == 0 or "" not in found):
                found.setdefault("", title)
            anchor = heading.id or generated_anchor(title, attributes, taken)
            if heading.level != 1 or heading.id:
                taken.add(anchor)
                found.setdefault(anchor, title)
        return found

    def find(self, anchor: str) -> tuple[str, str] | None:
        """The file and the title of an anchor anywhere in the project; None if it is unknown."""
        if self._everywhere is None:
            self._everywhere = {}
            for path in self.scans:
                for name, title in self.ids(path).items():
                    if name:
                        self._everywhere.setdefault(name, (path, title))
        return self._everywhere.get(anchor)

    def title(self, path: str) -> str:
        """The title of a page."""
        return self.ids(path).get("", "") or PurePosixPath(path).stem

    def chapter_of(self, path: str) -> str:
        """The chapter of a page; empty if it is not known."""
        if self._chapters is None:
            self._chapters = {entry.path: entry.module for entry in self.order()}
        if path in self._chapters:
            return self._chapters[path]
        for folder, described in self.components.items():
            if path.startswith(folder):
                return str(described.get("title") or described.get("name") or "")
        return ""

    def why_no_page(self, path: str) -> str:
        """Why a file is not a separate page; empty if it is one."""
        if path not in self.fragments:
            return ""
        page = self.page_of(path)
        return f"included in {page}" if page else "partial"

    def order(self) -> list[NavigationEntry]:
        """The pages in reading order: those of documents with included chapters, then those of Antora navigations."""
        entries: list[NavigationEntry] = []
        seen: set[str] = set()
        for path in sorted(self.scans):
            if self.is_page(path) and path not in self.parents and self.children.get(path):
                entries += self._below(path, (), seen)
        for folder, described in sorted(self.components.items()):
            entries += [entry for entry in self._navigation(folder, described) if entry.path not in seen]
        return entries

    def _below(self, path: str, above: tuple[str, ...], seen: set[str]) -> Iterator[NavigationEntry]:
        if path in seen or len(above) > 20:
            return
        seen.add(path)
        title = self.title(path)
        inside = above if path not in self.parents else (*above, title)  # the document's own title is not a chapter
        yield NavigationEntry(path, title, above, module=inside[0] if inside else "")
        for child in self.children.get(path, ()):
            yield from self._below(child, inside, seen)

    def _navigation(self, folder: str, described: dict[str, object]) -> Iterator[NavigationEntry]:
        """The pages that an Antora component's navigation files list."""
        files = described.get("nav")
        for name in files if isinstance(files, list) else ():
            path = posixpath.normpath(posixpath.join(folder, str(name)))
            if path.startswith("..") or (text := self.text(path)) is None:
                continue
            yield from self._nav_entries(text, path)

    def _nav_entries(self, text: str, path: str) -> Iterator[NavigationEntry]:
        source = AsciidocSource(self.text, self._component_attributes(path), components=self.component_names)
        try:
            lines = source.lines(text, path)
        except Unreadable:
            return
        say = Inline(source.attributes, lambda target: ("", target), lambda kind, target: target)
        above: list[str] = []  # the title of the list, and the entries above the current one
        for line in map(source.attributes.filled, lines):
            if not (found := _NAV.fullmatch(line.strip())):
                continue
            depth = len(found[1] or "")
            page = _NAV_PAGE.search(found[2])
            target = antora_page(page[1].partition("#")[0], path, self) if page else ""
            title = say.bare(page[2] if page else found[2]).strip()
            title = title or (self.title(target) if target in self.scans else "")
            above = [*above[:depth], *[""] * (depth - len(above))]
            parents = tuple(filter(None, above))
            if target in self.scans:
                yield NavigationEntry(target, title, parents, module=parents[0] if parents else title)
            above.append(title)


def source_of(document: Document) -> AsciidocSource:
    """The source of a document, with the attributes of its project."""
    inclusion = Inclusion(document)

    def fetch(path: str) -> str | None:
        found = inclusion.read(f"/{path}") if document.tree else None
        return found.text if found else None

    project = _project(document)
    if project is None:
        return AsciidocSource(fetch)
    context = project.context(document.path)
    return AsciidocSource(fetch, context, project.is_chapter, components=project.component_names)


def reference(document: Document, path: str, anchor: str, attributes: Attributes) -> tuple[str, str] | None:
    """The address and the title of the target of a reference; None if it is unknown."""
    project = _project(document)
    if project is None:
        return None
    target = _file(project, path, document.path) if path else ""
    if target:
        known = project.ids(target)
        page = project.page_of(target) or target
        title = known.get(anchor) or (project.title(target) if not anchor or page == target else "")
        if anchor and anchor not in known and (elsewhere := project.find(anchor)):
            return f"path:{project.page_of(elsewhere[0]) or elsewhere[0]}#{anchor}", elsewhere[1]
        return f"path:{page}{f'#{anchor}' if anchor else ''}", title or project.title(target)
    if anchor and (found := project.find(anchor)):
        return f"path:{project.page_of(found[0]) or found[0]}#{anchor}", found[1]
    return None


def antora_page(target: str, from_path: str, project: AsciidocProject) -> str:
    """The path of the page that an Antora reference names: `page.adoc`, `module:page.adoc`, `./page.adoc`, or
    `component:module:page.adoc` of a component of this project. Empty if there is no such component."""
    if target.startswith("./"):
        return resolve(target, from_path)
    return antora_path(target, from_path, project.component_names, "page")


def image_path(target: str, document: Document) -> str:
    """The path of an image in an Antora component; empty if there is no component."""
    if not {"pages", "partials"} & set(PurePosixPath(document.path).parts):
        return ""
    project = _project(document)
    return antora_path(target, document.path, project.component_names if project else {}, "image")


def navigation(root: Path) -> list[NavigationEntry]:
    """The pages of the AsciiDoc books below a folder, in reading order."""
    return project_of(str(root.absolute())).order()


def project_of(root: str) -> AsciidocProject:
    """The AsciiDoc files below a folder; cached until `forget`."""
    return _scanned(root)


def forget() -> None:
    """Clear the cache of scanned folders, before a new run."""
    _scanned.cache_clear()


def _project(document: Document) -> AsciidocProject | None:
    if document.tree is None or document.tree.alone:
        return None
    project = project_of(document.tree.root)
    return project if document.path in project.scans else None


def _file(project: AsciidocProject, path: str, from_path: str) -> str:
    for wanted in (antora_page(path, from_path, project), resolve(path, from_path)):
        for ending in ("", *ENDINGS):
            if wanted and f"{wanted}{ending}" in project.scans:
                return f"{wanted}{ending}"
    stem, ending = posixpath.splitext(path)
    if ending == ".html":
        return _file(project, f"{stem}.adoc", from_path)
    return ""


@lru_cache(maxsize=4)
def _scanned(root: str) -> AsciidocProject:
    project = AsciidocProject(Path(root).resolve())
    for path in _paths(project.root):
        if path.endswith("antora.yml"):
            project.components[path.removesuffix("antora.yml")] = _described(project.text(path) or "")
        elif (text := project.text(path)) is not None:
            project.scans[path] = scan(text)
    edges = {path: list(_included(project, path)) for path in project.scans}
    included: dict[str, list[tuple[str, bool]]] = {}
    for path, found in edges.items():
        for target, level in found:
            included.setdefault(target, []).append((path, level is not None))
    masters = {path for path, found in edges.items() if _is_master(project.scans[path], found)}
    for path in project.scans:
        if _is_fragment(project, path, included.get(path), masters):
            project.fragments[path] = next((by for by, _ in included.get(path, ()) if by != path), "")
    for path, found in edges.items():
        for target, level in found:
            if level is None or path not in masters:
                continue
            if project.is_page(path) and project.is_page(target) and target not in project.parents and target != path:
                project.parents[target] = path
                project.children.setdefault(path, []).append(target)
    _break_loops(project)
    return project


def _break_loops(project: AsciidocProject) -> None:
    for path in list(project.parents):
        above, seen = path, {path}
        while parent := project.parents.get(above):
            if parent in seen:
                project.children[project.parents[path]].remove(path)
                del project.parents[path]
                break
            seen.add(parent)
            above = parent


def _paths(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            if name.endswith(ENDINGS) or name == "antora.yml":
                count += 1
                if count > _MAX_FILES:
                    return
                yield Path(folder, name).relative_to(root).as_posix()


def _described(text: str) -> dict[str, object]:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def scan(text: str) -> Scan:
    """Headings, anchors, attributes and includes of a file, line by line."""
    scanner = _Scanner([line.rstrip() for line in text.split("\n")])
    for number in range(len(scanner.lines)):
        scanner.line(number)
    return scanner.found


class _Scanner:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.found = Scan()
        self._verbatim = ""  # delimiter of the open verbatim block
        self._anchor = self._label = self._title = ""  # of the next block
        self._begun = False
        self._underline = -1

    def line(self, number: int) -> None:
        line = self.lines[number]
        if self._verbatim:
            self._verbatim = "" if line == self._verbatim else self._verbatim
        elif number == self._underline or not line:
            return
        elif opened := _VERBATIM.fullmatch(line):
            self._verbatim = "```" if opened[0].startswith("`") else opened[0]
        elif not line.startswith("//") and not self._event(line) and not self._about(line):
            self._content(number, line)

    def _event(self, line: str) -> bool:
        if entry := ENTRY.fullmatch(line):
            self.found.events.append(("entry", entry[1], entry[2] or ""))
        elif include := _INCLUDE.fullmatch(line):
            self.found.events.append(("include", include["target"], include["given"]))
            self._begun = self._begun or not _sets_attributes(include["target"])
        return bool(entry or include)

    def _about(self, line: str) -> bool:
        """Read the anchor or title of the next block; returns whether the line is of that kind."""
        if line.startswith("[") and line.endswith("]"):
            if named := ANCHOR.fullmatch(line):
                self._anchor, self._label = named[1], named[2] or ""
            elif named := _ID.fullmatch(line):
                self._anchor = named[1] or named[2]
            return True
        if line.startswith(".") and line[1:2] not in ("", ".", " "):
            self._title = line[1:]
            return True
        return False

    def _content(self, number: int, line: str) -> None:
        shown = self._label or self._title
        if heading := _heading(self.lines, number):
            self._underline = -1 if line.startswith("=") else number + 1
            self.found.headings.append(Heading(self._label or heading[1], self._anchor, heading[0]))
            self.found.level = self.found.level if self._begun else heading[0]
        elif self._anchor and shown:
            self.found.headings.append(Heading(shown, self._anchor))
        self._begun = self._begun or not line.startswith(("ifdef::", "ifndef::", "endif::", "ifeval::"))
        for anchor in _INLINE_ANCHOR.finditer(line) if "[[" in line or "anchor:" in line else ():
            if shown := anchor[2] or anchor[4]:
                self.found.headings.append(Heading(shown, anchor[1] or anchor[3]))
        self._anchor = self._label = self._title = ""


def _sets_attributes(target: str) -> bool:
    name = PurePosixPath(target).name
    return "attribute" in name or name.startswith("_") or "variables" in name


def _heading(lines: list[str], number: int) -> tuple[int, str] | None:
    line = lines[number]
    if line.startswith("=") and (found := _HEADING.fullmatch(line)):
        return len(found[1]), found[2]
    below = lines[number + 1] if number + 1 < len(lines) else ""
    level = underline_level(line, below)
    return (level, line) if level and re.search(r"\w", line) else None


def _included(project: AsciidocProject, path: str) -> Iterator[tuple[str, int | None]]:
    """The files of the project that a file includes; for those that may be a separate page, the level of the title."""
    attributes, components = Attributes(), project.component_names
    steps = 0

    def follow(one: str, files: tuple[str, ...]) -> Iterator[tuple[str, int | None]]:
        nonlocal steps
        for kind, name, value in project.scans[one].events:
            if kind == "entry":
                attributes.put(name, value)
                continue
            steps += 1
            target = resolve(attributes.filled(name), files[-1], components)
            if steps > _MAX_STEPS or target not in project.scans or target in files or len(files) > 10:
                continue
            given = {key: one.strip() for key, one in attributes_of(value)}
            offset = given.get("leveloffset", attributes.get("leveloffset", "0"))
            level = project.scans[target].level
            moved = level + (int(offset) if re.fullmatch(r"[+-]?\d", offset) else 0)
            whole = not {"tag", "tags", "lines"} & given.keys()
            if one == path:
                yield target, moved if whole and level and moved <= _PAGE_LEVEL else None
            if not project.scans[target].level:
                yield from follow(target, (*files, target))

    yield from follow(path, (path,))


def _is_master(scan_of: Scan, included: list[tuple[str, int | None]]) -> bool:
    """Whether a file mainly includes chapters: at least as many as it has own headings of their level or above, without
    its title."""
    chapters = [level for _, level in included if level is not None]
    own = [heading.level for heading in scan_of.headings if heading.level][1:]
    return bool(chapters) and sum(level <= min(chapters) for level in own) <= len(chapters)


def _is_fragment(
    project: AsciidocProject, path: str, included: list[tuple[str, bool]] | None, masters: set[str]
) -> bool:
    parts = PurePosixPath(path).parts
    if any(path.startswith(folder) for folder in project.components):
        return "pages" not in parts[:-1] or parts[-1].startswith("_")
    if any(part.startswith("_") for part in parts):
        return True
    if not included:
        return False
    if _FRAGMENT_FOLDERS & set(parts[:-1]):
        return True
    if project.scans[path].level == 1:  # a separate document, even if another one includes it
        return False
    return not any(as_page and by in masters for by, as_page in included)
