"""Only blind readings count, and only for exactly the text that was read."""

import json
from pathlib import Path
from typing import Any

import pytest
from bench.answers import readings
from bench.answers.recorded import Recording

ITEMS = ("a", "b", "c", "d")


def shown(item: str, *lost: str) -> dict[str, Any]:
    return {"item": item, "prompt": "ours", "question": "why?", "digest": f"d-{item}", "shown": item, "lost": [*lost]}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of readings: one of another text, one that was not blind, one that counts."""
    rows = [
        {"item": "a", "prompt": "ours", "digest": "old", "complete": True, "blind": True},
        {"item": "b", "prompt": "ours", "digest": "d-b", "complete": True, "blind": False},
        {"item": "c", "prompt": "ours", "digest": "d-c", "complete": False, "blind": True},
    ]
    path = tmp_path / "readings.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    monkeypatch.setattr(readings, "READINGS", path)
    monkeypatch.setattr(Recording, "passages", lambda self: [{"where": "", "text": f"passage of {self.item}"}])
    return path


def test_unread_lists_texts_without_a_valid_reading(file: Path) -> None:
    recordings = [Recording(item, "ours", "book", "gid", "why?", ()) for item in ITEMS]
    rows = readings.unread([shown("a", "x"), shown("b", "x"), shown("c", "x"), shown("d")], recordings)
    assert [row["id"] for row in rows] == [
        "d-a",
        "d-b",
        "d-d",
    ]  # d lost nothing; it is there so that readers cannot tell which ones did
    assert all(set(row) == {"id", "question", "passages", "shown"} for row in rows)


def test_accept_stores_a_reading(file: Path, tmp_path: Path) -> None:
    said = tmp_path / "said.jsonl"
    said.write_text('{"id": "d-b", "complete": false}\n', "utf-8")
    assert readings.accept(said, [shown("b", "x")]) == 1
    assert readings.valid()["b", "ours", "d-b"] is False
    assert len(file.read_text("utf-8").splitlines()) == 3


def test_accept_refuses_a_reading_of_another_text(file: Path, tmp_path: Path) -> None:
    said = tmp_path / "said.jsonl"
    said.write_text('{"id": "d-x", "complete": true}\n', "utf-8")
    with pytest.raises(KeyError):
        readings.accept(said, [shown("b", "x")])
