"""`kill -9` of every kind of process during answers and during an ingest loses nothing that was acknowledged.

Clients of a killed process see a closed connection; other clients are not affected. Servers run as separate processes
while clients keep asking.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import EXAMPLE_BOOK
from tests.faults.observing import World, until_well
from tests.faults.outcomes import FULL, HELD_UP, Outcome, record
from tests.faults.processes import Server, children, command, end, environment, runs, serving, start, until, working_in
from tests.faults.proxy import Proxy, to_port
from tests.faults.readers import CONNECTION_LOST, REFUSED, Readers
from tests.faults.test_dependencies import make_database
from tests.faults.worlds import copied_book
from tests.llm_stub import LlmStub, Quotes, serving_llm
from tests.served import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PART = "Processes killed"
LONGEST = 60.0  # seconds that a client may wait: 30 for a request, and more on a busy machine
WORD_SECONDS = 0.02  # between two words of the model, so that an answer takes about a second


@pytest.fixture
def home(example_home: Path, postgres_root: Path, request: pytest.FixtureRequest) -> Path:
    """A home with the example book, in a folder that the Postgres user can enter."""
    return copied_book(example_home, postgres_root / request.node.name.replace("[", "-").replace("]", ""))


def asking(stub: LlmStub) -> dict[str, Any]:
    """The settings of a server with a slow model."""
    stub.usual = Quotes(count=2, pause=WORD_SECONDS)
    return {"openai_api_key": "k", "openai_base_url": stub.url, "openai_model": "stub"}


async def in_the_middle(stub: LlmStub) -> None:
    """Waits until answers are being written."""
    words = stub.words_sent
    await until(lambda: stub.words_sent > words + 5, what="an answer")


async def judge(
    readers: Readers, fault: str, done: str, recovery: float, *, also: Collection[str] = (CONNECTION_LOST,)
) -> None:
    """Nothing acknowledged is lost, and clients see only answers and the outcomes in `also`."""
    await readers.stop()
    lost, tally = await readers.lost(), readers.tally
    slowest = max(tally.slowest.values())
    record(Outcome(PART, fault, done, str(tally), slowest, recovery, lost))
    assert not tally.untyped, tally.untyped
    assert set(tally.outcomes) <= {"answered", *also} | HELD_UP, tally
    assert slowest <= LONGEST
    assert lost == 0


WORKER_FAULTS = [(signal.SIGKILL, "killed")] + ([(signal.SIGSTOP, "hung")] if FULL else [])


@pytest.mark.parametrize(("number", "word"), WORKER_FAULTS, ids=[word for _, word in WORKER_FAULTS])
async def test_killed_worker_is_replaced(home: Path, postgres_url: str, number: signal.Signals, word: str) -> None:
    database_url = await make_database(postgres_url, f"worker_{word}")
    with serving_llm() as stub:
        server = start(home, "--workers", "2", database_url=database_url, **asking(stub))
        try:
            await asyncio.to_thread(server.wait_until_ready)
            await until(lambda: len(server.workers) == 2, what="the second worker")
            async with Readers(server.url, 6) as readers:
                await readers.answered()
                await in_the_middle(stub)
                victim = server.workers[0]
                os.kill(victim, number)
                hit = time.monotonic()
                await until(lambda: victim not in server.workers, what="the end of the worker")
                await until(lambda: len(server.workers) == 2, what="another worker")
                await readers.answered(2)
                done = f"one of two workers {word} ({number.name}) in the middle of answers"
                await judge(readers, f"a worker {word}", done, time.monotonic() - hit)
            await ended(server)
        finally:
            await asyncio.to_thread(end, server)


async def test_restarted_server_has_all_turns(home: Path) -> None:
    """One process with the embedded Postgres, which keeps running and is reused by the next process."""
    port = free_port()
    with serving_llm() as stub:
        server = start(home, port=port, **asking(stub))
        try:
            await asyncio.to_thread(server.wait_until_ready)
            async with Readers(server.url, 4) as readers:
                await readers.answered()
                await in_the_middle(stub)
                await ended(server)
                server = start(home, port=port, **asking(stub))
                again = time.monotonic()
                await asyncio.to_thread(server.wait_until_ready)
                await readers.answered()
                done = "the server killed in the middle of answers, and started again by its supervisor"
                await judge(readers, "the server", done, time.monotonic() - again, also=(CONNECTION_LOST, REFUSED))
        finally:
            await asyncio.to_thread(end, server)
    assert not working_in(home / "postgres" / "data"), "Postgres still runs"


@pytest.mark.skipif(not FULL, reason="`make reliability`; the tests above also check that workers end")
async def test_workers_end_with_their_supervisor(home: Path, postgres_url: str) -> None:
    database_url = await make_database(postgres_url, "supervisor")
    port = free_port()
    server = start(home, "--workers", "2", port=port, database_url=database_url)
    try:
        await asyncio.to_thread(server.wait_until_ready)
        await until(lambda: len(server.workers) == 2, what="the second worker")
        async with Readers(server.url, 4) as readers:
            await readers.answered()
            await ended(server)
            server = start(home, "--workers", "2", port=port, database_url=database_url)
            again = time.monotonic()
            await asyncio.to_thread(server.wait_until_ready)
            await readers.answered()
            done = "the parent of two workers killed: they finish and end; started again"
            await judge(readers, "the supervisor", done, time.monotonic() - again, also=(CONNECTION_LOST, REFUSED))
    finally:
        await asyncio.to_thread(end, server)


async def ended(server: Server) -> None:
    """Kills a server and waits until all its processes have ended, because they would hold the port."""
    offspring = children(server.process.pid)
    server.kill()
    await until(lambda: not any(map(runs, offspring)), what="the end of its processes")


def index_processes(home: Path) -> list[int]:
    return [int(path.name.split("-")[0]) for path in (home / "index" / "readers").glob("*-*")]


def postgres_processes(home: Path) -> list[int]:
    return working_in(home / "postgres" / "data")


@pytest.mark.skipif(not FULL, reason="`make reliability`")
@pytest.mark.parametrize(("name", "find"), [("Postgres", postgres_processes), ("index", index_processes)])
async def test_killed_postgres_or_index_does_not_lose_answers(
    home: Path, name: str, find: Callable[[Path], list[int]]
) -> None:
    """Answers are finished and stored: passages were already read, and Postgres is restarted."""
    with serving_llm() as stub:
        server = start(home, **asking(stub))
        try:
            await asyncio.to_thread(server.wait_until_ready)
            await until_well(World("database", server.url, ()))
            async with Readers(server.url, 4) as readers:
                await readers.answered()
                for _ in range(3):
                    await in_the_middle(stub)
                    for pid in find(home):
                        with contextlib.suppress(ProcessLookupError):  # it ended with the one killed before it
                            os.kill(pid, signal.SIGKILL)
                    hit = time.monotonic()
                    await readers.answered()
                done = f"the embedded {name} killed in the middle of answers, three times"
                await judge(readers, f"the embedded {name}", done, time.monotonic() - hit, also=())
        finally:
            await asyncio.to_thread(end, server)


@pytest.mark.skipif(not FULL, reason="`make reliability`")
async def test_lost_language_model_gives_truncated_answers_or_errors(home: Path, postgres_url: str) -> None:
    """The verified part is the answer, or the call is retried; otherwise there is a typed error."""
    database_url = await make_database(postgres_url, "model_lost")
    with serving_llm() as stub:
        settings = asking(stub)
        async with Proxy(to_port(stub.port)) as proxy:
            server = start(
                home, database_url=database_url, **settings | {"openai_base_url": f"http://127.0.0.1:{proxy.port}/v1"}
            )
            try:
                await asyncio.to_thread(server.wait_until_ready)
                async with Readers(server.url, 4) as readers:
                    await readers.answered()
                    for _ in range(3):
                        await in_the_middle(stub)
                        await proxy.become("cut")
                        await proxy.become("pass")
                        hit = time.monotonic()
                        await readers.answered()
                    done = "its connections cut in the middle of answers, three times"
                    await judge(
                        readers,
                        "the language model",
                        done,
                        time.monotonic() - hit,
                        also={"agent_unavailable", "truncated"},
                    )
            finally:
                await asyncio.to_thread(end, server)


# ── ingest ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PAGES = 40 if FULL else 20
MOMENTS = (0, 1, 65, 129) if FULL else (0, 1)  # stored vectors when a run is killed; a batch has 64


def test_killed_ingest_leaves_a_complete_book(home: Path, tmp_path: Path, database_url: str) -> None:
    """Searches use the old book until the last run publishes, and no passage is embedded twice."""
    book = shutil.copytree(EXAMPLE_BOOK, tmp_path / "book")
    for number in range(PAGES):
        (book / "ros2" / f"extra-{number}.md").write_text(page(number), "utf-8")
    with serving(home, database_url=database_url) as server:
        before = pages(server)
        for vectors in MOMENTS:
            run = ingest(home, book)
            kill_after(run, home, vectors)
            assert pages(server) in (before, before + PAGES)
            assert found(server, "What is a node in ROS 2?")
        began = time.monotonic()
        again = subprocess.run(
            command("ingest", "--json", str(book)), env=environment(home), capture_output=True, text=True, check=False
        )
        assert again.returncode == 0, again.stderr
        wait_for_pages(server, before + PAGES)
        recovery = time.monotonic() - began
        assert found(server, "What does the zyxomat number 7 weigh?")
        ledger = json.loads(again.stdout)
    outcomes = {row["url"]: row["outcome"] for row in ledger["pages"]}
    assert len(outcomes) == before + PAGES and "failed" not in outcomes.values()
    added = sum(row["chunks"] for row in ledger["pages"] if row["outcome"] == "added")
    # Nothing is added if the killed run had just published.
    assert ledger["passages_embedded"] < added or not added, "vectors of earlier runs come from the journal"
    done = f"an ingest killed at {len(MOMENTS)} moments, then run to its end while a server serves the book"
    record(Outcome(PART, "an ingest", done, "every search found the book whole", None, recovery))


def page(number: int) -> str:
    text = " ".join(f"Part {part} of the zyxomat number {number} weighs {part * number} grams." for part in range(60))
    return f"# The zyxomat number {number}\n\nThe zyxomat number {number} weighs {number} kilograms.\n\n{text}\n"


def ingest(home: Path, book: Path) -> "subprocess.Popen[bytes]":
    alone = environment(home, model_memory="")  # without the cache of model outputs, so that the run takes a while
    return subprocess.Popen(
        command("ingest", str(book)), env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_after(run: "subprocess.Popen[bytes]", home: Path, vectors: int) -> None:
    """Kills a run when it has stored this many vectors, or as soon as the journal exists if the number is 0."""
    journal = home / "unpublished-vectors.sqlite"
    deadline = time.monotonic() + 200
    while run.poll() is None and not (journal.exists() and kept(journal) >= vectors):
        assert time.monotonic() < deadline, "the run embeds nothing"
        time.sleep(0.005)
    run.kill()
    run.wait(30)


def kept(journal: Path) -> int:
    """The number of committed vectors in a journal."""
    address = f"file:{journal}?mode=ro"
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        return int(database.execute("SELECT count(*) FROM vectors").fetchone()[0])
    return 0  # it has just been created or removed


def pages(server: Server) -> int:
    return len(httpx2.get(f"{server.url}/pages", timeout=30, trust_env=False).json()["pages"])


def found(server: Server, question: str) -> bool:
    answer = httpx2.post(f"{server.url}/search", json={"query": question}, timeout=30, trust_env=False)
    return answer.status_code == 200 and bool(answer.json()["results"])


def wait_for_pages(server: Server, count: int) -> None:
    deadline = time.monotonic() + 120
    while pages(server) != count:
        assert time.monotonic() < deadline, "the server does not serve the new state"
        time.sleep(0.1)
