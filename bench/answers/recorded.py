"""The recorded answers with their labels, and the passages they were written from.

The passages are looked up in the shared set `strong_claims` by the name of their group, so that no book's text is
stored here.
"""

import gzip
import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from bench.answers.statements import PROMPTS, parse
from bench.results import ROOT
from chapterverse.evidence.passages import Evidence
from chapterverse.evidence.statement import Statement

RECORDED: Final = ROOT / "bench" / "recorded"
DATA: Final = Path(os.environ.get("CHAPTERVERSE_BENCH_DATA", ROOT.parent / "shared" / "data")) / "strong_claims"

Key = tuple[str, str, int]  # item, prompt, number of the statement


@dataclass(frozen=True, slots=True)
class Labelled:
    """A statement of a recorded answer, a blind reader's label for it, and a false version of it."""

    statement: Statement
    supported: bool
    kind: str  # supported, absence, frame, unsupported, code or altered code (not the book's, but it may be right)
    false: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """One answer, written with one of the prompts."""

    item: str
    prompt: str
    book: str
    gid: str
    question: str
    statements: tuple[Labelled, ...]

    def passages(self) -> list[dict[str, Any]]:
        """The `where` and `text` of each passage that the answer was written from."""
        return _passages()[self.gid]

    def evidence(self) -> Evidence:
        """The passages, numbered as the writer saw them."""
        evidence = Evidence(self.question)
        for passage in self.passages():
            evidence.issue_text(passage["text"], passage["where"])
        return evidence

    def drafts(self) -> list[Statement]:
        """The answer as it was written."""
        return [one.statement for one in self.statements]

    def lies(self, every: int = 1, first: int = 0) -> list[Statement]:
        """The answer with every n-th statement replaced by its false version."""
        return [
            replace(one.statement, text=one.false, row=_row(one))
            if one.false and at % every == first
            else one.statement
            for at, one in enumerate(self.statements)
        ]


def load(folder: Path = RECORDED) -> list[Recording]:
    """Load all recorded answers."""
    labels = {_key(row): row for row in rows_of(folder / "labels.jsonl")}
    false = {_key(row): row["text"] for row in rows_of(folder / "false.jsonl")}
    found = []
    for row in rows_of(folder / "answers.jsonl"):
        for prompt in PROMPTS:
            statements = [
                _labelled(
                    statement, labels.get((row["id"], prompt, number)), false.get((row["id"], prompt, number), "")
                )
                for number, statement in enumerate(parse(row[prompt]), start=1)
            ]
            recording = Recording(row["id"], prompt, row["book"], row["gid"], row["question"], tuple(statements))
            found.append(recording)
    return found


def digest(text: str) -> str:
    """A short digest of a shown text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _labelled(statement: Statement, label: dict[str, Any] | None, false: str) -> Labelled:
    if label is None:  # headings and code
        return Labelled(statement, True, "frame" if statement.shape == "heading" else statement.shape, false)
    return Labelled(statement, label["supported"], label["kind"], false)


def _row(one: Labelled) -> str:
    """A false row as a line of a table. Its cells are given with the names of the columns."""
    return f"| {one.false} |" if one.statement.row else ""


def _key(row: dict[str, Any]) -> Key:
    return row["item"], row["prompt"], row["n"]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


@lru_cache(maxsize=1)
def _passages() -> dict[str, list[dict[str, Any]]]:
    with gzip.open(DATA / "passages.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {group["gid"]: group["passages"] for group in map(json.loads, lines)}
