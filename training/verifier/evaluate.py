"""Measure verifier.onnx on part 0, which it never saw, on AttributionBench, and on a book kept apart.

Thresholds are fixed on one half of the documents and tested on the other.

    python -m training.verifier.evaluate FOLDER MODEL OUT_JSON
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
from training.onnx_file import predict
from training.pack import SEED
from training.rates import auroc, balanced_accuracy, f1_of_false, half, interval
from training.reader.train import load_prose
from training.rows import Row, fold
from training.verifier.data import NEVER_TRAINED, gold
from training.verifier.train import book_rows

MOST = 1200  # rows of a set, drawn evenly: one core here does 30 pairs a second


def chosen_rows(folder: Path) -> list[Row]:
    by_name: dict[str, list[Row]] = {}
    for row in gold(folder):
        if not row.made and (fold(row) == 0 or row.name in NEVER_TRAINED):
            by_name.setdefault(row.name, []).append(row)
    by_name["book"] = [
        Row("book", r.passage, r.text, r.passage, r.y, kind=r.kind) for r in book_rows(load_prose(folder))
    ]
    rng = random.Random(SEED)
    return [r for rows in by_name.values() for r in (rng.sample(rows, MOST) if len(rows) > MOST else rows)]


def scores_of(model: Path, rows: list[Row], folder: Path) -> np.ndarray:
    from training.cross_encoder import tokenizer

    tokens = tokenizer(folder, 256).encode_batch([(" ".join(r.text.split()[:70]), r.passage) for r in rows])
    pairs = [(np.array(t.ids), t.sequence_ids.index(1)) for t in tokens]
    return predict(model, pairs)[0]


def best_threshold(y: np.ndarray, scores: np.ndarray) -> float:
    return max(np.quantile(scores, np.linspace(0.02, 0.98, 97)), key=lambda t: balanced_accuracy(y, scores >= t))


def table(rows: list[Row], scores: np.ndarray) -> dict:
    out = {}
    y = np.array([r.y for r in rows])
    fixing = np.array([half(r.group) == 0 for r in rows])
    for name in dict.fromkeys(r.name for r in rows):
        mine = np.array([r.name == name for r in rows])
        if len(set(y[mine])) < 2:
            continue
        a, s = y[mine], scores[mine]
        low, high = interval(lambda i, a=a, s=s: auroc(a[i], s[i]), len(a))
        own = best_threshold(y[mine & fixing], scores[mine & fixing])
        test = mine & ~fixing
        out[name] = {
            "rows": int(mine.sum()), "true": int(a.sum()), "auroc": round(auroc(a, s), 3),
            "interval": [round(low, 3), round(high, 3)],
            "threshold": round(float(own), 3),
            "balanced_accuracy": round(balanced_accuracy(y[test], scores[test] >= own), 3),
            "f1_false": round(f1_of_false(y[test], scores[test] >= own), 3),
        }  # fmt: skip
    return out


def trade_off(rows: list[Row], scores: np.ndarray) -> dict:
    """On the book kept apart: share of true statements withheld, and what is caught, per kind; thresholds fixed on
    the other half of its passages."""
    y = np.array([r.y for r in rows])
    fixing = np.array([half(r.group) == 0 for r in rows])
    out = {}
    for aim in (0.01, 0.03, 0.05, 0.10, 0.20):
        threshold = float(np.quantile(scores[fixing & (y == 1)], aim))
        test = ~fixing
        caught = {k: [round(float((scores < threshold)[test & m].mean()), 3), int((test & m).sum())]
                  for k in sorted({r.kind for r in rows if not r.y})
                  for m in [np.array([r.kind == k and not r.y for r in rows])] if (test & m).any()}  # fmt: skip
        out[f"aim {aim:.2f}"] = {
            "threshold": round(threshold, 3),
            "true withheld": round(float((scores < threshold)[test & (y == 1)].mean()), 3),
            "false caught": round(float((scores < threshold)[test & (y == 0)].mean()), 3), "by kind": caught,
        }  # fmt: skip
    return out


def main(folder: Path, model: Path, out: Path) -> None:
    rows = chosen_rows(folder)
    scores = scores_of(model, rows, folder)
    book = [i for i, r in enumerate(rows) if r.name == "book"]
    report = {"sets": table(rows, scores), "book": trade_off([rows[i] for i in book], scores[book])}
    exact = model.with_suffix(".fp32.onnx")
    if exact.exists():  # what int8 costs, on some rows
        some = random.Random(SEED).sample(range(len(rows)), 600)
        same = scores_of(exact, [rows[i] for i in some], folder)
        y = np.array([rows[i].y for i in some])
        report["int8"] = {"rows": 600, "auroc int8": auroc(y, scores[some]), "auroc fp32": auroc(y, same),
                          "mean difference of logits": float(np.abs(scores[some] - same).mean())}  # fmt: skip
    out.write_text(json.dumps(report, indent=1), "utf-8")
    print(json.dumps(report))


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
