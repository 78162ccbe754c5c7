"""The page with the figures of the readers marks values below their bar and older measurements."""

from typing import Any

from bench.readers.compare import BARS
from bench.readers.page import _table
from bench.readers.run import dated


def _scores(share: float) -> dict[str, Any]:
    return {measure: {"hits": 1, "tries": 1000, "share": share} for measure in ("pages", *BARS)}


def test_older_measurement_names_its_commit() -> None:
    books = dated({"old": _scores(1.0)}, "aaaaaaa") | {"new": {**_scores(0.5), "commit": "bbbbbbb"}}
    *_, old, new = _table(books, "bbbbbbb").strip().split("\n")
    assert old.startswith("| old (aaaaaaa) | 100.00% of 1,000 |")
    assert new.startswith("| new | **50.00%** of 1,000 |")


def test_commit_of_a_measurement_is_kept() -> None:
    first = dated({"book": _scores(1.0)}, "aaaaaaa")
    assert dated(first, "bbbbbbb")["book"]["commit"] == "aaaaaaa"
