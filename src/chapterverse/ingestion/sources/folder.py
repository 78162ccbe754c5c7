"""A folder or a single file as a source.

Decides which files are read, their addresses and their order. Symbolic links out of the folder are not followed.
"""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from chapterverse.book import PageRecord
from chapterverse.errors import IngestionError
from chapterverse.ingestion import links
from chapterverse.ingestion.authored import FolderNote, about, is_published
from chapterverse.ingestion.document import Document, Failed, Fetched, Skipped, Tree
from chapterverse.ingestion.formats import format_of_file, readable_extensions
from chapterverse.ingestion.generators import anchors_of, hugo_parameters, lay_out, title_of
from chapterverse.ingestion.images import find_image
from chapterverse.ingestion.inline import remove_private
from chapterverse.ingestion.navigation import NavigationEntry, entries
from chapterverse.ingestion.options import SourceOptions, too_large
from chapterverse.ingestion.readers.asciidoc import project as asciidoc_project
from chapterverse.ingestion.readers.cleaning import clean_inline
from chapterverse.ingestion.readers.includes import INCLUDE
from chapterverse.ingestion.readers.sphinx import project as sphinx_project
from chapterverse.ingestion.sources.addresses import normalise

_NO_PAGES = frozenset(("node_modules", "__pycache__", "_build", "_static", "_templates"))
_MAX_CHAPTERS = 8  # parts and chapters above a page
_MAX_LABEL = 120  # characters of their names
_INCLUDES = re.compile(INCLUDE.pattern.encode() + rb"|include|^import |readfile|code_sample", re.MULTILINE)


class Folder:
    """The files below a folder in a fixed order, or one file."""

    def __init__(self, place: Path, options: SourceOptions) -> None:
        self._options = options
        self._base = normalise(options.base_url).rstrip("/")
        if options.base_url and not self._base:
            raise IngestionError(f"not the address of a website: {options.base_url}")
        self._file = "" if place.is_dir() else place.name
        self._layout = lay_out(place.parent if self._file else place, options.generator)
        self._folders: dict[PurePosixPath, FolderNote] = {}
        self._surroundings = ""
        self._site = hugo_parameters(self._layout)
        self._entries: dict[str, NavigationEntry] = {}  # of the navigation, by path
        self._places: dict[str, int] = {}  # position of each page in the navigation
        self.place = str(place.resolve())
        self.complete = False
        self.expected: int | None = None
        self.title = "" if self._file else title_of(self._layout)
        if self._file:
            form = format_of_file(self._file)
            if form is None:
                raise IngestionError(f"{place} cannot be read; supported are {' '.join(readable_extensions())}")
            self._root = place.parent
            self._tree = self._plant(place.parent)
            self.key = links.page_address(self._tree, self._file)
        else:
            self._root = self._layout.root
            self._tree = self._plant(place)
            self.key = self._base or self._layout.name
            if not any(isinstance(found, str) for found in self._walk()):
                raise IngestionError(f"no readable file in {place}; supported are {' '.join(readable_extensions())}")

    async def documents(self, known: Mapping[str, PageRecord]) -> AsyncGenerator[Fetched, None]:
        """The outcomes of all files: files before folders, by name, `index` first. `known` is not used, because reading
        files is cheap."""
        self.complete = False
        self._surroundings = ""
        links.forget()
        sphinx_project.read_project.cache_clear()
        asciidoc_project.forget()
        found: list[str | Skipped | Failed] = [self._file]
        if not self._file:
            found = await asyncio.to_thread(lambda: list(self._walk()))
            self._entries = await asyncio.to_thread(entries, self._root, self._layout.generator)
            self._places = {path: place for place, path in enumerate(self._entries)}
        self.expected = len(found)
        taken: dict[str, str] = {}  # address → path
        left_out: list[tuple[str, Skipped]] = []  # with their paths; returned last, because they reserve no address
        blind = False
        for done, place in enumerate(found):
            if not isinstance(place, str):
                blind = blind or isinstance(place, Failed)
                yield place
                continue
            if len(taken) >= self._options.max_pages:
                left = sum(isinstance(other, str) for other in found[done:])
                yield Skipped(self._name(place), f"limit of {len(taken):,} pages reached; {left:,} files were not read")
                blind = True
                break
            outcome = await asyncio.to_thread(self._read, place)
            if isinstance(outcome, Skipped):
                left_out.append((place, outcome))
            elif twin := taken.get(outcome.url):
                yield Skipped(self._name(place), f"same address as {_readable(twin)}")
            else:
                taken[outcome.url] = place
                yield outcome
        for place, skipped in left_out:
            yield skipped if taken.setdefault(skipped.url, place) == place else replace(skipped, url=self._name(place))
        self.complete = not blind

    def image(self, address: str) -> Path | None:
        """The file of an image of this folder."""
        return find_image(self._tree, address)

    def _walk(self) -> Iterator[str | Skipped | Failed]:
        """Paths of all files in a known format, and outcomes for unreadable folders."""
        broken: list[OSError] = []
        for folder, folders, files in os.walk(self._root, onerror=broken.append):
            here = Path(folder)
            yield from self._linked(here, folders)
            folders[:] = sorted(name for name in folders if not self._ignores(here / name))
            for name in sorted(files, key=lambda name: (PurePosixPath(name).stem != "index", name)):
                if format_of_file(name) and not name.startswith("."):
                    yield (here / name).relative_to(self._root).as_posix()
        for error in broken:
            path = Path(error.filename).relative_to(self._root).as_posix()
            yield Failed(self._name(path), f"cannot be opened: {error.strerror}")

    def _linked(self, here: Path, folders: list[str]) -> Iterator[Skipped]:
        for name in sorted(folders):
            if (here / name).is_symlink() and not self._ignores(here / name):
                path = (here / name).relative_to(self._root).as_posix()
                yield Skipped(self._name(path), "a link to a folder")

    def _ignores(self, folder: Path) -> bool:
        return folder.name.startswith(".") or folder.name in _NO_PAGES or self._layout.is_output(folder)

    def _read(self, path: str) -> Document | Skipped | Failed:
        """Read one file, at most up to the size limit, even if the file grows meanwhile."""
        form = format_of_file(path)
        assert form is not None  # otherwise the walk would have skipped it
        url = links.page_address(self._tree, path)
        place = self._root / path
        try:
            path.encode()
            why = self._objection(path, place)
            if why:
                return Skipped(url, why)
            limit = self._options.limit(form)
            size = place.stat().st_size
            if size > limit:
                return Skipped(url, too_large(size, limit))
            with place.open("rb") as file:
                data = file.read(limit + 1)
        except UnicodeEncodeError:
            return Failed(url, "the file's name is not UTF-8")
        except OSError as error:
            return Failed(url, f"cannot be opened: {error.strerror}")
        if why := too_large(0, limit) if len(data) > limit else self._unpublished(path, data):
            return Skipped(url, why)
        anchors = anchors_of(form, self._layout.generator)
        module, folders = self._options.module, tuple(about.number for about in self._above(path))
        around = self._fingerprint() if form != "rst" and _INCLUDES.search(data) else ""
        document = Document(
            url, path, self.key, form, data, anchors=anchors, module=module, folders=folders, tree=self._tree,
            surroundings=around, place=self._places.get(path), chapters=self._chapters(path),
        )  # fmt: skip
        return self._in_context(document)

    def _in_context(self, document: Document) -> Document:
        """The document with the context of its project."""
        around = document.surroundings
        if document.format == "rst" or (document.format == "markdown" and self._layout.generator == "sphinx"):
            project = sphinx_project.read_project(str(self._root))
            references, settings, digest = project.context(document)
            document = replace(document, references=references, settings=settings)
            around += digest
        if b"param" in document.data and (named := self._parameters(document.data)):
            document = replace(document, settings=named)
            around += f"/{named}"
        if document.format == "asciidoc" and not self._file:
            chapter = asciidoc_project.project_of(self._tree.root).chapter_of(document.path)
            document = replace(document, module=document.module or chapter)
            around = f"{self._fingerprint()}/{chapter}"  # the texts of references depend on other files
        if document.place is not None:
            around += f"/{document.place}"
        if document.chapters:
            around += "/".join(("", *document.chapters))
        return replace(document, surroundings=around)

    def _parameters(self, data: bytes) -> dict[str, str]:
        """The parameters of a Hugo site that a page may name."""
        return {name: value for name, value in self._site.items() if name.encode() in data}

    def _plant(self, within: Path) -> Tree:
        name = "" if self._file else self._layout.name
        return Tree(
            str(self._root.absolute()),
            self._base,
            name,
            self._layout.generator,
            alone=bool(self._file),
            within=str(within.absolute()),
        )

    def _fingerprint(self) -> str:
        """A digest of all files in the folder: if it changes, pages with includes are read again."""
        if not self._surroundings:
            digest = hashlib.sha256()
            for folder, folders, files in os.walk(self._tree.within):
                folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NO_PAGES)
                for name in sorted(files):
                    with suppress(OSError):
                        found = Path(folder, name).stat()
                        digest.update(
                            f"{folder}/{name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode(errors="replace")
                        )
            self._surroundings = digest.hexdigest()
        return self._surroundings

    def _above(self, path: str) -> list["FolderNote"]:
        """The notes of the folders above a file, outermost first. They are cached."""
        above = [folder for folder in reversed(PurePosixPath(path).parents) if folder.name]
        for folder in above:
            if folder not in self._folders:
                self._folders[folder] = about(self._root / folder)
        return [self._folders[folder] for folder in above]

    def _unpublished(self, path: str, data: bytes) -> str:
        """The reason if Hugo does not publish a file as a page, because other pages include it; else empty."""
        if self._file or self._layout.generator != "hugo":
            return ""
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n") if b"build:" in data else ""
        published = is_published(text) and all(note.published for note in self._above(path))
        return "" if published else "not published by Hugo (render: never)"

    def _chapters(self, path: str) -> tuple[str, ...]:
        """The chapters of a page: from the site's navigation, or the labels of its folders."""
        entry = self._entries.get(path)
        named = entry.parents if entry and entry.parents else tuple(about.label for about in self._above(path))
        text = (clean_inline(remove_private(name))[:_MAX_LABEL] for name in named)
        return tuple(dict.fromkeys(filter(None, text)))[:_MAX_CHAPTERS]

    def _objection(self, path: str, place: Path) -> str:  # noqa: PLR0911 one way out for each reason
        """Why a file is not a page; empty if it is one. A regular file that the user named is always a page."""
        if not self._file:
            if not self._options.wants(path):
                return "excluded"
            if self._layout.generator == "sphinx" and sphinx_project.read_project(str(self._root)).excludes(path):
                return "excluded by conf.py"
            if self._is_partial(path):
                return "partial"
            if path.endswith(asciidoc_project.ENDINGS) and (
                why := asciidoc_project.project_of(self._tree.root).why_no_page(path)
            ):
                return why
            if self._layout.generator == "mdbook" and self._places and path not in self._places:
                return "not in SUMMARY.md"
            if not Path(os.path.realpath(place, strict=True)).is_relative_to(self._root.resolve()):
                return "a link that leaves the folder"
        return "" if stat.S_ISREG(place.stat().st_mode) else "not a regular file"

    def _is_partial(self, path: str) -> bool:
        """Whether the name of a file or folder marks it as included only in others. Hugo's `_index.md` is a page."""
        *folders, name = path.split("/")
        if not name.endswith((".md", ".mdx")) or self._layout.generator == "mkdocs":
            return False
        if self._layout.generator == "docusaurus" and any(folder.startswith("_") for folder in folders):
            return True
        return name.startswith("_") and (name != "_index.md" or self._layout.generator == "docusaurus")

    def _name(self, path: str) -> str:
        """The name of a file or folder without a page, for the ledger."""
        return _readable(path) if self._file else f"{self._layout.name}/{_readable(path)}"


def _readable(path: str) -> str:
    """A path as a text that can be printed, also if it is not UTF-8."""
    return path.encode(errors="replace").decode()
