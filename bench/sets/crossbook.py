"""Questions about other books, which should all be refused; and the example book's own questions.

The Physical AI book is not used with the example book: both are about robots and ROS 2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.results import ROOT
from bench.retrieval.sets import rows
from bench.sets.clapnq import clapnq
from bench.sets.doc2dial import doc2dial
from bench.sets.shape import PublicSet, sample
from chapterverse.evaluation.questions import Question, load_questions
from chapterverse.fields import MAX_QUERY_CHARS

_MOST: Final = 40  # maximum number of questions of one book
_EXAMPLE: Final = ROOT / "examples"


def example(data: Path) -> PublicSet:
    """The example book and its questions, which this project wrote."""
    questions = tuple(load_questions(_EXAMPLE / "questions.jsonl"))
    note = "examples/questions.jsonl; written by this project, never trained on, looked at while building"
    return PublicSet("example", "Example book", note, (), questions, _EXAMPLE / "book")


def strangers(data: Path) -> PublicSet:
    """Questions about other books, asked of the example book."""
    asked = {
        "Ray": _corpus(data, "ray_docs/questions_dev.jsonl"),
        "Rust": _corpus(data, "rust_book/quiz_dev.jsonl"),
        "Doc2Dial": [one.question for one in doc2dial(data).questions if not one.history],
        "CLAPNQ": [one.question for one in clapnq(data).questions],
    }
    note = f"at most {_MOST} questions each of {', '.join(asked)}, by chance; all are to be refused"
    questions = tuple(_questions(asked))
    return PublicSet(
        "strangers", "Other books' questions asked of the example book", note, (), questions, _EXAMPLE / "book"
    )


def strangers_help(data: Path) -> PublicSet:
    """Questions about other books, asked of Doc2Dial's help pages."""
    asked = {
        "Ray": _corpus(data, "ray_docs/questions_dev.jsonl"),
        "Rust": _corpus(data, "rust_book/quiz_dev.jsonl"),
        "Example book": [one.question for one in example(data).questions],
        "Physical AI book": _corpus(data, "physical_ai_book/quiz_dev.jsonl"),
    }
    note = f"at most {_MOST} questions each of {', '.join(asked)}, by chance; all are to be refused"
    questions = tuple(_questions(asked))
    return PublicSet(
        "strangers_help", "Other books' questions asked of help pages", note, doc2dial(data).pages, questions
    )


def _corpus(data: Path, path: str) -> list[str]:
    return [row["question"] for row in rows(data / "corpora" / path) if len(row["question"]) <= MAX_QUERY_CHARS]


def _questions(asked: dict[str, list[str]]) -> Iterator[Question]:
    for book, questions in asked.items():
        for number, question in enumerate(sample(questions, _MOST, book), 1):
            yield Question(id=f"{book}-{number}", question=question, answerable=False, kind=f"question of {book}")
