"""An ingest run on the real embedded index: outcomes of pages, editions, and that a failed run changes nothing."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from chapterverse.book import RECIPE, Edition, Manifest, PageRecord, page_id_for
from chapterverse.embeddings import Vectors
from chapterverse.errors import (
    EmbeddingError,
    EmbeddingMismatchError,
    IndexDamaged,
    IndexTimeout,
    IndexUnavailable,
    IngestionError,
)
from chapterverse.index import HybridQuery
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion.document import Document, Failed, Fetched, Skipped, Unchanged
from chapterverse.ingestion.ledger import Ledger
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.page_reading import Pages
from chapterverse.ingestion.pipeline import Progress, Workshop, forget, ingest, recalibrate, reembed
from chapterverse.ingestion.sources import open_source
from chapterverse.ingestion.workers import DocumentReader
from chapterverse.testing import HashEmbedder
from tests.conftest import EXAMPLE_BOOK, ROOT
from tests.index.places import patient_index

pytestmark = pytest.mark.slow


@dataclass
class FakeSource:
    """A source with pages from the test."""

    pages: dict[str, str | Fetched]
    key: str = "shelf"
    complete: bool = True
    place: str = "/shelf"
    title: str = ""
    expected: int | None = None
    known: dict[str, PageRecord] = field(default_factory=dict)
    images: dict[str, Path] = field(default_factory=dict)

    def image(self, address: str) -> Path | None:
        return self.images.get(address)

    async def documents(self, known: Mapping[str, PageRecord]) -> AsyncGenerator[Fetched, None]:
        self.known = dict(known)
        for url, page in self.pages.items():
            if isinstance(page, str):
                yield Document(url, url, self.key, "markdown", page.encode(), etag=f"tag-of-{url}")
            else:
                yield page


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncGenerator[Workshop, None]:
    index = patient_index(tmp_path / "index")
    yield Workshop(index, HashEmbedder(), tmp_path)
    await index.close()


def outcomes(ledger: Ledger) -> dict[str, str]:
    return {row.url: row.outcome for row in ledger}


async def urls(workshop: Workshop) -> set[str]:
    return {page.url for page in await workshop.index.pages()}


async def found(workshop: Workshop, text: str) -> str:
    vector = await workshop.embedder.embed_query(text)
    hits = await workshop.index.search(HybridQuery(text, vector, limit=1))
    return hits[0].chunk.text


async def test_pages_are_added_changed_unchanged_or_removed(workshop: Workshop) -> None:
    source = FakeSource(
        {"a.md": "# A\n\nApples are red.", "b.md": "# B\n\nBananas are yellow.", "c.md": "# C\n\nCherries."}
    )
    assert outcomes(await ingest([source], workshop)) == {"a.md": "added", "b.md": "added", "c.md": "added"}
    source.pages = {"a.md": "# A\n\nApples are red.", "b.md": "# B\n\nBananas are green."}
    ledger = await ingest([source], workshop)
    assert outcomes(ledger) == {"a.md": "unchanged", "b.md": "changed", "c.md": "removed"}
    assert ledger.passages_embedded == 1
    assert await urls(workshop) == {"a.md", "b.md"}
    assert "green" in await found(workshop, "Bananas")
    assert source.known["a.md"].etag == "tag-of-a.md"


async def test_ledger_names_refused_includes(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "a.rst").write_text("A\n=\n\nApples.\n\n.. include:: ../secret.txt\n\n.. include:: missing.txt\n")
    (folder / "b.adoc").write_text("= B\n\nBananas.\n\ninclude::../secret.txt[]\n")
    source = open_source(str(folder), SourceOptions())
    ledger = await ingest([source], workshop)
    why = "does not include what is outside of the folder: ../secret.txt"
    assert {(row.outcome, row.why) for row in ledger} == {("added", why)}
    assert [reason for reason, _ in ledger.reasons(("added",))] == [f"added: {why}"]


async def test_run_without_changes_publishes_nothing(workshop: Workshop) -> None:
    source = FakeSource({"a.md": "# A\n\nApples are red."})
    first = await ingest([source], workshop)
    again = await ingest([source], workshop)
    assert first.generation
    assert not again.generation
    assert again.passages_embedded == 0
    assert (await workshop.index.manifest()).generation == first.generation


async def test_page_whose_surroundings_changed_is_read_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, seen = DocumentReader.read, []

    async def noted(self: DocumentReader, document: Document, window: int) -> Pages:
        seen.append(document.url)
        return await read(self, document, window)

    def source(around: str, b: str) -> FakeSource:
        a = Document("a.md", "a.md", "shelf", "markdown", b"# A\n\nApples.", surroundings=around)
        return FakeSource({"a.md": a, "b.md": f"# B\n\n{b}"})

    await ingest([source("one", "Bananas.")], workshop)
    before = await workshop.index.page(page_id_for("a.md"))
    monkeypatch.setattr(DocumentReader, "read", noted)
    ledger = await ingest([source("two", "Berries.")], workshop)
    assert outcomes(ledger) == {"a.md": "unchanged", "b.md": "changed"}
    assert ledger.passages_embedded == 1
    assert seen == ["a.md", "b.md"]
    await ingest([source("two", "Beans.")], workshop)
    assert seen == ["a.md", "b.md", "b.md"]
    assert await workshop.index.page(page_id_for("a.md")) == before
    assert "Apples" in await found(workshop, "Apples")


async def test_replaced_image_of_an_unchanged_page_is_copied_again(workshop: Workshop, tmp_path: Path) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nApples.\n\n![An apple](apple.png)\n")
    for data in (b"green", b"red"):
        (folder / "apple.png").write_bytes(data)
        ledger = await ingest([open_source(str(folder), SourceOptions())], workshop)
        assert [image.read_bytes() for image in (tmp_path / "images").iterdir()] == [data]
    assert set(outcomes(ledger).values()) == {"unchanged"}


async def test_title_given_by_the_user_wins_over_that_of_the_source(workshop: Workshop) -> None:
    async def title() -> str:
        manifest = await workshop.index.manifest()
        return manifest.shelf[0].title

    await ingest([FakeSource({"a.md": "# A\n\nApples."}, title="Fruit")], workshop)
    assert await title() == "Fruit"
    await ingest([FakeSource({"a.md": "# A\n\nPears."}, title="Fruit")], workshop, into=Edition(title="My fruit"))
    await ingest([FakeSource({"a.md": "# A\n\nPlums."}, title="Fruit")], workshop)
    assert await title() == "My fruit"


async def test_title_is_changed_without_changed_pages_and_survives_a_fresh_start(workshop: Workshop) -> None:
    source = FakeSource({"a.md": "# A\n\nApples."})
    await ingest([source], workshop, into=Edition(title="Old"))
    assert (await ingest([source], workshop, into=Edition(title="New"))).generation
    await recalibrate(workshop, 0.3)
    await ingest([source], workshop, fresh=True)
    (edition,) = (await workshop.index.manifest()).shelf
    assert (edition.title, (edition.calibration or {})["false_answers"]) == ("New", 0.3)
    await ingest([FakeSource({"a.md": Failed("a.md", "broken")})], workshop, into=Edition(title="Newer"), fresh=True)
    assert await urls(workshop) == {"a.md"}, "a run that reads nothing removes nothing"


async def test_unchanged_page_is_kept(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples are red."})], workshop)
    ledger = await ingest([FakeSource({"a.md": Unchanged("a.md")})], workshop)
    assert outcomes(ledger) == {"a.md": "unchanged"}
    assert await urls(workshop) == {"a.md"}


async def test_failed_page_does_not_fail_the_run_and_keeps_its_old_version(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples are red.", "b.md": "# B\n\nBananas."})], workshop)
    binary = Document("a.md", "a.md", "shelf", "markdown", b"\x00\x01\x02" * 100)
    ledger = await ingest(
        [FakeSource({"a.md": binary, "b.md": Failed("b.md", "HTTP 500"), "c.md": "# C\n\nNew."})], workshop
    )
    assert outcomes(ledger) == {"a.md": "failed", "b.md": "failed", "c.md": "added"}
    assert all("kept" in row.why for row in ledger if row.outcome == "failed")
    assert await urls(workshop) == {"a.md", "b.md", "c.md"}


async def test_page_that_is_skipped_now_is_removed_with_the_reason(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."})], workshop)
    source = FakeSource(
        {"a.md": Skipped("a.md", "robots.txt"), "b.md": "---\ndraft: true\n---\n# B", "n.md": Skipped("n.md", "x")}
    )
    ledger = await ingest([source], workshop)
    assert outcomes(ledger) == {"a.md": "removed", "b.md": "removed", "n.md": "skipped"}
    assert {row.url: row.why for row in ledger}["a.md"] == "robots.txt"


async def test_incomplete_source_removes_nothing(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."})], workshop)
    ledger = await ingest([FakeSource({"a.md": "# A\n\nApples."}, complete=False)], workshop)
    assert outcomes(ledger) == {"a.md": "unchanged"}
    assert await urls(workshop) == {"a.md", "b.md"}


async def test_page_that_is_skipped_by_an_incomplete_source_is_kept_and_recorded(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples."})], workshop)
    ledger = await ingest([FakeSource({"a.md": Skipped("a.md", "noindex")}, complete=False)], workshop)
    assert [(row.outcome, row.why) for row in ledger] == [
        ("skipped", "noindex (the earlier page is kept: its source was not read completely)")
    ]
    assert await urls(workshop) == {"a.md"}


async def test_folders_with_the_same_key_do_not_remove_each_others_pages(workshop: Workshop) -> None:
    one = FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."}, place="/one")
    two = FakeSource({"c.md": "# C\n\nCherries."}, place="/two")
    await ingest([one, two], workshop)
    ledger = await ingest([one, two], workshop)
    assert outcomes(ledger) == dict.fromkeys(("a.md", "b.md", "c.md"), "unchanged")
    del one.pages["b.md"]
    two.complete = False
    assert outcomes(await ingest([one, two], workshop)) == dict.fromkeys(("a.md", "c.md"), "unchanged")
    two.complete = True
    assert outcomes(await ingest([one, two], workshop))["b.md"] == "removed"
    assert await urls(workshop) == {"a.md", "c.md"}


async def test_source_that_is_named_twice_is_read_once(workshop: Workshop) -> None:
    source = FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."})
    assert [row.outcome for row in await ingest([source, source], workshop)] == ["added", "added"]
    del source.pages["b.md"]
    assert [row.outcome for row in await ingest([source, source], workshop)] == ["unchanged", "removed"]


async def test_sources_do_not_remove_each_others_pages(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples."}, key="one")], workshop)
    ledger = await ingest([FakeSource({"b.md": "# B\n\nBananas.", "a.md": "# A\n\nOther."}, key="two")], workshop)
    assert outcomes(ledger) == {"b.md": "added", "a.md": "failed"}
    assert "belongs to a page of one" in {row.url: row.why for row in ledger}["a.md"]
    assert await urls(workshop) == {"a.md", "b.md"}


async def test_second_page_with_the_same_address_fails(workshop: Workshop) -> None:
    twin = Document("a.md", "other.md", "shelf", "markdown", b"# Twin\n\nText.")
    ledger = await ingest([FakeSource({"a.md": "# A\n\nApples.", "twin": twin})], workshop)
    assert [row.outcome for row in ledger] == ["failed", "added"]


async def test_fresh_removes_all_other_pages(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples."}, key="one")], workshop)
    ledger = await ingest([FakeSource({"b.md": "# B\n\nBananas."}, key="two")], workshop, fresh=True)
    assert await urls(workshop) == {"b.md"}
    assert {row.url: row.outcome for row in ledger} == {"a.md": "removed", "b.md": "added"}, (
        "removed pages are in the ledger"
    )


async def test_fresh_run_that_reads_nothing_removes_nothing(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples."}, key="one")], workshop)
    ledger = await ingest([FakeSource({"b.md": Failed("b.md", "broken")}, key="two")], workshop, fresh=True)
    assert [row.outcome for row in ledger] == ["failed"]
    assert await urls(workshop) == {"a.md"}


async def test_forget_removes_one_source_and_keeps_the_others(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples."}, key="one")], workshop)
    await ingest([FakeSource({"b.md": "# B\n\nBananas.", "c.md": "# C\n\nCherries."}, key="two")], workshop)
    ledger = await forget(["two"], workshop)
    assert {row.url: (row.outcome, row.why) for row in ledger} == dict.fromkeys(
        ("b.md", "c.md"), ("removed", "forgotten")
    )
    assert await urls(workshop) == {"a.md"}
    await forget(["one"], workshop)
    assert await urls(workshop) == set(), "a book may be empty"


class Broken(HashEmbedder):
    """Fails after this many passages."""

    def __init__(self, works_for: int) -> None:
        super().__init__()
        self.left = works_for

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.left -= len(texts)
        if self.left < 0:
            raise EmbeddingError("the service is down")
        return await super().embed_passages(texts)


def many(count: int) -> dict[str, str | Fetched]:
    return {
        f"p{n}.md": f"# Page {n}\n\n" + "\n\n".join(f"Fact {n}.{m} stands here." for m in range(5))
        for n in range(count)
    }


async def test_failed_run_changes_nothing_and_the_next_one_reuses_its_vectors(workshop: Workshop) -> None:
    await ingest([FakeSource({"old.md": "# Old\n\nText."})], workshop)
    pages = {"old.md": "# Old\n\nText.", **many(300)}
    broken = Workshop(workshop.index, Broken(200), workshop.home)
    with pytest.raises(EmbeddingError):
        await ingest([FakeSource(pages)], broken)
    assert await urls(workshop) == {"old.md"}
    await ingest([FakeSource({"other.md": "# Other\n\nText."}, key="other")], workshop)
    ledger = await ingest([FakeSource(pages)], workshop)
    assert ledger.count("added") == 300
    assert 0 < ledger.passages_embedded <= 300 - 128  # at least two batches were kept from the failed run
    assert not (workshop.home / "unpublished-vectors.sqlite").exists()


async def test_cancelled_run_changes_nothing(workshop: Workshop) -> None:
    await ingest([FakeSource({"old.md": "# Old\n\nText."})], workshop)
    seen = asyncio.Event()

    def watch(progress: Progress) -> None:
        if progress.passages > 64:
            seen.set()

    task = asyncio.create_task(
        ingest([FakeSource(many(500))], Workshop(workshop.index, HashEmbedder(), workshop.home, watch))
    )
    await seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await urls(workshop) == {"old.md"}
    assert outcomes(await ingest([FakeSource({"old.md": "# Old\n\nText."})], workshop)) == {"old.md": "unchanged"}


async def test_other_embedding_model_is_refused_until_reembed(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples are red.", "b.md": "# B\n\nBananas."})], workshop)
    other = Workshop(workshop.index, HashEmbedder(32), workshop.home)
    with pytest.raises(EmbeddingMismatchError, match="chapterverse ingest --reembed"):
        await ingest([FakeSource({"a.md": "# A"})], other)
    ledger = await reembed(other)
    assert outcomes(ledger) == {"a.md": "changed", "b.md": "changed"}
    assert (await other.index.manifest()).fingerprint == other.embedder.fingerprint
    assert "red" in await found(other, "Apples")
    assert outcomes(
        await ingest([FakeSource({"a.md": "# A\n\nApples are red.", "b.md": "# B\n\nBananas."})], other)
    ) == {
        "a.md": "unchanged",
        "b.md": "unchanged",
    }


async def test_index_that_loads_slowly_is_retried(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples are red."})], workshop)
    late = iter([IndexTimeout("still loading")] * 3)
    manifest = EdgeIndex.manifest

    async def slowly(index: EdgeIndex) -> Manifest:
        for failure in late:
            raise failure
        return await manifest(index)

    monkeypatch.setattr(EdgeIndex, "manifest", slowly)
    assert outcomes(await reembed(workshop)) == {"a.md": "changed"}
    late = itertools.repeat(IndexTimeout("still loading"))
    with pytest.raises(IndexTimeout):
        await reembed(workshop)


async def test_fresh_start_needs_no_engine_for_searches_and_keeps_the_other_editions(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dead(*_: object) -> None:
        raise IndexUnavailable("the process died while it started")

    def full(*_: object, share: bool) -> None:
        raise OSError(28, "No space left on device")

    await ingest([FakeSource({"a.md": "# A\n\nApples are red."})], workshop)
    source = FakeSource({"b.md": "# B\n\nBananas."})
    with monkeypatch.context() as patch:
        patch.setattr(EdgeIndex, "_serving", dead)
        assert outcomes(await ingest([source], workshop, into=NEW, fresh=True)) == {"b.md": "added"}
        patch.setattr("chapterverse.index.generations.copy_shard", full)
        with pytest.raises(IngestionError, match="No space left"):
            await ingest([source], workshop, into=NEW, fresh=True)
    assert await urls(workshop) == {"a.md", "b.md"}


async def test_fresh_start_replaces_a_damaged_book(workshop: Workshop) -> None:
    source = FakeSource({"a.md": "# A\n\nApples are red."})
    await ingest([source], workshop)
    (checksums,) = workshop.home.rglob("*.checksums")
    checksums.write_text("{}")
    with pytest.raises(IndexDamaged, match="--fresh"):
        await ingest([source], workshop)
    assert outcomes(await ingest([source], workshop, fresh=True)) == {"a.md": "added"}


async def test_second_run_at_once_is_refused(workshop: Workshop) -> None:
    async with workshop.index.writer():
        with pytest.raises(IngestionError, match="another ingest"):
            await ingest([FakeSource({"a.md": "# A\n\nApples."})], workshop)


async def test_chunks_of_the_example_book_are_at_their_offsets(workshop: Workshop) -> None:
    await ingest([open_source(str(EXAMPLE_BOOK), SourceOptions())], workshop)
    for summary in await workshop.index.pages():
        page = await workshop.index.page(summary.page_id)
        assert page is not None
        vector = await workshop.embedder.embed_query(page.title)
        hits = await workshop.index.search(HybridQuery(page.title, vector, limit=20))
        for hit in hits:
            if hit.chunk.page_id == page.page_id:
                assert page.text[hit.chunk.start : hit.chunk.end] == hit.chunk.text


def test_ctrl_c_changes_nothing(tmp_path: Path) -> None:
    book = tmp_path / "pages"
    book.mkdir()
    for n in range(400):
        (book / f"p{n}.md").write_text(f"# Page {n}\n\n" + f"Fact number {n} stands here, at some length. " * 20)
    environment = os.environ | {"CHAPTERVERSE_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    script = textwrap.dedent(
        """
        import sys
        from chapterverse.terminal import ingestion
        ingestion.PLAIN_EVERY = 0.0
        from chapterverse.cli import main
        main()
        """
    )
    command = [sys.executable, "-c", script, "ingest", str(book)]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if "passages embedded" in line and " 0 passages" not in line:
                break
        run.send_signal(signal.SIGINT)
        output = run.stderr.read()
    assert run.returncode == 130
    assert "The book was not changed" in output
    assert "Traceback" not in output
    assert not (tmp_path / "home" / "index" / "CURRENT").exists()


OLD, NEW = Edition("guide", "1.0", "The Guide"), Edition("guide", "2.0")


async def pages_in(workshop: Workshop) -> dict[str, list[str]]:
    kept: dict[str, list[str]] = {}
    for page in await workshop.index.pages():
        kept.setdefault(page.edition, []).append(page.url)
    return kept


async def test_ingest_changes_only_its_own_edition(workshop: Workshop) -> None:
    """Both versions have the same addresses and the same source, like two checkouts of one folder."""
    await ingest([FakeSource({"a.md": "# A\n\nApples are red.", "b.md": "# B\n\nBananas."})], workshop, into=OLD)
    ledger = await ingest([FakeSource({"a.md": "# A\n\nApples are green."})], workshop, into=NEW)
    assert (outcomes(ledger), ledger.edition) == ({"a.md": "added"}, "guide@2.0")
    assert await pages_in(workshop) == {"guide@1.0": ["a.md", "b.md"], "guide@2.0": ["a.md"]}
    before = {edition.key: edition for edition in (await workshop.index.manifest()).shelf}
    assert (before["guide@1.0"].title, before["guide@1.0"].pages) == ("The Guide", 2)
    again = FakeSource({"a.md": "# A\n\nApples are blue.", "c.md": "# C\n\nCherries are sweet."})
    assert outcomes(await ingest([again], workshop, into=NEW)) == {"a.md": "changed", "c.md": "added"}
    after = {edition.key: edition for edition in (await workshop.index.manifest()).shelf}
    assert after["guide@1.0"] == before["guide@1.0"], "the other edition is not calibrated again"
    assert after["guide@2.0"].pages == 2
    for version, colour in ((OLD, "red"), (NEW, "blue")):
        page = await workshop.index.page(page_id_for("a.md", version.key))
        assert page is not None and colour in page.text


async def test_fresh_run_removes_only_pages_of_its_own_edition(workshop: Workshop) -> None:
    await ingest([FakeSource({"a.md": "# A\n\nApples."})], workshop)
    await ingest([FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."})], workshop, into=NEW)
    ledger = await ingest([FakeSource({"c.md": "# C\n\nCherries."}, key="two")], workshop, into=NEW, fresh=True)
    assert outcomes(ledger) == {"a.md": "removed", "b.md": "removed", "c.md": "added"}
    assert await pages_in(workshop) == {"": ["a.md"], "guide@2.0": ["c.md"]}
    failing = FakeSource({"d.md": Failed("d.md", "broken")}, key="two")
    await ingest([failing], workshop, into=NEW, fresh=True)
    assert await pages_in(workshop) == {"": ["a.md"], "guide@2.0": ["c.md"]}, "a run that reads nothing removes nothing"
    same = await ingest([FakeSource({"c.md": "# C\n\nCherries."}, key="two")], workshop, into=NEW, fresh=True)
    assert outcomes(same) == {"c.md": "added"}


async def test_forget_removes_a_source_from_one_edition(workshop: Workshop) -> None:
    for edition in (OLD, NEW):
        await ingest([FakeSource({"a.md": "# A\n\nApples."})], workshop, into=edition)
    await forget(["shelf"], workshop, ["guide@1.0"])
    assert await pages_in(workshop) == {"guide@2.0": ["a.md"]}
    assert [edition.key for edition in (await workshop.index.manifest()).shelf] == ["guide@2.0"]


async def test_reembed_keeps_the_editions(workshop: Workshop) -> None:
    for edition in (OLD, NEW):
        await ingest([FakeSource({"a.md": f"# A\n\nApples of {edition.version}."})], workshop, into=edition)
    before = (await workshop.index.manifest()).shelf
    await reembed(workshop)
    assert (await workshop.index.manifest()).shelf == before


async def test_book_stored_by_an_older_version_is_the_unnamed_edition(workshop: Workshop) -> None:
    """Older versions stored no editions, neither in the manifest nor in the pages."""
    source = FakeSource({"a.md": "# A\n\nApples are red."})
    await ingest([source], workshop)
    async with workshop.index.writer() as writer:
        assert writer.manifest is not None
        (one,) = writer.manifest.editions
        await writer.publish(replace(writer.manifest, editions=(), calibration=one.calibration))
    assert outcomes(await ingest([source], workshop)) == {"a.md": "unchanged"}
    await ingest([FakeSource({"a.md": "# A\n\nApples are green."})], workshop, into=NEW)
    assert await pages_in(workshop) == {"": ["a.md"], "guide@2.0": ["a.md"]}
    assert [edition.key for edition in (await workshop.index.manifest()).shelf] == ["", "guide@2.0"]
    old = (await workshop.index.manifest()).shelf[0]
    assert old.calibration == one.calibration and old.recipe == RECIPE


OLDER = "10"  # a version of the readers before the current one


async def age(workshop: Workshop) -> None:
    """Make the index one of an older version, whose records do not say with which recipe a page was read."""
    async with workshop.index.writer() as writer:
        assert writer.manifest is not None
        for held in writer.records.values():
            page = await workshop.index.page(held.page_id)
            assert page is not None
            older = PageRecord(
                held.page_id, held.url, held.source, "older", held.chunks, held.etag, edition=held.edition
            )
            await writer.put_record(page, older)
        editions = tuple(replace(edition, recipe=OLDER) for edition in writer.manifest.editions)
        await writer.publish(replace(writer.manifest, recipe=OLDER, editions=editions))


async def recipes(workshop: Workshop) -> dict[str, str]:
    return {edition.key: edition.recipe for edition in (await workshop.index.manifest()).shelf}


async def test_every_page_is_cut_again_after_a_change_of_the_recipe(workshop: Workshop) -> None:
    one = FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."}, key="one")
    two = FakeSource({"c.md": "# C\n\nCherries."}, key="two")
    await ingest([one, two], workshop, into=NEW)
    await age(workshop)
    ledger = await ingest([one, two], workshop, into=NEW)
    assert outcomes(ledger) == dict.fromkeys(("a.md", "b.md", "c.md"), "changed")
    assert ledger.passages_embedded == 3
    assert (one.known["b.md"].etag, two.known["c.md"].etag) == ("", ""), "a page that must be read has no conditions"
    assert await recipes(workshop) == {"guide@2.0": RECIPE}
    assert set(outcomes(await ingest([one, two], workshop, into=NEW)).values()) == {"unchanged"}
    assert (one.known["b.md"].etag, two.known["c.md"].etag) == ("tag-of-b.md", "tag-of-c.md")


async def test_pages_that_a_run_did_not_read_keep_their_recipe(workshop: Workshop) -> None:
    one = FakeSource({"a.md": "# A\n\nApples.", "b.md": "# B\n\nBananas."}, key="one")
    two = FakeSource({"c.md": "# C\n\nCherries."}, key="two")
    await ingest([one, two], workshop, into=NEW)
    await ingest([two], workshop, into=OLD)
    await age(workshop)
    failing = FakeSource({**one.pages, "b.md": Failed("b.md", "HTTP 500")}, key="one")
    assert outcomes(await ingest([failing], workshop, into=NEW)) == {"a.md": "changed", "b.md": "failed"}
    assert await recipes(workshop) == {"guide@1.0": OLDER, "guide@2.0": OLDER}
    assert outcomes(await ingest([one], workshop, into=NEW)) == {"a.md": "unchanged", "b.md": "changed"}
    assert (one.known["a.md"].etag, one.known["b.md"].etag) == ("tag-of-a.md", "")
    assert await recipes(workshop) == {"guide@1.0": OLDER, "guide@2.0": OLDER}, "the page of `two` is an older one"
    assert outcomes(await ingest([two], workshop, into=NEW)) == {"c.md": "changed"}
    assert two.known["c.md"].etag == ""
    assert await recipes(workshop) == {"guide@1.0": OLDER, "guide@2.0": RECIPE}
    assert (await workshop.index.manifest()).recipe == OLDER


async def test_reembedded_pages_are_read_again_after_a_change_of_the_recipe(workshop: Workshop) -> None:
    source = FakeSource({"a.md": "# A\n\nApples."})
    await ingest([source], workshop)
    await age(workshop)
    await reembed(workshop)
    assert await recipes(workshop) == {"": OLDER}
    assert outcomes(await ingest([source], workshop)) == {"a.md": "changed"}
    assert await recipes(workshop) == {"": RECIPE}
