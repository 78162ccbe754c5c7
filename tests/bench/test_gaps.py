"""The bench of gaps: how pages are hidden and groups are counted."""

import json
from collections import Counter
from pathlib import Path

from bench.gaps import (
    FOLDS,
    OFTEN,
    READ,
    Asked,
    _answered,
    _commonest,
    _counts,
    _fifths,
    _read,
    _rows,
    _share,
    _surfaced,
)

from chapterverse.evaluation.gaps import Gap, GapQuestion
from tests.evaluation.test_gaps import NOW, asked


def gap(*questions: str, sure: bool = False) -> Gap:
    listed = [
        GapQuestion(question=one, trouble="refused", times=1, last_asked=NOW, turn_ids=[], reasons=[], comments=[])
        for one in questions
    ]
    return Gap(
        name="", sure=sure, asked=1, sessions=1, troubles={}, questions=listed, nearest=[], missing_words=[], issue=""
    )


ASKED = {
    text: Asked(text, frozenset(pages), asked(text), (), "")
    for text, pages in {"a1": ["a"], "a2": ["a"], "b": ["b"], "c": ["c"], "both": ["a", "c"]}.items()
}


def test_every_page_is_hidden_in_exactly_one_fold(tmp_path: Path) -> None:
    for name in [f"docs/{number}.md" for number in range(12)] + ["docs/picture.png", "includes/part.md"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    parts = _fifths(tmp_path, [{"places": ["docs/1.md"]}])
    assert len(parts) == FOLDS and max(map(len, parts)) - min(map(len, parts)) <= 1
    assert sorted(page for part in parts for page in part) == sorted(f"docs/{number}.md" for number in range(12))
    assert parts == _fifths(tmp_path, [{"places": ["docs/1.md"]}]), "the folds are deterministic"


def test_groups_are_counted() -> None:
    hidden = frozenset({"a", "b"})
    assert _commonest(gap("a1", "a2", "b"), ASKED) == 2
    assert _commonest(gap("a1", "b"), ASKED) == 1, "no page has most questions"
    assert _answered(gap("a1", "c", "both"), ASKED, hidden) == 2, "questions that a visible page answers"
    sure, single = gap("a1", "a2", sure=True), gap("c")
    assert _counts([sure, single], [single], Counter({"a": OFTEN, "b": 1}), ASKED) == {
        "pages": 2,
        "surfaced": 1,
        "surfaced_for_sure": 1,
        "pages_asked_often": 1,
        "surfaced_asked_often": 1,
        "surfaced_for_sure_asked_often": 1,
        "groups": 2,
        "false": 1,
        "sure_groups": 1,
        "false_sure": 0,
    }
    assert _surfaced([gap("a1", "a2"), gap("c")], ASKED) == {"a", "c"}
    assert (_share(0, 0), _share(0, 15)) == ("none", "0.000 (0.000 to 0.204)")


def test_only_standalone_answerable_questions_are_used(tmp_path: Path) -> None:
    place = {"file": "a.md", "place": [0, 1]}
    questions = [{"question": "one", **place, "also": [place | {"file": "b.md"}]}, {"question": "unanswerable"}]
    turns = [{"user": "first", **place}, {"user": "and then?", **place}]
    turns.append({"user": "and there?", "standalone": "What is there?", "parts": [place]})
    for name, rows in (("dev_x_questions", questions), ("dev_x_dialogues", [{"turns": turns}])):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    asked = {row["question"]: row["places"] for row in _rows(tmp_path, "x")}
    assert asked == {"one": ["a.md", "b.md"], "first": ["a.md"], "What is there?": ["a.md"]}


def test_read_file_has_valid_rows() -> None:
    for row in map(json.loads, READ.read_text("utf-8").splitlines()):
        assert set(row) == {"book", "question", "cited", "answers"}
        assert ((row["question"], row["cited"]) in _read(row["book"])) == row["answers"]
