"""Doc2Dial: dialogues between people about help pages, with the span of the page that answers each turn.

The documents become a book, and the turns become questions with a history. Every turn is answerable.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.retrieval.sets import rows
from bench.sets.shape import Page, PublicSet, history, kept_apart, page_name
from chapterverse.evaluation.questions import Question

_LONGEST: Final = 15  # maximum number of words of a heading


def doc2dial(data: Path) -> PublicSet:
    """All documents as the book, and the turns about the test documents."""
    folder = data / "doc2dial"
    pages = tuple(
        Page(page_name(row["doc_id"]), row["doc_id"].split("#")[0], row["text"], headings(row["text"]))
        for row in rows(folder / "docs_a.jsonl.gz")
    )
    turns = [row for row in rows(folder / "turns_a.jsonl.gz") if kept_apart("doc2dial", row["doc_id"])]
    note = f"{len({row['doc_id'] for row in turns})} documents kept apart, in a book of all {len(pages)}; all turns"
    return PublicSet("doc2dial", "Doc2Dial", note, pages, tuple(map(_question, turns)))


def headings(text: str) -> frozenset[str]:
    """The headings of a document. The text has lost their markup, but each begins a block and has no final
    punctuation."""
    first = [block.strip().split("\n")[0].strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    return frozenset(line for line in first if len(line.split()) <= _LONGEST and line[-1:] not in ".,:;!")


def _question(turn: Mapping[str, Any]) -> Question:
    return Question(
        id=turn["id"],
        question=turn["question"],
        page=(f"{page_name(turn['doc_id'])}.html",),
        sentence=tuple(" ".join(span["text"].split()) for span in turn["gold_spans"]),
        history=history(turn["history"]),
        group=turn["doc_id"],
        kind=turn["domain"],
    )
