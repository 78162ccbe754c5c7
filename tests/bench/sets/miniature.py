"""Small copies of the public sets, written by hand in their file formats."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def packed(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")


def write_squad(data: Path) -> None:
    context = "The lighthouse of Arn was built in 1802. Its keeper was Ida Holt."
    asked = [
        {"id": "a", "question": "When was it built?", "is_impossible": False,
         "answers": [{"text": "1802", "answer_start": 35}, {"text": "in 1802", "answer_start": 32},
                     {"text": "1802", "answer_start": 35}]},
        {"id": "b", "question": "Who built it?", "is_impossible": True, "answers": [], "unanswerable_cause": "E"},
        {"id": "c", "question": "Who sold it?", "is_impossible": True, "answers": []},
    ]  # fmt: skip
    articles = []
    for title in ("Warsaw", "Islamism"):
        own = [one | {"id": f"{title}-{one['id']}"} for one in asked]
        articles.append({"title": title, "paragraphs": [{"context": context, "qas": own}]})
    (data / "squad2").mkdir(parents=True)
    (data / "squad2" / "dev_a.json.gz").write_bytes(gzip.compress(json.dumps({"data": articles}).encode()))


def write_doc2dial(data: Path, documents: int = 12) -> None:
    text = "\n\nHow to pay \nYou can pay at any office. Bring the letter.\n\n\nSee also the list of offices.\n"
    said = [{"speaker": "user", "text": "hello"}, {"speaker": "agent", "text": "What is it?"}]
    said.append({"speaker": "agent", "text": "Speak."})
    packed(
        data / "doc2dial" / "docs_a.jsonl.gz",
        [{"doc_id": f"Fees / part {number}#1_0", "domain": "dmv", "text": text} for number in range(documents)],
    )
    packed(
        data / "doc2dial" / "turns_a.jsonl.gz",
        [
            {"id": f"t{number}_3", "doc_id": f"Fees / part {number}#1_0", "domain": "dmv", "history": said,
             "question": "where?", "gold_spans": [{"text": "You can pay at any\noffice. ", "start": 14}]}
            for number in range(documents)
        ],
    )  # fmt: skip


def write_clapnq(data: Path, records: int = 12) -> None:
    passage = {
        "title": "Arn",
        "text": "Arn ( an island ) has one tower .",
        "sentences": ["Arn ( an island ) has one tower ."],
    }
    rows = []
    for number in range(records):
        said = {"answer": "One tower.", "selected_sentences": passage["sentences"]} if number % 2 else {"answer": ""}
        rows.append({"id": f"{number}", "question": "how many towers has arn", "answerable": bool(number % 2),
                     "passages": [passage], "answers": [said]})  # fmt: skip
    packed(data / "clapnq" / "dev_a.jsonl.gz", rows)


def write_mtrag(data: Path, conversations: int = 12) -> None:
    folder = data / "mtrag"
    said = [{"speaker": "user", "text": "What is Arn?"}, {"speaker": "agent", "text": "An island."}]
    tasks = []
    for number in range(conversations):
        task = {"conversation_id": f"c{number}", "domain": "cloud", "history": said, "question": "How large?",
                "reference_answer": "Small.", "contexts": [{"passage_id": "p2"}]}  # fmt: skip
        kinds = ("ANSWERABLE", "UNANSWERABLE", "PARTIAL", "UNDERSPECIFIED")
        tasks += [task | {"task_id": f"c{number}<::>{turn}", "answerability": kind} for turn, kind in enumerate(kinds)]
    packed(folder / "tasks.jsonl.gz", tasks)
    opened = [task | {"task_id": f"un-{task['task_id']}", "same_opening_as_mtrag": "c1"} for task in tasks]
    packed(folder / "tasks_un.jsonl.gz", opened)
    texts = {
        "p1": "Arn\nArn is small.",
        "p2": "Arn\nNothing of use.",
        "p3": "Arn\nArn is  small.",
        "p4": "Other\nElse.",
    }
    packed(
        folder / "cloud" / "passages.jsonl.gz",
        [{"_id": name, "title": text.split("\n")[0], "url": "", "text": text} for name, text in texts.items()],
    )
    packed(
        folder / "cloud" / "queries_rewrite.jsonl",
        [{"_id": f"c{number}<::>0", "text": "|user|: How large is Arn?"} for number in range(conversations)],
    )
    judged = "".join(f"c{number}<::>0\tp3\t1\nc{number}<::>0\tp2\t0\n" for number in range(conversations))
    for name in ("qrels.tsv", "qrels_un.tsv"):
        (folder / "cloud" / name).write_text("query-id\tcorpus-id\tscore\n" + judged, "utf-8")
