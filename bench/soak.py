"""Measures whether memory grows: `python -m bench.soak [REQUESTS] [MINUTES]`, by default 20,000 requests or ten
minutes.

Starts a server over the example book, without a key and with the embedded Postgres, and sends searches, questions and
streams, ten at a time, each question different. The memory of all its processes is read every few seconds, and a line
is fitted to the second half of the run, because bounded pools and caches fill in the first. The soak passes if the
slope of our own processes is below 1 MiB per 1,000 requests with 95 % confidence, and every request was answered.
Postgres is reported separately, because it fills its 32 MiB of buffers with stored turns. Writes
`bench/results/soak-COMMIT.json`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.faults.processes import Server, descendants, working_in

from bench.load import Load, book_server, loading, mix
from bench.results import ROOT, save

REQUESTS: Final = 20_000
MINUTES: Final = 10.0
AT_ONCE: Final = 10
EVERY: Final = 2.0  # seconds between two measurements of memory
WARM: Final = 0.5  # share of the run that is not judged
BOUND: Final = 1.0  # MiB per 1,000 requests


def memory(pids: Iterable[int]) -> float:
    """Return the MiB used by the processes. Shared memory is counted once. Pages of files (programs, the index) are
    counted for each process, because our share of them depends on which other programs use the same files."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            lines += Path(f"/proc/{pid}/status").read_text().splitlines()
        except (OSError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:", "RssFile:")))
    return total / 1024


def slope(requests: Sequence[float], mebibytes: Sequence[float]) -> tuple[float, float]:
    """Return the MiB added by 1,000 requests, from a line through the points, and the reach of its 95 % interval.

    Neighbouring points are correlated, so the interval is computed from ten averages, not from all points.
    """
    blocks = [np.asarray(block) for block in np.array_split(np.arange(len(requests)), 10) if len(block)]
    x = np.array([np.mean(np.asarray(requests)[block]) for block in blocks]) / 1000
    y = np.array([np.mean(np.asarray(mebibytes)[block]) for block in blocks])
    spread = x - x.mean()
    gain = float((spread * y).sum() / (spread**2).sum())
    rest = y - y.mean() - gain * spread
    error = float(np.sqrt((rest**2).sum() / (len(x) - 2) / (spread**2).sum()))
    return gain, 2.306 * error  # Student's t, 8 degrees of freedom


async def _watch(load: Load, server: Server, home: Path, seen: list[tuple[int, float, float]]) -> None:
    """Record the number of requests, MiB of our processes and MiB of Postgres."""
    while True:
        postgres = set(working_in(home / "postgres" / "data"))
        ours = set(descendants(server.process.pid)) - postgres
        seen.append((load.account.outcomes.total(), memory(ours), memory(postgres)))
        await asyncio.sleep(EVERY)


async def _soak(server: Server, home: Path, requests: int, minutes: float) -> dict[str, Any]:
    deadline = time.monotonic() + 60 * minutes
    words = (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line)["question"] for line in words]

    def question(number: int) -> str:
        return f"{asked[number % len(asked)]} ({number})"  # never the same twice, so that no cache hides a leak

    async with loading(server.url, AT_ONCE) as load:
        seen: list[tuple[int, float, float]] = []
        watching = asyncio.create_task(_watch(load, server, home, seen))
        every = (request for request in mix(requests, question) if time.monotonic() < deadline)
        account = await load.run(every)
        watching.cancel()
    judged = [point for point in seen if point[0] >= WARM * account.outcomes.total()]
    requests_, ours, postgres = (list(values) for values in zip(*judged, strict=True))
    figures = account.figures() | {"at_once": AT_ONCE, "seconds": round(account.took, 1)}
    for part, values in (("ours", ours), ("postgres", postgres)):
        gain, off = slope(requests_, values)
        figures[part] = {
            "mib_per_1000": round(gain, 3),
            "plus_or_minus": round(off, 3),
            "mib_warm": round(values[0], 1),
            "mib_last": round(values[-1], 1),
        }
    return figures


def soak(requests: int, minutes: float) -> bool:
    """Run, print and save. Returns whether memory stayed flat and every request was answered."""
    before = os.getloadavg()[0]
    with book_server() as (server, home):
        result = asyncio.run(_soak(server, home, requests, minutes))
    result |= {"load_before": before, "load_after": os.getloadavg()[0]}
    print(json.dumps(result, indent=1))
    print(f"written to {save('soak', result).relative_to(ROOT)}")
    flat = result["ours"]["mib_per_1000"] + result["ours"]["plus_or_minus"] <= BOUND
    return flat and set(result["outcomes"]) == {"ok"}


if __name__ == "__main__":
    arguments = [float(argument) for argument in sys.argv[1:]]
    wanted = (arguments + [REQUESTS, MINUTES][len(arguments) :])[:2]
    sys.exit(0 if soak(int(wanted[0]), wanted[1]) else 1)
