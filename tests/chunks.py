"""Makes chunks for tests, in the form in which a search returns them."""

from chapterverse.book import text_hash
from chapterverse.models import ChunkResult, PassageUnit
from chapterverse.units import blocks_of_text, cut_units


def chunk(
    text: str,
    breadcrumb: str = "Page",
    url: str = "http://book/page",
    score: float = 0.5,
    *,
    start: int = 0,
    flags: tuple[str, ...] = (),
) -> ChunkResult:
    """Makes a chunk. It is cut into units as in ingestion."""
    title, _, section = breadcrumb.partition(" › ")
    units = [
        PassageUnit(
            kind=unit.kind,
            start=unit.start + start,
            end=unit.end + start,
            head_start=unit.head_start + start if unit.has_head else -1,
            head_end=unit.head_end + start if unit.has_head else -1,
        )
        for unit in cut_units(text, blocks_of_text(text))
    ]
    return ChunkResult(
        chunk_id=text_hash(text + url)[:16],
        chunk_text=text,
        source_url=url,
        page_id="page",
        page_title=title,
        section_heading=section,
        breadcrumb=breadcrumb,
        module="",
        chunk_index=0,
        content_hash=text_hash(text),
        similarity_score=score,
        rank=1,
        char_start=start,
        char_end=start + len(text),
        flags=list(flags),
        units=units,
    )
