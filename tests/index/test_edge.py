"""The embedded index survives the death of any of its processes."""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import IndexTimeout, IndexUnavailable, RetrievalUnavailable
from chapterverse.index import generations
from chapterverse.index.edge import EdgeIndex
from chapterverse.index.edge_child import EdgeChild
from chapterverse.index.generations import current_name
from tests.index.places import patient_index, scratch_directory
from tests.index.sample import ask, manifest, write_page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

WRITER = """
import asyncio, itertools, sys
from pathlib import Path
from chapterverse.index.edge import EdgeIndex
from tests.index.sample import manifest, write_page

async def main():
    async with EdgeIndex(Path(sys.argv[1])).writer() as writer:
        for number in itertools.count():
            await write_page(f"x{number}.html", [f"unfinished {part}" for part in range(20)]).put(writer)
            if number == 3:
                print("writing", flush=True)
asyncio.run(main())
"""

READER = """
import asyncio, sys
from pathlib import Path
from tests.index.places import patient_index
from tests.index.sample import ask

async def main():
    index = patient_index(Path(sys.argv[1]))
    print(len(await index.search(ask("text"))), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as scratch:
        yield scratch / "index"


@pytest.fixture
async def index(directory: Path) -> AsyncIterator[EdgeIndex]:
    """An index with a book of one page and two chunks."""
    index = patient_index(directory)
    await publish(index, "first")
    yield index
    await index.close()


async def publish(index: EdgeIndex, *names: str) -> None:
    async with index.writer() as writer:
        for name in names:
            await write_page(f"{name}.html", [f"{name} text", f"{name} other text"]).put(writer)
        await writer.publish(manifest())


def children(directory: Path) -> dict[int, Path]:
    """The private copies of child processes, by process id."""
    return {int(path.name.split("-")[0]): path for path in (directory / "readers").glob("*-*")}


@contextlib.contextmanager
def run(script: str, directory: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Runs a script in a process; returns the process and the first line of its output."""
    command = [sys.executable, "-c", script, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


async def wait_for_exit(pid: int) -> None:
    async with asyncio.timeout(60):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110, ASYNC240 - there is no event for the end of another process
            await asyncio.sleep(0.01)


async def test_killed_writer_leaves_the_last_published_generation(index: EdgeIndex, directory: Path) -> None:
    with run(WRITER, directory) as (process, line):
        assert line == "writing"
        assert len([path for path in (directory / "generations").iterdir() if path.is_dir()]) == 2
        process.kill()
        process.wait()
    assert len(await index.search(ask("unfinished text"))) == 2
    other = patient_index(directory)
    assert (await other.manifest()).pages == 1
    await other.close()
    await publish(index, "second")
    assert (await index.manifest()).pages == 2
    assert current_name(directory) in [path.name for path in (directory / "generations").iterdir()]


async def test_cancellation_while_publishing_comes_too_late(
    index: EdgeIndex, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, sync = asyncio.get_running_loop(), asyncio.Event(), generations._sync_tree

    def slowly(path: Path) -> None:
        loop.call_soon_threadsafe(begun.set)
        time.sleep(0.3)
        sync(path)

    monkeypatch.setattr(generations, "_sync_tree", slowly)
    run = asyncio.create_task(publish(index, "second"))
    await begun.wait()
    run.cancel()
    await run
    assert (await index.manifest()).pages == 2


async def test_a_killed_child_is_replaced(index: EdgeIndex, directory: Path) -> None:
    await index.probe()
    (pid,) = children(directory)
    os.kill(pid, signal.SIGSTOP)
    waiting = asyncio.create_task(index.search(ask("text")))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(IndexUnavailable):
        await waiting
    assert len(await index.search(ask("text"))) == 2
    assert pid not in children(directory), "the copy of the killed child is removed"


async def test_closed_pipe_raises_index_unavailable(index: EdgeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop raises a RuntimeError if the child died and this is not yet noticed."""

    def closed(_: bytes) -> None:
        raise RuntimeError("unable to perform operation on <WriteUnixTransport closed=True>; the handler is closed")

    await index.probe()
    assert index._child is not None
    monkeypatch.setattr(index._child._process.stdin, "write", closed)
    with pytest.raises(IndexUnavailable):
        await index.probe()


async def test_failed_start_of_the_child_raises_index_unavailable(
    index: EdgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", refuse)
        with pytest.raises(IndexUnavailable, match="cannot be started"):
            await index.search(ask("text"))
    assert len(await index.search(ask("text"))) == 2


async def test_hung_child_causes_one_timeout_and_is_replaced(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = EdgeIndex(directory, timeout=3.0, loading=60)
    await publish(index, "first")
    await index.probe()
    (pid,) = children(directory)
    os.kill(pid, signal.SIGSTOP)
    calls: list[str] = []
    call = EdgeChild.call

    async def counted(self: EdgeChild, operation: str, *args: Any, **limits: float) -> Any:
        calls.append(operation)
        return await call(self, operation, *args, **limits)

    with monkeypatch.context() as patch:
        patch.setattr(EdgeChild, "call", counted)
        with pytest.raises(IndexTimeout, match="in 3 s"):
            await index.search(ask("text"))
    assert calls == ["search"]
    await wait_for_exit(pid)
    async with asyncio.timeout(60):
        while True:
            # Its end may not be noticed yet, and on a busy machine a new child may start too start_slowly for a search.
            with contextlib.suppress(IndexTimeout, IndexUnavailable):
                assert len(await index.search(ask("text"))) == 2
                break
    await index.close()


async def test_slow_loading_times_out_and_a_later_search_succeeds(
    index: EdgeIndex, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call waits for the same process."""
    start, loaded, started = EdgeChild.start, asyncio.Event(), []

    async def start_slowly(directory: Path) -> EdgeChild:
        started.append(directory)
        await loaded.wait()
        return await start(directory)

    monkeypatch.setattr(EdgeChild, "start", start_slowly)
    impatient = EdgeIndex(directory, timeout=30, loading=0.05)
    with pytest.raises(IndexTimeout, match="still loading"):
        await impatient.search(ask("text"))
    loaded.set()
    assert len(await (await wait_until_loaded(impatient)).search(ask("text"))) == 2
    assert len(started) == 1
    await impatient.close()


async def wait_until_loaded(index: EdgeIndex) -> EdgeIndex:
    """Waits until the child has loaded the book; returns the index."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(IndexTimeout):
                await index.manifest()
                return index


async def test_cancelled_searches_do_not_affect_others(index: EdgeIndex) -> None:
    await index.probe()
    searches = [asyncio.create_task(index.search(ask("text"))) for _ in range(20)]
    await asyncio.sleep(0)
    for search in searches[::2]:
        search.cancel()
    results = await asyncio.gather(*searches, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
    assert all(isinstance(result, list) and len(result) == 2 for result in results[1::2])


async def test_searches_switch_to_a_new_generation_without_failing(index: EdgeIndex, directory: Path) -> None:
    """After another writer publishes, no search fails, and the old child ends."""
    await index.probe()
    old = children(directory)
    await publish(EdgeIndex(directory), "second")
    async with asyncio.timeout(60):
        while len(await index.search(ask("text"))) != 4:
            pass
    for pid in old:
        await wait_for_exit(pid)
    assert len(children(directory)) == 1


async def test_several_processes_can_read_concurrently(index: EdgeIndex, directory: Path) -> None:
    with run(READER, directory) as (_, first), run(READER, directory) as (_, second):
        assert (first, second) == ("2", "2")
        assert len(await index.search(ask("text"))) == 2
        assert len(children(directory)) == 3


async def test_a_child_ends_with_its_parent(index: EdgeIndex, directory: Path) -> None:
    with run(READER, directory) as (process, line):
        assert line == "2"
        (child,) = children(directory)
        process.kill()
        process.wait()
        await wait_for_exit(child)
    assert not children(directory)


async def test_files_of_killed_processes_are_removed_by_the_next_reader(index: EdgeIndex, directory: Path) -> None:
    with run(READER, directory) as (process, _):
        (child,) = children(directory)
        os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
        await wait_for_exit(child)
    assert child in children(directory)
    await index.probe()
    assert child not in children(directory)
    assert len(children(directory)) == 1


async def test_close_ends_pending_calls_and_the_child(index: EdgeIndex, directory: Path) -> None:
    start = asyncio.create_task(index.probe())
    await asyncio.sleep(0)
    await index.close()
    with pytest.raises((asyncio.CancelledError, RetrievalUnavailable)):
        await start
    await index.probe()
    (pid,) = children(directory)
    await index.close()
    assert not children(directory)
    await wait_for_exit(pid)


async def test_missing_generation_raises_retrieval_unavailable(index: EdgeIndex, directory: Path) -> None:
    name = current_name(directory)
    assert name is not None
    (directory / "generations" / name).rename(directory / "elsewhere")
    with pytest.raises(RetrievalUnavailable, match="cannot be read"):
        await index.search(ask("text"))


def test_the_child_starts_without_heavy_imports() -> None:
    code = "import sys, chapterverse.index.edge_process; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "qdrant_client", "httpx"} & set(loaded)


async def test_event_loop_is_not_blocked_by_searches(index: EdgeIndex, directory: Path) -> None:
    """A stopped child stands for a very long search."""
    await index.probe()
    (pid,) = children(directory)
    os.kill(pid, signal.SIGSTOP)
    searches = [asyncio.create_task(index.search(ask("text"))) for _ in range(50)]
    for _ in range(200):
        await asyncio.sleep(0.001)
    assert not any(search.done() for search in searches)
    os.kill(pid, signal.SIGCONT)
    assert all(len(hits) == 2 for hits in await asyncio.gather(*searches))
