"""Train the reader: rule-made questions and statements first, people's questions second, four times with a quarter
kept apart.

Writes the weights that never saw part 0, and the scores of every test question by a model that never saw its part.
Run from the repository root on the GPU machine, after `pack.py`:

    python3 -m training.reader.train FOLDER OUT [PART …] [small]
"""

import gzip
import json
import lzma
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from training.cross_encoder import (
    DEVICE,
    CrossEncoder,
    Plan,
    embed,
    encode,
    fit,
    log,
    predict,
    start_model,
    state_of,
    tokenizer,
)
from training.edits import contained
from training.pack import SEED, save_pieces
from training.prose import Section, passages
from training.reader.cases import Case, case_windows, cases, sentence_features, spans_in, window_row
from training.reader.data import gold
from training.reader.synth import Verbs, learn_verbs, page_rows
from training.rows import ARTICLES, FOLDS, Row, fold
from training.verifier import synth as statements

KEPT_APART = ("physical_small",)  # a book no rule-made row comes from
PER_PASSAGE = {"wiki": 6, "rust": 5, "physical": 5, "ros2": 4, "ray": 4}
WEIGHTS = {"squad": 1.6, "clapnq": 2.0, "doc2dial": 0.7, "mtrag": 0.8, "ray_made": 0.6, "halueval": 0.8}


def load_prose(folder: Path) -> list[list]:
    with lzma.open(folder / "prose.json.xz", "rt", encoding="utf-8") as file:
        return json.load(file)


def pages_of(prose: Sequence[Sequence]) -> list[list[Section]]:
    pages: dict[tuple[str, str], list[Section]] = {}
    titles = {title.replace("_", " ") for title in ARTICLES}
    for source, page, heading, parts in prose:
        if source not in KEPT_APART and page not in titles:
            pages.setdefault((source, page), []).append(Section(source, page, heading, tuple(parts)))
    return [pages[key] for key in sorted(pages)]


_verbs: list[Verbs] = []  # of this process


def rule_rows(sections: list[Section]) -> list[Row]:
    """Questions and statements of one page."""
    rng = random.Random(f"{SEED}|{sections[0].source}|{sections[0].page}")
    cut = [p for s in sections for p in passages(s, rng)]
    per = PER_PASSAGE.get(sections[0].source, 2)
    return [*page_rows(cut, _verbs[0], rng, per), *statements.page_rows(cut, rng, max(1, per // 2))]


def near_rows(model: CrossEncoder, rows: Sequence[Row], folder: Path, most: int) -> list[Row]:
    """Questions with the likest passage that does not answer them, by the untrained encoder."""
    rng = random.Random(SEED)
    asked = [r for r in rows if r.name == "rule" and r.y and r.evidence and r.kind != "gap"]
    asked = rng.sample(asked, min(most, len(asked)))
    texts = sorted({r.passage for r in rows if r.name == "rule" and r.y})
    rng.shuffle(texts)
    texts = texts[:120_000]
    tok = tokenizer(folder, 192)
    stock, wanted = embed(model, texts, tok), embed(model, [r.text for r in asked], tok)
    out = []
    for at in range(0, len(asked), 2048):
        best = (wanted[at : at + 2048] @ stock.T).topk(8).indices.cpu().numpy()
        for row, found in zip(asked[at : at + 2048], best, strict=True):
            assert row.evidence
            answer = row.passage[slice(*row.evidence[0])]
            for place in found[rng.randrange(3) :]:
                other = texts[place]
                if other != row.passage and answer not in other and contained(answer, other) < 0.5:
                    out.append(Row("rule", row.group, row.text, other, 0, kind="near"))
                    break
    return out


def score_cases(model: CrossEncoder, chosen: Sequence[Case], folder: Path) -> list[dict]:
    """What evaluation needs of each question: the windows' logits and the sentences' features."""
    tok = tokenizer(folder, LONGEST_SHOWN)
    where = [(i, run) for i, case in enumerate(chosen) for run in case_windows(case)]
    rows = [window_row(chosen[i], run) for i, run in where]
    encoded = encode(rows, tok)
    logits, marks = predict(model, encoded)
    out = [{"id": c.id, "name": c.name, "part": c.part, "group": c.group, "cause": c.cause, "gold": c.gold,
            "windows": [], "sentences": [[-20.0, 0.0, -20.0] for _ in c.sentences]} for c in chosen]  # fmt: skip
    offsets = [
        np.array(t.offsets, np.int32)
        for t in tok.encode_batch([(" ".join(r.text.split()[:70]), r.passage) for r in rows])
    ]
    for (i, run), logit, mark, offset, row in zip(where, logits, marks, offsets, encoded, strict=True):
        features = sentence_features(mark, offset[row.second : len(row.ids) - 1], spans_in(chosen[i], run))
        out[i]["windows"].append([*run, round(float(logit), 4), round(float(features[:, 2].max()), 4)])
        for place, line in zip(range(*run), features, strict=True):
            if line[0] > out[i]["sentences"][place][0]:
                out[i]["sentences"][place] = [round(float(v), 4) for v in line]
    return out


LONGEST_SHOWN = 256


def second_stage(model: CrossEncoder, people: Sequence[Row], made: list, part: int, folder: Path, quick: bool) -> None:
    """People's questions of the other parts, with some rule-made rows again."""
    tok = tokenizer(folder)
    mine = encode([r for r in people if fold(r) != part], tok, lambda r: WEIGHTS.get(r.name, 1.0))
    rows = [*mine, *made]
    mix = np.random.default_rng(part)

    def epoch(number: int) -> np.ndarray:
        again = mix.choice(len(made), min(len(made), 20 if quick else 6000), replace=False) + len(mine)
        return np.concatenate([np.arange(len(mine)), again])

    plan = Plan(1 if quick else 4, 5e-5, 2048 if quick else 8192, 7 + part, f"second stage without part {part}")
    fit(model, rows, epoch, plan)


def main(folder: Path, out: Path, parts: Sequence[int], quick: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    log(DEVICE, os.cpu_count(), "cores")
    prose = load_prose(folder)
    verbs = learn_verbs(" ".join(parts) for _, _, _, parts in prose)
    pages = pages_of(prose)[:: 2500 if quick else 1]
    log("pages", len(pages))
    with ProcessPoolExecutor(2 if quick else 15, initializer=_verbs.append, initargs=(verbs,)) as pool:
        people_later = pool.submit(gold, folder, prose, SEED)
        found = pool.map(rule_rows, pages, chunksize=16)
        rows = [row for part in found for row in part]
        people = people_later.result()
    log("rule-made", len(rows), Counter((r.name, r.y) for r in rows), "people's", len(people))
    model = start_model(folder)
    near = near_rows(model, rows, folder, 20 if quick else 90_000)
    log("near", len(near))
    tok = tokenizer(folder)
    asked = encode([r for r in rows + near if r.name == "rule"], tok)
    made = [*asked, *encode([r for r in rows if r.name == "stated"], tok)]
    log("encoded", len(made), "mean tokens", np.mean([len(r.ids) for r in made[:20000]]))
    plan = Plan(1 if quick else 2, 2e-4, 4096 if quick else 49152, SEED, "first stage")
    fit(model, made, lambda _: np.arange(len(made)), plan)
    first = {k: v.detach().clone() for k, v in model.state_dict().items()}
    tests = cases(folder / "data")[:: 400 if quick else 1]
    results = {"first": score_cases(model, [c for c in tests if c.part == 0], folder), "apart": []}
    log("first stage scored")
    for part in parts:
        model.load_state_dict(first)
        second_stage(model, people[::1800] if quick else people, asked, part, folder, quick)
        if part == 0:
            save_pieces(state_of(model), out / "reader")
        results["apart"] += score_cases(model, [c for c in tests if c.part == part], folder)
        with gzip.open(out / "scores.json.gz", "wt", encoding="utf-8") as file:
            json.dump(results, file)
    log("done")


if __name__ == "__main__":
    kept = [int(a) for a in sys.argv[3:] if a.isdigit()]
    main(Path(sys.argv[1]), Path(sys.argv[2]), kept or range(FOLDS), "small" in sys.argv)
