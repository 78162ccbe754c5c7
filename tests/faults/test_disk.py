"""A full disk: an ingest that cannot write changes nothing; a server answers, and stores again later.

For an ingest, a limit on the file size simulates a full disk without special rights. For a server, `make reliability`
mounts a small tmpfs if it may.
"""

import asyncio
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import EXAMPLE_BOOK
from tests.faults.observing import World, until_well
from tests.faults.outcomes import FULL, Outcome, record
from tests.faults.processes import command, end, environment, start
from tests.faults.readers import Readers
from tests.faults.worlds import copied_book

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DISK = "512m"
SMALL = 60_000  # bytes: less than the journal and the index of a chapter of the example book


def limited() -> None:
    """Runs in the child process before the command."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))


def ingest(home: Path, *, small: bool) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command("ingest", str(EXAMPLE_BOOK / "intro")),
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        preexec_fn=limited if small else None,
    )


def test_ingest_on_a_full_disk_fails_with_a_message_and_changes_nothing(tmp_path: Path) -> None:
    full = ingest(tmp_path, small=True)
    assert full.returncode == 10, full.stderr  # IngestionError
    assert "Traceback" not in full.stderr
    assert not (tmp_path / "index" / "CURRENT").exists()
    began = time.monotonic()
    again = ingest(tmp_path, small=False)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "index" / "CURRENT").exists()
    seen = f"exit code 10: {words(full.stderr)}"
    record(Outcome("Disk full", "an ingest", "no file may grow", seen, None, time.monotonic() - began))


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory, postgres_root: Path) -> Iterator[Path]:
    if not FULL:
        pytest.skip("`make reliability` mounts a small disk")
    place = postgres_root / "disk"
    place.mkdir(exist_ok=True)
    options = f"size={DISK},mode=755"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("room", [0, 1, 4, 16], ids=lambda room: f"{room} MiB left")
def test_ingest_with_little_room_fails_and_succeeds_later(small_disk: Path, example_home: Path, room: int) -> None:
    """The book stays complete, and the next run with more room succeeds."""
    home = copied_book(example_home, small_disk / "home")
    before = (home / "index" / "CURRENT").read_text()
    page = small_disk / "book" / "page.md"
    page.parent.mkdir()
    page.write_text("# A page\n\n" + "\n\n".join(f"The part {n} of it weighs {n} grams." for n in range(1500)))
    filler = small_disk / "filler"
    fill(filler)
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - (room << 20))
    run = [*command("ingest", str(page.parent))]
    full = subprocess.run(run, env=environment(home), capture_output=True, text=True, check=False, timeout=250)
    assert full.returncode == 10, full.stderr
    assert "Traceback" not in full.stderr
    assert (home / "index" / "CURRENT").read_text() == before
    filler.unlink()
    began = time.monotonic()
    again = subprocess.run(run, env=environment(home), capture_output=True, text=True, check=False, timeout=250)
    assert again.returncode == 0, again.stderr
    seen = f"exit code 10: {words(full.stderr)}"
    done = f"a disk of {DISK} with {room} MiB left"
    record(Outcome("Disk full", "an ingest", done, seen, None, time.monotonic() - began))


async def test_server_on_a_full_disk_answers_and_stores_again_later(small_disk: Path, example_home: Path) -> None:
    home = copied_book(example_home, small_disk / "home")
    server = start(home)
    filler = small_disk / "filler"
    try:
        await asyncio.to_thread(server.wait_until_ready)
        world = World("database", server.url, ())
        await until_well(world)
        async with Readers(server.url, 4) as readers:
            await readers.answered()
            fill(filler)
            await asyncio.sleep(3)
            await readers.heard(12, 180)
            filler.unlink()
            freed = time.monotonic()
            await until_well(world)
            await readers.answered()
            recovery = time.monotonic() - freed
            await readers.stop()
            lost, tally = await readers.lost(), readers.tally
        slowest = max(tally.slowest.values())
        record(
            Outcome(
                "Disk full",
                "a server",
                f"a disk of {DISK} filled to its last byte",
                str(tally),
                slowest,
                recovery,
                lost,
            )
        )
        assert not tally.untyped
        assert set(tally.outcomes) <= {"answered", "answered, not stored", "retrieval_unavailable"}
        assert lost == 0
    finally:
        filler.unlink(missing_ok=True)
        await asyncio.to_thread(end, server)


def words(stderr: str) -> str:
    """The first line of an error, without paths of this machine."""
    return re.sub(r"`?/\S+", "…", stderr.strip().splitlines()[0])


def fill(path: Path) -> None:
    """Writes until the disk is full."""
    for size in (1 << 20, 1 << 12):
        try:
            with path.open("ab", buffering=0) as file:
                while file.write(b"x" * size) == size:
                    pass
        except OSError:
            continue
