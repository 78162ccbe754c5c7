"""Results of faults, saved for the table in `docs/RELIABILITY.md`.

`make reliability` sets the file in RELIABILITY_OUTCOMES; without it nothing is saved.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

# Outcomes that a stalled machine may cause: a search and the database have a limit of five seconds each.
HELD_UP: Final = {"retrieval_unavailable", "answered, not stored"}
FULL: Final = "RELIABILITY_OUTCOMES" in os.environ  # all rows, not only those of `make test`

WORDS: Final = {  # descriptions of the faults
    "refuse": "connections refused",
    "cut": "connections cut at the first byte",
    "garbage": "answers with bytes of no protocol",
    "hang": "takes requests and never answers",
    "slow": "every piece of an answer comes 0.2 s late",
    "lie": "well-formed answers to questions that were not asked",
    "flap": "fails and comes back every 0.7 s",
    "killed": "kill -9 of its processes",
    "stopped": "SIGSTOP of its processes",
    "held up": "SIGSTOP of its processes for 0.2 s in every 0.4 s",
    "broken": "its files overwritten with garbage, and kill -9 of its processes",
}


@dataclass(frozen=True)
class Outcome:
    """One fault, and what was seen."""

    part: str  # heading of the table
    fault: str
    done: str  # how it was caused
    seen: str  # the outcomes for clients
    slowest: float | None  # the longest wait of a client in seconds; None without clients
    recovery: float  # seconds from the end of the fault until everything worked
    lost: int = 0  # acknowledged turns that were lost


def record(outcome: Outcome) -> None:
    """Saves a row."""
    print(outcome)
    if path := os.environ.get("RELIABILITY_OUTCOMES"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
