"""Chunks, pages and the manifest as payloads of points: JSON values, the same in every engine."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from chapterverse.book import Block, Chunk, Edition, Fingerprint, Manifest, Mark, Page, PageRecord, Section, Unit
from chapterverse.index.checksums import require_sealed, sealed

Payload = dict[str, Any]

DENSE = "dense"  # name of the cosine vector
SPARSE = "bm25"  # name of the sparse vector
MANIFEST_ID = str(uuid.UUID("6f0c9a52-6b0e-5f0a-9d57-000000000001"))  # fixed: an index has one manifest

# Fields that are matched exactly by filters, deletions and scrolls.
KEYWORDS = (
    "kind",
    "page_id",
    "page_url",
    "source_url",
    "page_title",
    "section_heading",
    "module",
    "ancestors",
    "edition",
)
PAGE_BODY = ("text", "blocks", "marks")  # left out in a list of pages
PAGE_RECORD = ("record",)  # needed by a writer

_CHUNK_FIELDS = tuple(field.name for field in fields(Chunk) if field.name != "edition")
_PAGE_FIELDS = ("page_id", "url", "title", "module", "source", "text", "order")


def is_point_id(text: str) -> bool:
    """Whether a text is a valid id of a point; for others engines raise errors. Python accepts more as a UUID."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def ancestors(url: str) -> list[str]:
    """The prefixes of an address that end in a slash, shortest first; a prefix filter that ends in one matches them."""
    return [url[: index + 1] for index, character in enumerate(url) if character == "/"]


def chunk_to_payload(chunk: Chunk) -> Payload:
    """A chunk as a payload."""
    payload: Payload = {name: getattr(chunk, name) for name in _CHUNK_FIELDS}
    return sealed(
        payload
        | {
            "kind": "chunk",
            "flags": list(chunk.flags),
            "ancestors": ancestors(chunk.page_url),
            "units": [[u.kind, u.start, u.end, u.head_start, u.head_end] for u in chunk.units],
        }
        | _edition(chunk.edition)
    )


def chunk_from_payload(payload: Mapping[str, Any]) -> Chunk:
    """The stored chunk. Raises `IndexDamaged` if its checksum is wrong."""
    require_sealed(payload)
    values = {name: payload[name] for name in _CHUNK_FIELDS if name in payload}
    units = tuple(Unit(*row) for row in payload.get("units", ()))
    edition = payload.get("edition", "")
    return Chunk(**values | {"flags": tuple(payload["flags"]), "units": units, "edition": edition})


def page_to_payload(page: Page, record: PageRecord) -> Payload:
    """A page and its record as a payload. Sections and blocks are rows, because a page has many."""
    payload: Payload = {name: getattr(page, name) for name in _PAGE_FIELDS}
    payload |= {
        "kind": "page",
        "flags": list(page.flags),
        "chapters": list(page.chapters),
        "sections": [[s.heading, s.level, s.anchor, s.start, s.end, list(s.breadcrumb)] for s in page.sections],
        "blocks": [[b.kind, b.start, b.end, b.section, b.info, b.caption, b.inside] for b in page.blocks],
        "marks": [[m.kind, m.start, m.end, m.target, m.title] for m in page.marks],
        "record": asdict(record),
        **_edition(page.edition),
    }
    return sealed(payload, PAGE_BODY)


def _edition(key: str) -> Payload:
    """The unnamed edition has no field, as in indexes of older versions."""
    return {"edition": key} if key else {}


def page_from_payload(payload: Mapping[str, Any]) -> Page:
    """The stored page, without text and blocks if these were not fetched. Raises `IndexDamaged` if a checksum is
    wrong."""
    require_sealed(payload, PAGE_BODY)
    return Page(
        page_id=payload["page_id"],
        url=payload["url"],
        title=payload["title"],
        module=payload["module"],
        source=payload["source"],
        text=payload.get("text", ""),
        sections=tuple(_section(row) for row in payload["sections"]),
        blocks=tuple(Block(*row) for row in payload.get("blocks", ())),
        flags=tuple(payload["flags"]),
        order=payload.get("order", ""),
        marks=tuple(Mark(*row) for row in payload.get("marks", ())),
        chapters=tuple(payload.get("chapters", ())),
        edition=payload.get("edition", ""),
    )


def _section(row: Sequence[Any]) -> Section:
    heading, level, anchor, start, end, breadcrumb = row
    return Section(heading, level, anchor, start, end, tuple(breadcrumb))


def record_from_payload(payload: Mapping[str, Any]) -> PageRecord:
    """The record stored with a page."""
    return PageRecord(**payload["record"])


def manifest_to_payload(manifest: Manifest) -> Payload:
    """The manifest as a payload."""
    payload: Payload = {field.name: getattr(manifest, field.name) for field in fields(manifest)}
    calibration = None if manifest.calibration is None else dict(manifest.calibration)
    return payload | {
        "kind": "manifest",
        "fingerprint": asdict(manifest.fingerprint),
        "bm25": dict(manifest.bm25),
        "calibration": calibration,
        "editions": [asdict(edition) for edition in manifest.editions],
    }


def manifest_from_payload(payload: Mapping[str, Any]) -> Manifest:
    """The stored manifest."""
    values = {field.name: payload[field.name] for field in fields(Manifest) if field.name != "editions"}
    editions = tuple(Edition(**row) for row in payload.get("editions", ()))
    return Manifest(**values | {"fingerprint": Fingerprint(**payload["fingerprint"]), "editions": editions})
