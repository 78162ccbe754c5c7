"""Train the verifier: rule-made statements first, statements that people judged second, four times with a quarter
kept apart.

Writes the weights that never saw part 0, and the score of every judged statement by a model that never saw its part.
Run from the repository root on the GPU machine, after `pack.py`:

    python3 -m training.verifier.train FOLDER OUT [small]
"""

import gzip
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from training.cross_encoder import (
    DEVICE,
    CrossEncoder,
    Encoded,
    Plan,
    encode,
    fit,
    log,
    predict,
    start_model,
    state_of,
    tokenizer,
)  # fmt: skip
from training.pack import SEED, save_pieces
from training.prose import Section, passages
from training.reader.synth import Verbs, learn_verbs
from training.reader.synth import page_rows as question_rows
from training.reader.train import load_prose, pages_of
from training.rows import FOLDS, Row, fold
from training.verifier.data import NEVER_TRAINED, gold
from training.verifier.synth import damaged, page_rows

PER_PASSAGE = {"wiki": 6, "rust": 6, "physical": 6, "ros2": 5, "ray": 5, "abstracts": 5}
SHARE = {"fever": 2.0, "scifact": 1.5, "wice": 2.0, "wice_tokens": 0.6, "clapnq": 1.0, "mtrag": 0.8, "halueval": 0.8}
MOST = 500_000  # rule-made rows
BOOK = "physical_small"  # kept apart: no rule-made row of training comes from it

_verbs: list[Verbs] = []  # of this process
verbs_of_process = _verbs.append


def rule_rows(sections: list[Section]) -> list[Row]:
    """Statements of one page, and some questions: they teach where to look."""
    rng = random.Random(f"{SEED}|verifier|{sections[0].source}|{sections[0].page}")
    cut = [p for s in sections for p in passages(s, rng)]
    return [*page_rows(cut, rng, PER_PASSAGE.get(sections[0].source, 3)), *question_rows(cut, _verbs[0], rng, 1)]


def book_rows(prose: Sequence[Sequence]) -> list[Row]:
    """Statements of the book kept apart, true and made false."""
    pages: dict[str, list[Section]] = {}
    for source, page, heading, parts in prose:
        if source == BOOK:
            pages.setdefault(page, []).append(Section(source, page, heading, tuple(parts)))
    rows: list[Row] = []
    for page in sorted(pages):
        rng = random.Random(f"{SEED}|book|{page}")
        rows += page_rows([p for s in pages[page] for p in passages(s, rng)], rng, 6)
    return rows


def judged(folder: Path) -> list[Row]:
    """All judged statements, and for each that is borne out one made false."""
    people = gold(folder)
    return [*people, *damaged([r for r in people if r.name not in NEVER_TRAINED], SEED)]


def weigher(rows: Sequence[Row]) -> dict[tuple[str, int], float]:
    """True and false of a set weigh the same, small sets more."""
    counts = Counter((r.name, r.y) for r in rows)
    totals = Counter(r.name for r in rows)
    return {
        (name, y): 0.6
        if name.startswith("damaged")
        else SHARE.get(name, 1.0) * min(3.0, max(0.4, totals[name] / 2 / n))
        for (name, y), n in counts.items()
    }


def second_stage(model: CrossEncoder, people: Sequence[Row], made: list[Encoded], part: int, folder: Path) -> None:
    """Judged statements of the other parts, damaged ones, and some rule-made ones again."""
    tok = tokenizer(folder)
    mine = [r for r in people if fold(r) != part]
    common = {
        i for i, r in enumerate(mine) if r.name.endswith("ragtruth") and (r.y or r.made)
    }  # too many for all epochs
    weights = weigher(mine)
    real = encode(mine, tok, lambda r: weights[r.name, r.y])
    assert len(real) == len(mine)
    always = np.array([i for i in range(len(mine)) if i not in common])
    rows = [*real, *made]
    mix = np.random.default_rng(part)

    def epoch(number: int) -> np.ndarray:
        again = mix.choice(len(made), min(len(made), 12_000), replace=False) + len(real)
        some = mix.choice(sorted(common), min(len(common), 12_000), replace=False)
        return np.concatenate([always, some, again])

    quick = len(made) < 1000
    fit(model, rows, epoch, Plan(1 if quick else 3, 6e-5, 2048 if quick else 12288, 7 + part, f"without part {part}"))


def scored(model: CrossEncoder, rows: Sequence[Row], folder: Path) -> list[dict]:
    bare = [replace(r, evidence=None) for r in rows]  # scores need no labels, and a cut-off label drops no row
    logits, _ = predict(model, encode(bare, tokenizer(folder, 256)))
    return [
        {
            "name": r.name,
            "y": r.y,
            "kind": r.kind,
            "group": r.group,
            "id": r.id,
            "part": fold(r),
            "score": round(float(s), 4),
        }
        for r, s in zip(rows, logits, strict=True)
    ]


def main(folder: Path, out: Path, quick: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    log(DEVICE, os.cpu_count(), "cores")
    prose = load_prose(folder)
    verbs = learn_verbs(" ".join(parts) for _, _, _, parts in prose)
    pages = pages_of(prose)[:: 2500 if quick else 1]
    with ProcessPoolExecutor(2 if quick else 15, initializer=_verbs.append, initargs=(verbs,)) as pool:
        people_later = pool.submit(judged, folder)
        rows = [row for part in pool.map(rule_rows, pages, chunksize=16) for row in part]
        people = people_later.result()[:: 500 if quick else 1]
    log("rule-made", len(rows), Counter((r.name, r.y) for r in rows), "people's", len(people))
    torch.manual_seed(SEED)
    model = start_model(folder)
    random.Random(SEED).shuffle(rows)
    rows = rows[: 40 if quick else MOST]
    stated = encode([r for r in rows if r.name == "stated"], tokenizer(folder))
    made = [*stated, *encode([r for r in rows if r.name != "stated"], tokenizer(folder))]
    log("encoded", len(made))
    plan = Plan(1 if quick else 2, 2e-4, 4096 if quick else 49152, SEED, "first stage")
    fit(model, made, lambda _: np.arange(len(made)), plan)
    first = {k: v.detach().clone() for k, v in model.state_dict().items()}
    tests = [r for r in people if not r.made]
    book = book_rows(prose)[:: 100 if quick else 1]
    results = {
        "first": scored(model, [r for r in tests if fold(r) == 0 or r.name in NEVER_TRAINED], folder),
        "apart": [],
    }
    for part in range(FOLDS):
        model.load_state_dict(first)
        second_stage(model, [r for r in people if r.name not in NEVER_TRAINED], stated, part, folder)
        results["apart"] += scored(model, [r for r in tests if fold(r) == part and r.name not in NEVER_TRAINED], folder)
        if part == 0:
            save_pieces(state_of(model), out / "verifier")
            results["book"] = scored(model, book, folder)
            results["never"] = scored(model, [r for r in tests if r.name in NEVER_TRAINED], folder)
        with gzip.open(out / "verifier_scores.json.gz", "wt", encoding="utf-8") as file:
            json.dump(results, file)
    log("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "small" in sys.argv)
