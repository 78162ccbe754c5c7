"""Where results are saved, and which is the newest."""

import os
from pathlib import Path

import pytest

from bench import results


def test_dirty_result_is_not_saved_in_the_repository_and_a_new_result_replaces_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "kept")
    monkeypatch.setattr(results, "UNCOMMITTED", tmp_path / "not-kept")
    assert results.newest("speed") is None
    for state in ("abc1234", "abc1235", "abc1236-dirty"):
        monkeypatch.setattr(results, "commit", lambda state=state: state)
        results.save("speed", {"of": state})
        results.save("speed-of-light", {"of": state})
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        "speed-abc1235.json",
        "speed-of-light-abc1235.json",
    }
    assert (tmp_path / "not-kept" / "speed-abc1236-dirty.json").exists()
    os.utime(tmp_path / "not-kept" / "speed-abc1236-dirty.json", (1, 1))
    assert results.newest("speed") == ({"of": "abc1235"}, "abc1235")
    os.utime(tmp_path / "kept" / "speed-abc1235.json", (0, 0))
    assert results.newest("speed") == ({"of": "abc1236-dirty"}, "abc1236-dirty")


def test_files_written_by_a_bench_do_not_make_the_tree_dirty() -> None:
    assert ":!docs/SCOREBOARD.md" in results._WRITTEN and ":!bench/results" in results._WRITTEN
