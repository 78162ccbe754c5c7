"""Writes `docs/RELIABILITY.md` from the outcomes of the fault suite: `python -m tools.reliability OUTCOMES [ORIGIN]`.

`make reliability` runs the suite and then this. Do not edit the page by hand. If the outcomes do not come from one such
run, ORIGIN describes them in a sentence or two.
"""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.results import commit

from tools.pages import RELIABILITY, code_digest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "RELIABILITY.md"

_HEAD = """# Reliability

Generated on {when}, of commit {commit}, code {code}, on {cores} cores at a load of {load}; not edited by hand. {origin}
Every row is an outcome of the suite in `tests/faults`, which uses real engines in separate processes. The suite fails
if an outcome is not allowed by the specification.

- Nothing that was acknowledged is lost: an answer that was reported as stored is in its session afterwards, in the
  right order; a published book is complete. The column *lost* counts exceptions.
- Every client gets an answer, an answer that says it was not stored, or a typed error, inside the time limits: 30 s for
  a request, 5 s for a search, 25 s for the model. The clients of a killed process lose their connection; other clients
  are not affected.
- *Recovery* is the time from the end of the fault until `/health` is healthy and readers are answered and stored again,
  without help. A server that was killed is started again by its supervisor; that start is the recovery.

Times were measured on a machine with other work. The effect of a fault on a single part is tested with that part.
"""
_PARTS = {
    "One request to every route": "A question, a question on a selection, a stream, a search, a session and `/livez`, "
    "at the same time, while one dependency fails and all others work.",
    "While readers ask": "Four clients ask, each in its own session, before, during and after the fault.",
    "Processes killed": "`kill -9`, during answers and during an ingest.",
    "While a book is ingested": "A dependency of an ingest fails while it runs, or the ingest is killed; then it is "
    "run again. *Slowest* is the time until the run ended, *recovery* the time of the next run.",
    "Stopping": "SIGTERM with open streams.",
    "Disk full": "",
    "Clock": "",
}


def _table(rows: list[dict[str, Any]]) -> str:
    lines = ["| fault | how | what clients saw | slowest | recovery | lost |", "|---|---|---|---|---|---|"]
    for row in rows:
        slowest = "–" if row["slowest"] is None else f"{row['slowest']:.1f} s"
        cells = (row["fault"], row["done"], row["seen"].replace("|", "\\|"), slowest, f"{row['recovery']:.1f} s")
        lines.append(f"| {' | '.join(cells)} | {row['lost'] or 'nothing'} |")
    return "\n".join(lines)


def main(outcomes: Path, origin: str = "One run of `make reliability`.") -> None:
    """Write the page."""
    rows = [json.loads(line) for line in outcomes.read_text("utf-8").splitlines()]
    facts = {"when": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit(), "code": code_digest(RELIABILITY)}
    head = _HEAD.format(**facts, cores=os.cpu_count(), load=f"{os.getloadavg()[0]:.1f}", origin=origin)
    parts = [head]
    for part, words in _PARTS.items():
        found = [row for row in rows if row["part"] == part]
        shown = _table(found) if found else "Not recorded in what this page was made from."
        parts.append("\n\n".join(text for text in (f"## {part}", words, shown) if text) + "\n")
    PAGE.write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
