"""A damaged index is refused with the command that rebuilds it, or the last good generation is served.

`FLIPS=300` (`make flips`) damages that many random bytes instead of a few.
"""

import asyncio
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from chapterverse.conversations.postgres import EmbeddedPostgres
from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from chapterverse.errors import ChapterverseError, ConversationsUnavailable, IndexDamaged
from chapterverse.index import checksums, generations
from chapterverse.index.edge import EdgeIndex
from chapterverse.ingestion.vector_journal import VectorJournal
from chapterverse.testing import HashEmbedder
from tests.cli.process import chapterverse
from tests.index.places import patient_index, scratch_directory
from tests.index.sample import ask, manifest, write_page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TEXTS = [f"ROS 2 is the robot operating system, part {number}." for number in range(40)]
FLIPS = int(os.environ.get("FLIPS", "12"))


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as scratch:
        yield scratch / "index"


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[EdgeIndex]:
    index = patient_index(directory)
    try:
        yield index
    finally:
        await index.close()


async def publish(directory: Path, *texts: str) -> None:
    async with opened(directory) as index, index.writer() as writer:
        await write_page("p.html", texts).put(writer)
        await writer.publish(manifest())


def current(directory: Path) -> Path:
    return generations.generation_path(directory, generations.current_name(directory) or "")


def change(folder: Path, old: bytes, new: bytes) -> int:
    """Replaces bytes in all files of a folder, in place; returns the number of replacements."""
    changed = 0
    for path in folder.rglob("*"):
        if path.is_file() and old in (data := path.read_bytes()):
            changed += data.count(old)
            with path.open("r+b") as file:
                file.write(data.replace(old, new))
    return changed


async def test_changed_text_is_refused_with_the_command_that_rebuilds(directory: Path) -> None:
    await publish(directory, *TEXTS)
    assert change(current(directory), b"ROS 2", b"ROS 9")
    async with opened(directory) as index:
        for call in (index.search(ask(TEXTS[0])), index.pages(), index.probe()):
            with pytest.raises(IndexDamaged, match="chapterverse ingest --fresh"):
                await call
        assert "damaged" in (await index.verify() or "")
        with pytest.raises(IndexDamaged, match="chapterverse ingest --fresh"):
            async with index.writer():
                pass
        async with index.writer(fresh=True) as writer:
            await write_page("p.html", TEXTS).put(writer)
            await writer.publish(manifest())
        assert "ROS 2" in (await index.search(ask(TEXTS[0])))[0].chunk.text
        assert await index.verify() is None


async def test_last_good_generation_is_served_and_probe_reports_it(directory: Path) -> None:
    await publish(directory, *TEXTS)
    await publish(directory, *[text.replace("part", "piece") for text in TEXTS])
    assert change(current(directory), b"ROS 2", b"ROS 9")
    async with opened(directory) as index:
        assert "part" in (await index.search(ask(TEXTS[0])))[0].chunk.text
        report = await index.probe()
        assert report and "generation before" in report
        async with index.writer() as writer:  # starts from the good generation
            assert len(writer.records) == 1
            await write_page("q.html", ["ROS 2 again."]).put(writer)
            await writer.publish(manifest())
        assert await index.probe() is None
        assert len(await index.pages()) == 2


async def test_text_that_changes_while_the_server_runs_is_not_quoted(directory: Path) -> None:
    await publish(directory, *TEXTS)
    async with opened(directory) as index:
        assert "ROS 2" in (await index.search(ask(TEXTS[0])))[0].chunk.text
        assert change(directory, b"ROS 2", b"ROS 9")
        for _ in range(3):
            try:
                hits = await index.search(ask(TEXTS[0]))
            except IndexDamaged as why:
                assert "--fresh" in why.message
            else:
                assert not any("ROS 9" in hit.chunk.text for hit in hits)


@pytest.mark.parametrize("pointer", [b"\xff\xfe\x00", b"", b"../../../etc", b"20200101T000000-00000000", None])
async def test_broken_pointer_serves_the_only_generation(directory: Path, pointer: bytes | None) -> None:
    await publish(directory, *TEXTS)
    if pointer is None:
        (directory / "CURRENT").unlink()
    else:
        (directory / "CURRENT").write_bytes(pointer)
    async with opened(directory) as index:
        assert "ROS 2" in (await index.search(ask(TEXTS[0])))[0].chunk.text  # the only generation, which is sound
        assert await index.probe()


async def test_doctor_names_the_damage_and_the_command(directory: Path) -> None:
    await publish(directory, *TEXTS)
    assert change(current(directory), b"ROS 2", b"ROS 9")
    shown = await asyncio.to_thread(
        chapterverse, directory.parent, "doctor", "--json", CHAPTERVERSE_HOME=str(directory.parent)
    )
    assert "Traceback" not in shown.stderr
    book = next(one for one in json.loads(shown.stdout)["findings"] if one["part"] == "book")
    assert book["state"] == "down"
    assert "damaged" in book["message"]
    assert "--fresh" in book["fix"]


async def test_index_of_an_older_version_without_checksums_is_read(directory: Path) -> None:
    await publish(directory, *TEXTS)
    checksums.place_of(current(directory)).unlink()
    async with opened(directory) as index:
        assert await index.search(ask(TEXTS[0]))
        assert await index.probe() is None


async def test_damaged_vector_of_an_interrupted_run_is_computed_again(tmp_path: Path) -> None:
    """A damaged vector in the journal is not published."""
    path, embedder = tmp_path / "vectors.sqlite", HashEmbedder()
    with VectorJournal(path, embedder) as journal:
        sound, computed = await journal.embed(TEXTS)
        assert computed == len(TEXTS)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        key, vector = database.execute("SELECT text, vector FROM vectors LIMIT 1").fetchone()
        damaged = bytes([vector[0] ^ 1]) + vector[1:]
        database.execute("UPDATE vectors SET vector=? WHERE text=?", (damaged, key))
    with VectorJournal(path, embedder) as journal:
        again, computed = await journal.embed(TEXTS)
    assert computed == 1
    assert np.array_equal(sound, again)


# ── random bytes ─────────────────────────────────────────────────────────────────────────────────────────────────────


SESSION = "11111111-1111-4111-8111-111111111111"
TURNS = [(f"What is part {number}?", f"It is part {number} of the robot. " * 20) for number in range(12)]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home with a book and a conversation."""
    with scratch_directory() as scratch:
        scratch.chmod(0o755)  # as root, Postgres runs under another account
        asyncio.run(publish(scratch / "home" / "index", *TEXTS))
        asyncio.run(converse(scratch / "home"))
        yield scratch / "home"


@asynccontextmanager
async def conversations(home: Path) -> AsyncIterator[Conversations]:
    postgres = EmbeddedPostgres(home / "postgres")
    kept = Conversations(postgres.start, postgres.lost)
    try:
        yield kept
    finally:
        await kept.close()
        await postgres.stop()


async def converse(home: Path) -> None:
    async with conversations(home) as kept:
        await kept.probe()
        for query, response in TURNS:
            await kept.store(Turn(session_id=SESSION, query=query, response=response))


async def read_book(home: Path) -> list[object]:
    """All search results, pages and the manifest of the book."""
    async with opened(home / "index") as index:
        found: list[object] = []
        for text in (TEXTS[3], TEXTS[17], "operating system"):
            hits = await index.search(ask(text, limit=20))
            found += [(hit.chunk, round(hit.similarity, 6), round(hit.score, 6)) for hit in hits]
        pages = await index.pages()
        found += pages
        found += [await index.page(page.page_id) for page in pages]
        found.append(await index.manifest())
        return found


async def read_conversation(home: Path) -> list[object]:
    """All turns of the conversation."""
    async with conversations(home) as kept:
        await wait_until_started(kept)
        return [(turn.query, turn.response) for turn in await kept.recent(SESSION, 100)]


async def wait_until_started(kept: Conversations) -> None:
    """Retries, because Postgres may need longer to start on a busy machine than the five seconds of a call."""
    for _ in range(5):
        try:
            return await kept.probe()
        except ConversationsUnavailable as failure:
            if "in time" not in failure.message:
                raise
    return await kept.probe()


ReadPart = Callable[[Path], Awaitable[list[object]]]


@pytest.mark.parametrize(
    ("part", "read_part"), [("index", read_book), ("postgres", read_conversation)], ids=["book", "conversation"]
)
async def test_random_damage_gives_the_same_result_or_an_error(home: Path, part: str, read_part: ReadPart) -> None:
    sound = await read_part(home)
    assert sound
    pick = random.Random(10)
    files = [path for path in sorted((home / part).rglob("*")) if path.is_file() and path.suffix != ".lock"]
    sizes = [max(path.stat().st_blocks * 512, 1) for path in files]
    seen = {"the same": 0, "an error": 0}
    for _ in range(FLIPS if part == "index" else FLIPS // 3):
        path = pick.choices(files, sizes)[0]
        copy = home.parent / "copy"
        await asyncio.to_thread(subprocess.run, ["cp", "-a", "--sparse=always", str(home), str(copy)], check=True)
        flip(copy / path.relative_to(home), pick)
        try:
            found = await read_part(copy)
        except ChapterverseError:
            seen["an error"] += 1
        else:
            assert found == sound, f"{path.relative_to(home)} gave another result"
            seen["the same"] += 1
        shutil.rmtree(copy)
    print(f"{part}: {seen}")


def flip(path: Path, pick: random.Random) -> None:
    """Flips one bit of a file, in a block with data if there is one."""
    with path.open("r+b") as file:
        size = path.stat().st_size
        at = pick.randrange(size) if size else 0
        data = [offset for offset in range(0, size, 4096) if os.pread(file.fileno(), 4096, offset).strip(b"\0")]
        if data:
            at = min(size - 1, pick.choice(data) + pick.randrange(4096))
        byte = os.pread(file.fileno(), 1, at) or b"\0"
        os.pwrite(file.fileno(), bytes([byte[0] ^ (1 << pick.randrange(8))]), at)
