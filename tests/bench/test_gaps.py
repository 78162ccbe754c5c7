"""How the bench of gaps hides pages and counts groups."""

import json
from pathlib import Path

from bench.gaps import FOLDS, READ, Asked, _answered, _commonest, _counts, _fifths, _read, _surfaced

from chapterverse.evaluation.gaps import Gap, GapQuestion
from tests.evaluation.test_gaps import NOW, asked


def gap(*questions: str) -> Gap:
    told = [
        GapQuestion(question=one, trouble="refused", times=1, last_asked=NOW, turn_ids=[], reasons=[], comments=[])
        for one in questions
    ]
    return Gap(name="", asked=1, sessions=1, troubles={}, questions=told, nearest=[], missing_words=[], issue="")


ASKED = {
    text: Asked(text, frozenset(pages), asked(text), (), "")
    for text, pages in {"a1": ["a"], "a2": ["a"], "b": ["b"], "c": ["c"], "both": ["a", "c"]}.items()
}


def test_every_page_is_hidden_once(tmp_path: Path) -> None:
    for name in [f"docs/{number}.md" for number in range(12)] + ["docs/picture.png", "includes/part.md"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    parts = _fifths(tmp_path, [{"file": "docs/1.md"}, {}])
    assert len(parts) == FOLDS and max(map(len, parts)) - min(map(len, parts)) <= 1
    assert sorted(page for part in parts for page in part) == sorted(f"docs/{number}.md" for number in range(12))
    assert parts == _fifths(tmp_path, [{"file": "docs/1.md"}]), "the same pages each time"


def test_groups_are_counted_as_the_docstring_says() -> None:
    hidden = frozenset({"a", "b"})
    assert _commonest(gap("a1", "a2", "b"), ASKED) == 2
    assert _commonest(gap("a1", "b"), ASKED) == 1, "as many of one page as of the other: mixed"
    assert _answered(gap("a1", "c", "both"), ASKED, hidden) == 2, "a question that a page still answers"
    counts = _counts([gap("a1", "a2"), gap("c")], [gap("c")], {"a", "b"}, ASKED)
    assert counts == {"pages": 2, "surfaced": 1, "groups": 2, "false": 1, "of_several_questions": 1}
    assert _surfaced([gap("a1", "a2"), gap("c")], ASKED) == {"a", "c"}


def test_what_was_read_is_about_the_pages_of_a_book() -> None:
    for row in map(json.loads, READ.read_text("utf-8").splitlines()):
        assert set(row) == {"book", "question", "cited", "answers"}
        assert ((row["question"], row["cited"]) in _read(row["book"])) == row["answers"]
