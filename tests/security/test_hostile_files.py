"""Hostile files in a folder: each has one row in the ledger, and the other pages are ingested."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chapterverse.ingestion import workers
from chapterverse.ingestion.document import Document, Unreadable
from chapterverse.ingestion.ledger import Ledger
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.ingestion.sources.sitemap import parse_sitemap
from chapterverse.ingestion.worker_limits import ReadLimits
from chapterverse.ingestion.workers import DocumentReader
from chapterverse.testing import HashEmbedder
from tests.faults.processes import children, until
from tests.index.places import patient_index
from tests.security.hostile_files import (
    CRASHING,
    ENDLESS,
    LARGE,
    SUFFIXES,
    Hostile,
    flate_pdf,
    nested_forms_pdf,
    nested_sitemap,
    wide_sitemap,
)

MEBIBYTE = 2**20


def write_files(folder: Path, *files: Hostile) -> None:
    """Writes the files and two good pages, one first and one last in order."""
    folder.mkdir(exist_ok=True)
    (folder / "a-good.md").write_text("# First\n\nApples are red.")
    (folder / "z-good.md").write_text("# Last\n\nCherries are dark.")
    for file in files:
        (folder / f"{file.name}.{SUFFIXES[file.format]}").write_bytes(file.make())


async def run(folder: Path, home: Path) -> Ledger:
    index = patient_index(home / "index")
    try:
        source = open_source(str(folder), SourceOptions())
        return await ingest([source], Workshop(index, HashEmbedder(), home))
    finally:
        await index.close()


def good_pages(ledger: Ledger) -> set[str]:
    return {row.url for row in ledger if row.outcome == "added" and "-good" in row.url}


@pytest.mark.slow
async def test_files_that_crashed_a_parser_have_a_row_in_the_ledger(tmp_path: Path) -> None:
    write_files(tmp_path / "book", *CRASHING)
    ledger = await run(tmp_path / "book", tmp_path)
    assert good_pages(ledger) == {"book/a-good.md", "book/z-good.md"}
    assert {Path(row.url).stem for row in ledger} == {"a-good", "z-good", *(file.name for file in CRASHING)}
    assert {row.outcome for row in ledger} <= {"added", "failed"}
    assert all(row.why for row in ledger if row.outcome == "failed")


async def test_folder_with_hostile_category_files_keeps_its_pages(tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.mkdir()
    write_files(book / "deep")
    for name, text in (("_category_.json", "[" * 100_000), ("_category_.yml", "position: &a [*a]")):
        (book / "deep" / name).write_text(text)
    assert good_pages(await run(book, tmp_path)) == {"book/deep/a-good.md", "book/deep/z-good.md"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [file.name for file in (*ENDLESS, *LARGE)])
def test_expensive_files_stay_within_time_and_memory_limits(name: str) -> None:
    """The time limit is on CPU time, so that other processes on the machine do not matter."""
    program = [sys.executable, "-m", "tests.security.reading_one", name]
    took = json.loads(subprocess.run(program, capture_output=True, check=True, timeout=300).stdout)
    assert took["why"] or took["characters"] < 10 * took["bytes"] + 100_000
    assert took["seconds"] < 11
    assert took["peak"] <= 1024 * MEBIBYTE


@pytest.mark.slow
async def test_run_continues_after_a_file_over_its_limit(tmp_path: Path) -> None:
    write_files(tmp_path / "book", Hostile("flate", "pdf", flate_pdf))
    ledger = await run(tmp_path / "book", tmp_path)
    assert good_pages(ledger) == {"book/a-good.md", "book/z-good.md"}
    (why,) = (row.why for row in ledger if row.outcome == "failed")
    assert why.startswith(("cannot be read:", "reading it needs more than"))


@pytest.mark.slow
async def test_killed_worker_fails_only_its_document(tmp_path: Path) -> None:
    reader = DocumentReader(ReadLimits(seconds=300))
    slow = Document("x/a.pdf", "a.pdf", "x", "pdf", nested_forms_pdf())
    good = Document("x/b.md", "b.md", "x", "markdown", b"# Page\n\nText.")
    try:
        await reader.read(good, 256)
        reading = asyncio.create_task(reader.read(slow, 256))
        (worker,) = _workers()
        idle = _cpu_ticks(worker)
        await until(lambda: _cpu_ticks(worker) > idle + 10, what="the worker to parse the document")
        os.kill(worker, signal.SIGSEGV)
        with pytest.raises(Unreadable, match=r"crashed the parser \(SIGSEGV\)"):
            await reading
        assert (await reader.read(good, 256))[0][0].title == "Page"
    finally:
        await reader.close()
    await until(lambda: not _workers(), what="the end of the worker")


@pytest.mark.slow
async def test_read_over_the_cpu_time_limit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WALL_CLOCK", 300)  # on a busy machine the limit of wall-clock time comes first
    reader = DocumentReader(ReadLimits(seconds=1))
    try:
        with pytest.raises(Unreadable, match="it took too long"):
            await reader.read(Document("x/a.pdf", "a.pdf", "x", "pdf", nested_forms_pdf(b"q Q ")), 256)
    finally:
        await reader.close()


async def test_read_over_the_output_limit_fails() -> None:
    reader = DocumentReader(ReadLimits(reply=100_000, growth=0))
    try:
        with pytest.raises(Unreadable, match="far larger than the file"):
            await reader.read(Document("x/b.md", "b.md", "x", "markdown", b"word " * 50_000), 256)
        assert await reader.read(Document("x/b.md", "b.md", "x", "markdown", b"word " * 50), 256)
    finally:
        await reader.close()


async def test_cancelled_read_leaves_no_worker() -> None:
    reader = DocumentReader(ReadLimits(seconds=300))
    slow = Document("x/a.pdf", "a.pdf", "x", "pdf", nested_forms_pdf())
    reading = asyncio.create_task(reader.read(slow, 256))
    await until(lambda: bool(_workers()), what="the start of the worker")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await until(lambda: not _workers(), what="the end of the worker")


async def test_workers_get_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    reader = DocumentReader(ReadLimits())
    try:
        await reader.read(Document("x/b.md", "b.md", "x", "markdown", b"# Page\n\nText."), 256)
        (worker,) = _workers()
        given = Path(f"/proc/{worker}/environ").read_bytes()  # noqa: ASYNC240
        assert b"PATH=" in given
        assert b"sk-secret" not in given
    finally:
        await reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("make", [nested_sitemap, wide_sitemap])
def test_a_sitemap_with_millions_of_elements_is_refused(make: object) -> None:
    assert callable(make)
    data = make()
    assert len(data) < 100_000
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = parse_sitemap(data)
    assert found is None or not found.pages
    assert time.process_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024  # KiB


def _cpu_ticks(pid: int) -> int:
    """User time of a process in clock ticks."""
    return int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11])


def _workers() -> list[int]:
    def is_worker(pid: int) -> bool:
        try:
            return b"worker_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    return [pid for pid in children(os.getpid()) if is_worker(pid)]
