"""Replaces quotes in written questions by their places, so that no text of a book enters the repository.

    python -m bench.keyless.places BOOK WRITTEN.jsonl OUT.jsonl

The `file` names of the questions are relative to the folder BOOK. Quotes are found regardless of white space. A quote
that is not found is an error.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any


def placed(row: dict[str, Any], book: Path) -> dict[str, Any]:
    """A question or turn with `place` instead of `quote`. Applies to each turn of a dialogue and to each part of a
    question with parts."""
    for within in ("turns", "parts"):
        if within in row:
            return row | {within: [placed(one, book) for one in row[within]]}
    made = {key: value for key, value in row.items() if key not in ("quote", "also", "answer")}
    if row.get("quote"):
        text = (book / row["file"]).read_text("utf-8")
        words = map(re.escape, row["quote"].split())
        found = re.search(r"\s+".join(words), text)
        if found is None:
            raise SystemExit(f"{row['file']} does not have: {row['quote'][:80]}")
        made["place"] = list(found.span())
    else:
        made.pop("file", None)
    if also := [placed(other, book) for other in row.get("also", ())]:
        made["also"] = also
    return made


def quoted(row: dict[str, Any], book: Path) -> dict[str, Any]:
    """The reverse of `placed`: `quote` is read from the book."""
    for within in ("turns", "parts"):
        if within in row:
            return row | {within: [quoted(one, book) for one in row[within]]}
    quote = (book / row["file"]).read_text("utf-8")[slice(*row["place"])] if "place" in row else ""
    return row | {"quote": quote, "also": [quoted(other, book) for other in row.get("also", ())]}


def main() -> None:
    """Convert every line of a file."""
    book, source, out = map(Path, sys.argv[1:4])
    rows = [placed(json.loads(line), book) for line in source.read_text("utf-8").splitlines()]
    out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    print(out.name, len(rows))


if __name__ == "__main__":
    main()
