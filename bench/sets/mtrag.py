"""MTRAG and MTRAG-UN: conversations over Wikipedia passages or technical documentation.

Tasks become questions with a history, a person's rewrite and the passages that people judged relevant. Turns that are
partly answerable or underspecified are left out: neither an answer nor a refusal is wrong there.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.retrieval.sets import rows
from bench.sets.clapnq import detokenised
from bench.sets.shape import Page, PublicSet, history, kept_apart, page_name, sample
from chapterverse.evaluation.questions import Question

PASSAGES: Final = 2500  # passages of a book: all that are relevant to its questions, and others
_TITLES: Final = {"clapnq": "MTRAG and MTRAG-UN, Wikipedia", "cloud": "MTRAG and MTRAG-UN, technical documentation"}


def mtrag_clapnq(data: Path) -> PublicSet:
    """Conversations about Wikipedia."""
    return _converted(data / "mtrag", "clapnq")


def mtrag_cloud(data: Path) -> PublicSet:
    """Conversations about technical documentation."""
    return _converted(data / "mtrag", "cloud")


def _converted(folder: Path, domain: str) -> PublicSet:
    pages: dict[str, Page] = {}
    first: dict[str, str] = {}  # a text -> the first id with it
    same: dict[str, str] = {}
    for row in rows(folder / domain / "passages.jsonl.gz"):
        text = row["text"].removeprefix(f"{row['title']}\n")
        same[row["_id"]] = first.setdefault(" ".join(text.split()), row["_id"])
        if same[row["_id"]] == row["_id"]:
            plain = detokenised(text) if domain == "clapnq" else text
            pages[row["_id"]] = Page(page_name(row["_id"]), row["title"] or "Untitled", plain)
    rewrites = {
        row["_id"]: row["text"].removeprefix("|user|: ") for row in rows(folder / domain / "queries_rewrite.jsonl")
    }
    right = _relevant(folder / domain, same)
    tasks = _tasks(folder, domain)
    needed = {same[one["passage_id"]] for task in tasks for one in task["contexts"] if one["passage_id"] in same}.union(
        *(right.get(task["task_id"], ()) for task in tasks)
    )
    others = sample([name for name in pages if name not in needed], PASSAGES - len(needed), domain)
    questions = [_question(task, right.get(task["task_id"], []), rewrites, pages) for task in tasks]
    note = (
        f"conversations kept apart; the book is the {len(needed)} passages shown to people for them "
        f"and {len(others)} others by chance, of {len(pages)}"
    )
    book = tuple(page for name, page in pages.items() if name in needed or name in set(others))
    return PublicSet(f"mtrag_{domain}", _TITLES[domain], note, book, tuple(questions))


def _tasks(folder: Path, domain: str) -> list[dict[str, Any]]:
    """Return the tasks of both sets. A conversation of MTRAG-UN that begins like one of MTRAG is used only if both are
    in the test part."""
    found = []
    for name, kind in (("tasks", "MTRAG"), ("tasks_un", "MTRAG-UN")):
        for task in rows(folder / f"{name}.jsonl.gz"):
            owners = [task["conversation_id"], *filter(None, [task.get("same_opening_as_mtrag")])]
            known = task["answerability"] in ("ANSWERABLE", "UNANSWERABLE")
            if task["domain"] == domain and known and all(kept_apart("mtrag", owner) for owner in owners):
                found.append(task | {"kind": f"{kind}, {task['answerability'].lower()}"})
    return found


def _relevant(folder: Path, same: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in ("qrels.tsv", "qrels_un.tsv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if float(row["score"]) > 0 and row["corpus-id"] in same:
                    found.setdefault(row["query-id"], []).append(same[row["corpus-id"]])
    return {task: list(dict.fromkeys(names)) for task, names in found.items()}


def _question(
    task: Mapping[str, Any], right: list[str], rewrites: Mapping[str, str], pages: Mapping[str, Page]
) -> Question:
    said = history(task["history"])
    fields: dict[str, Any] = {"id": task["task_id"], "question": task["question"], "history": said}
    fields |= {"group": task["conversation_id"], "kind": task["kind"], "answerable": True}
    if task["answerability"] == "UNANSWERABLE":
        return Question.model_validate(fields | {"answerable": False})
    if said and task["task_id"] in rewrites:
        fields["rewrite"] = rewrites[task["task_id"]]
    fields["page"] = [pages[name].path for name in right]
    return Question.model_validate(fields | {"answer": task["reference_answer"] or None})
