"""Dataclasses of the book: pages, sections, blocks, chunks, and the manifest of an index.

Ingestion makes them, the index stores them, retrieval reads them. Imports only small modules, because the index's child
process imports this one at its start.

Offsets are in characters (Unicode code points), 0-based, end exclusive, and always refer to `Page.text`.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

BlockKind = Literal["heading", "paragraph", "list", "field", "code", "table", "quote", "admonition", "image"]
MarkKind = Literal["emphasis", "strong", "code", "math", "link", "image", "sub", "sup", "footnote"]
UnitKind = Literal["sentence", "item", "row", "field", "code"]
PageKind = Literal["", "changes", "index"]

RECIPE: Final = "13"  # increase it when readers or chunking give other pages or chunks for the same document
OLDEST_RECIPE: Final = "4"  # of an index that can still be searched; the next ingest reads its pages again

CAPTION: Final = "caption"  # `Block.info` of a paragraph that belongs to the image above it or to the table below it
CONTENTS: Final = "contents"  # `Block.info` of a list of pages, which is shown but neither searched nor cited

_NAMESPACE = uuid.UUID("6f0c9a52-6b0e-5f0a-9d57-0c4a8f1f7a11")  # for UUIDv5 ids of pages and chunks


def page_id_for(page_url: str, edition: str = "") -> str:
    """The id of a page: the same address in the same edition always gives the same id."""
    return str(uuid.uuid5(_NAMESPACE, f"{edition}\x1f{page_url}" if edition else page_url))


def chunk_id_for(page_id: str, content_hash: str, chunk_index: int) -> str:
    """The id of a chunk: it changes if the text or the position in the page changes."""
    return str(uuid.uuid5(_NAMESPACE, f"{page_id}/{chunk_index}/{content_hash}"))


def text_hash(text: str) -> str:
    """SHA-256 of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph, list, code block or table of a page: `text[start:end]`."""

    kind: BlockKind
    start: int
    end: int
    section: int  # index of its section in Page.sections
    info: str = ""  # language of code, kind of an admonition ("note"), address of an image; CAPTION, CONTENTS
    caption: str = ""  # of code: its file name or title, not part of the text; of an admonition: its label
    inside: int = 0  # how many list items, admonitions, quotes and fields of earlier blocks it is inside of


@dataclass(frozen=True, slots=True)
class Mark:
    """Formatting or link of a range of a page's text. An image and a reference to a footnote have no text: start equals
    end. A formula includes its dollar signs: two at each end if it is on a line of its own."""

    kind: MarkKind
    start: int
    end: int
    target: str = ""  # of a link or an image: its address; of a footnote: its label
    title: str = ""  # of an image: its alternative text


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest part of a page that can be cited: a sentence, a list item, a table row, a field (a parameter with
    its type, default and description) or a code block.

    The head is the text that is needed to understand the unit: the header of a table, the sentence that introduces a
    list or code, the item that a nested item belongs to. Both offsets are -1 if there is none."""

    kind: UnitKind
    start: int
    end: int
    head_start: int = -1
    head_end: int = -1

    @property
    def has_head(self) -> bool:
        """Whether it has a head."""
        return self.head_start >= 0


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and everything up to the next heading of any level. Section 0 of a page is the text before the first
    heading below the title; its anchor is empty and its level is 1."""

    heading: str
    level: int
    anchor: str
    start: int
    end: int
    breadcrumb: tuple[str, ...]  # headings above it, outermost first, without the page title and without its own


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it is stored, shown and cited. `text` is Markdown: headings, paragraphs without inline markup except
    `code`, lists, fenced code, pipe tables. Emphasis, links and images are in `marks`."""

    page_id: str
    url: str  # without anchor
    title: str
    module: str
    source: str  # which ingested source it belongs to
    text: str
    sections: tuple[Section, ...]
    blocks: tuple[Block, ...]
    flags: tuple[str, ...] = ()  # e.g. "addresses_assistant": text for a language model instead of a reader
    order: str = ""  # sort key for the reading order of a source's pages
    marks: tuple[Mark, ...] = ()  # sorted by start; a mark inside another comes after it
    chapters: tuple[str, ...] = ()  # names of the parts and chapters that its site puts it in, outermost first
    edition: str = ""  # key of the edition it belongs to
    refused: tuple[str, ...] = field(default=(), compare=False)  # files it may not include; for the ledger, not stored

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Sort key for the reading order of a book's pages."""
        return self.edition, self.source, self.order, self.url


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage that can be found and cited: `page.text[start:end] == text`."""

    chunk_id: str
    page_id: str
    page_url: str
    source_url: str  # page_url with the section's anchor
    page_title: str
    section_heading: str
    breadcrumb: str  # "Chapter › Title › Section › Subsection"
    module: str
    chunk_index: int  # 0-based position in the page
    start: int
    end: int
    text: str
    content_hash: str
    flags: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()  # complete units of the page, in order; offsets refer to the page's text
    lead: str = ""  # text of the first unit's head, if the head is outside of this chunk
    edition: str = ""  # that of its page
    page_kind: PageKind = ""  # a page that lists changes or links is ranked after pages that explain

    @property
    def passage(self) -> str:
        """The text that is embedded and used for BM25, with its headings."""
        return "\n".join(part for part in (self.breadcrumb, self.lead, self.text) if part)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The embedding model that made the vectors of an index."""

    model: str
    dimension: int
    digest: str  # of the weights for a local model, of provider, model and dimension for a remote one


@dataclass(frozen=True, slots=True)
class PageRecord:
    """The data that an index stores about a page to detect changes."""

    page_id: str
    url: str
    source: str
    content_hash: str  # of the page as fetched and of the way it was read
    chunks: int
    etag: str = ""
    last_modified: str = ""
    document: str = ""  # address of its document, if that differs from its own (an EPUB's chapter, a slug)
    edition: str = ""  # that of its page
    recipe: str = ""  # version of readers and chunking that it was read with; empty: that of its edition


@dataclass(frozen=True, slots=True)
class Edition:
    """One version of one book. Every page and every chunk has the key of its edition.

    A home with one book needs no names: then both names and the key are empty."""

    book: str = ""
    version: str = ""
    title: str = ""  # of the book, for people; empty: its name
    pages: int = 0
    calibration: Mapping[str, Any] | None = None  # map from cosine to relevance
    recipe: str = ""  # version of readers and chunking, the oldest of all its pages

    @property
    def key(self) -> str:
        """`book@version`; without a version `book`, without a name `@version`."""
        return edition_key(self.book, self.version)


def edition_key(book: str, version: str) -> str:
    """The key of an edition. Names contain no `@`."""
    return f"{book}@{version}" if version else book


def edition_names(key: str) -> tuple[str, str]:
    """Book and version of a key."""
    book, _, version = key.partition("@")
    return book, version


@dataclass(frozen=True, slots=True)
class Manifest:
    """Metadata of an index. It is stored in the index, so that it changes at the same moment as the book."""

    fingerprint: Fingerprint
    generation: str
    created_at: str  # ISO 8601 UTC
    pages: int
    chunks: int
    bm25: Mapping[str, Any] = field(default_factory=dict)  # parameters of the sparse weights
    calibration: Mapping[str, Any] | None = None  # only in an index of an older version; now each edition has its own
    recipe: str = ""  # version of readers and chunking, the oldest of all editions
    editions: tuple[Edition, ...] = ()

    @property
    def shelf(self) -> tuple[Edition, ...]:
        """All editions. An index of an older version or of another tool is one book without a name."""
        return self.editions or (Edition(pages=self.pages, calibration=self.calibration, recipe=self.recipe),)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search."""

    chunk: Chunk
    similarity: float  # cosine clipped to [0, 1]
    score: float  # decides the rank; comparable only within one search
    vector: Sequence[float] | None = None  # the chunk's dense vector, if it was requested
    by_words: bool = False  # whether it contains a word of the question
