"""Collects training rows for the section reader from written questions.

A row is one question with the passages of its group:
{"question", "passages": [{"text", "units": [[start, end], ...]}], "gold": index or -1, "gold_units": [...],
 "ignore": [indices of passages that repeat the answer], "group", "set"}

    python -m training.section_reader.data SHARED_DATA ROWS OUT.jsonl.gz

SHARED_DATA holds strong_questions, strong_claims, squad2, wice, attributionbench and ragtruth_qa; ROWS is the folder that whole_books.py fills.
"""

import gzip
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from bench.keyless.sets import SQUAD_TEST, short_texts

from chapterverse.answering.followups import in_context
from chapterverse.conversations.turns import Turn
from chapterverse.units import blocks_of_text, cut_units

SHORT = 0.4  # share of the rows that are told again over short texts

Row = dict[str, Any]


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
        turns: list[Turn] = []
        for turn in row["turns"]:
            for question in dict.fromkeys((turn["standalone"], in_context(turn["user"], turns))):
                asked[row["gid"]].append((question, turn["passage"], turn["quote"]))
            where = groups[row["gid"]]["passages"][turn["passage"] - 1]["where"] if turn["passage"] else ""
            source = {"breadcrumb": where, "quote": turn["quote"]}
            turns.append(Turn("", turn["user"], turn["quote"], sources=(source,) if where else ()))
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


def short(row: Row, chance: random.Random) -> Row:
    """The same question over short texts without headings, as readers select them: a few units that answer, those of
    the same passage that do not, and a few of another one."""
    made: list[Row] = []
    gold_units: list[int] = []
    if row["gold"] >= 0:
        gold, units = row["passages"][row["gold"]], row["gold_units"]
        first = max(0, min(units) - chance.randrange(3))
        last = min(len(gold["units"]) - 1, max(units) + chance.randrange(3))
        gold_units = [unit - first for unit in units]
        made.append(_stretch(gold, first, last))
        rest = [run for run in ((0, min(units) - 1), (max(units) + 1, len(gold["units"]) - 1)) if run[0] <= run[1]]
        made += [_stretch(gold, *run) for run in rest]
    other = chance.choice(
        [one for at, one in enumerate(row["passages"]) if at not in (row["gold"], *row["ignore"])] or [{}]
    )
    if other.get("units"):
        first = chance.randrange(len(other["units"]))
        made.append(_stretch(other, first, min(len(other["units"]) - 1, first + chance.randrange(4))))
    return row | {"passages": made, "gold": 0 if gold_units else -1, "gold_units": gold_units, "ignore": []}


def _stretch(one: Row, first: int, last: int) -> Row:
    start, end = one["units"][first][0], one["units"][last][1]
    spans = [[left - start, right - start] for left, right in one["units"][first : last + 1]]
    return {"text": one["text"][start:end], "units": spans}


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


def selected(folder: Path) -> Iterator[Row]:
    """Questions about short texts of three public sets, written by a language model: half of them only seem answered."""
    made = {
        name: passage("", "", text, [[u.start, u.end] for u in cut_units(text, blocks_of_text(text))])
        for name, text in short_texts(folder)
    }
    for line in (Path(__file__).parent / "written/selected.jsonl").read_text("utf-8").splitlines():
        asked = json.loads(line)
        gold: list[int] = []
        if place := asked.get("place"):
            units = made[asked["id"]]["units"]
            gold = [n for n, (left, right) in enumerate(units) if left < place[1] and place[0] < right]
        yield _row(
            asked["question"], [made[asked["id"]]], 0 if gold else -1, gold, f"selected-{asked['id']}", "selected"
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
    """Collect, and put the rows over whole books beside them."""
    shared, whole, out = map(Path, sys.argv[1:4])
    count: Counter[str] = Counter()
    chance = random.Random(5)
    others = (json.loads(line) for file in sorted(whole.glob("*.jsonl.gz")) for line in gzip.open(file, "rt"))
    with gzip.open(out, "wt") as file:
        for row in chain(strong(shared), squad(shared), selected(shared), others):
            made = [row] if " / " in row["question"] or chance.random() > SHORT else [row, short(row, chance)]
            for one in made:
                if one["passages"]:
                    count[one["set"]] += 1
                    file.write(json.dumps(one, ensure_ascii=False) + "\n")
    print(dict(count), count.total())


if __name__ == "__main__":
    main()
