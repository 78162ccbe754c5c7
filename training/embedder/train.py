"""Trains the embedder on readers' questions, taught by the section reader. Runs on the GPU machine.

    python3 -m training.embedder.train candidates DATA START TOKENIZER STATE
    python3 -m training.embedder.train teach DATA READER_START TOKENIZER STATE [LEARNED_STEM]
    python3 -m training.embedder.train learn DATA START TOKENIZER STATE OUT [epochs=7 rate=1e-4 batch=64 most=20]
    python3 -m training.embedder.train measure DATA START TOKENIZER STATE OUT SHARE [SHARE ...]

1. *candidates*: for each question the passages that the start weights and BM25 put first.
2. *teach*: the section reader (start.npz of `section_reader/weights.py`, and what was learned since) scores each question with each candidate.
3. *learn*: the embedder learns to order the candidates as the teacher does (KL divergence), and to put an answering passage before all
   other passages of the batch (cross-entropy). The table of words does not move.
4. *measure*: with these shares of what was learned, for how many questions about the books kept apart an answering passage is among the first ones.

DATA comes from `data.py`; START is the published model with its matrices as int8 rows (`NAME|q`) and their scales (`NAME|s`). Three steps, because
not more than 64 MiB travel to the machine at once.
"""

import gzip
import json
import random
import sys
from collections.abc import Sequence
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from training.embedder.names import renamed
from training.packed import save, saved, unpacked
from training.search import DEVICE, Embedder, bm25, embedded, encoded, fused, load, load_weights, tokenizer, vectors

WEIGHT = 0.6  # of meaning in the fused score
FUSED, MEANING, WORDS, MOST = 40, 16, 8, 56  # candidates by each order, and in all
FUSED_WEIGHTS = (0.6, 0.65, 0.7)  # that are measured
TEMPERATURE, TEACHER_TEMPERATURE, GOLD = 0.05, 1.5, 4.0
HARD = 6  # candidates of one step: those with the highest teacher scores
CLS, SEP = 101, 102


class Task:
    """The data, the tokenizer and the folder that passes results from one step to the next."""

    def __init__(self, data: str, words: str, state: str) -> None:
        self.books = [json.loads(line) for line in gzip.open(data, "rt")]
        self.training = [book for book in self.books if book["role"] == "train" and book["queries"]]
        self.state = Path(state)
        self.state.mkdir(exist_ok=True)
        self._tokenizer = tokenizer(Path(words))

    def encode(self, texts: list[str], most: int = 256) -> list[Any]:
        return encoded(self._tokenizer, texts, most)

    def keep(self, name: str, found: Any) -> None:
        (self.state / name).write_text(json.dumps(found))

    def kept(self, name: str) -> Any:
        return json.loads((self.state / name).read_text())


def candidates(task: Task, model: Embedder) -> None:
    chosen = {}
    asked = [[query[0] for query in book["queries"]] for book in task.training]
    with Pool() as pool:
        by_words = pool.starmap(
            bm25, [(book["docs"], some) for book, some in zip(task.training, asked, strict=True)], 1
        )
    for book, queries, words in zip(task.training, asked, by_words, strict=True):
        near = embedded(model, task.encode(queries)) @ embedded(model, task.encode(book["docs"])).T
        meaning = near.cpu().numpy()
        both = fused(meaning, words, WEIGHT)
        rows = []
        for at, query in enumerate(book["queries"]):
            orders = ((both, FUSED), (meaning, MEANING), (words, WORDS))
            best = [int(one) for scores, count in orders for one in np.argsort(-scores[at])[:count]]
            rows.append(list(dict.fromkeys([*query[1][:4], *best]))[:MOST])
        chosen[book["set"]] = rows
    task.keep("candidates.json", chosen)


@torch.no_grad()
def teach(task: Task, start: Path, learned: Sequence[str]) -> None:
    from training.section_reader.model import SectionReader

    weights = unpacked(start)
    for stem in learned:
        weights |= saved(Path(stem))
    reader = SectionReader.of(weights).to(DEVICE).eval()
    chosen, scores = task.kept("candidates.json"), {}
    for book in task.training:
        queries = [tokens[1:-1][:96] for tokens in task.encode([query[0] for query in book["queries"]])]
        docs = [tokens[1:-1] for tokens in task.encode(book["docs"], 382)]
        pairs = [(query, doc) for query, row in enumerate(chosen[book["set"]]) for doc in row]
        said = np.zeros(len(pairs), np.float32)
        order = sorted(range(len(pairs)), key=lambda at: len(queries[pairs[at][0]]) + len(docs[pairs[at][1]]))
        for first in range(0, len(order), 1024):
            part = order[first : first + 1024]
            rows = [(queries[pairs[at][0]], docs[pairs[at][1]]) for at in part]
            said[part] = _read(reader, rows)
        ends = np.cumsum([len(row) for row in chosen[book["set"]]])[:-1]
        scores[book["set"]] = [row.round(3).tolist() for row in np.split(said, ends)]
    task.keep("scores.json", scores)


def _read(reader: Any, rows: list[tuple[Any, Any]]) -> Any:
    joined = [np.concatenate(([CLS], query, [SEP], doc[: 381 - len(query)], [SEP])) for query, doc in rows]
    longest = (max(map(len, joined)) + 7) // 8 * 8
    ids, types = np.zeros((len(rows), longest), np.int64), np.zeros((len(rows), longest), np.int64)
    attended = np.zeros((len(rows), longest), np.float32)
    for row, (tokens, (query, _)) in enumerate(zip(joined, rows, strict=True)):
        ids[row, : len(tokens)], attended[row, : len(tokens)] = tokens, 1
        types[row, len(query) + 2 : len(tokens)] = 1
    with torch.autocast(DEVICE, torch.bfloat16):
        return reader(*(torch.from_numpy(part).to(DEVICE) for part in (ids, attended, types)))[0].float().cpu().numpy()


def learn(task: Task, model: Embedder, out: Path, **options: float) -> None:
    epochs, rate = int(options.get("epochs", 7)), options.get("rate", 1e-4)
    size, most = int(options.get("batch", 64)), int(options.get("most", 20))
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
    steps = epochs * (len(items) // size)
    moving = [one for one in model.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(moving, lr=rate, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (0.08 * steps)) * max(0.0, 1 - step / steps)
    )
    for epoch in range(epochs):
        chance = random.Random(epoch)
        chance.shuffle(items)
        model.train()
        for start in range(0, len(items) - size + 1, size):
            batch = [_picked(item, most, chance) for item in items[start : start + size]]
            queries = vectors(model, [texts[item[0]][1][item[1]] for item in items[start : start + size]])
            docs = vectors(model, [texts[name][0][doc] for name, row, *_ in batch for doc in row])
            loss = _loss(queries @ docs.T / TEMPERATURE, batch, most)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(moving, 1.0)
            optimiser.step()
            schedule.step()
        print("epoch", epoch, "loss of the last step", round(loss.item(), 3), flush=True)
    save(
        out / "embedder",
        {name: value.cpu().numpy() for name, value in model.state_dict().items() if name != "tok.weight"},
    )


def _picked(item: Any, most: int, chance: random.Random) -> Any:
    """Candidates of one step: one that answers, those with the highest teacher scores, and some of the others."""
    name, _, gold, in_doubt, row, scores = item
    answering = [at for at, doc in enumerate(row) if doc in gold]
    first = chance.choice(answering) if answering else int(np.argmax(scores))
    rest = sorted((at for at in range(len(row)) if at != first), key=lambda at: -scores[at])
    others = rest[HARD:]
    picked = [first, *rest[:HARD], *chance.sample(others, min(len(others), most - 1 - HARD))]
    picked += [chance.choice(rest) for _ in range(most - len(picked))]
    taught = scores[picked].copy()
    taught[0] = max(taught[0], GOLD) if answering else taught[0]
    not_wrong = [row[at] in gold or row[at] in in_doubt or scores[at] > 0 for at in picked]
    return name, [row[at] for at in picked], taught, not_wrong


def _loss(near: Any, batch: list[Any], most: int) -> Any:
    own = torch.stack([near[at, at * most : (at + 1) * most] for at in range(len(batch))])
    taught = torch.tensor(np.array([one[2] for one in batch]), device=near.device).clamp(-8, 8) / TEACHER_TEMPERATURE
    order = F.kl_div(F.log_softmax(own, 1), F.log_softmax(taught, 1), log_target=True, reduction="batchmean")
    left_out = torch.zeros_like(near)
    for at, (*_, not_wrong) in enumerate(batch):
        for one in range(1, most):
            if not_wrong[one]:
                left_out[at, at * most + one] = -1e4
    first = F.cross_entropy(near + left_out, torch.arange(len(batch), device=near.device) * most)
    return (order + first) / 2


def measure(task: Task, start: Path, out: Path, shares: Sequence[float]) -> None:
    apart = [(book, [one for one in book["queries"] if one[1]]) for book in task.books if book["role"] != "train"]
    with Pool() as pool:
        by_words = pool.starmap(bm25, [(book["docs"], [one[0] for one in asked]) for book, asked in apart], 1)
    texts = [(task.encode([one[0] for one in asked]), task.encode(book["docs"])) for book, asked in apart]
    before, learned = ({renamed(name): value for name, value in one.items()} for one in (unpacked(start), saved(out)))
    for share in shares:
        mixed = {name: share * learned.get(name, value) + (1 - share) * value for name, value in before.items()}
        model = load_weights(mixed)
        near = [(embedded(model, queries) @ embedded(model, docs).T).cpu().numpy() for queries, docs in texts]
        for weight in FUSED_WEIGHTS:
            line = []
            for (book, asked), meaning, words in zip(apart, near, by_words, strict=True):
                order = np.argsort(-fused(meaning, words, weight), axis=1)
                ranks = [min(list(row).index(gold) for gold in one[1]) for row, one in zip(order, asked, strict=True)]
                found = [np.mean(np.array(ranks) < first) for first in (1, 5, 12)]
                line.append(f"{book['set']} {len(asked)} " + " ".join(f"{one:.3f}" for one in found))
            print("share", share, "weight", weight, "; ".join(line), flush=True)


def main() -> None:
    """Run one of the four steps."""
    step, data, start, words, state = sys.argv[1:6]
    task = Task(data, words, state)
    if step == "teach":
        teach(task, Path(start), sys.argv[6:])
    elif step == "measure":
        measure(task, Path(start), Path(sys.argv[6]), [float(share) for share in sys.argv[7:]])
    elif step == "candidates":
        candidates(task, load(Path(start)))
    else:
        options = {name: float(value) for name, value in (one.split("=") for one in sys.argv[7:])}
        learn(task, load(Path(start)), Path(sys.argv[6]), **options)


if __name__ == "__main__":
    main()
