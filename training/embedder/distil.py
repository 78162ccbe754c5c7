"""Trains the embedder as the student of a larger one, and measures embedders. Runs on the GPU machine.

    python3 -m training.embedder.distil distil DATA START TOKENIZER STATE TEACHER OUT [seconds=170 rate=1e-4 share=1]
    python3 -m training.embedder.distil measure BOOKS SETS TOKENIZER STATE NAME=SHARE*STEM+START [...]

`distil`: TEACHER is an embedder with more layers that `train.py` has trained on the same questions (a stem, as `train.py` leaves it, with
its published weights after a comma). For each question, heading and sentence of the books, the student learns how near the teacher thinks the passages are:
those of the batch, with the teacher's nearest ones among them. Every second step is one of `train.py`: the order that the section reader gives to the
candidates of a written question.

`measure` prints figures of the fused search over whole books and public sets (written by `public_sets.py`).
"""

import gzip
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from training.embedder.names import renamed
from training.embedder.train import TEMPERATURE, Task, _loss, _picked
from training.packed import Array, mean, save, unpacked
from training.search import DEVICE, Embedder, bm25, embedded, encoded, fused, load_weights, tokenizer, vectors

GENERAL = 0.35  # share of the steps about other texts than documentations, beside those about them
QUESTIONS, NEAR, FAR = 256, 2, 2  # of a step: questions, and for each the teacher's nearest passages and farther ones
BATCH = 64  # written questions of a step
NEAREST, DEEP = 4, 40  # the nearest of these are near, the others farther
WEIGHTS = (0.5, 0.6, 0.65, 0.7)  # of meaning in the fused score
STARTED = time.time()


def log(*said: Any) -> None:
    print(f"[{time.time() - STARTED:6.1f}s]", *said, flush=True)


def invented(docs: list[str], chance: random.Random) -> Iterator[tuple[str, int]]:
    """Texts that are asked like questions: of each passage its heading, or one of its sentences."""
    for number, doc in enumerate(docs):
        head, _, text = doc.partition("\n")
        sentences = [one for one in re.split(r"(?<=[.!?])\s+", text or head) if 5 <= len(one.split()) <= 40]
        if sentences and chance.random() < 0.7:
            yield chance.choice(sentences), number
        elif text and len(head.split()) > 1:
            yield " ".join(re.split(r" [>›/] ", head)[-2:]), number


class Pooled:
    """The passages and questions of a book, their tokens, and the passages that the teacher finds nearest."""

    def __init__(self, task: Task, book: Any, teacher: Embedder) -> None:
        chance = random.Random(book["set"])
        self.general = book["role"] == "texts"  # not a documentation
        asked = [query[0] for query in book["queries"]] * 2 + [text for text, _ in invented(book["docs"], chance)]
        self.docs, self.asked = task.encode(book["docs"]), task.encode(asked, 64)
        self.doc_vectors = embedded(teacher, self.docs)
        self.asked_vectors = embedded(teacher, self.asked)
        count = min(DEEP, len(self.docs))
        self.nearest = torch.cat(
            [(part @ self.doc_vectors.T).topk(count, 1).indices.cpu() for part in self.asked_vectors.split(4096)]
        ).numpy()


def distil(task: Task, student: Embedder, teacher: Embedder, out: Path, options: dict[str, float]) -> None:
    pools = [Pooled(task, book, teacher) for book in task.books if book["role"] != "eval"]
    log(
        len(pools),
        "books,",
        sum(len(one.docs) for one in pools),
        "passages,",
        sum(len(one.asked) for one in pools),
        "texts asked",
    )
    chosen, scores = task.kept("candidates.json"), task.kept("scores.json")
    texts = {
        book["set"]: (task.encode(book["docs"]), task.encode([query[0] for query in book["queries"]]))
        for book in task.training
    }
    items = [
        (book["set"], at, set(query[1]), set(query[2]), chosen[book["set"]][at], np.array(scores[book["set"]][at]))
        for book in task.training
        for at, query in enumerate(book["queries"])
        if query[1] or max(scores[book["set"]][at]) > 0
    ]
    chance = random.Random(1)
    share = np.array([len(one.asked) ** 0.75 for one in pools])
    share = np.array([GENERAL * share.sum() if one.general else size for one, size in zip(pools, share, strict=True)])
    share /= share.sum()
    moving = [one for one in student.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(moving, lr=options["rate"], weight_decay=0.01, fused=True)
    student.train()
    started, step, lasts = time.time(), 0, [0.0, 0.0]
    while (progress := (time.time() - started) / options["seconds"]) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options["rate"] * min(1, (step + 1) / 100) * max(0.0, 1 - progress)
        if step % 2:
            batch = chance.sample(items, BATCH)
            picked = [_picked(item, 16, chance) for item in batch]
            queries = vectors(student, [texts[item[0]][1][item[1]] for item in batch])
            docs = vectors(student, [texts[name][0][doc] for name, row, *_ in picked for doc in row])
            loss = _loss(queries @ docs.T / TEMPERATURE, picked, 16)
        else:
            # Two books a step, so that most other passages of the batch are of the same book.
            loss = torch.zeros((), device=DEVICE)
            for number in np.random.default_rng(step).choice(len(pools), 2, p=share):
                loss = loss + _distance(student, pools[number], chance) / 2
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(moving, 1.0)
        optimiser.step()
        lasts[step % 2] = loss.item() if step % 100 < 2 else lasts[step % 2]
        if step % 200 == 1:
            log("step", step, "losses", [round(one, 4) for one in lasts])
        step += 1
    log("steps", step)
    save(out, {name: value.cpu().numpy() for name, value in student.state_dict().items() if name != "tok.weight"})


def _distance(student: Embedder, pool: Pooled, chance: random.Random) -> Any:
    asked = chance.sample(range(len(pool.asked)), min(QUESTIONS // 2, len(pool.asked)))
    docs = {
        int(one)
        for at in asked
        for one in (
            *chance.choices(pool.nearest[at][:NEAREST], k=NEAR),
            *chance.choices(pool.nearest[at][NEAREST:] if len(pool.nearest[at]) > NEAREST else pool.nearest[at], k=FAR),
        )
    }
    rows = sorted(docs)
    wanted = (pool.asked_vectors[asked] @ pool.doc_vectors[rows].T) / TEMPERATURE
    said = vectors(student, [pool.asked[at] for at in asked]) @ vectors(student, [pool.docs[at] for at in rows]).T
    said = said / TEMPERATURE
    ours = F.kl_div(F.log_softmax(said, 1), F.log_softmax(wanted, 1), log_target=True, reduction="batchmean")
    theirs = F.kl_div(F.log_softmax(said, 0), F.log_softmax(wanted, 0), log_target=True, reduction="sum") / len(rows)
    return ours + 0.5 * theirs


def _words(given: tuple[list[str], list[str]]) -> Any:
    return bm25(*given).astype(np.float16)


def measure(books: Path, sets: Path, cutter: Any, state: Path, models: list[tuple[str, Embedder]]) -> None:
    known = [json.loads(line) for line in gzip.open(books, "rt")]
    public = [json.loads(line) for line in gzip.open(sets, "rt")]
    given = [(one["docs"], [query[0] for query in one["queries"] if query[1]]) for one in known]
    given += [(one["docs"], asked["questions"]) for one in public for asked in one["sets"]]
    with Pool(14) as pool:
        words = pool.map(_words, given, chunksize=1)
    log("bm25 of", len(given))
    for name, model in models:
        print(name, flush=True)
        averages: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
        firsts: dict[float, list[list[float]]] = {weight: [] for weight in WEIGHTS}
        at = 0
        for one in known:
            docs = embedded(model, encoded(cutter, one["docs"]))
            gold = [set(query[1]) for query in one["queries"] if query[1]]
            near = (embedded(model, encoded(cutter, given[at][1])) @ docs.T).cpu().numpy()
            said = []
            for weight in WEIGHTS:
                order = np.argsort(-fused(near, words[at].astype(np.float32), weight), 1)[:, :8]
                ranks = [
                    next((rank for rank, doc in enumerate(row) if int(doc) in right), 99)
                    for row, right in zip(order, gold, strict=True)
                ]
                firsts[weight].append([float(np.mean([rank < most for rank in ranks])) for most in (1, 5, 8)])
                said.append("/".join(f"{value:.3f}" for value in firsts[weight][-1]))
            log("  ", one["set"], len(gold), *said)
            at += 1
        log("  books", *("/".join(f"{value:.3f}" for value in np.mean(firsts[weight], 0)) for weight in WEIGHTS))
        for one in public:
            docs = embedded(model, encoded(cutter, one["docs"]))
            for asked in one["sets"]:
                near = (embedded(model, encoded(cutter, asked["questions"])) @ docs.T).cpu().numpy()
                said = []
                for weight in WEIGHTS:
                    order = np.argsort(-fused(near, words[at].astype(np.float32), weight), 1)[:, :25]
                    values = [
                        _score(
                            asked["measure"], list(dict.fromkeys(one["of"][doc] for doc in row)), right, asked["depth"]
                        )
                        for row, right in zip(order, asked["relevant"], strict=True)
                    ]
                    averages[weight].append(float(np.mean(values)))
                    said.append(f"{averages[weight][-1]:.3f}")
                log("  ", asked["label"], len(asked["questions"]), *said)
                at += 1
        log("  sets", *(f"{np.mean(averages[weight]):.4f}" for weight in WEIGHTS))


def _score(kind: str, ranked: list[str], right: dict[str, float], depth: int) -> float:
    if kind == "hit":
        return float(any(one in right for one in ranked[:depth]))
    if kind == "MRR":
        return next((1 / rank for rank, one in enumerate(ranked[:depth], 1) if one in right), 0.0)
    gains = [right.get(one, 0.0) / np.log2(rank + 1) for rank, one in enumerate(ranked[:depth], 1)]
    best = [grade / np.log2(rank + 1) for rank, grade in enumerate(sorted(right.values(), reverse=True)[:depth], 1)]
    return float(sum(gains) / sum(best)) if best else 0.0


def mixed(spec: str) -> Embedder:
    """An embedder from `START` alone, or from `SHARE=STEM+START`: a share of what was learned, the rest of START."""
    learned, _, start = spec.rpartition("+")
    before: dict[str, Array] = {
        renamed(name): value for name, value in unpacked(Path(start)).items() if "pooler" not in name
    }
    made = before | mean([learned], before) if learned else before
    return load_weights(made)


def main() -> None:
    step = sys.argv[1]
    torch.manual_seed(3)
    if step == "measure":
        books, sets, words, state = map(Path, sys.argv[2:6])
        models = [(spec, mixed(spec)) for spec in sys.argv[6:]]
        measure(books, sets, tokenizer(words), state, models)
        return
    data, start, words_, state_, teacher, out = sys.argv[2:8]
    task = Task(data, words_, state_)
    options = {"seconds": 170.0, "rate": 1e-4} | {
        name: float(value) for name, value in (one.split("=") for one in sys.argv[8:])
    }
    distil(task, mixed(start), mixed(teacher), Path(out), options)


if __name__ == "__main__":
    main()
