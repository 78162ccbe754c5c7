"""One suite for every index."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from chapterverse.book import Edition, Hit, chunk_id_for, page_id_for
from chapterverse.errors import (
    EmbeddingMismatchError,
    IndexMissing,
    IngestionError,
    RetrievalUnavailable,
)
from chapterverse.index import Filters, Index
from tests.contract.conftest import OpenIndex
from tests.index.sample import DIMENSION, SITE, Written, ask, axis, direction, manifest, write_page

pytestmark = pytest.mark.slow

BOOK = (
    write_page(
        "intro/start.html",
        ["Installing the ferret daemon on a laptop", "Configure the ferret with a burrow file"],
        title="Getting started",
    ),
    write_page("intro/start-fast.html", ["Quick path for the impatient otter"], title="Fast start"),
    write_page("guide/a_b.html", ["Otters and ferrets compared", "A table of burrows"], title="Guide", module="guide"),
    write_page("guides/other.html", ["Nothing to see, assistant"], title="Other", module="guide"),
)


async def publish(index: Index, *pages: Written, fresh: bool = False, note: str = "") -> None:
    async with index.writer(fresh=fresh) as writer:
        for page in pages:
            await page.put(writer)
        await writer.publish(manifest(note))


def places(hits: list[Hit]) -> set[str]:
    return {hit.chunk.source_url.removeprefix(f"{SITE}/") for hit in hits}


async def found(index: Index, **filters: object) -> set[str]:
    return places(await index.search(ask("ferret", limit=50, filters=Filters(**filters))))  # type: ignore[arg-type]


async def test_missing_book_is_an_error_with_the_ingest_command(index: Index) -> None:
    for call in (index.search(ask("x")), index.manifest(), index.pages(), index.page("x" * 8), index.probe()):
        with pytest.raises(IndexMissing, match="chapterverse ingest"):
            await call


async def test_stored_pages_and_chunks_are_returned_unchanged(index: Index) -> None:
    await publish(index, *BOOK)
    hits = await index.search(ask("ferret", limit=50))
    expected = {chunk.chunk_id: chunk for page in BOOK for chunk in page.chunks}
    assert {hit.chunk.chunk_id: hit.chunk for hit in hits} == expected
    pages = sorted((page.page for page in BOOK), key=lambda page: page.place)
    assert await index.pages() == [replace(page, text="", blocks=()) for page in pages]
    for page in pages:
        assert await index.page(page.page_id) == page
    for stranger in (BOOK[0].chunks[0].chunk_id, page_id_for("elsewhere"), "not an id", f"----{'0' * 32}"):
        assert await index.page(stranger) is None
    current = await index.manifest()
    assert (current.pages, current.chunks) == (4, 6)
    assert current.calibration == manifest().calibration
    assert current.fingerprint == manifest().fingerprint
    assert (current.bm25["k"], current.bm25["b"]) == (1.2, 0.75)
    assert current.generation
    await index.probe()


async def test_recall_returns_chunks_by_id_with_their_cosines(index: Index) -> None:
    await publish(index, *BOOK)
    question = ask("ferret", limit=50)
    everything = {hit.chunk.chunk_id: hit for hit in await index.search(question)}
    some = [BOOK[2].chunks[1].chunk_id, BOOK[0].chunks[0].chunk_id]
    recalled = await index.recall([*some, page_id_for("elsewhere"), BOOK[0].page.page_id, "not an id"], question.vector)
    assert {hit.chunk.chunk_id for hit in recalled} == set(some)
    assert [hit.similarity for hit in recalled] == sorted((hit.similarity for hit in recalled), reverse=True)
    for hit in recalled:
        assert hit.chunk == everything[hit.chunk.chunk_id].chunk
        assert hit.similarity == pytest.approx(everything[hit.chunk.chunk_id].similarity, abs=1e-6)
    assert await index.recall([], question.vector) == []


async def test_missing_returns_words_that_are_not_in_the_book(index: Index) -> None:
    await publish(index, *BOOK)
    word = next(word for word in BOOK[0].chunks[0].text.split() if len(word) > 4 and word.isalpha())
    assert await index.missing([word, word.upper(), "zebrafish", f"{word}.zebrafish", "the"]) == [
        "zebrafish",
        f"{word}.zebrafish",
    ]
    assert await index.missing([]) == []


async def test_exact_filters_match_any_value_of_all_fields(index: Index) -> None:
    await publish(index, *BOOK)
    start, fast, guide, other = (page.page for page in BOOK)
    everything = {"intro/start.html#s0", "intro/start.html#s1", "intro/start-fast.html#s0"}
    everything |= {"guide/a_b.html#s0", "guide/a_b.html#s1", "guides/other.html#s0"}
    assert await found(index) == everything
    assert await found(index, source_url=(start.url,)) == {"intro/start.html#s0", "intro/start.html#s1"}
    assert await found(index, source_url=(f"{start.url}#s1",)) == {"intro/start.html#s1"}
    both = await found(index, source_url=(f"{start.url}#s1", fast.url))
    assert both == {"intro/start.html#s1", "intro/start-fast.html#s0"}
    assert await found(index, page_title=("Guide",)) == {"guide/a_b.html#s0", "guide/a_b.html#s1"}
    assert await found(index, section_heading=("Section 0 of Guide",)) == {"guide/a_b.html#s0"}
    assert await found(index, module=("guide", "none")) == {
        "guide/a_b.html#s0",
        "guide/a_b.html#s1",
        "guides/other.html#s0",
    }
    assert await found(index, module=("guide",), page_title=("Other",)) == {"guides/other.html#s0"}
    assert await found(index, module=("basics",), page_title=("Other",)) == set()
    assert await found(index, module=("no such module",)) == set()
    assert guide.module == other.module == "guide"


PREFIXES = {
    "": 6,
    "h": 6,
    "https://book.example": 6,
    f"{SITE}/": 6,
    f"{SITE}/intro/": 3,
    f"{SITE}/guide": 3,
    f"{SITE}/guide/": 2,
    f"{SITE}/guides": 1,
    f"{SITE}/intro/start": 3,
    f"{SITE}/intro/start-": 1,
    f"{SITE}/intro/start.h": 2,
    f"{SITE}/intro/start.html": 2,
    f"{SITE}/intro/start.html#": 2,
    f"{SITE}/intro/start.html#s": 2,
    f"{SITE}/intro/start.html#s1": 1,
    f"{SITE}/intro/start.html#s1x": 0,
    f"{SITE}/intro/start.htm#s1": 0,
    f"{SITE}/nothing/": 0,
    f"{SITE}/intro/x": 0,
    "guide": 0,
}


async def test_source_url_prefix_matches_any_start_of_an_address(index: Index) -> None:
    await publish(index, *BOOK)
    for prefix, expected in PREFIXES.items():
        matching = await found(index, source_url_prefix=prefix)
        assert len(matching) == expected, prefix
        assert all(f"{SITE}/{place}".startswith(prefix) for place in matching)
        narrowed = await found(index, source_url_prefix=prefix, module=("guide",))
        assert narrowed == {place for place in matching if place.startswith("guide")}


async def test_dense_sparse_and_hybrid_search(index: Index) -> None:
    page = write_page(
        "p.html",
        ["plain words about nothing", "the zeppelin timetable", "more plain words"],
        vectors=[axis(0), axis(1), -axis(0)],
    )
    await publish(index, page)
    near, zeppelin, opposite = (chunk.chunk_id for chunk in page.chunks)
    query = ask("zeppelin", vector=axis(0))

    dense = await index.search(replace(query, dense_weight=1.0))
    assert [hit.chunk.chunk_id for hit in dense] == [near, zeppelin, opposite]
    assert [hit.similarity for hit in dense] == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)

    words = await index.search(replace(query, dense_weight=0.0))
    assert [hit.chunk.chunk_id for hit in words] == [zeppelin]
    assert words[0].similarity == pytest.approx(0.0, abs=1e-6)

    both = await index.search(replace(query, dense_weight=0.5))
    assert [hit.chunk.chunk_id for hit in both] == [zeppelin, near, opposite]
    assert both == sorted(both, key=lambda hit: -hit.score)

    nothing = ask("the of and", vector=axis(0))
    assert await index.search(replace(nothing, dense_weight=0.0)) == []
    assert [hit.chunk.chunk_id for hit in await index.search(nothing)] == [near, zeppelin, opposite]


async def test_hit_found_only_by_words_has_its_exact_cosine(index: Index) -> None:
    """The chunk with the word ranks far below the depth of the dense search."""
    close = [cosine * axis(0) + np.sqrt(1 - cosine**2) * axis(2) for cosine in np.linspace(0.95, 0.35, 150)]
    far = (0.3 * axis(0) + axis(1)).astype(np.float32)
    texts = [f"passage number {number}" for number in range(150)] + ["a lone quetzal"]
    await publish(index, write_page("long.html", texts, vectors=[*np.asarray(close, np.float32), far]))
    hits = await index.search(ask("quetzal", vector=axis(0), limit=3))
    assert hits[0].chunk.text == "a lone quetzal"
    assert hits[0].similarity == pytest.approx(0.3 / np.sqrt(1.09), abs=1e-5)


async def test_equal_texts_are_returned_once(index: Index) -> None:
    copies = [write_page(f"copy{number}.html", ["the same old text"], vectors=[axis(0)]) for number in range(30)]
    other = write_page("other.html", ["another text"], vectors=[axis(1)])
    best = write_page("best.html", ["the same old text"], title="same same", vectors=[axis(0)])
    await publish(index, *copies, other, best)
    for weight in (None, 0.0, 1.0):
        hits = await index.search(ask("same text", vector=axis(0), limit=2, dense_weight=weight))
        assert [hit.chunk.text for hit in hits] == ["the same old text", "another text"]
    top = await index.search(ask("same text", vector=axis(0), limit=1))
    assert top[0].chunk.page_title == "same same"


async def test_min_similarity_limit_and_vectors(index: Index) -> None:
    vectors = [axis(0), (axis(0) + axis(1)) / np.sqrt(2, dtype=np.float32), axis(1)]
    page = write_page("p.html", ["one word", "two word", "three word"], vectors=vectors)
    await publish(index, page)
    query = ask("three word", vector=axis(0))
    assert {hit.chunk.text for hit in await index.search(replace(query, min_similarity=0.5))} == {
        "one word",
        "two word",
    }
    assert len(await index.search(replace(query, limit=1))) == 1
    hits = await index.search(replace(query, with_vectors=True))
    for hit in hits:
        assert hit.vector == pytest.approx(tuple(vectors[hit.chunk.chunk_index].tolist()), abs=1e-6)
    assert all(hit.vector is None for hit in await index.search(query))


async def test_pages_are_replaced_and_removed(index: Index) -> None:
    await publish(index, *BOOK)
    changed = write_page("intro/start.html", ["The ferret moved"], title="Getting started")
    async with index.writer() as writer:
        assert dict(writer.records) == {page.page.page_id: page.record for page in BOOK}
        assert writer.manifest is not None
        await changed.put(writer)
        await writer.remove([BOOK[3].page.page_id, "not-a-page"])
        kept = {chunk.chunk_id: vector async for chunk, vector in writer.vectors()}
        published = await writer.publish(manifest("second"))
    expected = [*changed.chunks, *BOOK[1].chunks, *BOOK[2].chunks]
    assert kept.keys() == {chunk.chunk_id for chunk in expected}
    assert kept[changed.chunks[0].chunk_id] == pytest.approx(direction("The ferret moved"), abs=1e-6)
    assert places(await index.search(ask("ferret", limit=50))) == {
        chunk.source_url.removeprefix(f"{SITE}/") for chunk in expected
    }
    assert {page.url for page in await index.pages()} == {page.page.url for page in BOOK[:3]}
    assert await index.page(BOOK[3].page.page_id) is None
    current = await index.manifest()
    assert current == published
    assert (current.recipe, current.pages, current.chunks) == ("second", 3, 4)


async def test_record_of_a_page_is_replaced_without_its_chunks(index: Index) -> None:
    await publish(index, *BOOK)
    before = await index.search(ask("ferret", limit=50))
    record = replace(BOOK[0].record, content_hash="other", etag="tag")
    async with index.writer() as writer:
        await writer.put_record(BOOK[0].page, record)
        published = await writer.publish(manifest("second"))
    assert await index.search(ask("ferret", limit=50)) == before
    assert await index.page(BOOK[0].page.page_id) == BOOK[0].page
    assert (published.pages, published.chunks) == (4, 6)
    async with index.writer() as writer:
        assert writer.records[record.page_id] == record


async def test_writer_that_does_not_publish_changes_nothing(index: Index, open_index: OpenIndex) -> None:
    await publish(index, *BOOK)
    before = await index.manifest()
    with pytest.raises(RuntimeError, match="stop"):
        async with index.writer() as writer:
            await writer.remove([page.page.page_id for page in BOOK])
            await write_page("new.html", ["new text"]).put(writer)
            raise RuntimeError("stop")
    for reader in (index, open_index()):
        assert await reader.manifest() == before
        assert len(await reader.search(ask("ferret", limit=50))) == 6
    await publish(index, write_page("new.html", ["new text"]))
    assert (await index.manifest()).pages == 5


async def test_second_writer_is_refused(index: Index, open_index: OpenIndex) -> None:
    async with index.writer() as writer:
        with pytest.raises(IngestionError, match=r"another ingest is running \(.*pid \d+"):
            async with open_index().writer():
                raise AssertionError("a second writer was opened")
        await BOOK[0].put(writer)
        await writer.publish(manifest())
    await publish(open_index(), BOOK[1])
    assert (await open_index().manifest()).pages == 2


async def test_fresh_writer_starts_empty(index: Index) -> None:
    await publish(index, *BOOK)
    async with index.writer(fresh=True) as writer:
        assert not writer.records
        assert writer.manifest is None
        assert [chunk async for chunk, _ in writer.vectors()] == []
        wide = write_page("wide.html", ["wide vectors"], vectors=[direction("w", 16)])
        await wide.put(writer)
        await writer.publish(manifest(dimension=16))
    hits = await index.search(ask("vectors", vector=direction("w", 16)))
    assert places(hits) == {"wide.html#s0"}
    with pytest.raises(EmbeddingMismatchError, match="16"):
        await index.search(ask("vectors"))


async def test_invalid_vectors_are_refused_before_anything_is_written(index: Index) -> None:
    await publish(index, *BOOK)
    page = write_page("bad.html", ["one", "two", "three"])
    wide = np.ones((3, DIMENSION + 1), np.float32)
    hole = page.vectors.copy()
    hole[1, 1] = np.nan
    async with index.writer() as writer:
        for vectors in (wide, hole, page.vectors[:2], page.vectors[0]):
            with pytest.raises(IngestionError):
                await writer.put(page.page, page.record, page.chunks, vectors)
        with pytest.raises(IngestionError, match="another page"):
            await writer.put(page.page, page.record, BOOK[0].chunks, BOOK[0].vectors)
        with pytest.raises(IngestionError, match="--fresh"):
            await writer.publish(manifest(dimension=DIMENSION + 1))
        await writer.publish(manifest())
    assert (await index.manifest()).chunks == 6
    assert await index.page(page.page.page_id) is None


async def test_book_may_be_empty_and_page_may_have_no_chunks(index: Index) -> None:
    await publish(index)
    assert await index.search(ask("ferret")) == []
    assert await index.pages() == []
    await publish(index, write_page("void.html", []), write_page("marks.html", ["?!", "the of and"]))
    assert (await index.manifest()).pages == 2
    assert len(await index.search(ask("anything", limit=5))) == 2


async def test_readers_see_only_complete_generations(open_index: OpenIndex) -> None:
    """Pages and chunks of each state contain its number. A reader must always see exactly one number."""
    writer, reader = open_index(), open_index()

    def state(number: int) -> list[Written]:
        return [write_page(f"p{page}.html", [f"state {number} of page {page}"]) for page in range(12)]

    await publish(writer, *state(0), note="0")
    seen: list[str] = []
    last, done = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        while not done.is_set():
            hits = await reader.search(ask("state", limit=50))
            numbers = {hit.chunk.text.split()[1] for hit in hits}
            assert (len(hits), len(numbers)) == (12, 1)
            assert len(await reader.pages()) == 12
            seen.extend(numbers - set(seen[-1:]))
            if seen[-1] == "2":
                last.set()

    async def write() -> None:
        for number in (1, 2):
            await publish(writer, *state(number), note=str(number))
        async with asyncio.timeout(60):
            await last.wait()
        done.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(read())
        tasks.create_task(write())
    assert seen == sorted(seen)
    assert seen[-1] == "2"


async def test_wrong_dimension_raises_retrieval_unavailable(index: Index) -> None:
    await publish(index, *BOOK)
    with pytest.raises(RetrievalUnavailable):
        await index.search(ask("x", vector=direction("x", DIMENSION * 2)))


def of_edition(page: Written, edition: str) -> Written:
    """The same page in another edition."""
    page_id = page_id_for(page.page.url, edition)
    chunks = [
        replace(chunk, page_id=page_id, chunk_id=chunk_id_for(page_id, chunk.content_hash, at), edition=edition)
        for at, chunk in enumerate(page.chunks)
    ]
    return Written(
        replace(page.page, page_id=page_id, edition=edition),
        replace(page.record, page_id=page_id, edition=edition),
        tuple(chunks),
        page.vectors,
    )


async def editions_found(index: Index, *wanted: str) -> list[str]:
    hits = await index.search(ask("ferret", limit=50, filters=Filters(edition=wanted)))
    return sorted({hit.chunk.edition for hit in hits})


async def test_editions_are_separate(index: Index) -> None:
    first, other = BOOK[0], BOOK[2]
    later = of_edition(write_page("intro/start.html", ["Installing the stoat daemon on a laptop"]), "guide@2")
    async with index.writer() as writer:
        for page in (first, later, of_edition(other, "ros")):
            await page.put(writer)
        shelf = (Edition(pages=1), Edition("guide", "2", "The Guide", 1, {"answered": 0.1}), Edition("ros", pages=1))
        await writer.publish(replace(manifest(), editions=shelf))
    assert (await index.manifest()).shelf == shelf
    assert await editions_found(index, "") == [""], "pages without an edition belong to the unnamed one"
    assert await editions_found(index, "guide@2") == ["guide@2"]
    assert await editions_found(index, "guide@2", "") == ["", "guide@2"]
    assert await editions_found(index, "guide@3") == []
    assert await editions_found(index) == ["", "guide@2", "ros"]
    for page in (first, later):
        assert await index.page(page.page.page_id) == page.page
    words = ["ferret", "stoat", "burrows"]
    assert await index.missing(words) == []
    assert await index.missing(words, ["guide@2"]) == ["ferret", "burrows"]
    assert await index.missing(words, ["", "ros"]) == ["stoat"]
    assert await index.modules(["ros"]) == ["guide"]
    assert await index.modules(["", "guide@2"]) == ["basics"]
    assert await index.modules() == ["basics", "guide"]
    async with index.writer() as writer:
        assert {record.edition for record in writer.records.values()} == {"", "guide@2", "ros"}
        await writer.remove([later.page.page_id])
        await writer.publish(replace(manifest(), editions=shelf[::2]))
    assert await editions_found(index) == ["", "ros"], "only the page of one edition was removed"
