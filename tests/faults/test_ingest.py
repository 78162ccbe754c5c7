"""A Qdrant server that is lost in the middle of an ingest: the published book is whole, the next run completes it."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chapterverse.config import Settings
from tests.contract.qdrant_server import qdrant_server
from tests.faults.outcomes import FULL, Outcome, record
from tests.faults.processes import command, environment, until
from tests.faults.proxy import Proxy, to_port
from tests.faults.worlds import entered, fill

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not FULL, reason="`make reliability`"),
]


async def test_a_qdrant_server_lost_in_the_middle_of_an_ingest(tmp_path: Path) -> None:
    home, book = tmp_path / "home", tmp_path / "book"
    book.mkdir()
    for number in range(30):
        text = " ".join(f"Part {part} of machine {number} weighs {part * number} grams." for part in range(60))
        (book / f"{number}.md").write_text(f"# Machine {number}\n\n{text}\n")
    async with AsyncExitStack() as stack:
        url = await entered(stack, qdrant_server())
        proxy = await stack.enter_async_context(Proxy(to_port(urlsplit(url).port or 0)))
        direct = Settings.load(chapterverse_home=home, qdrant_url=url, qdrant_collection_name="ingests")
        await fill(direct)
        settings = {"qdrant_url": f"http://127.0.0.1:{proxy.port}", "qdrant_collection_name": "ingests"}

        async def ingest() -> tuple[int, str, str]:
            run = await asyncio.create_subprocess_exec(
                *command("ingest", "--json", str(book)), env=environment(home, **settings), stdout=-1, stderr=-1
            )
            out, err = await run.communicate()
            assert run.returncode is not None
            return run.returncode, out.decode(), err.decode()

        journal = home / "unpublished-vectors.sqlite-wal"
        running = asyncio.create_task(ingest())
        await until(lambda: running.done() or (journal.exists() and journal.stat().st_size > 50_000), what="vectors")
        await proxy.become("refuse")
        failed, _, told = await running
        assert failed in (6, 10), told  # RetrievalUnavailable, IngestionError
        assert "Traceback" not in told
        await proxy.become("pass")
        began = time.monotonic()
        code, out, told_again = await ingest()
        assert code == 0, told_again
        ledger = json.loads(out)
    assert ledger["added"] == 30
    added = sum(row["chunks"] for row in ledger["pages"])
    assert ledger["passages_embedded"] < added, "what was embedded before is taken from the journal"
    told = f"exit code {failed}: {told.strip().splitlines()[0]}; then 30 of 30 pages added"
    done = "connections refused in the middle of an ingest; then run again"
    record(Outcome("Processes killed", "Qdrant server during an ingest", done, told, None, time.monotonic() - began))
