"""Question sets: accepted lines, and messages about invalid ones."""

from pathlib import Path

import pytest

from chapterverse.errors import ValidationFailed
from chapterverse.evaluation.book_check import Outcome
from chapterverse.evaluation.drafting import to_line
from chapterverse.evaluation.questions import SHOWN_FAULTS, earlier_ids, load_questions, set_digest

EXAMPLES = Path(__file__).parents[2] / "examples" / "questions.jsonl"


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_example_set_can_be_loaded() -> None:
    questions = load_questions(EXAMPLES)
    assert len(questions) == 60
    assert sum(question.answerable for question in questions) == 40
    assert questions[0].page == ("intro/what-is-physical-ai.md",)


def test_every_field_is_read(tmp_path: Path) -> None:
    line = (
        '{"question": " And its mass? ", "answer": "6 kg", "page": "p", "section": "s", "sentence": "x", '
        '"history": [["What is Tern?", "A robot."]], "filters": {"module": "intro"}, "why": "", "check": "look"}'
    )
    (question,) = load_questions(written(tmp_path / "set", "", line, ""))
    assert question.id == "line-2"
    assert question.question == "And its mass?"
    assert question.answerable
    assert question.history == (("What is Tern?", "A robot."),)
    assert question.filters is not None
    assert question.filters.module == ["intro"]


def test_inserted_line_does_not_change_which_question_was_asked_before(tmp_path: Path) -> None:
    plain, followup = (
        '{"question": "How long?"}',
        '{"question": "How long?", "history": [["What is Heron?", "A boat."]]}',
    )
    named = '{"question": "What is Tern?", "id": "tern"}'
    before = load_questions(written(tmp_path / "before", plain, followup, named))
    now = load_questions(written(tmp_path / "now", '{"question": "What is Heron?"}', plain, "", followup, named))
    expected = {"line-2": "line-1", "line-4": "line-2", "tern": "tern"}
    assert earlier_ids(now, before) == expected
    records = [Outcome(id=one.id, question=one.question, status="refused") for one in before]  # of an old baseline
    assert earlier_ids(before, records) == {one.id: one.id for one in before}


def test_fields_may_have_one_text_or_several(tmp_path: Path) -> None:
    one, several = load_questions(
        written(
            tmp_path / "set",
            '{"question": "a", "answer": "x", "page": null}',
            '{"question": "b", "answer": ["x", "y"], "history": [["p", "q"]], "rewrite": "b of p", "kind": "k"}',
        )
    )
    assert (one.answer, one.page, several.answer) == (("x",), (), ("x", "y"))
    again = load_questions(written(tmp_path / "again", *(to_line(question) for question in (one, several))))
    assert again == [one, several]
    assert '"answer":"x"' in to_line(one)


def test_byte_order_mark_and_carriage_returns_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "set"
    path.write_bytes('\ufeff{"question": "a b"}\r\n{"question": "c\u2028d"}\r\n'.encode())
    assert [question.question for question in load_questions(path)] == ["a b", "c\u2028d"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "line 2: invalid JSON at column 2"),
        ("[" * 100_000, "line 2: invalid JSON: nested too deeply"),
        ("[1]", "line 2: each line must be a JSON object"),
        ('{"answer": "x"}', "line 2: question: is required"),
        ('{"question": "  "}', "line 2: question"),
        ('{"question": "x", "anwser": "y"}', "line 2: anwser: there is no such field"),
        ('{"question": "x", "answerable": "yes"}', "line 2: answerable"),
        ('{"question": "x", "answerable": false, "page": "p"}', "line 2: answerable is false, but page is given"),
        ('{"question": "x", "section": "s"}', "line 2: section needs the page"),
        ('{"question": "x", "selection": " "}', "line 2: selection is empty"),
        ('{"question": "x", "page": ""}', "line 2: page: is empty"),
        ('{"question": "x", "answer": ["y", ""]}', "line 2: answer.1: is empty"),
        ('{"question": "x", "rewrite": "y"}', "line 2: rewrite is for a question with a history"),
        ('{"question": "x", "history": [["only one"]]}', "line 2: history.0.1"),
        ('{"question": "x", "filters": {"author": "me"}}', "line 2: filters.author"),
        ('{"question": "x", "id": "first"}', "line 2: id: first is that of line 1 already"),
    ],
)
def test_invalid_line_is_reported_with_its_number_and_fault(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(ValidationFailed) as failure:
        load_questions(written(tmp_path / "set", '{"id": "first", "question": "fine"}', line))
    assert expected in failure.value.message


def test_number_of_reported_faults_is_limited(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed) as failure:
        load_questions(written(tmp_path / "set", *["{"] * (SHOWN_FAULTS + 3)))
    assert failure.value.message.count("line ") == SHOWN_FAULTS
    assert failure.value.message.endswith("… and 3 more")


def test_missing_empty_and_binary_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match="cannot be read"):
        load_questions(tmp_path / "missing")
    with pytest.raises(ValidationFailed, match="--make"):
        load_questions(written(tmp_path / "empty", ""))
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ValidationFailed, match="UTF-8"):
        load_questions(tmp_path / "latin")


def test_digest_depends_on_the_content(tmp_path: Path) -> None:
    first, second = '{"question": "a"}', '{"question": "b"}'
    one = set_digest(load_questions(written(tmp_path / "one", first, second)))
    assert one == set_digest(load_questions(written(tmp_path / "same", first, second)))
    assert one != set_digest(load_questions(written(tmp_path / "other", second, first)))
