"""The common form of the public sets: pages of a book and questions about it.

Pages are HTML, which preserves any text.
"""

import hashlib
import html
import random
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from chapterverse.evaluation.drafting import to_line
from chapterverse.evaluation.questions import Question

SEED: Final = 20251115
T = TypeVar("T")

# SQuAD has only eight articles: two in each part, fixed before the first run.
FOLDS = 4
ARTICLES = {
    "Warsaw": 0, "European_Union_law": 0, "Islamism": 1, "Harvard_University": 1,
    "Steam_engine": 2, "French_and_Indian_War": 2, "Immune_system": 3, "Computational_complexity_theory": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """A page of plain text. Each line is a paragraph or a heading."""

    name: str
    title: str
    text: str
    headings: frozenset[str] = frozenset()  # the lines that are headings

    @property
    def path(self) -> str:
        """Its path in the book's folder, which questions refer to."""
        return f"{self.name}.html"


@dataclass(frozen=True, slots=True)
class PublicSet:
    """A book and the questions about it."""

    name: str
    title: str
    note: str  # the part of the data that is used, and what was left out
    pages: tuple[Page, ...]
    questions: tuple[Question, ...]
    folder: Path | None = None  # of an existing book


def kept_apart(name: str, group: str) -> bool:
    """Whether a group of a set is in the test part, which was never trained on. Depends only on its name."""
    if group in ARTICLES:
        return ARTICLES[group] == 0
    return int(hashlib.sha256(f"{name}|{group}".encode()).hexdigest()[:8], 16) % FOLDS == 0


def write(converted: PublicSet, folder: Path) -> None:
    """Write the set as files, replacing existing ones."""
    book = folder / "book"
    shutil.rmtree(book, ignore_errors=True)
    if converted.folder is not None:
        shutil.copytree(converted.folder, book)
    book.mkdir(parents=True, exist_ok=True)
    for page in converted.pages:
        (book / page.path).write_text(_html(page), "utf-8")
    (folder / "questions.jsonl").write_text("".join(f"{to_line(one)}\n" for one in converted.questions), "utf-8")


def page_name(identity: str) -> str:
    """A file name that is unique for an id."""
    plain = re.sub(r"[^\w-]+", "-", identity, flags=re.ASCII).strip("-")[:60]
    return plain if plain == identity else f"{plain}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def history(messages: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return messages as turns: a question of the user, and all answers to it."""
    turns: list[tuple[str, str]] = []
    for message in messages:
        if message["speaker"] == "user":
            turns.append((message["text"], ""))
        elif turns:
            asked, said = turns[-1]
            turns[-1] = (asked, f"{said} {message['text']}".strip())
    return tuple(turns)


def sample(items: Sequence[T], count: int, key: str) -> list[T]:
    """At most `count` items, always the same ones, in order."""
    if len(items) <= count:
        return list(items)
    chosen = random.Random(f"{SEED}{key}").sample(range(len(items)), count)
    return [items[number] for number in sorted(chosen)]


def _html(page: Page) -> str:
    lines = [line.strip() for line in page.text.split("\n") if line.strip()]
    marks = ["h2" if line in page.headings else "p" for line in lines]
    body = "".join(f"<{mark}>{html.escape(line)}</{mark}>\n" for mark, line in zip(marks, lines, strict=True))
    title = html.escape(page.title)
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
    return f"{head}<body><main><h1>{title}</h1>\n{body}</main></body></html>\n"
