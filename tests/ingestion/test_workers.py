"""An ingest with worker processes gives the same book, and handles killed workers and a killed parent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.errors import IngestionError
from chapterverse.ingestion.ledger import Ledger
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import BATCH, Progress, Watch, Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.ingestion.workers import Worker, sharing_work
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines
from tests.cli.process import chapterverse
from tests.conftest import EXAMPLE_BOOK
from tests.faults.processes import children, command_line, until

pytestmark = pytest.mark.slow


BOOK = [str(EXAMPLE_BOOK / part) for part in ("intro", "ros2")]  # more passages than one batch


async def read(home: Path, watch: Watch = lambda _: None) -> Ledger:
    """Ingests a part of the example book with two workers."""
    settings = Settings.load(chapterverse_home=home)
    async with open_engines(settings) as engines, sharing_work(engines.embedder, 2) as embedder:
        workshop = Workshop(engines.index, embedder, home, watch)
        return await ingest([open_source(part, SourceOptions()) for part in BOOK], workshop)


async def everything(home: Path) -> dict[str, tuple[str, np.ndarray]]:
    async with open_engines(Settings.load(chapterverse_home=home)) as engines, engines.index.writer() as writer:
        return {chunk.chunk_id: (chunk.text, vector) async for chunk, vector in writer.vectors()}


async def test_workers_give_the_same_book(tmp_path: Path) -> None:
    homes = [tmp_path / "alone", tmp_path / "together"]
    for home, workers in zip(homes, "12", strict=True):
        done = await asyncio.to_thread(chapterverse, home, "ingest", *BOOK, "--workers", workers, "--json")
        assert {row["outcome"] for row in json.loads(done.stdout)["pages"]} == {"added"}, done.stderr
    alone, together = [await everything(home) for home in homes]
    assert len(alone) > BATCH
    assert alone.keys() == together.keys()
    for chunk_id, (text, vector) in alone.items():
        assert together[chunk_id][0] == text
        assert np.allclose(together[chunk_id][1], vector, atol=1e-5)


async def test_killed_worker_changes_nothing_and_the_next_run_succeeds(tmp_path: Path) -> None:
    def kill(progress: Progress) -> None:
        if progress.passages:
            for pid in workers():
                os.kill(pid, signal.SIGKILL)

    with pytest.raises(IngestionError, match="--workers"):
        await read(tmp_path, kill)
    assert not await everything(tmp_path)
    assert {row.outcome for row in await read(tmp_path)} == {"added"}


async def test_started_workers_end_if_another_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    start, first = Worker.start, asyncio.Event()
    calls = iter(range(2))

    async def fail_second(*arguments: str) -> Worker:
        if next(calls):
            await first.wait()
            raise IngestionError("a worker process cannot be started: no memory")
        worker = await start(*arguments)
        first.set()
        return worker

    monkeypatch.setattr(Worker, "start", fail_second)
    embedder = LocalEmbedder(threads=1)
    with pytest.raises(IngestionError, match="no memory"):
        async with sharing_work(embedder, 2) as shared:
            await shared.embed_passages(["a", "b"])
    assert not workers()
    await embedder.close()


def workers() -> list[int]:
    """The embedding workers of this process."""
    return [pid for pid in children(os.getpid()) if "\0embed" in command_line(pid)]


async def test_workers_end_with_their_parent_process(tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.mkdir()
    for number in range(400):
        (book / f"{number}.md").write_text(f"# Page {number}\n\n" + f"Sentence {number} of many words. " * 200)
    leader = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
        [sys.executable, "-m", "chapterverse.cli", "ingest", str(book), "--workers", "2"],
        env=os.environ | {"CHAPTERVERSE_HOME": str(tmp_path / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await until(
            lambda: len(children(leader.pid)) >= 3, what="the start of the workers"
        )  # one reader, two embedders
        started = children(leader.pid)
    finally:
        leader.kill()
        leader.wait()
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), what="the workers' end")


async def test_one_worker_embeds_in_this_process() -> None:
    embedder = LocalEmbedder(threads=1)
    async with sharing_work(embedder, 1) as used:
        assert used is embedder
    await embedder.close()
