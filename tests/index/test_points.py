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


def json_round_trip(payload: dict[str, Any]) -> Any:
    return json.loads(json.dumps(payload))


@given(CHUNKS)
def test_chunk_survives_storage(chunk: Chunk) -> None:
    assert points.chunk_from_payload(json_round_trip(points.chunk_to_payload(chunk))) == chunk


@given(PAGES, RECORDS)
def test_page_and_record_survive_storage(page: Page, record: PageRecord) -> None:
    payload = json_round_trip(points.page_to_payload(page, record))
    assert points.page_from_payload(payload) == page
    assert points.record_from_payload(payload) == record
    for name in points.PAGE_BODY:
        del payload[name]
    assert points.page_from_payload(payload) == dataclasses.replace(page, text="", blocks=())


@given(MANIFESTS)
def test_manifest_survives_storage(manifest: Manifest) -> None:
    assert points.manifest_from_payload(json_round_trip(points.manifest_to_payload(manifest))) == manifest


def test_chunk_payload_has_its_kind_and_every_keyword() -> None:
    chunk = write_page("p.html", ["text"]).chunks[0]
    payload = points.chunk_to_payload(dataclasses.replace(chunk, edition="guide@1"))
    assert payload["kind"] == "chunk"
    assert set(points.KEYWORDS) <= payload.keys()
    unnamed = points.chunk_to_payload(chunk)
    assert set(points.KEYWORDS) - unnamed.keys() == {"edition"}, "the unnamed edition has no key, as in older versions"
    assert points.chunk_from_payload(unnamed) == chunk


def test_ancestors_end_in_a_slash() -> None:
    assert points.ancestors("https://a.b/c/d.html") == ["https:/", "https://", "https://a.b/", "https://a.b/c/"]
    assert points.ancestors("https://a.b/c/")[-1] == "https://a.b/c/"
    assert points.ancestors("plain") == []


def test_point_ids_are_uuids() -> None:
    assert points.is_point_id(points.MANIFEST_ID)
    assert points.is_point_id(points.MANIFEST_ID.upper())
    # Python accepts these as UUIDs, the engines do not.
    plain = points.MANIFEST_ID.replace("-", "")
    for text in ("page-1", f"----{plain}", f"{plain[:20]}----{plain[20:]}", f"{{{points.MANIFEST_ID}}}", "1_" * 16):
        assert not points.is_point_id(text)
