"""The race: `python -m bench.race [--quick] [--setup] [--fresh] [--only NAMES] [--phases NAMES]`.

All services get the same model, embedder, book and questions, in interleaved rounds of one run. Figures are medians.
The floor runs a second time under another name, which shows how much of a ratio is noise. An interrupted run continues
where it stopped. Prints the table and the bars. A complete run is written to `bench/results/race-COMMIT.json`, and its
table for `docs/benchmarks/race.md` to `.cache/race/race.md`.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from bench.race import phases
from bench.race.figures import Results, bars, markdown, spread, summarise
from bench.race.preparation import make_books, make_environments, questions
from bench.race.processes import ALL_CORES, Server, confine, serving
from bench.race.racers import AUX_PORT, CACHE, FIRST_PORT, LLM_PORT, RACERS, Racer
from bench.results import ROOT, commit, save

_STATE: Final = CACHE / "state.json"
_PHASES: Final = ("size", "start", "load", "ingest", "faults")
_FULL: Final = {"rounds": 3, "starts": 2, "seconds": 1.8, "real": 24, "ingests": 1}
_QUICK: Final = {"rounds": 1, "starts": 1, "seconds": 1.5, "real": 8, "ingests": 1}


class Race:
    """One run: what was measured, and which steps are done."""

    def __init__(self, racers: Sequence[Racer], plan: dict[str, Any], fresh: bool) -> None:
        self.racers, self.plan, self.asked = racers, plan, questions()
        self._key = {"commit": commit(), "plan": plan, "racers": [racer.name for racer in racers]}
        found = json.loads(_STATE.read_text("utf-8")) if _STATE.exists() and not fresh else {}
        kept = found if found.get("key") == self._key else {}
        self.results: Results = kept.get("results", {racer.name: {} for racer in racers})
        self._done: set[str] = set(kept.get("done", ()))

    async def step(self, name: str, work: Callable[..., Awaitable[None] | None], *arguments: Any) -> None:
        """Run a step, unless it was done before the run was interrupted."""
        if name in self._done:
            return
        began = time.perf_counter()
        if (doing := work(*arguments)) is not None:
            await doing
        self._done.add(name)
        state = {"key": self._key, "results": self.results, "done": sorted(self._done)}
        _STATE.write_text(json.dumps(state), "utf-8")
        print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)

    def is_done(self, names: Sequence[str]) -> bool:
        """Whether all of these steps are done."""
        return self._done.issuperset(names)

    async def size(self) -> None:
        """Measure the size on disk."""
        for racer in self.racers:
            await self.step(f"size {racer.name}", phases.measure_size, racer, self.results)

    async def start(self) -> None:
        """Measure imports and cold starts. The first start is not counted: it creates a database and fills the page
        cache."""
        for number in range(self.plan["starts"] + 1):
            kept: Results = self.results if number else {}
            for racer in self.racers:
                if number:
                    await self.step(f"import {number} {racer.name}", phases.measure_import, racer, kept)
                await self.step(f"start {number} {racer.name}", phases.measure_start, racer, kept, self.asked[0])

    async def load(self, stub: int) -> None:
        """Measure load with a model that takes no time and with a realistic one. All servers run; one is measured at a
        time."""
        steps = [f"{kind} {at} {r.name}" for at in range(self.plan["rounds"]) for r in self.racers for kind in _LOADS]
        if self.is_done(steps):
            return
        with _apart(stub):
            async with serving(self.racers, FIRST_PORT, self.asked[0], phases.SERVER_CORES) as servers:
                for at in range(self.plan["rounds"]):
                    for racer in self.racers:
                        await self._load(at, servers[racer.name])

    async def _load(self, at: int, server: Server) -> None:
        name, kept, plan = server.racer.name, self.results, self.plan
        await self.step(f"load {at} {name}", phases.measure_load, server, kept, self.asked, plan["seconds"])
        await self.step(f"realistic {at} {name}", phases.measure_realistic, server, kept, self.asked, plan["real"])

    async def ingest(self) -> None:
        """Measure the ingest of each service, which has the machine to itself."""
        for at in range(self.plan["ingests"]):
            for racer in self.racers:
                await self.step(f"ingest {at} {racer.name}", phases.measure_ingest, racer, self.results)

    async def faults(self) -> None:
        """Measure the faults of the model, for all services at the same time."""
        if not self.is_done([f"fault {mode}" for mode in (*phases.FAULTS, "leaving")]):
            async with serving(self.racers, FIRST_PORT, self.asked[0], ALL_CORES) as servers:
                ready, question = list(servers.values()), self.asked[1]
                for mode in phases.FAULTS:
                    await self.step(f"fault {mode}", phases.measure_fault, ready, self.results, mode, question)
                await self.step("fault leaving", phases.measure_leaving, ready, self.results, question)
        await self.step("fault empty", self._empty)

    async def _empty(self) -> None:
        tries = (
            phases.measure_empty(racer, self.results, FIRST_PORT + at, self.asked[0])
            for at, racer in enumerate(self.racers)
        )
        await asyncio.gather(*tries)


_LOADS: Final = ("load", "realistic")


@contextmanager
def _apart(stub: int) -> Iterator[None]:
    """Inside the `with` block, keep the clients, the model and the embedder on the last core."""
    last = {max(ALL_CORES)}
    for pid in (os.getpid(), stub):
        confine(pid, last)
    try:
        yield
    finally:
        for pid in (os.getpid(), stub):
            confine(pid, ALL_CORES)


@contextmanager
def _stub() -> Iterator[int]:
    """Start the model and the embedder, and wait until they serve."""
    command = [sys.executable, "-m", "bench.race.stub", str(LLM_PORT), str(AUX_PORT)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise SystemExit("the stub did not start")
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def run(race: Race, wanted: Sequence[str]) -> None:
    """Run all phases in order."""
    with _stub() as stub:
        await asyncio.to_thread(make_books)
        for phase in wanted:
            await (race.load(stub) if phase == "load" else getattr(race, phase)())


def report(race: Race, load_before: float, *, whole: bool) -> None:
    """Print the results. A complete run is saved."""
    summary = summarise(race.results)
    table, judged, noise = markdown(summary), bars(summary), spread(race.results)
    print(table)
    print(f"\nthe control against the floor: {noise}; load {load_before:.1f} to {os.getloadavg()[0]:.1f}\n")
    for words, met, figures in judged:
        print(f"{'met' if met else 'NOT MET':8} {words}: {figures}")
    if not whole:
        return
    kept = {
        "load": [load_before, os.getloadavg()[0]],
        "plan": race.plan,
        "summary": summary,
        "bars": judged,
        "control": noise,
        "rounds": race.results,
    }
    (CACHE / "race.md").write_text(table + "\n", "utf-8")
    print(f"\nwritten to {save('race', kept).relative_to(ROOT)} and {(CACHE / 'race.md').relative_to(ROOT)}")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="bench.race", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--setup", action="store_true", help="only install the environments")
    parser.add_argument("--fresh", action="store_true", help="discard an interrupted run")
    parser.add_argument("--only", default="", help="names of racers, separated by semicolons")
    parser.add_argument("--phases", default=",".join(_PHASES))
    given = parser.parse_args()
    make_environments()
    if given.setup:
        return
    names = given.only.split(";") if given.only else [racer.name for racer in RACERS]
    race = Race([racer for racer in RACERS if racer.name in names], _QUICK if given.quick else _FULL, given.fresh)
    load_before, began = os.getloadavg()[0], time.perf_counter()
    phased = given.phases.split(",")
    asyncio.run(run(race, phased))
    report(race, load_before, whole=not given.quick and not given.only and phased == list(_PHASES))
    print(f"{time.perf_counter() - began:.0f} s")
    _STATE.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
