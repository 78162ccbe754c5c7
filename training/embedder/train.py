"""Trains the embedder on readers' questions, taught by the section reader. Runs on the GPU machine.

    python3 -m training.embedder.train candidates DATA START TOKENIZER STATE
    python3 -m training.embedder.train teach DATA READER_START TOKENIZER STATE
    python3 -m training.embedder.train learn DATA START TOKENIZER STATE OUT [epochs=7 rate=1e-4 batch=64 most=20]

1. *candidates*: for each question the passages that the start weights and BM25 put first.
2. *teach*: the section reader (start.npz of `section_reader/weights.py`) scores each question with each candidate.
3. *learn*: the embedder learns to order the candidates as the teacher does (KL divergence), and to put an answering passage before all
   other passages of the batch (cross-entropy). The table of words does not move.

DATA comes from `data.py`; START is the published model with its matrices as int8 rows (`NAME|q`) and their scales (`NAME|s`). Three steps, because
not more than 64 MiB travel to the machine at once.
"""

import gzip
import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import nn
from training.embedder.names import renamed

WIDTH, HEADS, INNER = 384, 12, 1536
WEIGHT, DEEP = 0.6, 100  # of meaning in the fused score; passages taken from each search
FUSED, MEANING, WORDS, MOST = 40, 16, 8, 56  # candidates by each order, and in all
TEMPERATURE, TEACHER_TEMPERATURE, GOLD = 0.05, 1.5, 4.0
HARD = 6  # of the candidates of a step: those that the teacher thinks most of
CLS, SEP = 101, 102


class Layer(nn.Module):
    """One transformer layer, normalised after each half as BERT is."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            part(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (self.q, self.k, self.v)
        )
        dropped = 0.1 if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropped)
        x = self.n1(x + F.dropout(self.o(y.transpose(1, 2).reshape(batch, length, WIDTH)), 0.1, self.training))
        return self.n2(x + F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training))


class Embedder(nn.Module):
    """BERT, the mean of its last states, and length 1."""

    def __init__(self, words: int, layers: int) -> None:
        super().__init__()
        self.tok, self.pos, self.typ = nn.Embedding(words, WIDTH), nn.Embedding(512, WIDTH), nn.Embedding(2, WIDTH)
        self.tok.weight.requires_grad_(False)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, ids: Any, attended: Any) -> Any:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.tok(ids) + self.typ(torch.zeros_like(ids)) + self.pos(places)[None])
        x = F.dropout(x, 0.1, self.training)
        mask = ((1.0 - attended[:, None, None, :]) * -10000.0).to(x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        return x


def load(file: Path) -> Embedder:
    packed = np.load(file)
    found = {}
    for key in packed.files:
        if not key.endswith("|s") and "pooler" not in key:
            value = packed[key].astype(np.float32)
            value = value * packed[f"{key[:-2]}|s"] if key.endswith("|q") else value
            found[renamed(key.removesuffix("|q"))] = torch.tensor(value)
    layers = 1 + max(int(name.split(".")[1]) for name in found if name.startswith("layers."))
    model = Embedder(found["tok.weight"].shape[0], layers)
    model.load_state_dict(found)
    return model.cuda()


def vectors(model: Embedder, encoded: list[Any]) -> Any:
    longest = (max(map(len, encoded)) + 7) // 8 * 8
    ids, attended = np.zeros((len(encoded), longest), np.int64), np.zeros((len(encoded), longest), np.float32)
    for row, tokens in enumerate(encoded):
        ids[row, : len(tokens)], attended[row, : len(tokens)] = tokens, 1
    mask = torch.from_numpy(attended).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        states = model(torch.from_numpy(ids).cuda(), mask).float()
    return F.normalize((states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True), dim=1)


@torch.no_grad()
def embedded(model: Embedder, encoded: list[Any], size: int = 512) -> Any:
    model.eval()
    out = torch.zeros(len(encoded), WIDTH, device="cuda")
    order = np.argsort([len(tokens) for tokens in encoded])
    for start in range(0, len(order), size):
        at = order[start : start + size]
        out[torch.from_numpy(at).cuda()] = vectors(model, [encoded[one] for one in at])
    return out


def bm25(docs: list[str], queries: list[str]) -> Any:
    """Scores of all passages for all questions, over words without endings."""
    counts = [Counter(_words(doc)) for doc in docs]
    lengths = np.array([sum(one.values()) for one in counts])
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(counts):
        for word, count in one.items():
            found[word].append((number, count))
    scores = np.zeros((len(queries), len(docs)), np.float32)
    for row, query in enumerate(queries):
        for word in set(_words(query)) & found.keys():
            at, count = map(np.array, zip(*found[word], strict=True))
            rare = math.log(1 + (len(docs) - len(at) + 0.5) / (len(at) + 0.5))
            scores[row, at] += rare * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[at] / lengths.mean()))
    return scores


def _words(text: str) -> list[str]:
    return [re.sub(r"(?<=\w{4})(?:ing|ed|es|s)$", "", word) for word in re.findall(r"[a-z0-9_]+", text.lower())]


def fused(meaning: Any, words: Any) -> Any:
    """The product's score: both in standard deviations, over the first passages of each search."""
    out = np.full_like(meaning, -1e9)
    for row in range(len(meaning)):
        at = np.union1d(np.argsort(-meaning[row])[:DEEP], np.argsort(-words[row])[:DEEP])
        one, two = (
            (score[row, at] - score[row, at].mean()) / (score[row, at].std() + 1e-9) for score in (meaning, words)
        )
        out[row, at] = WEIGHT * one + (1 - WEIGHT) * two
    return out


class Task:
    """The data, the tokenizer and the folder for what one step leaves to the next."""

    def __init__(self, data: str, tokenizer: str, state: str) -> None:
        self.books = [json.loads(line) for line in gzip.open(data, "rt")]
        self.training = [book for book in self.books if book["role"] == "train"]
        self.state = Path(state)
        self.state.mkdir(exist_ok=True)
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.no_padding()

    def encode(self, texts: list[str], most: int = 256) -> list[Any]:
        self._tokenizer.enable_truncation(most)
        return [np.array(one.ids, np.int64) for one in self._tokenizer.encode_batch(texts)]

    def keep(self, name: str, found: Any) -> None:
        (self.state / name).write_text(json.dumps(found))

    def kept(self, name: str) -> Any:
        return json.loads((self.state / name).read_text())


def candidates(task: Task, model: Embedder) -> None:
    chosen = {}
    for book in task.training:
        queries = [query[0] for query in book["queries"]]
        near = embedded(model, task.encode(queries)) @ embedded(model, task.encode(book["docs"])).T
        meaning, words = near.cpu().numpy(), bm25(book["docs"], queries)
        both = fused(meaning, words)
        rows = []
        for at, query in enumerate(book["queries"]):
            orders = ((both, FUSED), (meaning, MEANING), (words, WORDS))
            best = [int(one) for scores, count in orders for one in np.argsort(-scores[at])[:count]]
            rows.append(list(dict.fromkeys([*query[1][:4], *best]))[:MOST])
        chosen[book["set"]] = rows
    task.keep("candidates.json", chosen)


@torch.no_grad()
def teach(task: Task, start: Path) -> None:
    from training.section_reader.model import SectionReader, start_weights

    reader = SectionReader(12)
    reader.load_state_dict(start_weights(start))
    reader = reader.cuda().eval()
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
    with torch.autocast("cuda", torch.bfloat16):
        return reader(*(torch.from_numpy(part).cuda() for part in (ids, attended, types)))[0].float().cpu().numpy()


def learn(task: Task, model: Embedder, out: Path, **options: float) -> None:
    epochs, rate = int(options.get("epochs", 7)), options.get("rate", 1e-4)
    size, most = int(options.get("batch", 64)), int(options.get("most", 20))
    chosen, scores = task.kept("candidates.json"), task.kept("scores.json")
    encoded = {
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
            queries = vectors(model, [encoded[item[0]][1][item[1]] for item in items[start : start + size]])
            docs = vectors(model, [encoded[name][0][doc] for name, row, *_ in batch for doc in row])
            loss = _loss(queries @ docs.T / TEMPERATURE, batch, most)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(moving, 1.0)
            optimiser.step()
            schedule.step()
        print("epoch", epoch, "loss of the last step", round(loss.item(), 3), flush=True)
    learned = {name: value.cpu().numpy().astype(np.float16) for name, value in model.state_dict().items()}
    names = sorted(name for name in learned if not name.startswith("tok."))
    for part, some in enumerate((names[::2], names[1::2])):  # two files: one would be too large to come back
        np.savez_compressed(out / f"embedder.{part}.npz", **{name: learned[name] for name in some})


def _picked(item: Any, most: int, chance: random.Random) -> Any:
    """Candidates of one step: one that answers, those that the teacher thinks most of, and some of the others."""
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


def main() -> None:
    """One of the three steps."""
    step, data, start, tokenizer, state = sys.argv[1:6]
    task = Task(data, tokenizer, state)
    if step == "teach":
        teach(task, Path(start))
    elif step == "candidates":
        candidates(task, load(Path(start)))
    else:
        options = {name: float(value) for name, value in (one.split("=") for one in sys.argv[7:])}
        learn(task, load(Path(start)), Path(sys.argv[6]), **options)


if __name__ == "__main__":
    main()
