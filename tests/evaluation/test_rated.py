"""Rated answers become questions that can be asked again."""

from datetime import UTC, datetime
from typing import Any

from chapterverse.conversations.turns import SearchRecord, Turn
from chapterverse.evaluation.drafting import to_line
from chapterverse.evaluation.questions import Question, rated_questions
from chapterverse.models import Feedback, Rating

SOURCE = {"source_url": "book/nodes.md#naming", "quote": "A node has a name."}


def rated(query: str, rating: Rating, **fields: Any) -> Turn:
    given = {name: fields.pop(name) for name in ("reason", "comment") if name in fields}
    feedback = Feedback(rating=rating, rated_at=datetime.now(UTC), **given)
    known: dict[str, Any] = {"sources": (SOURCE,), "feedback": feedback} | fields
    return Turn("", query, "answer", **known)


def test_upvoted_answer_gives_its_evidence_as_expected() -> None:
    [question] = rated_questions([rated("And its name?", "up", standalone_query="Has a node a name?")])
    assert question.question == "Has a node a name?"
    assert (question.page, question.sentence) == (("book/nodes.md",), ("A node has a name.",))
    assert not question.check
    [refusal] = rated_questions([rated("Who won?", "up", status="refused", sources=())])
    assert refusal.answerable is False


def test_downvoted_answer_must_be_checked_by_the_author() -> None:
    [question] = rated_questions([rated("Has it a name?", "down", reason="wrong", comment="It has two.")])
    assert question.why == "Rated down: wrong: It has two."
    assert "book/nodes.md#naming" in question.check
    assert not question.sentence and question.answerable, "no evidence is assumed"


def test_each_question_is_used_once_with_its_last_rating() -> None:
    turns = [
        rated("Has it a name?", "up"),
        rated("has it a name?", "down"),
        rated("Has it a name?", "up", mode="selected_text", selected_text="It has."),
        Turn("", "not rated", "answer"),
    ]
    questions = rated_questions(turns)
    assert [(one.kind, one.selection) for one in questions] == [("down", None), ("up", "It has.")]
    for question in questions:
        assert Question.model_validate_json(to_line(question)) == question


def test_question_to_two_editions_is_two_questions() -> None:
    def rated_in(version: str) -> Turn:
        search = SearchRecord("q", 1, 0.5, datetime.now(UTC), {"book": ["guide"], "version": [version]})
        return rated("Has it a name?", "up", searches=(search,))

    questions = rated_questions([rated_in("1.0"), rated_in("2.0"), rated_in("2.0")])
    assert [one.filters and one.filters.version for one in questions] == [["1.0"], ["2.0"]]
