"""Finds candidates for each question, on the GPU machine: the passages that the shipped embedder and BM25 put first.

    python3 -m training.section_reader.rows FOLDER STATE

FOLDER holds books.jsonl.gz (books.py), groups.jsonl.gz (data.py), embedder.npz and tokenizer.json (weights.py). STATE is for what one step
leaves to the next; here candidates.json. The teacher and the student take their rows from `load`.
"""

import gzip
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from training.search import bm25, embedded, encoded, fused, tokenizer
from training.search import load as load_embedder

WEIGHT = 0.65  # of meaning in the fused score, as the product has it
FIRST = 16  # passages of a search
MOST = 14  # candidates of a row
ELSEWHERE = 120  # questions of other books that each training book is asked
STARTED = time.time()
Row = dict[str, Any]


def log(*said: Any) -> None:
    print(f"[{time.time() - STARTED:6.1f}s]", *said, flush=True)


def books(folder: Path) -> list[Row]:
    return [json.loads(line) for line in gzip.open(folder / "books.jsonl.gz", "rt")]


def searched(folder: Path, asked: dict[str, list[Row]], known: Sequence[Row]) -> Iterator[tuple[str, Row, list[int]]]:
    """Each row of each book with its candidates: the results of its searches, interleaved."""
    cutter, model = tokenizer(folder / "tokenizer.json"), load_embedder(folder / "embedder.npz")
    given = []
    for book in known:
        docs = [one["text"] for one in book["docs"]]
        queries = [text for row in asked[book["set"]] for text, _ in row["searches"]]
        near = embedded(model, encoded(cutter, queries)) @ embedded(model, encoded(cutter, docs)).T
        given.append((near.cpu().numpy(), docs, queries))
    with Pool() as pool:
        found = pool.starmap(_orders, given, chunksize=1)
    for book, orders in zip(known, map(iter, found), strict=True):
        for row in asked[book["set"]]:
            parts = [next(orders)[:most] for _, most in row["searches"]]
            by_turns = [one for some in zip_longest(*parts) for one in some if one is not None]
            yield book["set"], row, list(dict.fromkeys(by_turns))[:MOST]


def with_strangers(known: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each book. A training book is also asked questions of the others, which it does not answer."""
    chance = random.Random(11)
    asked = {book["set"]: book["rows"] for book in known}
    training = [book["set"] for book in known if book["role"] == "train"]
    for name in training:
        others = [row for other in training if other != name for row in asked[other] if not row["turn"]]
        strange = {"answering": [], "in_doubt": [], "units": {}, "kind": "strange"}
        own = [row for row in others if row.get("kind") != "strange"]
        asked[name] = asked[name] + [row | strange for row in chance.sample(own, ELSEWHERE)]
    return asked


def _orders(meaning: Any, docs: list[str], queries: list[str]) -> list[list[int]]:
    scores = fused(meaning, bm25(docs, queries), WEIGHT)
    return [[int(one) for one in np.argsort(-row)[:FIRST]] for row in scores]


def placed(row: Row, candidates: list[int]) -> Row:
    """A row over its candidates. An answering passage that the search missed replaces the last one."""
    answering = row["answering"]
    found = bool(set(candidates) & set(answering))
    if answering and not found:
        candidates = [*candidates[:-1], answering[0]]
    gold = next((at for at, one in enumerate(candidates) if one in answering), -1)
    not_wrong = {*answering, *row["in_doubt"]}
    return {
        "question": row["question"],
        "turn": row["turn"],
        "kind": row.get("kind", ""),
        "candidates": candidates,
        "found": found,
        "gold": gold,
        "gold_units": row["units"][str(candidates[gold])] if gold >= 0 else [],
        "ignore": [at for at, one in enumerate(candidates) if at != gold and one in not_wrong],
    }


def load(folder: Path, state: Path) -> list[Row]:
    """The rows over whole books and over groups, with their passages."""
    candidates = json.loads((state / "candidates.json").read_text())
    rows = [
        row | {"passages": [book["docs"][one] for one in row["candidates"]], "set": book["set"], "role": book["role"]}
        for book in books(folder)
        for row in candidates[book["set"]]
    ]
    return rows + [json.loads(line) for line in gzip.open(folder / "groups.jsonl.gz", "rt")]


def report(label: str, rows: Sequence[Row], scores: Sequence[Any], units: Sequence[int] | None = None) -> None:
    """Print figures of the scores: AUROC of answerable or not, the answering passage first, and the best unit right."""
    found: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for at, (row, said) in enumerate(zip(rows, scores, strict=True)):
        for name in {row["role"], row["set"]}:
            into = found[name, "turn" if row["turn"] else "question"]
            into["answerable"].append(row["gold"] >= 0)
            into["score"].append(float(said.max()))
            if row["gold"] >= 0:
                into["first"].append(int(said.argmax()) in (row["gold"], *row["ignore"]))
                if units is not None and row["gold_units"]:
                    into["unit"].append(units[at] in row["gold_units"])
    for key, got in sorted(found.items()):
        means = [f"{name} {np.mean(got[name]):.3f}" for name in ("first", "unit") if got[name]]
        log(" ", label, *key, len(got["score"]), f"AUROC {auroc(got['answerable'], got['score']):.3f}", *means)


def auroc(answerable: Sequence[bool], scores: Sequence[float]) -> float:
    yes, no = np.array(scores)[np.array(answerable)], np.array(scores)[~np.array(answerable)]
    return float((yes[:, None] > no[None]).mean() + 0.5 * (yes[:, None] == no[None]).mean())


def main() -> None:
    folder, state = map(Path, sys.argv[1:3])
    state.mkdir(parents=True, exist_ok=True)
    known = books(folder)
    made: dict[str, list[Row]] = {book["set"]: [] for book in known}
    for name, row, candidates in searched(folder, with_strangers(known), known):
        made[name].append(placed(row, candidates))
    for name, rows in made.items():
        found = [row["found"] for row in rows if row["gold"] >= 0]
        log(name, len(found), "answerable, found for", round(float(np.mean(found)), 3))
    (state / "candidates.json").write_text(json.dumps(made))


if __name__ == "__main__":
    main()
