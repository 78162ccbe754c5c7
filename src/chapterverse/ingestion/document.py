"""What flows between fetching, reading and composing a page: documents, drafts and their parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from chapterverse.book import BlockKind

BuiltInFormat = Literal["markdown", "mdx", "rst", "asciidoc", "html", "text", "epub", "pdf", "notebook", "docx"]
Format = BuiltInFormat | str  # another one is the name of an installed package's reader: the extension of its files
AnchorStyle = Literal[
    "github", "mkdocs", "vitepress", "sphinx"
]  # github: Docusaurus, mdBook, GitHub; mkdocs: Python-Markdown
Generator = Literal[
    "auto", "docusaurus", "mkdocs", "mdbook", "hugo", "vitepress", "starlight", "sphinx", "antora", "plain"
]  # fmt: skip

NO_ANCHOR: Final = "!"  # of a heading that its site gives no id, such as one that is written as HTML


@dataclass(frozen=True, slots=True)
class Tree:
    """The folder that a document was found in. Its links and includes are resolved there."""

    root: str  # the folder of the pages; paths of documents are relative to it
    base: str = ""  # the address at which the root is published, without a slash at its end; empty: nowhere
    name: str = ""  # begins the addresses of pages that are published nowhere
    generator: Generator = "plain"  # never "auto"
    alone: bool = field(default=False, compare=False)  # one file was named, not the folder around it
    within: str = field(default="", compare=False)  # no file outside of this folder is opened; empty: the root


@dataclass(frozen=True, slots=True)
class Reference:
    """What a name means that other files of the source use: a page, a labelled section, a described object."""

    path: str  # of the file, relative to the root
    anchor: str = ""
    title: str = ""
    number: str = ""  # of a figure, table or listing, as its site shows it: "Fig. 3"


@dataclass(frozen=True, slots=True)
class Document:
    """A page or file as fetched, not yet read."""

    url: str  # address to cite, without anchor
    path: str  # where it lies inside its source, with forward slashes; for messages and for the module
    source: str  # key of the source it came from
    format: Format
    data: bytes
    anchors: AnchorStyle = "github"
    module: str = ""  # forced module; empty: from the path
    folders: tuple[float | None, ...] = ()  # the numbers that its folders are given beside their names, outermost first
    etag: str = ""
    last_modified: str = ""
    tree: Tree | None = None  # of a file; None: from a website
    surroundings: str = ""  # changes when something outside of the file changes that its page depends on
    place: int | None = None  # of its page in the source's navigation; None: it is not in it
    chapters: tuple[str, ...] = ()  # names of the parts and chapters that its site puts it in, outermost first
    references: Mapping[str, Reference] = field(default_factory=dict)  # what its references to other files mean
    settings: Mapping[str, str] = field(default_factory=dict)  # of its project, as far as its reader needs them
    edition: str = ""  # key of the edition that its pages will belong to


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The server said that the page is as it was (HTTP 304)."""

    url: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Left out on purpose; `why` is for the ledger."""

    url: str
    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Could not be had; `why` is for the ledger. A page that was there before is kept."""

    url: str
    why: str


Fetched = Document | Unchanged | Skipped | Failed


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a page before it has a place.

    `text` is clean: no inline markup but `code` in backticks; emphasis, links and images are marks (`inline.py`). A
    heading's text is the bare heading; code is the bare code; a table is pipe-table lines, where a cell that spans
    several rows or columns is repeated in each; a list has its `- ` or `1. ` markers and two-space indents; an
    admonition starts with its label (`Note: …`). A field is a parameter, option or defined term with everything that
    belongs to it, one fact a line and no blank line: the name in backticks, then type, default and description. The
    text of an image is its alternative text."""

    kind: BlockKind
    text: str
    level: int = 0  # of a heading, 1–6
    anchor: str = ""  # given explicitly by the author or the page; empty: by the anchor style; or NO_ANCHOR
    info: str = ""  # language of code, kind of an admonition ("note"), address of an image
    caption: str = (
        ""  # of code, an image, a table (a paragraph below the one and above the other); an admonition's label
    )
    inside: int = 0  # list items, admonitions, quotes and fields around it, which earlier parts began


@dataclass(frozen=True, slots=True)
class Draft:
    """A page as a reader understood it."""

    title: str  # empty: the composer takes the first heading, then the file name
    parts: tuple[Part, ...]
    subpath: str = ""  # for one file that holds many pages (EPUB): appended to the document's url and path
    number: float | None = None  # by which its author wants it read: `sidebar_position`, its place in a spine
    slug: str = ""  # address given in the front matter (Docusaurus `slug`), relative or absolute path


class Unreadable(Exception):
    """A document that cannot be read; the message is the ledger's reason, short and for people."""


class NothingToRead(Exception):
    """A document without content to index (a draft, a redirect page, an empty file); the reason for the ledger."""
