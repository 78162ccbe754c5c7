"""Blind readings: does the shown text still answer the question completely?

A reader sees only the question, the passages and the shown text, not the prompt and not what was left out. An equal
number of answers that lost nothing is mixed in, so that a reader cannot tell them apart. The file contains text of
books, so it stays outside the repository.
"""

import json
from pathlib import Path
from typing import Any

from bench.answers.recorded import RECORDED, Recording, rows_of

Row = dict[str, Any]
READINGS = RECORDED / "readings.jsonl"


def valid() -> dict[tuple[str, str, str], bool]:
    """Return the verdicts of blind readers on exactly the text that was shown. Readings that were not blind are left
    out."""
    rows = rows_of(READINGS)
    return {(row["item"], row["prompt"], row["digest"]): row["complete"] for row in rows if row["blind"]}


def unread(shown: list[Row], recordings: list[Recording]) -> list[Row]:
    """Return the texts to read: those that lost something and have no valid reading, and as many that lost nothing."""
    read = valid()
    open_rows = [row for row in shown if row["lost"] and (row["item"], row["prompt"], row["digest"]) not in read]
    whole = sorted((row for row in shown if not row["lost"] and row["shown"]), key=lambda row: str(row["digest"]))
    known = {(one.item, one.prompt): one for one in recordings}
    wanted = sorted([*open_rows, *whole[: len(open_rows)]], key=lambda row: str(row["digest"]))
    return [
        {
            "id": row["digest"],
            "question": row["question"],
            "passages": known[row["item"], row["prompt"]].passages(),
            "shown": row["shown"],
        }
        for row in wanted
    ]


def accept(path: Path, shown: list[Row]) -> int:
    """Add the readings of a file with rows {id, complete}, and return their number. Refuses readings of a different
    text."""
    by_digest = {row["digest"]: row for row in shown}
    kept = rows_of(READINGS)
    read = [(by_digest[reading["id"]], bool(reading["complete"])) for reading in rows_of(path)]
    names = ("item", "prompt", "digest")
    new = [{**{name: row[name] for name in names}, "complete": complete, "blind": True} for row, complete in read]
    done = {tuple(row[name] for name in names) for row in new}
    kept = [row for row in kept if tuple(row[name] for name in names) not in done]
    READINGS.write_text("".join(json.dumps(row) + "\n" for row in [*kept, *new]), "utf-8")
    return len(new)
