"""The dataclasses of fetching, reading and composing pages: documents, drafts and their parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from chapterverse.book import BlockKind

Format = str  # a `BuiltInFormat` of formats.py, or the extension of the files of a plug-in's reader
AnchorStyle = Literal[
    "github", "mkdocs", "vitepress", "sphinx"
]  # github: Docusaurus, mdBook, GitHub; mkdocs: Python-Markdown
Generator = Literal[
    "auto", "docusaurus", "mkdocs", "mdbook", "hugo", "vitepress", "starlight", "sphinx", "antora", "plain"
]  # fmt: skip

NO_ANCHOR: Final = "!"  # for a heading without an id on its site, such as one written as HTML


@dataclass(frozen=True, slots=True)
class Tree:
    """The folder of a document, in which its links and includes are resolved."""

    root: str  # the folder of the pages; paths of documents are relative to it
    base: str = ""  # the address at which the root is published, without a final slash; empty if it is not published
    name: str = ""  # prefix of the addresses of pages that are not published
    generator: Generator = "plain"  # never "auto"
    alone: bool = field(default=False, compare=False)  # a single file is ingested, not the folder
    within: str = field(default="", compare=False)  # only files in this folder are opened; empty: the root


@dataclass(frozen=True, slots=True)
class Reference:
    """The target of a cross-reference: a page, a labelled section, a described object."""

    path: str  # of the file, relative to the root
    anchor: str = ""
    title: str = ""
    number: str = ""  # of a figure, table or listing: "Fig. 3"

    @property
    def address(self) -> str:
        """The address for a link in a draft, which is resolved when the page is composed."""
        return f"path:{self.path}#{self.anchor}" if self.anchor else f"path:{self.path}"


@dataclass(frozen=True, slots=True)
class Document:
    """A page or file as fetched, not yet read."""

    url: str  # address for citations, without anchor
    path: str  # in its source, with forward slashes; for messages and for the module
    source: str  # key of the source it came from
    format: Format
    data: bytes
    anchors: AnchorStyle = "github"
    module: str = ""  # forced module; empty: from the path
    folders: tuple[float | None, ...] = ()  # the positions that its folders have in their own files, outermost first
    etag: str = ""
    last_modified: str = ""
    tree: Tree | None = None  # for a file; None for a website
    surroundings: str = ""  # a digest of everything outside of the file that its page depends on
    place: int | None = None  # position in the source's navigation; None if it is not in it
    chapters: tuple[str, ...] = ()  # parts and chapters on its site, outermost first
    references: Mapping[str, Reference] = field(default_factory=dict)  # targets of its cross-references
    settings: Mapping[str, str] = field(default_factory=dict)  # of its project, if its reader needs them
    edition: str = ""  # key of the edition of its pages


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The page has not changed (HTTP 304)."""

    url: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The page is left out on purpose; `why` is for the ledger."""

    url: str
    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The page could not be fetched; `why` is for the ledger. An earlier version of it is kept."""

    url: str
    why: str


Fetched = Document | Unchanged | Skipped | Failed


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a draft, without offsets.

    `text` has no inline markup except `code` in backticks; emphasis, links and images are marks (`inline.py`). The text
    of a heading is only the heading; of code, only the code. A table is pipe-table lines; a cell that spans several
    rows or columns is repeated in each. A list has `- ` or `1. ` markers and two-space indents. An admonition starts
    with its label (`Note: …`). A field is a parameter, option or defined term with its facts, one on each line without
    blank lines: the name in backticks, then type, default and description. The text of an image is its alternative
    text."""

    kind: BlockKind
    text: str
    level: int = 0  # of a heading, 1–6
    anchor: str = ""  # explicit anchor; empty: by the anchor style; or NO_ANCHOR
    info: str = ""  # language of code, kind of an admonition ("note"), address of an image
    caption: str = (
        ""  # of code, an image (then a paragraph below it) or a table (a paragraph above it); an admonition's label
    )
    inside: int = 0  # nesting depth: the number of list items, admonitions, quotes and fields around it


@dataclass(frozen=True, slots=True)
class Draft:
    """A page as read, before it is composed."""

    title: str  # empty: the composer takes the first heading, then the file name
    parts: tuple[Part, ...]
    subpath: str = ""  # for a file with many pages (EPUB): appended to the document's url and path
    number: float | None = None  # position given by the author, such as `sidebar_position`, or in an EPUB's spine
    slug: str = ""  # address in the front matter, relative or absolute, if the generator uses it


class Unreadable(Exception):
    """The document cannot be read; the message is a short reason for the ledger."""


class NothingToRead(Exception):
    """The document has no content (a draft, a redirect page, an empty file); the message is for the ledger."""
