"""The command `suggestions`."""

import json
from pathlib import Path

import pytest

from tests.cli.process import assert_refused, chapterverse

pytestmark = pytest.mark.slow


def test_suggestions_are_made_once_and_listed(small_home: Path) -> None:
    (small_home / "suggestions.json").unlink(missing_ok=True)
    first = chapterverse(small_home, "suggestions", "--json")
    assert first.returncode == 0, first.stderr
    assert "Testing questions" in first.stderr
    offered = json.loads(first.stdout)["suggestions"]
    assert "What is a topic?" in [one["question"] for one in offered]
    again = chapterverse(small_home, "suggestions", "-n", "1")
    assert again.stdout == f"{offered[0]['question']}\n"
    assert again.stderr == ""


def test_errors_name_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_refused(tmp_path, ["suggestions"], 6, "chapterverse ingest")
    monkeypatch.setenv("SUGGESTIONS", "0")
    assert_refused(tmp_path, ["suggestions"], 2, "SUGGESTIONS is 0")
