"""Trains the upper layers of the section reader on a CPU, where no GPU is at hand.

    python -m training.section_reader.on_cpu choose BOOKS.jsonl.gz OUT.jsonl.gz --trained COMMIT --words COMMIT
    python -m training.section_reader.on_cpu learn FOLDER STATE OUT_STEM [--seconds 2400] [--rate 4e-5] [--epochs 2]

`choose` keeps of the rows of `books.py` all questions in everyday words and some of the others: those written since `--trained` (the commit
of the last training), and fewer of those before it. Lines that a file has had since `--words` are questions in everyday words. `rows.py` then
finds candidates. `learn` trains the layers above the lower ones, in bfloat16.
"""

import argparse
import gzip
import json
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from bench.keyless.sets import QUESTIONS
from training.packed import save, unpacked
from training.search import tokenizer
from training.section_reader.model import SectionReader
from training.section_reader.rows import Row, load, log, report
from training.section_reader.student import (
    FIXED,
    Encoder,
    Example,
    Pair,
    _unit_loss,
    batch,
    unit_logits,
)

WRITTEN = Path(__file__).parent / "written"
LOWER = 4  # layers that are not trained
SHARES = {  # of the rows of a kind that are kept
    "words": 1.0,
    "new question": 0.9,
    "new turn": 0.6,
    "old question": 0.25,
    "old turn": 0.25,
    "selected": 0.8,
    "squad": 1.0,  # with two of four paragraphs
    "strong": 0.1,
    "strange": 0.4,
}
AGAIN = "words"  # rows of this kind are learned twice in an epoch
KEPT, USED = 6, 4  # passages of a row that are kept, and of those in one step
SIZE, MICRO = 16, 12  # rows of a step; pairs that are computed together
SURE, TEMPERATURE = 4.0, 1.5


def choose(options: argparse.Namespace) -> None:
    """Keep some rows of each training book, and all of the others."""
    chance, count = random.Random(7), Counter[str]()
    with gzip.open(options.books, "rt") as lines, gzip.open(options.out, "wt") as file:
        for book in map(json.loads, lines):
            if book["role"] == "train":
                before = {at: _lines(book["set"], getattr(options, at)) for at in ("trained", "words")}
                kept = []
                for row in book["rows"]:
                    kind = _kind(row, before)
                    if chance.random() < SHARES[kind]:
                        kept.append(row | {"kind": kind})
                        count[kind] += 1
                book["rows"] = kept
            else:
                words = _in_words(book["set"])
                book["rows"] = [row | {"kind": "words" if row["question"] in words else ""} for row in book["rows"]]
            file.write(json.dumps(book, ensure_ascii=False) + "\n")
    print(dict(count))


def _kind(row: Row, before: dict[str, dict[str, int]]) -> str:
    what, number = re.fullmatch(r".*-([a-z]+)(\d+)", row["group"]).groups()  # type: ignore[union-attr]
    if what == "questions" and int(number) >= before["words"][what]:
        return "words"
    age = "new" if int(number) >= before["trained"].get(what, 0) else "old"
    return f"{age} {'turn' if row['turn'] else 'question'}"


def _in_words(name: str) -> set[str]:
    """The questions in everyday words about a book that is kept apart."""
    files = QUESTIONS.glob(f"*_words_{name}_questions.jsonl")
    return {json.loads(line)["question"] for file in files for line in file.read_text("utf-8").splitlines()}


def _lines(name: str, commit: str) -> dict[str, int]:
    """How many lines each file about a book had at a commit."""
    found = {}
    for file in WRITTEN.glob(f"{name}_*.jsonl"):
        shown = subprocess.run(
            ["git", "show", f"{commit}:./{file.name}"], cwd=WRITTEN, capture_output=True, check=False
        )
        found[file.stem.rpartition("_")[2]] = shown.stdout.count(b"\n")
    return found


def forward(model: SectionReader, pairs: Sequence[Pair]) -> tuple[Any, list[Any]]:
    """Logits of the pairs, and of the tokens of each passage. The lower layers are not trained."""
    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
    answers, tokens = [], {}
    for start in range(0, len(order), MICRO):
        part = order[start : start + MICRO]
        ids, attended, types = batch([pairs[at] for at in part])
        with torch.autocast("cpu", torch.bfloat16):
            mask = (1.0 - attended[:, None, None, :]).bfloat16() * -10000.0
            with torch.no_grad():
                places = torch.arange(ids.shape[1])
                x = model.norm(model.words(ids) + model.types(types) + model.positions(places)[None]).bfloat16()
                for layer in model.layers[:LOWER]:
                    x = layer(x, mask).bfloat16()
            for layer in model.layers[LOWER:]:
                x = layer(x, mask)
            answer, token = model.heads(x)
        answers.append(answer.float())
        for at, number in enumerate(part):
            tokens[number] = token[at, pairs[number].second : len(pairs[number].ids) - 1]
    back = torch.tensor(np.argsort(order))
    return torch.cat(answers)[back], [tokens[at] for at in range(len(pairs))]


def few(row: Row, chance: random.Random, most: int = KEPT) -> Row:
    """The row with its answering passage, the nearest of the others, and two further ones."""
    if row["set"] == "squad":
        return row | {"passages": row["passages"][:2], "ignore": [at for at in row["ignore"] if at < 2]}
    if len(row["passages"]) <= most:
        return row
    others = [at for at in range(len(row["passages"])) if at != row["gold"] and at not in row["ignore"]]
    nearest = others[: most - 3]
    kept = [*nearest, *chance.sample(others[most - 3 :], min(2, len(others[most - 3 :])))]
    kept = sorted({*kept, *([row["gold"]] if row["gold"] >= 0 else [])})
    gold = kept.index(row["gold"]) if row["gold"] >= 0 else -1
    return row | {"passages": [row["passages"][at] for at in kept], "gold": gold, "ignore": []}


def loss_of(model: SectionReader, examples: Sequence[Example], chance: random.Random) -> Any:
    """Loss for whether a passage answers, which of the passages does, and which of its units."""
    chosen = []
    for one in examples:
        places = list(range(len(one.pairs)))
        if len(places) > USED:
            gold = [one.row["gold"]] if one.row["gold"] >= 0 else []
            places = sorted([*gold, *chance.sample([at for at in places if at not in gold], USED - len(gold))])
        chosen.append(places)
    pairs = [one.pairs[at] for one, places in zip(examples, chosen, strict=True) for at in places]
    answers, tokens = forward(model, pairs)
    loss, start = torch.zeros(()), 0
    for one, places in zip(examples, chosen, strict=True):
        end, gold = start + len(places), one.row["gold"]
        said, labels, weights = answers[start:end], torch.tensor(one.labels[places]), torch.tensor(one.weights[places])
        each = -(3 * labels * F.logsigmoid(said) + (1 - labels) * F.logsigmoid(-said))
        loss = loss + (each * weights).mean()
        if gold in places:
            counts = weights > 0
            wanted = F.log_softmax((labels[counts] * 2 - 1) * SURE / TEMPERATURE, 0)
            loss = loss + 0.5 * F.kl_div(F.log_softmax(said[counts], 0), wanted, log_target=True, reduction="sum")
            loss = loss + _unit_loss(one.row["gold_units"], one.pairs[gold], tokens[start + places.index(gold)])
        start = end
    return loss / len(examples)


@torch.no_grad()
def measure(label: str, model: SectionReader, examples: Sequence[Example]) -> None:
    model.eval()
    scores, units = [], []
    for one in examples:
        answers, tokens = forward(model, one.pairs)
        scores.append(answers.numpy())
        gold = one.row["gold"]
        said = unit_logits(one.pairs[gold], tokens[gold])[0] if gold >= 0 else torch.zeros(0)
        units.append(int(said.argmax()) if len(said) else -1)
    report(label, [one.row for one in examples], scores, units)
    model.train()


def rows_to_learn(rows: Sequence[Row], chance: random.Random) -> list[Row]:
    """The rows of the training books, and some of the groups."""
    made = []
    for row in rows:
        if row["role"] != "train":
            continue
        known = {"selected": "selected", "squad": "squad"}.get(row["set"], "strong")
        if "candidates" in row:
            known = row["kind"] if row["kind"] == "strange" else AGAIN
        if chance.random() < SHARES[known]:
            made.append(few(row, chance))
            if row.get("kind") == AGAIN:
                made.append(made[-1])
    return made


def kept_apart(rows: Sequence[Row], chance: random.Random, most: int) -> list[Row]:
    """Rows that are not trained on: all in everyday words, and some of the others."""
    named = [
        row
        | {"role": row.get("kind") or row["role"], "passages": row["passages"][:KEPT]}
        | {"ignore": [at for at in row["ignore"] if at < KEPT]}
        for row in rows
        if row["role"] != "train"
    ]
    held = [row for row in named if row["gold"] < KEPT]
    return [row for row in held if row["role"] == "words"] + chance.sample(
        [row for row in held if row["role"] != "words"], min(most, sum(row["role"] != "words" for row in held))
    )


def learn(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    chance = random.Random(options.seed)
    encoder = Encoder(tokenizer(options.folder / "tokenizer.json"))
    rows = load(options.folder, options.state)
    apart = [encoder.example(row) for row in kept_apart(rows, chance, options.apart)]
    examples = [encoder.example(row) for row in rows_to_learn(rows, chance)]
    model = SectionReader.of(unpacked(options.folder / "start.npz"), dropout=0.0).eval()
    log(len(examples), "rows to learn", len(apart), "apart")
    measure("before", model, apart)
    moving = [
        *model.layers[LOWER:].parameters(),
        *model.pool.parameters(),
        *model.pair.parameters(),
        *model.token.parameters(),
    ]
    optimiser = torch.optim.AdamW(moving, lr=options.rate, weight_decay=0.01)
    in_epoch = len(examples) // SIZE
    steps, started = options.epochs * in_epoch, time.time()
    model.train()
    losses = []
    for step in range(steps):
        at = step % in_epoch * SIZE
        if not at:
            chance.shuffle(examples)
        loss = loss_of(model, examples[at : at + SIZE], chance)
        progress = max((step + 1) / steps, (time.time() - started) / options.seconds)
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min(1, (step + 1) / 40) * max(0.0, 1 - progress)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(moving, 1.0)
        optimiser.step()
        losses.append(loss.item())
        if step % 40 == 0 or progress >= 1:
            log("step", step, "of", steps, "loss", round(float(np.mean(losses[-40:])), 3))
        if step and step % 300 == 0:
            save(options.out, _learned(model))
        if progress >= 1:
            break
    save(options.out, _learned(model))
    measure("after", model, apart)


def _learned(model: SectionReader) -> dict[str, Any]:
    return {name: value.numpy() for name, value in model.state_dict().items() if not name.startswith(FIXED)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(required=True)
    choosing = steps.add_parser("choose")
    choosing.add_argument("books", type=Path)
    choosing.add_argument("out", type=Path)
    choosing.add_argument("--trained", required=True)
    choosing.add_argument("--words", required=True)
    choosing.set_defaults(run=choose)
    learning = steps.add_parser("learn")
    for name in ("folder", "state", "out"):
        learning.add_argument(name, type=Path)
    learning.add_argument("--seconds", type=float, default=2400)
    learning.add_argument("--rate", type=float, default=4e-5)
    learning.add_argument("--epochs", type=int, default=2)
    learning.add_argument("--seed", type=int, default=3)
    learning.add_argument("--apart", type=int, default=250)
    learning.set_defaults(run=learn)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
