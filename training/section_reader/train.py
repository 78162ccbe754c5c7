"""Trains the section reader on the GPU machine.

    python3 -m training.section_reader.train FOLDER OUT [key=value ...]

FOLDER holds rows.npz (pack.py) and start.npz (weights.py). Leaves what was learned as float16 in OUT/reader.*.npz; the tables of
words, positions and types stay as they are in the start weights.
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from training.section_reader.model import SectionReader, start_weights

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LONGEST = 384  # tokens of a pair
ENOUGH = 8  # passages of a row to which no others are added
MICRO = 192  # pairs that run together
STARTED = time.time()
Row = dict[str, Any]


def log(*said: Any) -> None:
    print(f"[{time.time() - STARTED:6.1f}s]", *said, flush=True)


CLS, SEP = 101, 102


class Packed:
    """Questions and passages as token arrays (pack.py)."""

    def __init__(self, file: Path) -> None:
        packed = np.load(file)
        self._tokens, self._unit_of = packed["tokens"].astype(np.int64), packed["unit_of"].astype(np.int64)
        self._starts, self._questions = packed["starts"], packed["questions"].astype(np.int64)
        self._question_starts = packed["question_starts"]
        names = ("question", "passages", "gold", "gold_units", "ignore", "group", "set")
        self.rows = [dict(zip(names, row, strict=True)) for row in json.loads(packed["rows"].tobytes())]

    def pair(self, question: int, passage: int) -> tuple[Any, int, Any]:
        """Token ids, where the passage begins, and the unit of each token (-1: none)."""
        asked = self._questions[self._question_starts[question] : self._question_starts[question + 1]]
        room = LONGEST - len(asked) - 3
        left = self._starts[passage]
        right = min(self._starts[passage + 1], left + room)
        ids = np.concatenate(([CLS], asked, [SEP], self._tokens[left:right], [SEP]))
        units = np.full(len(ids), -1, np.int64)
        units[len(asked) + 2 : -1] = self._unit_of[left:right]
        return ids, len(asked) + 2, units

    def encode(self, row: Row) -> list[tuple[Any, int, Any]]:
        return [self.pair(row["question"], passage) for passage in row["passages"]]


def batch(encoded: list[tuple[Any, int, Any]]) -> tuple[Any, Any, Any, Any]:
    longest = (max(len(ids) for ids, *_ in encoded) + 7) // 8 * 8
    ids = np.zeros((len(encoded), longest), np.int64)
    attended = np.zeros((len(encoded), longest), np.float32)
    types = np.zeros((len(encoded), longest), np.int64)
    unit_of = np.full((len(encoded), longest), -1, np.int64)
    for row, (tokens, second, units) in enumerate(encoded):
        ids[row, : len(tokens)] = tokens
        attended[row, : len(tokens)] = 1
        types[row, second : len(tokens)] = 1
        unit_of[row, : len(tokens)] = units
    return tuple(torch.from_numpy(part).to(DEVICE) for part in (ids, attended, types, unit_of))  # type: ignore[return-value]


def unit_logits(token_logits: Any, unit_of: Any, most: int) -> tuple[Any, Any]:
    """Mean token logit of each unit, and which units have a token."""
    inside = (unit_of >= 0).float()
    index = unit_of.clamp(min=0)
    total = torch.zeros(unit_of.shape[0], most, device=unit_of.device).scatter_add_(1, index, token_logits * inside)
    count = torch.zeros_like(total).scatter_add_(1, index, inside)
    return total / count.clamp(min=1), count > 0


def lists(rows: list[Row], extra: int, rng: random.Random) -> list[Row]:
    """Rows with some passages of other groups of the same book added: they do not answer."""
    pools: dict[str, list[Row]] = {}
    for row in rows:
        pools.setdefault(row["set"], []).append(row)
    made = []
    for row in rows:
        others: list[Row] = []
        for _ in range(2 * extra):
            other = rng.choice(pools[row["set"]])
            if other["group"] != row["group"] and len(others) < extra:
                others.append(rng.choice(other["passages"]))
        made.append(row | {"passages": row["passages"] + (others if len(row["passages"]) < ENOUGH else [])})
    return made


def loss_of(row: Row, pair: Any, units: Any, has_unit: Any) -> Any:
    """Which passage, whether any, and which units of it."""
    gold = row["gold"]
    keep = [at for at in range(len(pair)) if at not in row["ignore"]]
    logits = pair[keep]
    answers = torch.tensor([1.0 if at == gold else 0.0 for at in keep], device=pair.device)
    loss = F.binary_cross_entropy_with_logits(logits, answers, pos_weight=torch.tensor(3.0, device=pair.device))
    if gold >= 0:
        loss = loss + 0.5 * F.cross_entropy(logits[None], torch.tensor([keep.index(gold)], device=pair.device))
        wanted = torch.zeros_like(units[gold])
        wanted[[unit for unit in row["gold_units"] if unit < wanted.shape[0]]] = 1.0
        seen = has_unit[gold]
        if seen.any():
            loss = loss + F.binary_cross_entropy_with_logits(
                units[gold][seen], wanted[seen], pos_weight=torch.tensor(2.0, device=pair.device)
            )
    return loss


def forward(model: SectionReader, encoded: list[tuple[Any, int, Any]], most: int) -> tuple[Any, Any, Any]:
    """Logits of pairs and units and which units have a token, in the order given; pairs of like length run together."""
    order = sorted(range(len(encoded)), key=lambda at: len(encoded[at][0]))
    pairs, units, seen = [], [], []
    for start in range(0, len(order), MICRO):
        ids, attended, types, unit_of = batch([encoded[at] for at in order[start : start + MICRO]])
        with torch.autocast(DEVICE, torch.bfloat16):
            pair, tokens = model(ids, attended, types)
        unit, has_unit = unit_logits(tokens.float(), unit_of, most)
        pairs.append(pair.float())
        units.append(unit)
        seen.append(has_unit)
    back = torch.tensor(np.argsort(order), device=DEVICE)
    return torch.cat(pairs)[back], torch.cat(units)[back], torch.cat(seen)[back]


def train(model: SectionReader, rows: list[Row], encoded: list[Any], epochs: int, rate: float, size: int = 24) -> None:
    steps = epochs * ((len(rows) + size - 1) // size)
    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(wanted, lr=rate, weight_decay=0.01, fused=DEVICE == "cuda")
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (0.06 * steps)) * max(0.0, 1 - step / steps)
    )
    running = 0.0
    model.train()
    for epoch in range(epochs):
        order = list(range(len(rows)))
        random.Random(epoch).shuffle(order)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            flat = [one for at in chosen for one in encoded[at]]
            most = 1 + max(int(units.max()) for *_, units in flat)
            pair, units, has_unit = forward(model, flat, max(most, 1))
            loss, at = torch.zeros((), device=DEVICE), 0
            for number in chosen:
                count = len(encoded[number])
                part = slice(at, at + count)
                loss = loss + loss_of(rows[number], pair[part], units[part], has_unit[part])
                at += count
            loss = loss / len(chosen)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(wanted, 1.0)
            optimiser.step()
            schedule.step()
            if start % (8 * size) == 0:
                running = 0.9 * running + 0.1 * loss.item()
        log("epoch", epoch, "loss", round(running, 3))


@torch.no_grad()
def evaluate(model: SectionReader, rows: list[Row], encoded: list[Any], label: str) -> None:
    model.eval()
    found: dict[str, dict[str, list[float]]] = {}
    for row, pairs in zip(rows, encoded, strict=True):
        ids, attended, types, unit_of = batch(pairs)
        with torch.autocast(DEVICE, torch.bfloat16):
            pair, tokens = model(ids, attended, types)
        pair, gold = pair.float(), row["gold"]
        name = "squad" if row["set"] == "squad" else "docs"
        into = found.setdefault(name, {"y": [], "s": [], "first": [], "unit": [], "cover": []})
        into["y"].append(gold >= 0)
        into["s"].append(pair.max().item())
        if gold >= 0:
            into["first"].append(int(pair.argmax()) in (gold, *row["ignore"]))
            most = int(unit_of[gold].max().item()) + 1
            if most > 0:
                units, _ = unit_logits(tokens.float()[gold : gold + 1], unit_of[gold : gold + 1], most)
                into["unit"].append(int(units[0].argmax()) in row["gold_units"])
                marked = set((units[0] > 0).nonzero().flatten().tolist())
                into["cover"].append(len(marked & set(row["gold_units"])) / len(row["gold_units"]))
    for name, got in found.items():
        log(
            f"  {label} {name}: n {len(got['y'])} AUROC {auroc(got['y'], got['s']):.3f} gold first "
            f"{np.mean(got['first']):.3f} best unit right {np.mean(got['unit']):.3f} "
            f"gold units marked {np.mean(got['cover']):.3f}"
        )


def auroc(labels: list[Any], scores: list[float]) -> float:
    yes = np.array([s for y, s in zip(labels, scores, strict=True) if y])
    no = np.array([s for y, s in zip(labels, scores, strict=True) if not y])
    return float((yes[:, None] > no[None]).mean() + 0.5 * (yes[:, None] == no[None]).mean()) if len(no) else 0.0


def save(model: SectionReader, out: Path, name: str, parts: int) -> None:
    """What was learned, as float16, in files small enough to travel."""
    learned = sorted(
        (
            (key, value)
            for key, value in model.state_dict().items()
            if not key.startswith(("words", "positions", "types"))
        ),
        key=lambda one: -one[1].numel(),
    )
    for part in range(parts):
        chosen = {key: value.half().cpu().numpy() for key, value in learned[part::parts]}
        np.savez(out / f"{name}.{part}.npz", **chosen)


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    options = dict(one.split("=") for one in sys.argv[3:])
    torch.manual_seed(3)
    packed = Packed(folder / "rows.npz")
    groups = sorted({row["group"] for row in packed.rows})
    random.Random(1).shuffle(groups)
    kept = set(groups[: len(groups) // int(options.get("val", 14))])
    val = [row for row in packed.rows if row["group"] in kept]
    learn = [row for row in packed.rows if row["group"] not in kept]
    learn = lists(learn, int(options.get("extra", 3)), random.Random(2))
    if options.get("most"):
        learn, val = learn[: int(options["most"])], val[: int(options["most"])]
    encoded, encoded_val = [packed.encode(row) for row in learn], [packed.encode(row) for row in val]
    log("rows", len(learn), "val", len(val))
    model = SectionReader(12)
    missing, unknown = model.load_state_dict(start_weights(folder / "start.npz"), strict=False)
    assert not unknown, unknown
    log("new in this model:", missing)
    model.to(DEVICE)
    train(model, learn, encoded, int(options.get("epochs", 3)), float(options.get("rate", 3e-5)))
    evaluate(model, val, encoded_val, "reader")
    save(model, out, "reader", 4)
    log("done")


if __name__ == "__main__":
    main()
