"""Trains the section reader on the GPU machine, and measures means of what several runs learned.

    python3 -m training.section_reader.student learn FOLDER STATE OUT_STEM epochs=2 rate=6e-5 seconds=330 seed=3 [most=4]
    python3 -m training.section_reader.student measure FOLDER STATE SHARE=STEM [SHARE=STEM ...]

FOLDER and STATE are those of `rows.py` and `teacher.py`, which run first; FOLDER/start.npz has the start weights (weights.py). `learn` leaves what was learned
in OUT_STEM.*.npz. `measure` prints the figures of a mean; what the shares leave of 1 is the share of the start weights. Written questions have the
labels 0 and 1; those that the teacher wrote have its scores.
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
from training.packed import Array, mean, save, saved, unpacked
from training.search import DEVICE, tokenizer
from training.section_reader.model import SectionReader
from training.section_reader.rows import Row, load, log, report

CLS, SEP = 101, 102
LONGEST, QUESTION = 384, 96  # tokens of a pair, and of its question
MICRO = 384  # pairs in a batch
SIZE = 40  # rows per step
MOST, BEST, OTHERS = 8, 4, 3  # passages of a row; of a longer one, those with the best labels and some others
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
        if "scores" in row:
            logits = np.array(row["scores"], np.float32)
            labels = 1 / (1 + np.exp(-np.clip(logits, -8, 8)))
        else:
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
            made.append(row)
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


def forward(model: SectionReader, pairs: Sequence[Pair]) -> tuple[Any, list[Any]]:
    """Logits of the pairs, and of the tokens of each passage. Pairs of similar length are computed together."""
    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
    answers, tokens = [], {}
    for start in range(0, len(order), MICRO):
        part = order[start : start + MICRO]
        with torch.autocast(DEVICE, torch.bfloat16):
            answer, token = model(*batch([pairs[number] for number in part]))
        answers.append(answer.float())
        for at, number in enumerate(part):
            tokens[number] = token[at, pairs[number].second : len(pairs[number].ids) - 1]
    back = torch.tensor(np.argsort(order), device=DEVICE)
    return torch.cat(answers)[back], [tokens[at] for at in range(len(pairs))]


def unit_logits(pair: Pair, tokens: Any) -> tuple[Any, Any]:
    """Mean token logit of each unit that was read, and which units have a token."""
    count = int(pair.units.max(initial=-1)) + 1
    inside = torch.from_numpy(pair.units).to(DEVICE)
    of_a_unit = inside >= 0
    total = torch.zeros(count, device=DEVICE).scatter_add_(0, inside[of_a_unit], tokens.float()[of_a_unit])
    number = torch.bincount(inside[of_a_unit], minlength=count)
    return total / number.clamp(min=1), number > 0


def loss_of(model: SectionReader, examples: Sequence[Example], chance: random.Random) -> Any:
    """Loss for whether a passage answers, which of the passages does, and which of its units."""
    chosen = [_chosen(one, chance) for one in examples]
    answers, tokens = forward(
        model, [one.pairs[at] for one, places in zip(examples, chosen, strict=True) for at in places]
    )
    loss, start = torch.zeros((), device=DEVICE), 0
    for one, places in zip(examples, chosen, strict=True):
        end = start + len(places)
        said = answers[start:end]
        labels, weights, logits = (
            torch.tensor(array[places], device=DEVICE) for array in (one.labels, one.weights, one.logits)
        )
        each = -(3 * labels * F.logsigmoid(said) + (1 - labels) * F.logsigmoid(-said))
        loss = loss + (each * weights).mean()
        counts = weights > 0
        if logits[counts].max() > 0:
            wanted = F.log_softmax(logits[counts] / TEMPERATURE, 0)
            loss = loss + 0.5 * F.kl_div(F.log_softmax(said[counts], 0), wanted, log_target=True, reduction="sum")
        if one.row["gold"] in places:
            gold = one.row["gold"]
            loss = loss + _unit_loss(one.row["gold_units"], one.pairs[gold], tokens[start + places.index(gold)])
        start = end
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


def _unit_loss(gold_units: list[int], pair: Pair, tokens: Any) -> Any:
    said, seen = unit_logits(pair, tokens)
    read = [unit for unit in gold_units if unit < len(said)]
    if not read:
        return torch.zeros((), device=DEVICE)
    wanted = torch.zeros_like(said)
    wanted[read] = 1.0
    return F.binary_cross_entropy_with_logits(said[seen], wanted[seen], pos_weight=torch.tensor(2.0, device=DEVICE))


def distillation_loss(
    student: SectionReader,
    teacher: SectionReader,
    examples: Sequence[Example],
    chance: random.Random,
    share_of_labels: float,
) -> Any:
    """Return the distance of a smaller reader from its teacher, in the outputs of its layers and of its two heads."""
    chosen = [(row, one.pairs[at], at) for row, one in enumerate(examples) for at in _chosen(one, chance)]
    chosen.sort(key=lambda one: len(one[1].ids))
    every = len(teacher.layers) // len(student.layers)
    said: list[Any] = []
    wanted: list[Any] = []
    loss = torch.zeros((), device=DEVICE)
    for start in range(0, len(chosen), MICRO // 2):
        part = chosen[start : start + MICRO // 2]
        ids, attended, types = batch([pair for _, pair, _ in part])
        with torch.autocast(DEVICE, torch.bfloat16):
            with torch.no_grad():
                target_states = teacher.states(ids, attended, types)
                target, target_tokens = teacher.heads(target_states[-1])
            states = student.states(ids, attended, types)
            answer, tokens = student.heads(states[-1])
        size, share = attended.sum(), len(part) / len(chosen)
        for ours, theirs in zip(states, target_states[every - 1 :: every], strict=True):
            apart = (ours.float() - theirs.float()).square().mean(-1)
            loss = loss + share * (apart * attended).sum() / size / len(states) * 2
        inside = types.float() * attended
        each = F.binary_cross_entropy_with_logits(tokens.float(), target_tokens.float().sigmoid(), reduction="none")
        loss = loss + share * (each * inside).sum() / inside.sum()
        said.append(answer.float())
        wanted.append(target.float())
    answers, targets = torch.cat(said), torch.cat(wanted)
    each = F.binary_cross_entropy_with_logits(answers, targets.sigmoid(), reduction="none")
    loss = loss + 2 * each.mean() + 0.05 * (answers - targets).square().mean()
    if share_of_labels:
        labels, weights = (
            torch.tensor([float(of(examples[row])[at]) for row, _, at in chosen], device=DEVICE)
            for of in (lambda one: one.labels, lambda one: one.weights)
        )
        each = -(3 * labels * F.logsigmoid(answers) + (1 - labels) * F.logsigmoid(-answers))
        loss = loss + share_of_labels * (each * weights).mean()
    rows = torch.tensor([row for row, _, _ in chosen], device=DEVICE)
    order = torch.argsort(rows, stable=True)
    counts = torch.bincount(rows, minlength=len(examples))
    slot = torch.arange(len(rows), device=DEVICE) - (counts.cumsum(0) - counts)[rows[order]]
    ours, theirs = (torch.full((len(examples), int(counts.max())), -1e4, device=DEVICE) for _ in range(2))
    ours[rows[order], slot], theirs[rows[order], slot] = answers[order], targets[order]
    return loss + 0.5 * F.kl_div(ours.log_softmax(1), theirs.log_softmax(1), log_target=True, reduction="batchmean")


def fewer(weights: dict[str, Array], layers: int) -> dict[str, Array]:
    """Return the weights of a reader with fewer layers: every second or third layer of the teacher."""
    every = 12 // layers
    made = {}
    for name, value in weights.items():
        if not name.startswith("layers."):
            made[name] = value
        elif (int(name.split(".")[1]) + 1) % every == 0:
            _, number, rest = name.split(".", 2)
            made[f"layers.{int(number) // every}.{rest}"] = value
    return made


def learn(model: SectionReader, examples: list[Example], options: dict[str, float], teacher: Any = None) -> None:
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
        if teacher:
            loss = distillation_loss(model, teacher, part, chance, options["labels"])
        else:
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
def without_doubtful(model: SectionReader, examples: list[Example], most: float) -> list[Example]:
    """Leave out questions that the book is said not to answer although the start weights are sure that a passage does:
    such a label is more often wrong than right."""
    model.eval()
    asked = [at for at, one in enumerate(examples) if one.row["gold"] < 0 and "candidates" in one.row]
    doubtful: set[int] = set()
    for first in range(0, len(asked), 200):
        part = asked[first : first + 200]
        answers, start = forward(model, [pair for at in part for pair in examples[at].pairs])[0], 0
        for at in part:
            end = start + len(examples[at].pairs)
            if float(answers[start:end].max()) > most:
                doubtful.add(at)
            start = end
    log(len(doubtful), "of", len(asked), "left out")
    return [one for at, one in enumerate(examples) if at not in doubtful]


@torch.no_grad()
def measure(label: str, model: SectionReader, examples: Sequence[Example]) -> None:
    """Figures of the rows that are not trained on."""
    model.eval()
    scores, units = [], []
    for first in range(0, len(examples), 200):
        part = examples[first : first + 200]
        answers, tokens = forward(model, [pair for one in part for pair in one.pairs])
        start = 0
        for one in part:
            scores.append(answers[start : start + len(one.pairs)].cpu().numpy())
            gold = one.row["gold"]
            said = unit_logits(one.pairs[gold], tokens[start + gold])[0] if gold >= 0 else torch.zeros(0)
            units.append(int(said.argmax()) if len(said) else -1)
            start += len(one.pairs)
    report(label, [one.row for one in examples], scores, units)


def main() -> None:
    what, folder, state = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    encoder, rows, start = (
        Encoder(tokenizer(folder / "tokenizer.json")),
        load(folder, state),
        unpacked(folder / "start.npz"),
    )
    kept = [encoder.example(row) for row in rows if row["role"] != "train"]
    if what == "measure":
        measure(" ".join(sys.argv[4:]), SectionReader.of(start | mean(sys.argv[4:], start)).to(DEVICE), kept)
        return
    begun = [one.removeprefix("begin=") for one in sys.argv[5:] if one.startswith("begin=")]
    options = {name: float(value) for name, value in (one.split("=") for one in sys.argv[5:] if "/" not in one)}
    teacher = None
    if what == "distil":
        whole = start | mean([one for one in sys.argv[5:] if "/" in one and "begin" not in one], start)
        teacher = SectionReader.of(whole).to(DEVICE).eval()
        small = fewer(whole, int(options["layers"]))
        for stem in begun:
            small |= saved(Path(stem))
        model = SectionReader.of(small, dropout=0.0).to(DEVICE)
    else:
        model = SectionReader.of(start).to(DEVICE)
    if not begun:
        measure("before", teacher or model, kept)
    examples = [encoder.example(row) for row in rows_to_learn(rows)]
    log("rows", len(examples))
    if "most" in options:
        examples = without_doubtful(model, examples, options["most"])
    learn(model, examples, options, teacher)
    measure("after", model, kept)
    learned = {name: value.cpu().numpy() for name, value in model.state_dict().items() if not name.startswith(FIXED)}
    save(Path(sys.argv[4]), learned)


if __name__ == "__main__":
    main()
