"""Blind readings: does what was shown still answer the question completely?

A reader sees the question, the passages and what was shown, and nothing else: not the prompt, not what was lost, not
what the answer said before. Answers that were shown whole are mixed in, as many as there are others, so that a reader
cannot tell which is which. The file holds text of books, so it stays outside of the repository.
"""

import json
from pathlib import Path
from typing import Any

from bench.answers.recorded import RECORDED, Recording, rows_of

Row = dict[str, Any]
READINGS = RECORDED / "readings.jsonl"


def valid() -> dict[tuple[str, str, str], bool]:
    """What blind readers said, for the very text that was shown. Readings that were not blind do not count."""
    rows = rows_of(READINGS)
    return {(row["item"], row["prompt"], row["digest"]): row["complete"] for row in rows if row["blind"]}


def unread(shown: list[Row], recordings: list[Recording]) -> list[Row]:
    """What has to be read: texts that lost something and have no valid reading, and as many that lost nothing."""
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
    """Add the readings of a file, rows {id, complete}; how many. A reading of another text than is shown is refused."""
    by_digest = {row["digest"]: row for row in shown}
    kept = rows_of(READINGS)
    read = [(by_digest[reading["id"]], bool(reading["complete"])) for reading in rows_of(path)]
    names = ("item", "prompt", "digest")
    new = [{**{name: row[name] for name in names}, "complete": complete, "blind": True} for row, complete in read]
    done = {tuple(row[name] for name in names) for row in new}
    kept = [row for row in kept if tuple(row[name] for name in names) not in done]
    READINGS.write_text("".join(json.dumps(row) + "\n" for row in [*kept, *new]), "utf-8")
    return len(new)
