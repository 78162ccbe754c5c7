"""CLAPNQ: questions of web users, each with one Wikipedia passage that has a long answer or none.

The book consists of all passages. The texts of the set are tokenised; the normal spelling is restored.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.retrieval.sets import rows
from bench.sets.shape import Page, PublicSet, kept_apart, page_name
from chapterverse.evaluation.questions import Question

_TOKENISED: Final = (("`` ", '"'), (" ''", '"'), ("( ", "("), (" )", ")"), (" 's", "'s"), (" - ", "-"))


def clapnq(data: Path) -> PublicSet:
    """All passages as the book, and the test questions."""
    records = list(rows(data / "clapnq" / "dev_a.jsonl.gz"))
    pages = tuple(
        Page(page_name(f"{row['id']}"), passage["title"], detokenised(passage["text"]))
        for row in records
        for passage in row["passages"][:1]
    )
    questions = tuple(_question(row) for row in records if kept_apart("clapnq", row["id"]))
    note = f"a quarter of the questions, in a book of all {len(pages)} passages; unanswerable: its own passage does not"
    return PublicSet("clapnq", "CLAPNQ", note, pages, questions)


def detokenised(text: str) -> str:
    """A text in normal spelling."""
    for tokens, written in _TOKENISED:
        text = text.replace(tokens, written)
    return re.sub(r" ([.,;:?!])(?=\s|$)", r"\1", text.strip())


def _question(record: Mapping[str, Any]) -> Question:
    fields: dict[str, Any] = {"id": record["id"], "question": record["question"], "answerable": record["answerable"]}
    if record["answerable"]:
        chosen = [one for answer in record["answers"] for one in answer.get("selected_sentences", ())]
        fields |= {
            "page": f"{page_name(record['id'])}.html",
            "sentence": list(dict.fromkeys(map(detokenised, chosen))),
            "answer": [answer["answer"] for answer in record["answers"] if answer["answer"]],
        }
    return Question.model_validate(fields)
