"""Ingests the Kubernetes documentation three times: from scratch, without changes, and with ten changed pages.

Prints seconds, embedded passages, the time spent outside the embedding, and peak memory. `make bench-ingest` runs it.
Runs `chapterverse ingest` as a user would, each time as a new process.
"""

import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results import ROOT, save

ARCHIVE = ROOT.parent / "shared" / "data" / "corpora" / "k8s_docs" / "k8s_en.tar.gz"
CHANGED_PAGES = 10


@dataclass(frozen=True, slots=True)
class Run:
    """One ingest, observed from outside."""

    name: str
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    ledger: dict[str, Any]

    def line(self) -> str:
        ledger = self.ledger
        return (
            f"{self.name:<18} {self.wall_seconds:8.1f} s wall {self.cpu_seconds:8.1f} s CPU "
            f"{self.peak_mib:7.0f} MiB peak   "
            f"{ledger['passages_embedded']:6d} embedded in {ledger['embedding_seconds']:7.1f} s   "
            + " ".join(
                f"{ledger[key]} {key}" for key in ("added", "changed", "unchanged", "removed", "skipped", "failed")
            )
        )


def ingest(name: str, book: Path, home: Path) -> Run:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "chapterverse.cli", "ingest", str(book), "--json"],
        env=os.environ | {"CHAPTERVERSE_HOME": str(home)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"ingest failed with {status}"
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ledger = json.loads(printed)
    ledger.pop("pages")
    return Run(name, wall, cpu, usage.ru_maxrss / 1024, ledger)


def main() -> None:
    if not ARCHIVE.exists():
        sys.exit("The Kubernetes documentation is missing (../shared/data/corpora/k8s_docs).")
    with tempfile.TemporaryDirectory(prefix="bench-k8s-") as scratch:
        book, home = Path(scratch) / "k8s", Path(scratch) / "home"
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(book, filter="data")
        runs = [ingest("first", book, home)]
        print(runs[-1].line(), flush=True)
        runs.append(ingest("no change", book, home))
        print(runs[-1].line(), flush=True)
        pages = sorted(book.rglob("*.md"))
        for page in pages[:: len(pages) // CHANGED_PAGES][:CHANGED_PAGES]:
            page.write_text(page.read_text("utf-8") + "\n\nA sentence that was not there before.\n", "utf-8")
        runs.append(ingest("10 pages changed", book, home))
        print(runs[-1].line(), flush=True)
    first, same, changed = runs
    own = first.ledger["seconds"] / first.ledger["embedding_seconds"] - 1
    summary = {
        "own work over embedding time": round(own, 4),
        "run without change over first": round(same.wall_seconds / first.wall_seconds, 4),
        "run with 10 pages changed over first": round(changed.wall_seconds / first.wall_seconds, 4),
        "peak MiB": round(max(run.peak_mib for run in runs)),
    }
    print(json.dumps(summary, indent=2))
    save("ingest-k8s", {"summary": summary, "runs": {run.name: run.ledger for run in runs}})


if __name__ == "__main__":
    main()
