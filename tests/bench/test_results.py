"""Which of several results is the latest."""

import json
import os
from pathlib import Path

import pytest

from bench import results


def test_the_newest_result_by_commit_then_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert results.newest("speed") is None
    times = {"gone123": 30, "also456": 20, "late789": 10}  # commits that nobody knows: the file's time decides
    for name, when in times.items():
        path = tmp_path / f"speed-{name}.json"
        path.write_text(json.dumps({"name": name}))
        os.utime(path, (when, when))
    (tmp_path / "speedy-x.json").write_text("{}")
    assert results.newest("speed") == ({"name": "gone123"}, "gone123")
    (tmp_path / "speed-also456-dirty.json").write_text("{}")  # a tree that differs comes after its commit
    os.utime(tmp_path / "speed-also456-dirty.json", (1, 1))
    assert results.newest("speed") == ({}, "also456-dirty")
