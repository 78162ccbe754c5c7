"""An ingest that loses a dependency or is killed: the book stays complete, and the next run finishes the ingest.

The dependencies are a Qdrant server and an embedding service. They are slow from the start, so that a fault can occur
during the ingest.
"""

import asyncio
import json
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chapterverse.settings import Settings
from tests.contract.qdrant_server import qdrant_server
from tests.embeddings.stub import KEY, EmbeddingStub
from tests.faults.observing import Fault
from tests.faults.outcomes import FULL, WORDS, Outcome, record
from tests.faults.processes import command, environment, until
from tests.faults.proxy import Proxy, to_port
from tests.faults.worlds import by_proxy, entered, fill, flapping, lying

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not FULL, reason="`make reliability`"),
]

PAGES = {"Qdrant server": 30, "embeddings": 120}  # the local embedder is slow, the stub is fast
KILL = "killed"
TYPED = {5, 6, 7, 10}  # the exit codes of EmbeddingError, RetrievalUnavailable, IndexUnavailable, IngestionError


@dataclass
class Ingest:
    """A book of many pages, the settings of its index, and the ingest process."""

    home: Path
    book: Path
    pages: int
    settings: dict[str, Any] = field(default_factory=dict)
    process: "asyncio.subprocess.Process | None" = None

    def write(self) -> None:
        self.book.mkdir()
        for number in range(self.pages):
            text = " ".join(f"Part {part} of machine {number} weighs {part * number} grams." for part in range(60))
            (self.book / f"{number}.md").write_text(f"# Machine {number}\n\n{text}\n")

    async def run(self) -> tuple[int, str, str]:
        """Runs the ingest; returns exit code, stdout and stderr."""
        self.process = await asyncio.create_subprocess_exec(
            *command("ingest", "--json", str(self.book)),
            env=environment(self.home, **self.settings),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), err.decode()

    def journal(self) -> int:
        """Bytes of vectors that are not published yet."""
        path = self.home / "unpublished-vectors.sqlite-wal"
        return path.stat().st_size if path.exists() else 0


async def qdrant(stack: AsyncExitStack, ingest: Ingest) -> Proxy:
    url = await entered(stack, qdrant_server())
    proxy = await stack.enter_async_context(Proxy(to_port(urlsplit(url).port or 0)))
    ingest.settings |= {"qdrant_url": f"http://127.0.0.1:{proxy.port}", "qdrant_collection_name": "ingests"}
    return proxy


async def embeddings(stack: AsyncExitStack, ingest: Ingest) -> Proxy:
    stub = await stack.enter_async_context(EmbeddingStub())
    proxy = await stack.enter_async_context(Proxy(to_port(urlsplit(stub.url).port or 0)))
    ingest.settings |= {
        "embeddings": "cohere",
        "cohere_api_key": KEY,
        "cohere_base_url": f"http://127.0.0.1:{proxy.port}",
    }
    return proxy


def fault_of(ingest: Ingest, proxy: Proxy, name: str) -> Fault:
    async def kill() -> None:
        assert ingest.process
        ingest.process.send_signal(signal.SIGKILL)

    known = (*by_proxy(proxy), lying(proxy), flapping(proxy), Fault(KILL, kill, lambda: proxy.become("pass")))
    return next(fault for fault in known if fault.name == name)


Place = Callable[[AsyncExitStack, Ingest], Any]
PLACES: dict[str, Place] = {"Qdrant server": qdrant, "embeddings": embeddings}
CASES = [
    *(("Qdrant server", name) for name in ("refuse", "hang", "lie", "flap", KILL)),
    *(("embeddings", name) for name in ("refuse", "hang", "lie", "flap", KILL)),
]


@pytest.mark.parametrize(("place", "name"), CASES, ids=[f"{place}: {name}" for place, name in CASES])
async def test_interrupted_ingest_is_completed_by_the_next_run(tmp_path: Path, place: str, name: str) -> None:
    pages = PAGES[place]
    ingest = Ingest(tmp_path / "home", tmp_path / "book", pages)
    ingest.write()
    async with AsyncExitStack() as stack:
        proxy = await PLACES[place](stack, ingest)
        settings = Settings.load(chapterverse_home=ingest.home, **ingest.settings)
        await fill(settings)
        await proxy.become("slow")
        running = asyncio.create_task(ingest.run())
        await until(lambda: running.done() or ingest.journal() > 50_000, what="vectors")
        assert not running.done(), running.result()
        fault = fault_of(ingest, proxy, name)
        await fault.inflict()
        began = time.monotonic()
        try:
            code, _, stderr = await running
        finally:
            await fault.heal()
        slowest = time.monotonic() - began
        if name == KILL:
            assert code == -signal.SIGKILL
        else:
            assert code in TYPED or (name == "flap" and code == 0), stderr
            assert "Traceback" not in stderr
        began = time.monotonic()
        again, out, told_again = await ingest.run()
        assert again == 0, told_again
        recovery = time.monotonic() - began
        ledger = json.loads(out)
    assert ledger["added"] + ledger["unchanged"] >= pages
    if code != 0:
        assert ledger["added"] == pages
        added = sum(row["chunks"] for row in ledger["pages"] if row["outcome"] == "added")
        assert ledger["passages_embedded"] < added, "vectors of the first run come from the journal"
    error = next((line for line in stderr.splitlines() if line.startswith("error: ")), "done")
    said = "killed" if name == KILL else f"exit code {code}: {error}"
    how = "kill -9 of the ingest" if name == KILL else WORDS[name]
    record(
        Outcome(
            "While a book is ingested",
            f"{place}: {name}",
            how,
            f"{said}; then all {pages} pages are there",
            slowest,
            recovery,
        )
    )
