"""Collects the labels, titles, objects, `toctree`s and settings of a Sphinx project.

It scans the files line by line, without docutils. `configuration.py` reads `conf.py`.
"""

import os
import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from chapterverse.ingestion.document import Document, Reference, Tree, Unreadable
from chapterverse.ingestion.inclusion import Inclusion
from chapterverse.ingestion.inline import remove_private
from chapterverse.ingestion.navigation import NavigationEntry
from chapterverse.ingestion.readers.cleaning import decode
from chapterverse.ingestion.readers.included_lines import include_lines
from chapterverse.ingestion.readers.sphinx.c_names import IDENTIFIER
from chapterverse.ingestion.readers.sphinx.configuration import configuration
from chapterverse.ingestion.readers.sphinx.objects import (
    C_DOMAINS,
    KINDS,
    NAMESPACE,
    OBJECT,
    Objects,
    object_names,
    sphinx_id,
)

MAX_FILE: Final = 5_000_000  # bytes of a page that is searched for labels
MAX_DEPTH: Final = 50  # of a navigation
_ENDINGS = (".rst", ".md", ".txt")
_HIDDEN = ("_build", "_static", "_templates", "node_modules", "__pycache__")
_DIRECTIVE = re.compile(r"(\s*)\.\.[ \t]+([A-Za-z][\w:.+-]*)[ \t]*::(?:[ \t]+(.*))?$")
_LABEL = re.compile(r"\s*\.\.[ \t]+_(?:`([^`]+)`|((?:[^:\\`]|\\.|:(?!\s|$))+)):[ \t]*$")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")
_MYST_LABEL = re.compile(r"\(([^()\s]+)\)=\s*$")
_MYST_HEADING = re.compile(r"(#{1,6})[ \t]++(.*?)(?:(?<![ \t#])[ \t]*+#*+)?$")
_MYST_DIRECTIVE = re.compile(r"\s*+(`{3,}+|~{3,}+|:{3,}+)\{([\w:.-]++)\}[ \t]*+(.*)$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
TITLED = re.compile(r"(.+?)(?<!\s)\s*+(?<![\\\0])<([^<>]++)>", re.DOTALL)  # docutils writes an escape as \0
_ONLY_WORD = re.compile(r"(\(|\)|[\w.+-]++)")
_COMMENT = re.compile(r"\s*\.\.(?:$|[ \t]+(?![_|\[]))")  # unless it is a directive
_OPTION = re.compile(r"\s*:([\w-]+):[ \t]*(.*)")
_NO_NODE = re.compile(  # directives between a label and its heading that add nothing to the page
    "codeauthor|currentmodule|default-domain|default-role|index|meta|moduleauthor|module|program|py:currentmodule|"
    "py:module|redirect-from|role|rst-class|sectionauthor|tabularcolumns"
)
_LITERAL = re.compile("code|code-block|sourcecode|parsed-literal|literalinclude|prompt|testcode|testoutput|raw|math")
_QUOTED = re.compile(r"``[^\n]{0,300}?``|`([^`\n]{1,300}(?:\n[^`\n]{1,300}){0,2})`")
_ROLE = re.compile(r":[\w:.+-]{1,60}:`([^`]{1,600})`")
_MYST_LINK = re.compile(r"\]\(<?#?([^()\s<>#]{1,200})>?\)")  # to a label or a page
_BUTTON = re.compile(r"(?:button-ref::|:link:)[ \t]+(\S{1,200})")  # of sphinx-design
_INCLUDE = re.compile(r"^[ \t]*\.\.[ \t]+(literal)?include::[ \t]+(\S+)[ \t]*$|^[ \t]+:file:[ \t]+(\S+)", re.MULTILINE)
_MARKUP = re.compile(r":[\w:.+-]{1,80}:(?=`)|`{1,2}|(?<![\w*\\])(\*{1,2})(?=\S)([^*]{1,200}?)(?<=\S)\1(?![\w*])|\\(.)")
_REPLACED = re.compile(r"^[ \t]*\.\.[ \t]+\|([^|\n]+)\|[ \t]+replace::[ \t]+(.*)$", re.MULTILINE)
_NAMED = re.compile(r"\|[^|\n]{1,80}\|")
_CAPTIONED: Final = {  # directives that may have a caption → their kind in Sphinx's numbering
    **dict.fromkeys(("figure",), "figure"),
    **dict.fromkeys(("table", "list-table", "csv-table"), "table"),
    **dict.fromkeys(("code-block", "sourcecode", "literalinclude"), "code-block"),
}
_NUMBERS: Final = {"figure": "Fig. %s", "table": "Table %s", "code-block": "Listing %s"}  # unless conf.py sets others


@dataclass(slots=True)
class _Toctree:
    caption: str = ""
    glob: bool = False
    numbered: bool = False
    backwards: bool = False
    entries: list[tuple[str, str]] = field(default_factory=list)  # title and name
    key: str = ""  # `toctree_key`


@dataclass(slots=True)
class _Found:
    """The result of scanning one file."""

    title: str = ""
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)  # label → anchor, title
    objects: dict[str, str] = field(default_factory=dict)  # `kind:name` → anchor
    sections: dict[str, str] = field(default_factory=dict)  # title → anchor
    toctrees: list[_Toctree] = field(default_factory=list)
    captioned: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)  # (kind, labels) of figures and so on


@dataclass(frozen=True, slots=True)
class Project:
    """The cross-references of a folder of reStructuredText and MyST files."""

    root: Path
    settings: Mapping[str, Any]
    files: Mapping[str, _Found]  # by path
    documents: Mapping[str, str]  # path without ending → path
    references: Mapping[str, Reference]  # `label:…`, `doc:…`, `KIND:…`

    def navigation(self) -> list[NavigationEntry]:
        """The pages in the order of the `toctree`s, from the root document."""
        named = [self.settings.get("root_doc"), self.settings.get("master_doc"), "index", "contents"]
        start = next((name for name in named if isinstance(name, str) and name in self.documents), None)
        if start is None:
            return []
        entries: dict[str, NavigationEntry] = {}
        for entry in self._below(start, "", (), entries, 0):
            entries.setdefault(entry.path, entry)
        return list(entries.values()) if len(entries) > 1 else []

    def _below(
        self, name: str, title: str, parents: tuple[str, ...], seen: dict[str, NavigationEntry], depth: int
    ) -> Iterator[NavigationEntry]:
        path = self.documents[name]
        if path in seen or depth > MAX_DEPTH:
            return
        found = self.files[path]
        yield NavigationEntry(path, title or found.title, parents)
        above = (*parents, title or found.title) if depth else parents
        for tree in found.toctrees:
            for shown, target in self._entries(tree, name):
                inside = (*above, tree.caption) if tree.caption else above
                yield from self._below(target, shown, inside, seen, depth + 1)

    def numbers(self) -> dict[str, str]:
        """The numbers of figures, tables and listings by label, if `conf.py` enables them. They are counted within the
        chapters of a numbered `toctree`; `numfig_secnum_depth` above 1 is not supported."""
        if self.settings.get("numfig") is not True:
            return {}
        given = self.settings.get("numfig_format")
        form = _NUMBERS | {kind: text for kind, text in (given if isinstance(given, dict) else {}).items() if text}
        in_chapters = self.settings.get("numfig_secnum_depth", 1) != 0
        found: dict[str, str] = {}
        counts: dict[tuple[str, int], int] = {}
        chapters = self._numbered_chapters() if in_chapters else {}
        for entry in self.navigation():
            chapter = chapters.get(entry.path, 0)
            for kind, labels in self.files[entry.path].captioned:
                count = counts[kind, chapter] = counts.get((kind, chapter), 0) + 1
                number = f"{chapter}.{count}" if chapter else str(count)
                found.update((label, str(form[kind]).replace("%s", number, 1)) for label in labels)
        return found

    def _numbered_chapters(self) -> dict[str, int]:
        """The chapter number of each page."""
        found: dict[str, int] = {}
        for name, path in self.documents.items():
            for tree in self.files[path].toctrees:
                for number, (_, target) in enumerate(self._entries(tree, name), 1) if tree.numbered else ():
                    below: dict[str, NavigationEntry] = {}
                    for entry in self._below(target, "", (), below, 0):
                        below[entry.path] = entry
                        found.setdefault(entry.path, number)
        return found

    def _entries(self, tree: _Toctree, name: str) -> Iterator[tuple[str, str]]:
        folder = posixpath.dirname(name)
        listed: list[tuple[str, str]] = []
        for title, entry in tree.entries:
            target = posixpath.normpath(entry.lstrip("/") if entry.startswith("/") else posixpath.join(folder, entry))
            stem, ending = posixpath.splitext(target)
            target = stem if ending in _ENDINGS and target not in self.documents else target
            if tree.glob and any(sign in entry for sign in "*?["):
                pattern, already = _glob(target), {one for _, one in listed}
                listed += [
                    ("", other) for other in sorted(self.documents) if pattern.fullmatch(other) and other not in already
                ]
            elif target in self.documents:
                listed.append((title, target))
        yield from reversed(listed) if tree.backwards else listed

    def excludes(self, path: str) -> bool:
        """Whether `conf.py` excludes a file or a folder around it."""
        patterns = self.settings.get("exclude_patterns")
        if not isinstance(patterns, list | tuple) or not (self.root / "conf.py").is_file():
            return False
        names = path.split("/")
        above = ["/".join(names[:count]) for count in range(1, len(names) + 1)]
        return any(_glob(pattern).fullmatch(part) for pattern in patterns if isinstance(pattern, str) for part in above)

    def context(self, document: Document) -> tuple[dict[str, Reference], dict[str, str], str]:
        """The references and settings that a document needs, and a digest of everything it depends on."""
        try:
            text = decode(document.data)
        except Unreadable:
            return {}, {}, ""
        digest = sha256()
        settings = _as_text(self.settings)
        references: dict[str, Reference] = {}
        found = self.files.get(document.path, _Found())
        own = found.objects
        name = posixpath.splitext(document.path)[0]
        for tree in found.toctrees:
            for place, (title, target) in enumerate(self._entries(tree, name)):
                page = self.documents[target]
                references[f"{tree.key}:{place}"] = Reference(page, "", title or self.files[page].title)
        for label in (label for _, labels in found.captioned for label in labels):
            if (known := self.references.get(f"label:{label}")) and known.number:
                references[f"label:{label}"] = known
        for piece in (text, *settings.values(), *_included(document, text, digest)):
            for key in keys_in(piece, document.path):
                if key in own:
                    references[key] = Reference(document.path, own[key])
                elif known := self.references.get(key):
                    references[key] = known
        digest.update(repr((sorted(references.items(), key=lambda item: item[0]), sorted(settings.items()))).encode())
        return references, settings, digest.hexdigest()


def navigation(root: Path) -> list[NavigationEntry]:
    """The pages of a Sphinx project in the order of its `toctree`s."""
    return read_project(str(root)).navigation()


@lru_cache(maxsize=1)
def read_project(root: str) -> Project:
    """The project in a folder; cached until `read_project.cache_clear()`, before a new run."""
    place = Path(root)
    settings = configuration(place)
    excludes = Project(place, settings, {}, {}, {}).excludes
    files = {path: found for path in _paths(place) if not excludes(path) and (found := _search(place, path))}
    documents: dict[str, str] = {}
    for path in sorted(files, key=lambda one: _ENDINGS.index(posixpath.splitext(one)[1])):
        documents.setdefault(posixpath.splitext(path)[0], path)
    _substitute(files.values(), settings, place)
    references: dict[str, Reference] = {}
    sectioned = "sphinx.ext.autosectionlabel" in str(settings.get("extensions", ""))
    prefixed = bool(settings.get("autosectionlabel_prefix_document"))
    for name, path in documents.items():
        found = files[path]
        references[f"doc:{name}"] = Reference(path, "", found.title)
        for label, (anchor, title) in found.labels.items():
            references.setdefault(f"label:{label}", Reference(path, anchor, title))
        for key, anchor in found.objects.items():
            references.setdefault(key, Reference(path, anchor))
        for title, anchor in found.sections.items() if sectioned else ():
            label = normal_name(f"{name}:{title}" if prefixed else title)
            references.setdefault(f"label:{label}", Reference(path, anchor, title))
    project = Project(place, settings, files, documents, references)
    for label, number in project.numbers().items():
        if named := references.get(f"label:{label}"):
            references[f"label:{label}"] = replace(named, number=number)
    return project


def _substitute(files: Iterable[_Found], settings: Mapping[str, Any], root: Path) -> None:
    """Replace substitutions of `conf.py` in titles."""
    given = "\n".join(str(settings.get(name) or "") for name in ("rst_prolog", "rst_epilog"))
    page = Document("", "conf.py", "", "rst", b"", tree=Tree(str(root)))
    given = "\n".join([given, *_included(page, given, sha256())])
    substitutions = {f"|{name}|": plain_title(value) for name, value in _REPLACED.findall(given)}
    substitutions |= {f"|{name}|": str(settings[name]) for name in ("version", "release") if settings.get(name)}

    def filled(title: str) -> str:
        return _NAMED.sub(lambda name: substitutions.get(name[0], name[0]), title) if "|" in title else title

    for found in files if substitutions else ():
        found.title = filled(found.title)
        found.labels = {label: (anchor, filled(title)) for label, (anchor, title) in found.labels.items()}


def toctree_key(lines: Iterable[str], options: Iterable[str]) -> str:
    """The key of the pages of a `toctree`: its entries, and the options that change them."""
    given = "\n".join(filter(None, [*map(str.strip, lines), *sorted({"glob", "reversed"}.intersection(options))]))
    return f"toctree:{sha256(given.encode(errors='replace')).hexdigest()[:16]}"


def shown_in_html(expression: str) -> bool:
    """Whether `only` shows its text in HTML. With an invalid expression it is shown."""
    words = _ONLY_WORD.findall(expression)[:100]

    def either() -> bool:
        value = both()
        while words and words[0] == "or":
            words.pop(0)
            value = both() or value
        return value

    def both() -> bool:
        value = one()
        while words and words[0] == "and":
            words.pop(0)
            value = one() and value
        return value

    def one() -> bool:
        word = words.pop(0) if words else "html"
        if word == "not":
            return not one()
        if word == "(":
            value = either()
            if words and words[0] == ")":
                words.pop(0)
            return value
        return word in ("html", "builder_html", "format_html")

    return either()


def keys_in(text: str, path: str) -> Iterator[str]:
    """The possible reference keys of the names in backticks and the link targets in a text."""
    folder = posixpath.dirname(path)
    for target in set(_MYST_LINK.findall(text)) if path.endswith(".md") else ():
        yield f"label:{normal_name(target)}"
        yield doc_key(target, folder)
    for quoted in {*_QUOTED.findall(text), *_ROLE.findall(text), *_BUTTON.findall(text)} - {""}:
        titled = TITLED.fullmatch(quoted)
        target = (titled[2] if titled else quoted).replace("\\", "").strip().lstrip("!")
        yield f"label:{normal_name(target)}"
        yield f"term:{normal_name(target)}"
        yield doc_key(target, folder)
        for name in object_names(target):
            for kind in KINDS:
                yield f"{kind}:{name}"
        for name in {*object_names(target), *IDENTIFIER.findall(target)}:
            for domain in C_DOMAINS:
                yield f"{domain}:{name}"


def doc_key(target: str, folder: str) -> str:
    """The key of the page that a file in `folder` names. As in Sphinx, paths cannot leave the root."""
    place = posixpath.normpath(posixpath.join(f"/{folder}", target))[1:]
    stem, ending = posixpath.splitext(place)
    return f"doc:{stem if ending in _ENDINGS else place}"


def normal_name(name: str) -> str:
    """A label as docutils normalises it."""
    return " ".join(name.lower().split())


def make_id(text: str) -> str:
    """The anchor that docutils generates for a title or label."""
    from docutils.nodes import make_id as made

    return str(made(text))


@lru_cache(maxsize=1000)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob pattern of Sphinx: `*` does not match slashes, `**` does. Long patterns match nothing."""
    if len(pattern) > 200 or pattern.count("*") > 10:
        return re.compile(r"(?!)")
    pieces = re.split(r"(\*\*/?|\*|\?)", pattern)
    signs = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(signs.get(piece, re.escape(piece)) for piece in pieces))


def _as_text(settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings that readers use, as texts."""
    text = {name: value for name, value in settings.items() if isinstance(value, str) and name != "extensions"}
    links = settings.get("extlinks")
    for name, value in links.items() if isinstance(links, dict) else ():
        if isinstance(name, str) and isinstance(value, tuple | list) and value and isinstance(value[0], str):
            shown = value[1] if len(value) > 1 and isinstance(value[1], str) else ""
            text[f"extlinks.{name}"] = f"{value[0]}\n{shown}"
    for name in ("add_module_names", "todo_include_todos"):
        if isinstance(settings.get(name), bool):
            text[name] = "yes" if settings[name] else "no"
    return {name: remove_private(value) for name, value in text.items()}


def _included(document: Document, text: str, digest: Any) -> Iterator[str]:
    """The texts of the files that a document includes. Included code is only added to the digest."""
    inclusion = Inclusion(document)
    waiting, folder = [text], posixpath.dirname(document.path)
    while waiting:
        for literal, included, file in _INCLUDE.findall(waiting.pop()):
            wanted = included or file
            found = inclusion.read(wanted if wanted.startswith("/") else f"/{posixpath.join(folder, wanted)}")
            if found is None:
                continue
            digest.update(found.text.encode(errors="replace"))
            if included and not literal:
                yield found.text
                waiting.append(found.text)


def _paths(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _HIDDEN)
        for name in sorted(files):
            if name.endswith(_ENDINGS[:2]):
                yield Path(folder, name).relative_to(root).as_posix()


def _search(root: Path, path: str) -> _Found | None:
    place = root / path
    try:
        if place.is_symlink() or place.stat().st_size > MAX_FILE:
            return None
        text = decode(place.read_bytes())
    except (OSError, Unreadable):
        return None
    page = Document("", path, "", "rst", b"", tree=Tree(str(root)))
    search: _Search = _MystSearch() if path.endswith(".md") else _RstSearch(page)
    return search.run(text.split("\n"))


class _Search(ABC):
    """The common part of the scanners for reStructuredText and MyST."""

    def __init__(self) -> None:
        self.found = _Found()
        self._pending: list[str] = []  # labels whose target has not been read yet
        self._taken: set[str] = set()  # anchors that are used on this page

    @abstractmethod
    def run(self, lines: list[str]) -> _Found:
        """Scan the lines of one file."""

    def _section(self, title: str, anchor: str = "") -> None:
        title = plain_title(title)
        anchor = anchor or make_id(title)
        if not anchor or anchor in self._taken:
            anchor = make_id(self._pending[-1]) if self._pending else ""
        self._taken.add(anchor)
        self.found.title = self.found.title or title
        self.found.sections.setdefault(title, anchor)
        self._name(title, anchor)

    def _name(self, title: str, anchor: str = "") -> None:
        """Assign the pending labels to a title."""
        for label in self._pending:
            self.found.labels.setdefault(normal_name(label), (anchor or make_id(label), title))
        self._pending.clear()

    def _toctree(self, options: Iterable[str]) -> None:
        given, lines = _options(options)
        tree = _Toctree(given.get("caption", ""), "glob" in given, "numbered" in given, "reversed" in given)
        tree.key = toctree_key(lines, given)
        for line in filter(None, map(str.strip, lines)):
            if not line.startswith(".. "):
                titled = TITLED.fullmatch(line)
                tree.entries.append((titled[1], titled[2]) if titled else ("", line))
        self.found.toctrees.append(tree)


class _RstSearch(_Search):
    def __init__(self, page: Document) -> None:
        super().__init__()
        self._objects = Objects(self.found.objects)
        self._inclusion = Inclusion(page)
        self._folder = posixpath.dirname(page.path)

    def run(self, lines: list[str]) -> _Found:
        self._lines(lines)
        self._name("")
        return self.found

    def _lines(self, lines: list[str]) -> None:
        place = 0
        while place < len(lines):
            place = self._line(lines, place)

    def _line(self, lines: list[str], place: int) -> int:
        """Read the block that begins at a line; returns the number of the next line to read."""
        line = lines[place]
        if label := _LABEL.match(line):
            self._pending.append((label[1] or label[2]).replace("\\", ""))
        if label or not line.strip():
            return place + 1
        if directive := _DIRECTIVE.match(line):
            return self._directive(directive, lines, place)
        if _COMMENT.match(line):
            self._name("")
            empty = line.strip() == ".." and not "".join(lines[place + 1 : place + 2]).strip()
            return place + 1 if empty else _end_of_body(lines, place + 1, _indent(line))
        if (title := _title_at(lines, place)) is not None:
            self._section(title[0])
            return title[1]
        following = lines[place + 1] if place + 1 < len(lines) else ""
        defines = following.strip() and _indent(following) > _indent(line)  # the line is a term
        self._name(plain_title(line) if defines and self._pending else "")
        if line.rstrip().endswith("::"):
            return _end_of_body(lines, place + 1, _indent(line))
        return place + 1

    def _directive(self, directive: re.Match[str], lines: list[str], place: int) -> int:
        indent, name, argument = len(directive[1]), directive[2].lower(), (directive[3] or "").strip()
        if name in ("toctree", "include") or (name == "only" and not shown_in_html(argument)):
            end = _end_of_body(lines, place + 1, indent)
            if name == "toctree":
                self._toctree(lines[place + 1 : end])
            elif name == "include":
                self._include(argument, _options(lines[place + 1 : end])[0], directive[1])
            return end
        if name == "glossary":
            end = _end_of_body(lines, place + 1, indent)
            self._glossary(lines[place + 1 : end])
        elif OBJECT.fullmatch(name):
            self._object(name, argument, indent, lines, place)
        elif name in _CAPTIONED:
            caption, named = self._caption(name, argument, lines, place, indent)
            self._pending += [named] if named else []
            if caption:
                self.found.captioned.append((_CAPTIONED[name], tuple(map(normal_name, self._pending))))
            self._name(caption)
        self._enter(name, argument)
        if _LITERAL.fullmatch(name):
            return _end_of_body(lines, place + 1, indent)
        if not _NO_NODE.fullmatch(name) and not OBJECT.fullmatch(name):
            self._name("")
        return place + 1

    def _enter(self, name: str, argument: str) -> None:
        """Read a directive that names what the following objects belong to."""
        if name in ("currentmodule", "py:currentmodule"):
            self._objects.module = "" if argument == "None" else argument
        elif name == "program":
            self._objects.program = argument
        elif NAMESPACE.fullmatch(name):
            self._objects.enter(name, argument)

    def _include(self, wanted: str, options: Mapping[str, str], indent: str) -> None:
        """Read an included file as part of the page."""
        if {"literal", "code", "parser"}.intersection(options) or wanted.endswith(".md"):
            return
        found = self._inclusion.read(wanted if wanted.startswith("/") else f"/{posixpath.join(self._folder, wanted)}")
        lines = include_lines(found.text.split("\n"), options) if found else None
        if found and lines:
            with self._inclusion.inside(found):
                self._lines([f"{indent}{line}" if line.strip() else "" for line in lines])

    def _caption(self, name: str, argument: str, lines: list[str], place: int, indent: int) -> tuple[str, str]:
        """The caption of a figure, table or listing, and its label from the option `name`."""
        caption, label = plain_title(argument) if _CAPTIONED[name] == "table" else "", ""
        for line in lines[place + 1 : _end_of_body(lines, place + 1, indent)]:
            if option := re.match(r"\s*:(caption|name):\s*(.+)", line):
                caption, label = (plain_title(option[2]), label) if option[1] == "caption" else (caption, option[2])
            elif line.strip() and not line.lstrip().startswith(":"):
                return plain_title(line.strip()) if name == "figure" else caption, label
        return caption, label

    def _object(self, kind: str, argument: str, indent: int, lines: list[str], place: int) -> None:
        signatures = [argument]
        for line in lines[place + 1 : place + 20]:
            if not line.strip() or _indent(line) <= indent:
                break
            if re.match(r"\s+:no-?index:", line):
                return
            if signatures[-1].endswith("\\"):
                signatures[-1] = f"{signatures[-1][:-1].rstrip()} {line.strip()}"
            elif not line.lstrip().startswith(":"):
                signatures.append(line.strip())
        self._objects.describe(kind, signatures, indent)
        for label in self._pending if not _NO_NODE.fullmatch(kind) else ():
            self.found.labels.setdefault(normal_name(label), (make_id(label), ""))
        if not _NO_NODE.fullmatch(kind):
            self._pending.clear()

    def _glossary(self, lines: list[str]) -> None:
        filled = [line for line in lines if line.strip() and not line.lstrip().startswith((":sorted:", ".. "))]
        depth = min(map(_indent, filled), default=0)
        for line in filled:
            if _indent(line) == depth:
                term = plain_title(re.split(r"(?<!\s)\s++:\s++", line.strip())[0])
                self.found.objects.setdefault(f"term:{normal_name(term)}", sphinx_id("term", term))


class _MystSearch(_Search):
    def run(self, lines: list[str]) -> _Found:
        place, fence = 0, ""
        while place < len(lines):
            line = lines[place]
            place += 1
            if fence:
                fence = "" if line.strip().startswith(fence) else fence
            elif directive := _MYST_DIRECTIVE.match(line):
                if directive[2] == "toctree":
                    end = next((at for at in range(place, len(lines)) if lines[at].strip() == directive[1]), len(lines))
                    self._toctree(lines[place:end])
                    place = end + 1
                elif directive[1][0] != ":":
                    fence = directive[1]
            elif opening := _FENCE.match(line):
                fence = opening[1]
            elif label := _MYST_LABEL.match(line):
                self._pending.append(label[1])
            elif heading := _MYST_HEADING.match(line):
                self._section(heading[2], make_id(self._pending[-1]) if self._pending else "")
            elif line.strip():
                self._name("")
        self._name("")
        return self.found


def plain_title(title: str) -> str:
    """A title without its inline markup."""
    title = re.sub(r"(?::[\w:.+-]{1,80}:)?`([^`<]{1,500}?)(?<!\s)\s*+<[^`<>]++>`_{0,2}", r"\1", title.strip())
    return " ".join(_MARKUP.sub(lambda found: found[2] or found[3] or "", title).split())


def _title_at(lines: list[str], place: int) -> tuple[str, int] | None:
    """The section title that begins at a line, and the number of the line after it; None if there is none."""
    line = lines[place]
    if line[0].isspace():
        return None
    if _ADORNMENT.match(line) and place + 2 < len(lines) and lines[place + 1].strip():
        if lines[place + 2].rstrip() == line.rstrip() and not _ADORNMENT.match(lines[place + 1].strip()):
            return lines[place + 1].strip(), place + 3
        if len(line.strip()) > 3 or place + 1 >= len(lines):
            return None
    under = lines[place + 1] if place + 1 < len(lines) else ""
    before = lines[place - 1].strip() if place else ""
    if not _ADORNMENT.match(under) or (before and not before.startswith("..") and not _ADORNMENT.match(before)):
        return None
    if len(under.rstrip()) < len(line.rstrip()) and len(under.rstrip()) < 4:
        return None
    return line.strip(), place + 2


def _options(body: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a directive, and the other lines of its body."""
    found: dict[str, str] = {}
    rest: list[str] = []
    for line in body:
        if option := _OPTION.match(line):
            found[option[1]] = option[2].strip()
        else:
            rest.append(line)
    return found, rest


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of_body(lines: list[str], place: int, indent: int) -> int:
    """The number of the first line that is neither blank nor indented more than `indent`."""
    while place < len(lines) and (not lines[place].strip() or _indent(lines[place]) > indent):
        place += 1
    return place
