"""A ledger counts and stores the outcome of every page, with its reason."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chapterverse.ingestion.ledger import KEPT_LEDGERS, Ledger, Row, places_before


def test_ledger_has_counts_and_reasons_and_is_saved(tmp_path: Path) -> None:
    ledger = Ledger(("book",))
    for row in (
        Row("a", "added", chunks=3),
        Row("b", "unchanged", chunks=2),
        Row("c", "skipped", "a draft"),
        Row("d", "skipped", "a draft"),
        Row("e", "failed", "looks binary, not text"),
    ):
        ledger.write(row)
    assert ledger.changed_anything()
    reasons = [("skipped: a draft", ["c", "d"]), ("failed: looks binary, not text", ["e"])]
    assert ledger.reasons(("skipped", "failed")) == reasons
    kept = json.loads(ledger.save(tmp_path).read_text("utf-8"))
    assert (kept["added"], kept["skipped"], kept["failed"], kept["removed"]) == (1, 2, 1, 0)
    assert kept["pages"][0] == {"url": "a", "outcome": "added", "why": "", "chunks": 3, "flags": [], "orders": []}


def test_unchanged_and_failed_pages_are_no_change(tmp_path: Path) -> None:
    ledger = Ledger(("book",))
    ledger.write(Row("b", "unchanged"))
    ledger.write(Row("c", "failed", "why"))
    assert not ledger.changed_anything()


def test_old_ledgers_are_deleted(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for minute in range(KEPT_LEDGERS + 3):
        Ledger(("book",), started_at=start + timedelta(minutes=minute)).save(tmp_path)
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert len(kept) == KEPT_LEDGERS
    assert kept[0].startswith("20260101T000300")


def test_places_before_are_those_of_the_last_run_that_read_the_source(tmp_path: Path) -> None:
    runs: tuple[object, ...] = (
        {"sources": ["docs"], "places": ["/a/docs"], "edition": ""},
        {"sources": ["docs", "docs"], "places": ["/a/docs", "/b/docs"], "edition": "guide"},
        {"sources": ["docs"], "places": [], "edition": ""},  # of `forget`
        {"sources": None},
        [],
    )
    for number, run in enumerate(runs):
        (tmp_path / f"{number}.json").write_text(json.dumps(run))
    assert places_before(tmp_path, "docs", "") == ["/a/docs"]
    assert places_before(tmp_path, "docs", "guide") == ["/a/docs", "/b/docs"]
    assert places_before(tmp_path, "docs", "other") == places_before(tmp_path / "none", "docs", "") == []
