"""A small book for tests of the index: the vectors of its pages are known, and so are all cosines."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chapterverse.book import (
    Block,
    Chunk,
    Fingerprint,
    Manifest,
    Page,
    PageRecord,
    Section,
    chunk_id_for,
    page_id_for,
    text_hash,
)
from chapterverse.index import HybridQuery, IndexWriter, Vectors

DIMENSION = 8
FINGERPRINT = Fingerprint(model="test", dimension=DIMENSION, digest="0" * 8)
SITE = "https://book.example/docs"


def manifest(note: str = "", dimension: int = DIMENSION) -> Manifest:
    return Manifest(
        fingerprint=Fingerprint("test", dimension, "0" * 8),
        generation="",
        created_at="2026-01-01T00:00:00Z",
        pages=0,
        chunks=0,
        calibration={"knots": [[0.1, 0.2], [0.5, 0.9]]},
        recipe=note,
    )


def direction(name: str, dimension: int = DIMENSION) -> Vectors:
    """A unit vector derived from a name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def axis(number: int) -> Vectors:
    row = np.zeros(DIMENSION, dtype=np.float32)
    row[number] = 1.0
    return row


@dataclass(frozen=True)
class Written:
    """A page with everything `put` takes."""

    page: Page
    record: PageRecord
    chunks: tuple[Chunk, ...]
    vectors: Vectors

    async def put(self, writer: IndexWriter) -> None:
        await writer.put(self.page, self.record, self.chunks, self.vectors)


def write_page(
    path: str,
    texts: Sequence[str],
    *,
    title: str = "",
    module: str = "basics",
    vectors: Sequence[Vectors] | None = None,
) -> Written:
    """A page with one section and one chunk per text; the section's anchor is `s0`, `s1`, ..."""
    url = f"{SITE}/{path}"
    page_id = page_id_for(url)
    title = title or path
    sections, blocks, chunks, text = [], [], [], ""
    for number, part in enumerate(texts):
        start = len(text)
        text += f"{part}\n\n"
        end = start + len(part)
        heading = f"Section {number} of {title}"
        sections.append(Section(heading, 2, f"s{number}", start, end, ("Top",)))
        blocks.append(Block("paragraph", start, end, number))
        digest = text_hash(part)
        chunks.append(
            Chunk(
                chunk_id=chunk_id_for(page_id, digest, number),
                page_id=page_id,
                page_url=url,
                source_url=f"{url}#s{number}",
                page_title=title,
                section_heading=heading,
                breadcrumb=f"{title} › {heading}",
                module=module,
                chunk_index=number,
                start=start,
                end=end,
                text=part,
                content_hash=digest,
                flags=("addresses_assistant",) if "assistant" in part else (),
            )
        )
    page = Page(page_id, url, title, module, "src", text, tuple(sections), tuple(blocks), ("odd",))
    record = PageRecord(page_id, url, "src", text_hash(text), len(chunks), etag='"e1"')
    rows = [direction(text) for text in texts] if vectors is None else list(vectors)
    stacked = np.stack(rows) if rows else np.zeros((0, DIMENSION), np.float32)
    return Written(page, record, tuple(chunks), stacked)


def ask(text: str = "", vector: Vectors | None = None, **options: object) -> HybridQuery:
    query = {"text": text, "vector": direction(text) if vector is None else vector, "limit": 10}
    return HybridQuery(**{**query, **options})  # type: ignore[arg-type]
