"""Reads the questions, dialogues and books of a folder, and decides whether a text shows what a reader needs."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SQUAD_TEST: Final = ("Warsaw", "European_Union_law")  # articles that the section reader was not trained on
QUESTIONS: Final = Path(__file__).parent / "questions"
SHOWN: Final = 0.7  # share of the quote's three-word runs that must be shown

_MARKUP = re.compile(
    r"\{\{.*?\}\}|<[^>]{1,200}>|\]\([^)]*\)|\]\[[^\]\n]*\]|\{[%*:].*?\}|xref:\S*?\[|link:\S*?\[|https?://\S+|\[\d+\]"
    r"|^[ \t]*(?:`{3,}|~{3,})[^\n]*$|^[ \t]*\.\. [\w:-]+::|:[\w:+.-]+:(?=`)",  # fences; directives and roles
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question or a turn of a dialogue, and the passages of the book that answer it; none if it is unanswerable."""

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
    """The questions and dialogues about one book."""

    name: str
    folder: Path
    questions: tuple[Question, ...]
    dialogues: tuple[tuple[Question, ...], ...]


def load(books: Path, split: str, questions: Path = QUESTIONS) -> list[BookSet]:
    """The books of a split. `books` contains the sources, one folder per book."""
    known: dict[str, dict[str, str]] = json.loads((questions / "books.json").read_text("utf-8"))
    sets = []
    for name, known_as in known.items():
        folder = books / name
        asked = [_question(row, folder, f"{name}-{at}") for at, row in _rows(questions, split, name, "questions")]
        dialogues = [
            tuple(_question(turn, folder, f"{name}-d{at}-{step}") for step, turn in enumerate(row["turns"]))
            for at, row in _rows(questions, split, name, "dialogues")
        ]
        if asked or dialogues:
            sets.append(BookSet(name, folder / known_as["ingest"], tuple(asked), tuple(dialogues)))
    return sets


@dataclass(frozen=True, slots=True)
class SelectionCase:
    """A question about a selected text, with the accepted answers."""

    question: str
    selection: str
    answers: tuple[str, ...]


def squad(file: Path, *, every: int = 1) -> list[SelectionCase]:
    """Questions of SQuAD 2.0 about single paragraphs, from the test articles."""
    found = [
        SelectionCase(asked["question"], paragraph["context"], tuple(one["text"] for one in asked["answers"]))
        for article in json.loads(gzip.decompress(file.read_bytes()))["data"]
        if article["title"] in SQUAD_TEST
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]
    return found[::every]


def short_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Texts of WiCE, AttributionBench and RAGTruth, by the names that the questions use for them."""
    for row in _lines(folder / "wice/claims_dev.jsonl.gz"):
        lines = [one for one in row["evidence"] if len(one.split()) > 6 and not one.startswith("(meta")][2:]
        text = ""
        while lines and len(text.split()) <= 110:
            text = f"{text} {lines.pop(0)}".strip()
        yield f"wice-{row['id']}", text
    for row in _lines(folder / "attributionbench/dev.jsonl.gz"):
        for number, text in enumerate(row["references"]):
            yield f"attr-{row['id']}-{number}", re.sub(r"^Title: .*\n+", "", text).strip()
    for row in _lines(folder / "ragtruth_qa/train.jsonl.gz"):
        for number, text in enumerate(re.split(r"\n*passage \d+:", row["passages"])):
            yield f"rag-{row['source_id']}-{number}", text.strip()


def _lines(file: Path) -> Iterator[Any]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def without_markup(text: str) -> str:
    """A text without tags, addresses and citation markers."""
    return _MARKUP.sub(" ", text)


def share(quote: str, text: str) -> float:
    """Return the share of a quote's three-word runs that occur in a text. The higher value counts: with markup or
    without."""
    return max(_share(quote, text), _share(without_markup(quote), without_markup(text)))


def _share(quote: str, text: str) -> float:
    wanted = _words(quote)
    if not wanted:
        return 0.0
    size = 3 if len(wanted) >= 5 else 1
    runs = _runs(wanted, size)
    return len(runs & _runs(_words(text), size)) / len(runs)


def shows(question: Question, text: str) -> bool:
    """Whether a text contains what a reader needs."""
    return any(share(quote, text) >= SHOWN for quote in question.quotes)


def _rows(questions: Path, split: str, name: str, what: str) -> list[tuple[int, dict[str, Any]]]:
    file = questions / f"{split}_{name}_{what}.jsonl"
    return list(enumerate(map(json.loads, file.read_text("utf-8").splitlines()))) if file.exists() else []


def _question(row: dict[str, Any], folder: Path, name: str) -> Question:
    places = [one for one in (row, *row.get("also", ())) if "place" in one]
    quotes = [(folder / one["file"]).read_text("utf-8")[slice(*one["place"])] for one in places]
    return Question(name, row.get("user") or row["question"], row["kind"], tuple(quotes))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + size]) for at in range(max(1, len(words) - size + 1))}
