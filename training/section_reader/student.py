"""Trains the section reader on the GPU machine, and measures means of what several runs learned.

    python3 -m training.section_reader.student learn FOLDER STATE OUT_STEM epochs=2 rate=6e-5 seconds=330 seed=3 [begin=SHARE=STEM,...]
    python3 -m training.section_reader.student measure FOLDER STATE SHARE=STEM,SHARE=STEM [...]

FOLDER and STATE are those of `rows.py`, which runs first; FOLDER/start.npz has the start weights (weights.py). `learn` leaves what was learned
in OUT_STEM.*.npz. `measure` prints the figures of means; what the shares leave of 1 is the share of the start weights.
"""

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from training.packed import mean, save, unpacked
from training.search import DEVICE, tokenizer
from training.section_reader.model import SectionReader
from training.section_reader.rows import Row, load, log, report

CLS, SEP = 101, 102
LONGEST, QUESTION = 384, 96  # tokens of a pair, and of its question
MICRO = 108  # pairs in a batch
SIZE = 40  # rows per step
MOST, BEST, OTHERS = 8, 4, 3  # passages of a row; of a longer one, those with the best labels and some others
AGAIN = "words"  # rows of this kind are learned twice in an epoch
SHORT = 0.25  # share of the questions that are asked again over short texts
SURE = 4.0  # logit of a label 1 where the order of passages is learned, and of a label 0 with a minus
TEMPERATURE = 1.5
FIXED = ("words", "positions", "types")  # tables that are not trained


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage in the form that the model reads."""

    ids: Any
    second: int  # where the passage begins
    units: Any  # the unit of each token of the passage; -1 if none


@dataclass(frozen=True, slots=True)
class Example:
    """A row for training: for each passage the pair, the label, its weight and its logit."""

    row: Row
    pairs: list[Pair]
    labels: Any
    weights: Any
    logits: Any


class Encoder:
    """Tokenises texts. A passage of several rows is encoded once."""

    def __init__(self, cutter: Tokenizer) -> None:
        self._cutter = cutter
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}

    def example(self, row: Row) -> Example:
        asked = self._cutter.encode(row["question"], add_special_tokens=False).ids[:QUESTION]
        pairs = [self._pair(asked, one) for one in row["passages"]]
        weights = np.ones(len(pairs), np.float32)
        labels = np.zeros(len(pairs), np.float32)
        labels[[row["gold"]] if row["gold"] >= 0 else []] = 1
        logits = np.where(labels > 0, SURE, -SURE).astype(np.float32)
        weights[row["ignore"]] = 0
        return Example(row, pairs, labels, weights, logits)

    def _pair(self, asked: list[int], passage: Row) -> Pair:
        tokens, units = self._passage(passage["text"], passage["units"])
        room = LONGEST - len(asked) - 3
        return Pair(np.concatenate(([CLS], asked, [SEP], tokens[:room], [SEP])), len(asked) + 2, units[:room])

    def _passage(self, text: str, spans: list[list[int]]) -> tuple[Any, Any]:
        key = (text, len(spans))
        if key not in self._known:
            found = self._cutter.encode(text, add_special_tokens=False)
            units, at = [], 0
            for left, _ in found.offsets[:LONGEST]:
                while at < len(spans) and spans[at][1] <= left:
                    at += 1
                units.append(at if at < len(spans) and spans[at][0] <= left else -1)
            self._known[key] = np.array(found.ids[:LONGEST], np.int32), np.array(units, np.int64)
        return self._known[key]


def short(row: Row, chance: random.Random) -> Row | None:
    """The same question over short texts without headings, like a reader's selection: a few units that answer,
    others of the same passage that do not, and a few of another passage."""
    made: list[Row] = []
    gold_units: list[int] = []
    if row["gold"] >= 0:
        gold, units = row["passages"][row["gold"]], row["gold_units"]
        if not units:
            return None
        last_unit = len(gold["units"]) - 1
        first = max(0, min(units) - chance.randrange(3))
        last = min(last_unit, max(units) + chance.randrange(3))
        gold_units = [unit - first for unit in units]
        runs = ((first, last), (0, min(units) - 1), (max(units) + 1, last_unit))
        made += [_stretch(gold, *run) for run in runs if run[0] <= run[1]]
    left_out = (row["gold"], *row["ignore"])
    others = [one for at, one in enumerate(row["passages"]) if at not in left_out and one["units"]]
    if others:
        other = chance.choice(others)
        first = chance.randrange(len(other["units"]))
        made.append(_stretch(other, first, min(len(other["units"]) - 1, first + chance.randrange(4))))
    if not made:
        return None
    return row | {"passages": made, "gold": 0 if gold_units else -1, "gold_units": gold_units, "ignore": []}


def _stretch(one: Row, first: int, last: int) -> Row:
    start, end = one["units"][first][0], one["units"][last][1]
    spans = [[left - start, right - start] for left, right in one["units"][first : last + 1]]
    return {"text": one["text"][start:end], "units": spans}


def rows_to_learn(rows: Sequence[Row]) -> list[Row]:
    """The questions to train on, some of them a second time over short texts."""
    chance, made = random.Random(5), []
    for row in rows:
        if row["role"] == "train":
            made += [row, row] if row.get("kind") == AGAIN else [row]
            if not row["turn"] and chance.random() < SHORT and (again := short(row, chance)):
                made.append(again)
    return made


def batch(pairs: Sequence[Pair]) -> tuple[Any, Any, Any]:
    """Return token ids, the attention mask, and the token types of a padded batch."""
    longest = (max(len(one.ids) for one in pairs) + 7) // 8 * 8
    ids, types = np.zeros((len(pairs), longest), np.int64), np.zeros((len(pairs), longest), np.int64)
    attended = np.zeros((len(pairs), longest), np.float32)
    for at, one in enumerate(pairs):
        ids[at, : len(one.ids)], attended[at, : len(one.ids)] = one.ids, 1
        types[at, one.second : len(one.ids)] = 1
    ready = [torch.from_numpy(array).to(DEVICE) for array in (ids, attended, types)]
    return ready[0], ready[1], ready[2]


def forward(model: SectionReader, pairs: Sequence[Pair], wanted: Sequence[Any]) -> tuple[Any, Any]:
    """Logits of the pairs, and of units: `wanted` names for each token of a passage its unit among all, or -1. Pairs of similar length are
    computed together."""
    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
    answers, tokens, places = [], [], []
    for start in range(0, len(order), MICRO):
        part = order[start : start + MICRO]
        ids, attended, types = batch([pairs[number] for number in part])
        inside = np.full(ids.shape, -1, np.int64)
        for row, number in enumerate(part):
            inside[row, pairs[number].second : len(pairs[number].ids) - 1] = wanted[number]
        with torch.autocast(DEVICE, torch.bfloat16):
            answer, token = model(ids, attended, types)
        answers.append(answer.float())
        at = np.flatnonzero(inside >= 0)
        tokens.append(token.float().flatten()[torch.from_numpy(at).to(DEVICE)])
        places.append(inside.flat[at])
    back = torch.tensor(np.argsort(order), device=DEVICE)
    units = np.concatenate(places)
    count = torch.from_numpy(np.bincount(units).astype(np.float32)).to(DEVICE)
    total = torch.zeros_like(count).scatter_add_(0, torch.from_numpy(units).to(DEVICE), torch.cat(tokens))
    return torch.cat(answers)[back], total / count.clamp(min=1)


def loss_of(model: SectionReader, examples: Sequence[Example], chance: random.Random) -> Any:
    """Loss for whether a passage answers, which of the passages does, and which of its units."""
    pairs: list[Pair] = []
    wanted: list[Any] = []
    labels, weights, logits = (np.zeros((len(examples), MOST), np.float32) for _ in range(3))
    slots, units, shares = [], [], []
    for row, one in enumerate(examples):
        places, gold = _chosen(one, chance), one.row["gold"]
        for to, of in ((labels, one.labels), (weights, one.weights), (logits, one.logits)):
            to[row, : len(places)] = of[places]
        slots += [row * MOST + at for at in range(len(places))]
        for place in places:
            pair = one.pairs[place]
            pairs.append(pair)
            wanted.append(-1)
            count = int(pair.units.max(initial=-1)) + 1
            read = [unit for unit in one.row["gold_units"] if unit < count]
            if place == gold and read:
                wanted[-1] = np.where(pair.units >= 0, pair.units + len(units), -1)
                seen = np.bincount(pair.units[pair.units >= 0], minlength=count) > 0
                units += [float(at in read) for at in range(count)]
                shares += (seen / seen.sum()).tolist()
    answers, unit_logits = forward(model, pairs, wanted)
    said = torch.full((len(examples) * MOST,), -1e4, device=DEVICE)
    said = said.index_copy(0, torch.tensor(slots, device=DEVICE), answers).view(len(examples), MOST)
    label, weight, logit = (torch.from_numpy(one).to(DEVICE) for one in (labels, weights, logits))
    here = torch.zeros_like(said).flatten().index_fill(0, torch.tensor(slots, device=DEVICE), 1).view_as(said)
    each = -(3 * label * F.logsigmoid(said) + (1 - label) * F.logsigmoid(-said)) * weight * here
    loss = (each.sum(1) / here.sum(1)).sum()
    counts = (weight * here) > 0
    order = F.log_softmax(said.masked_fill(~counts, -1e4), 1)
    target = F.log_softmax((logit / TEMPERATURE).masked_fill(~counts, -1e4), 1)
    apart = (target.exp() * (target - order)).masked_fill(~counts, 0).sum(1)
    loss = loss + 0.5 * (apart * (label.max(1).values > 0)).sum()
    if units:
        need = torch.tensor(units, device=DEVICE)
        of_each = F.binary_cross_entropy_with_logits(
            unit_logits, need[: len(unit_logits)], pos_weight=torch.tensor(2.0, device=DEVICE), reduction="none"
        )
        loss = loss + (of_each * torch.tensor(shares, device=DEVICE)[: len(unit_logits)]).sum()
    return loss / len(examples)


def _chosen(one: Example, chance: random.Random) -> list[int]:
    """The passages of a step: the answering one, those with the best labels, and some of the others."""
    places = list(range(len(one.pairs)))
    if len(places) <= MOST:
        return places
    best = {int(at) for at in np.argsort(-one.logits, kind="stable")[:BEST]}
    best |= {one.row["gold"]} if one.row["gold"] >= 0 else set()
    others = [at for at in places if at not in best]
    return sorted([*best, *chance.sample(others, OTHERS)])


def learn(model: SectionReader, examples: list[Example], options: dict[str, float]) -> None:
    """Train for a number of epochs, or fewer if the time runs out. In both cases the rate decays to zero at the end."""
    chance, in_epoch = random.Random(int(options["seed"])), len(examples) // SIZE
    steps = int(options["epochs"]) * in_epoch
    moving = [one for one in model.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(moving, lr=options["rate"], weight_decay=0.01, fused=True)
    model.train()
    started = time.time()
    for step in range(steps):
        at = step % in_epoch * SIZE
        if not at:
            chance.shuffle(examples)
        part = examples[at : at + SIZE]
        loss = loss_of(model, part, chance)
        progress = max((step + 1) / steps, (time.time() - started) / options["seconds"])
        for group in optimiser.param_groups:
            group["lr"] = options["rate"] * min(1, (step + 1) / 60) * max(0, 1 - progress)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(moving, 1.0)
        optimiser.step()
        if step % 100 == 0 or progress >= 1:
            log("step", step, "of", steps, "loss", round(loss.item(), 3))
        if progress >= 1:
            break


@torch.no_grad()
def measure(label: str, model: SectionReader, examples: Sequence[Example]) -> None:
    """Figures of the rows that are not trained on."""
    model.eval()
    scores, units = [], []
    for first in range(0, len(examples), 200):
        part = examples[first : first + 200]
        pairs, wanted, starts, count = [pair for one in part for pair in one.pairs], [], [], 0
        for one in part:
            starts.append(count)
            gold = one.row["gold"]
            wanted += [
                np.where(pair.units >= 0, pair.units + count, -1) if at == gold else -1
                for at, pair in enumerate(one.pairs)
            ]
            count += int(one.pairs[gold].units.max(initial=-1)) + 1 if gold >= 0 else 0
        answers, marks = (found.cpu().numpy() for found in forward(model, pairs, wanted))
        at = 0
        for one, start, end in zip(part, starts, [*starts[1:], count], strict=True):
            scores.append(answers[at : at + len(one.pairs)])
            units.append(int(marks[start:end].argmax()) if marks[start:end].size else -1)
            at += len(one.pairs)
    report(label, [one.row | {"set": one.row.get("kind") or one.row["set"]} for one in examples], scores, units)


def main() -> None:
    what, folder, state = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    encoder, rows = Encoder(tokenizer(folder / "tokenizer.json")), load(folder, state)
    start = unpacked(folder / "start.npz")
    kept = [encoder.example(row) for row in rows if row["role"] != "train"]
    if what == "measure":
        for shares in sys.argv[4:]:
            measure(shares, SectionReader.of(start | mean(shares.split(","), start)).to(DEVICE), kept)
        return
    begun = [one.removeprefix("begin=").split(",") for one in sys.argv[5:] if one.startswith("begin=")]
    options = {name: float(value) for name, value in (one.split("=") for one in sys.argv[5:] if "/" not in one)}
    torch.manual_seed(int(options["seed"]))
    model = SectionReader.of(start | (mean(begun[0], start) if begun else {})).to(DEVICE)
    examples = [encoder.example(row) for row in rows_to_learn(rows)]
    log("rows", len(examples))
    learn(model, examples, options)
    learned = {name: value.cpu().numpy() for name, value in model.state_dict().items() if not name.startswith(FIXED)}
    save(Path(sys.argv[4]), learned)
    measure("after", model, kept)


if __name__ == "__main__":
    main()
