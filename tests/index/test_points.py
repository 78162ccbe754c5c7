import dataclasses
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chapterverse.book import Block, Chunk, Fingerprint, Manifest, Page, PageRecord, Section
from chapterverse.index import points
from tests.index.sample import write_page

TEXT = st.text(max_size=20)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
COUNT = st.integers(0, 10**6)
CHUNKS = st.builds(Chunk, *([TEXT] * 8), COUNT, COUNT, COUNT, TEXT, TEXT, TEXTS)
SECTIONS = st.builds(Section, TEXT, COUNT, TEXT, COUNT, COUNT, TEXTS)
BLOCKS = st.builds(Block, st.sampled_from(["heading", "code", "table"]), COUNT, COUNT, COUNT)
PAGES = st.builds(
    Page,
    *([TEXT] * 6),
    st.lists(SECTIONS, max_size=3).map(tuple),
    st.lists(BLOCKS, max_size=3).map(tuple),
    TEXTS,
    chapters=TEXTS,
)
RECORDS = st.builds(PageRecord, TEXT, TEXT, TEXT, TEXT, COUNT, TEXT, TEXT)
PARAMETERS = st.dictionaries(TEXT, st.floats(allow_nan=False, allow_infinity=False), max_size=3)
MANIFESTS = st.builds(
    Manifest,
    st.builds(Fingerprint, TEXT, COUNT, TEXT),
    TEXT,
    TEXT,
    COUNT,
    COUNT,
    PARAMETERS,
    st.none() | PARAMETERS,
    TEXT,
)


def stored(payload: dict[str, Any]) -> Any:
    return json.loads(json.dumps(payload))


@given(CHUNKS)
def test_a_chunk_comes_back(chunk: Chunk) -> None:
    assert points.chunk_from_payload(stored(points.chunk_to_payload(chunk))) == chunk


@given(PAGES, RECORDS)
def test_a_page_and_its_record_come_back(page: Page, record: PageRecord) -> None:
    payload = stored(points.page_to_payload(page, record))
    assert points.page_from_payload(payload) == page
    assert points.record_from_payload(payload) == record
    for name in points.PAGE_BODY:
        del payload[name]
    assert points.page_from_payload(payload) == dataclasses.replace(page, text="", blocks=())


@given(MANIFESTS)
def test_a_manifest_comes_back(manifest: Manifest) -> None:
    assert points.manifest_from_payload(stored(points.manifest_to_payload(manifest))) == manifest


def test_kinds_tell_points_apart_and_every_keyword_is_stored() -> None:
    chunk = write_page("p.html", ["text"]).chunks[0]
    payload = points.chunk_to_payload(dataclasses.replace(chunk, edition="guide@1"))
    assert payload["kind"] == "chunk"
    assert set(points.KEYWORDS) <= payload.keys()
    unnamed = points.chunk_to_payload(chunk)
    assert set(points.KEYWORDS) - unnamed.keys() == {"edition"}, "the unnamed edition is stored as it always was"
    assert points.chunk_from_payload(unnamed) == chunk


def test_ancestors_end_in_a_slash() -> None:
    assert points.ancestors("https://a.b/c/d.html") == ["https:/", "https://", "https://a.b/", "https://a.b/c/"]
    assert points.ancestors("https://a.b/c/")[-1] == "https://a.b/c/"
    assert points.ancestors("plain") == []


def test_point_ids_are_uuids() -> None:
    assert points.is_point_id(points.MANIFEST_ID)
    assert not points.is_point_id("page-1")
