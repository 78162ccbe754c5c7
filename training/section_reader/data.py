"""Collects training rows for the section reader from written questions.

A row is one question with the passages of its group:
{"question", "passages": [{"text", "units": [[start, end], ...]}], "gold": index or -1, "gold_units": [...],
 "ignore": [indices of passages that repeat the answer], "group", "set"}

    python -m training.section_reader.data SHARED_DATA WRITTEN OUT.jsonl.gz

SHARED_DATA holds strong_questions, strong_claims and squad2; WRITTEN holds groups*.jsonl and train*.jsonl, questions written
by a language model over passages of other books (see training/README.md for how they were made).
"""

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chapterverse.units import blocks_of_text, cut_units

SQUAD_TEST = {"Warsaw", "European_Union_law"}  # articles kept apart for the bench

Row = dict[str, Any]


def in_context(earlier: list[str], question: str) -> str:
    """A follow-up as the reader model sees it: after the two questions before it. The product does the same."""
    return " / ".join([*earlier[-2:], question])


def passage(where: str, lead: str, text: str, units: list[list[int]]) -> Row:
    """A passage as the product shows it to the reader, with the units moved behind what stands in front."""
    front = "".join(f"{part}\n" for part in (where, lead) if part)
    return {"text": front + text, "units": [[start + len(front), end + len(front)] for start, end in units]}


def strong(folder: Path) -> Iterator[Row]:
    """strong_questions and the turns of its dialogues, whose quotes are stretches of a passage's text."""
    groups: dict[str, Any] = {}
    for line in gzip.open(folder / "strong_claims/passages.jsonl.gz", "rt"):
        group = json.loads(line)
        groups[group["gid"]] = group
    asked: dict[str, list[Any]] = defaultdict(list)
    for line in gzip.open(folder / "strong_questions/questions.jsonl.gz", "rt"):
        row = json.loads(line)
        asked[row["gid"]].append((row["question"], row["passage"], row["quote"]))
    for line in gzip.open(folder / "strong_questions/dialogues.jsonl.gz", "rt"):
        row = json.loads(line)
        said = [turn["user"] for turn in row["turns"]]
        for at, turn in enumerate(row["turns"]):
            for question in dict.fromkeys((turn["standalone"], in_context(said[:at], said[at]))):
                asked[row["gid"]].append((question, turn["passage"], turn["quote"]))
    for gid, questions in asked.items():
        passages, places = [], []
        for one in groups[gid]["passages"]:
            text, where = one["text"], one["where"]
            units = [[unit.start, unit.end] for unit in cut_units(text, blocks_of_text(text))]
            places.append((text, units))
            passages.append(passage("" if text.startswith(where) else where, "", text, units))
        for question, number, quote in questions:
            gold_units: list[int] = []
            if number:
                text, units = places[number - 1]
                at = text.find(quote)
                gold_units = [n for n, (start, end) in enumerate(units) if start < at + len(quote) and at < end]
                if at < 0 or not gold_units:
                    continue
            yield _row(question, passages, number - 1, gold_units, gid, groups[gid]["book"])


def written(folder: Path) -> Iterator[Row]:
    """Questions of our own, whose answers are named by unit numbers."""
    groups: dict[str, Any] = {}
    for file in sorted(folder.glob("groups*.jsonl")):
        for line in file.open():
            group = json.loads(line)
            groups[group["gid"]] = group
    for file in sorted([*folder.glob("train*.jsonl"), *folder.glob("dialogues*.jsonl")]):
        for line in file.open():
            row = json.loads(line)
            group = groups[row["g"]]
            passages = [passage(p["where"], p.get("lead", ""), p["text"], p["units"]) for p in group["passages"]]
            turns = row.get("turns", [row])
            said = [turn["q"] for turn in turns]
            for at, turn in enumerate(turns):
                units = [number - 1 for number in turn["u"]]
                for question in dict.fromkeys((turn.get("s", turn["q"]), in_context(said[:at], said[at]))):
                    yield _row(question, passages, turn["p"] - 1, units, row["g"], group["book"])


def squad(folder: Path) -> Iterator[Row]:
    """SQuAD 2.0, without the articles that are kept apart."""
    articles = json.load(gzip.open(folder / "squad2/dev_a.json.gz"))["data"]
    for article in articles:
        if article["title"] in SQUAD_TEST:
            continue
        contexts = [paragraph["context"] for paragraph in article["paragraphs"]]
        made = [
            passage("", "", text, [[u.start, u.end] for u in cut_units(text, blocks_of_text(text))])
            for text in contexts
        ]
        for at, paragraph in enumerate(article["paragraphs"]):
            others = [made[(at + step) % len(made)] for step in (1, 2, 3)]
            for asked in paragraph["qas"]:
                gold: list[int] = []
                if asked["answers"]:
                    start = asked["answers"][0]["answer_start"]
                    gold = [n for n, (left, right) in enumerate(made[at]["units"]) if left <= start < right]
                answer = 0 if asked["answers"] else -1
                yield _row(
                    asked["question"], [made[at], *others], answer, gold, f"squad-{article['title']}-{at}", "squad"
                )


def _row(question: str, passages: list[Row], gold: int, units: list[int], group: str, name: str) -> Row:
    ignore = []
    if gold >= 0:
        spans = passages[gold]["units"]
        said = [_plain(passages[gold]["text"][spans[n][0] : spans[n][1]]) for n in units]
        for at, other in enumerate(passages):
            text = _plain(other["text"])
            if at != gold and said and all(one in text for one in said):
                ignore.append(at)
    return {
        "question": question,
        "passages": passages,
        "gold": gold,
        "gold_units": units,
        "ignore": ignore,
        "group": group,
        "set": name,
    }


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def main() -> None:
    shared, own, out = map(Path, sys.argv[1:4])
    count: dict[str, int] = defaultdict(int)
    with gzip.open(out, "wt") as file:
        for rows in (strong(shared), written(own), squad(shared)):
            for row in rows:
                count[row["set"]] += 1
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(dict(count), sum(count.values()))


if __name__ == "__main__":
    main()
