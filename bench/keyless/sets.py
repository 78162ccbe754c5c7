"""Reads the questions, dialogues and books of a folder, and says whether a text shows what a reader needs."""

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SQUAD_TEST: Final = ("Warsaw", "European_Union_law")  # articles that the section reader was not trained on
SHOWN: Final = 0.7  # share of the quote's three-word runs that have to be shown

_MARKUP = re.compile(
    r"\{\{.*?\}\}|<[^>]{1,200}>|\]\([^)]*\)|\{[%*:].*?\}|xref:\S*?\[|link:\S*?\[|https?://\S+|\[\d+\]", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, or a turn of a dialogue, and the stretches of the book that answer it; none: unanswerable."""

    id: str
    text: str
    kind: str
    quotes: tuple[str, ...]

    @property
    def answerable(self) -> bool:
        """Whether the book answers it."""
        return bool(self.quotes)


@dataclass(frozen=True, slots=True)
class BookSet:
    """What is asked of one book."""

    name: str
    folder: Path
    questions: tuple[Question, ...]
    dialogues: tuple[tuple[Question, ...], ...]


def load(data: Path, split: str) -> list[BookSet]:
    """The books of a split that have questions or dialogues."""
    books: dict[str, str] = json.loads((data / "books.json").read_text("utf-8"))
    sets = []
    for name, folder in books.items():
        questions = [_question(row, f"{name}-{at}") for at, row in enumerate(_rows(data, split, name, "questions"))]
        dialogues = [
            tuple(_question(turn, f"{name}-d{at}-{step}") for step, turn in enumerate(row["turns"]))
            for at, row in enumerate(_rows(data, split, name, "dialogues"))
        ]
        if questions or dialogues:
            sets.append(BookSet(name, Path(folder), tuple(questions), tuple(dialogues)))
    return sets


@dataclass(frozen=True, slots=True)
class SelectionCase:
    """A question about a selected text, with the answers that would do."""

    question: str
    selection: str
    answers: tuple[str, ...]


def squad(file: Path, *, every: int = 1, test: bool = True) -> list[SelectionCase]:
    """Questions of SQuAD 2.0 about single paragraphs, of the articles kept for the test or of the others."""
    found = [
        SelectionCase(asked["question"], paragraph["context"], tuple(one["text"] for one in asked["answers"]))
        for article in json.loads(gzip.decompress(file.read_bytes()))["data"]
        if (article["title"] in SQUAD_TEST) == test
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]
    return found[::every]


def share(quote: str, text: str) -> float:
    """How much of a quote, in runs of three words, stands in a text: as it is, or both without markup."""
    return max(_share(quote, text), _share(_MARKUP.sub(" ", quote), _MARKUP.sub(" ", text)))


def _share(quote: str, text: str) -> float:
    wanted = _words(quote)
    if not wanted:
        return 0.0
    size = 3 if len(wanted) >= 5 else 1
    runs = _runs(wanted, size)
    return len(runs & _runs(_words(text), size)) / len(runs)


def shows(question: Question, text: str) -> bool:
    """Whether what a reader needs is inside a text."""
    return any(share(quote, text) >= SHOWN for quote in question.quotes)


def _rows(data: Path, split: str, name: str, what: str) -> list[dict[str, Any]]:
    file = data / f"{split}_{name}_{what}.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()] if file.exists() else []


def _question(row: dict[str, Any], name: str) -> Question:
    text = row.get("user") or row.get("question") or row.get("q") or ""
    quotes = [row.get("quote") or "", *(other["quote"] for other in row.get("also") or ())]
    kind = row.get("kind") or row.get("k") or ""
    return Question(row.get("id") or name, text, kind, tuple(q for q in quotes if q) if kind != "unanswerable" else ())


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + size]) for at in range(max(1, len(words) - size + 1))}
