"""What came of a fault, kept for the table of `docs/RELIABILITY.md`.

`make reliability` names the file in RELIABILITY_OUTCOMES; without it nothing is kept.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

# What a machine that stands still for seconds may do to anybody: a search has five of them, and so has the database.
HELD_UP: Final = {"retrieval_unavailable", "answered, not stored"}
FULL: Final = "RELIABILITY_OUTCOMES" in os.environ  # all rows, not only those of `make test`

WORDS: Final = {  # what each fault is
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
    done: str  # how it was brought about
    told: str  # what clients were told
    slowest: float | None  # seconds that a client waited at most; None where nobody asked
    recovery: float  # seconds from the end of the fault until all was well, without help
    lost: int = 0  # of what was acknowledged


def record(outcome: Outcome) -> None:
    """Keep a row; the test has judged it."""
    print(outcome)
    if path := os.environ.get("RELIABILITY_OUTCOMES"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
