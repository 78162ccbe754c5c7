"""The clock of the machine is set forward and back while readers ask: for a server, its workers and its Postgres.

libfaketime stands between the processes and the clock; where Debian's package is not installed this is left out. What
single parts do is tested beside them: `test_rates` (limits on a clock that is never set), `test_database` (the order
of turns).
"""

import asyncio
import time
from pathlib import Path

import pytest

from tests.faults.observing import World, until_well
from tests.faults.outcomes import FULL, Outcome, record
from tests.faults.processes import end, start
from tests.faults.readers import Readers
from tests.faults.worlds import copied_book

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
JUMPS = ("+1d", "-1d", "+0")  # from the true time; the last sets it right again


@pytest.mark.skipif(not FULL or LIBRARY is None, reason="`make reliability`, with Debian's libfaketime")
async def test_readers_do_not_notice_that_the_clock_jumps(example_home: Path, postgres_root: Path) -> None:
    home = copied_book(example_home, postgres_root / "clock")
    clock = postgres_root / "clock.rc"
    clock.write_text("+0\n")
    clock.chmod(0o644)
    # Time that only goes forward, which counts waits and limits, is never set on a real machine either.
    faked = {"FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": 1, "DONT_FAKE_MONOTONIC": 1, "LD_PRELOAD": LIBRARY}
    server = start(home, **{name: str(value) for name, value in faked.items()})  # type: ignore[arg-type]
    try:
        await asyncio.to_thread(server.wait_until_ready)
        await until_well(World("database", server.url, ()))
        async with Readers(server.url, 4) as readers:
            await readers.answered()
            began = time.monotonic()
            for jump in JUMPS:
                clock.write_text(f"{jump}\n")
                await readers.answered(2)
            recovery = time.monotonic() - began
            await readers.stop()
            lost, told = await readers.lost(), readers.told
    finally:
        await asyncio.to_thread(end, server)
    slowest = max(told.slowest.values())
    done = "set a day forward, two days back, a day forward (libfaketime: server and Postgres)"
    record(Outcome("Clock", "jumps", done, str(told), slowest, recovery, lost))
    assert set(told.outcomes) == {"answered"}, told
    assert lost == 0, "turns are kept in the order in which they were stored"
