"""Collects the labels, titles, objects, `toctree`s and settings of a Sphinx project.

`scanner.py` scans each file, and `configuration.py` reads `conf.py`.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from chapterverse.ingestion.document import Document, Reference, Tree, Unreadable
from chapterverse.ingestion.inclusion import Inclusion
from chapterverse.ingestion.inline import remove_private
from chapterverse.ingestion.navigation import NavigationEntry
from chapterverse.ingestion.readers.cleaning import decode
from chapterverse.ingestion.readers.sphinx.c_names import IDENTIFIER
from chapterverse.ingestion.readers.sphinx.configuration import configuration
from chapterverse.ingestion.readers.sphinx.objects import (
    C_DOMAINS,
    KINDS,
    object_names,
)
from chapterverse.ingestion.readers.sphinx.scanner import TITLED, Found, Toctree, normal_name, plain_title, scan

MAX_DEPTH: Final = 50  # of a navigation
_ENDINGS = (".rst", ".md", ".txt")
_HIDDEN = ("_build", "_static", "_templates", "node_modules", "__pycache__")
_QUOTED = re.compile(r"``[^\n]{0,300}?``|`([^`\n]{1,300}(?:\n[^`\n]{1,300}){0,2})`")
_ROLE = re.compile(r":[\w:.+-]{1,60}:`([^`]{1,600})`")
_MYST_LINK = re.compile(r"\]\(<?#?([^()\s<>#]{1,200})>?\)")  # to a label or a page
_BUTTON = re.compile(r"(?:button-ref::|:link:)[ \t]+(\S{1,200})")  # of sphinx-design
_INCLUDE = re.compile(r"^[ \t]*\.\.[ \t]+(literal)?include::[ \t]+(\S+)[ \t]*$|^[ \t]+:file:[ \t]+(\S+)", re.MULTILINE)
_REPLACED = re.compile(r"^[ \t]*\.\.[ \t]+\|([^|\n]+)\|[ \t]+replace::[ \t]+(.*)$", re.MULTILINE)
_NAMED = re.compile(r"\|[^|\n]{1,80}\|")
_NUMBERS: Final = {"figure": "Fig. %s", "table": "Table %s", "code-block": "Listing %s"}  # unless conf.py sets others


@dataclass(frozen=True, slots=True)
class Project:
    """The cross-references of a folder of reStructuredText and MyST files."""

    root: Path
    settings: Mapping[str, Any]
    files: Mapping[str, Found]  # by path
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

    def _entries(self, tree: Toctree, name: str) -> Iterator[tuple[str, str]]:
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
        found = self.files.get(document.path, Found())
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
    files = {path: found for path in _paths(place) if not excludes(path) and (found := scan(place, path))}
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


def _substitute(files: Iterable[Found], settings: Mapping[str, Any], root: Path) -> None:
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
