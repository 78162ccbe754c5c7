"""SQuAD 2.0 with the paragraph as the reader's selection: does it answer the question, and where?

Unanswerable questions were written to look answerable. Their `kind` is the reason, if people gave one.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.sets.shape import Page, PublicSet, kept_apart, page_name
from chapterverse.evaluation.questions import Question

_CAUSES: Final = {
    "E": "entity swapped",
    "#": "number swapped",
    "N": "negation",
    "A": "antonym",
    "X": "mutual exclusion",
    "I": "no information",
}


def squad(data: Path) -> PublicSet:
    """The test articles, each question with its own paragraph."""
    with gzip.open(data / "squad2" / "dev_a.json.gz", "rt", encoding="utf-8") as file:
        articles = [one for one in json.load(file)["data"] if kept_apart("squad", one["title"])]
    pages, questions = [], []
    for article in articles:
        for number, paragraph in enumerate(article["paragraphs"]):
            place = f"{article['title']}/{number}"
            page = Page(page_name(place), article["title"].replace("_", " "), paragraph["context"])
            pages.append(page)
            questions += [_question(one, paragraph["context"], place) for one in paragraph["qas"]]
    named = ", ".join(article["title"].replace("_", " ") for article in articles)
    note = f"articles {named}: all questions, each with its paragraph as the selection; a group is a paragraph"
    return PublicSet("squad", "SQuAD 2.0, selected text", note, tuple(pages), tuple(questions))


def _question(asked: Mapping[str, Any], context: str, place: str) -> Question:
    fields: dict[str, Any] = {"id": asked["id"], "question": asked["question"], "selection": context, "group": place}
    if asked["is_impossible"]:
        cause = _CAUSES.get(asked.get("unanswerable_cause", ""), "cause not given")
        fields |= {"answerable": False, "kind": f"unanswerable: {cause}"}
    else:
        fields |= {"answer": list(dict.fromkeys(one["text"] for one in asked["answers"])), "kind": "answerable"}
    return Question.model_validate(fields)
