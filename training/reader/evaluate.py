"""Measure a reader: from the scores of the training run (each part by a model that never saw it), or reader.onnx.

One threshold is fixed on the parts that are not tested; the picked evidence is the two best sentences.

    python -m training.reader.evaluate scores SCORES_JSON_GZ PART OUT_JSON
    python -m training.reader.evaluate onnx FOLDER MODEL OUT_SCORES_JSON_GZ
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
from training.rates import auroc, interval

PICKED = 2  # sentences quoted


def passage_score(case: dict) -> float:
    """That the text answers: the pair's logit, the best span over "no answer", and the best sentence."""
    logit, span = max(w[2] for w in case["windows"]), max(w[3] for w in case["windows"])
    return logit + 0.3 * span + 0.5 * max(s[0] for s in case["sentences"])


def right(case: dict, picked: int = PICKED) -> bool:
    order = np.argsort([-(s[0] + 0.3 * s[2]) for s in case["sentences"]], kind="stable")[:picked]
    return any(set(gold) <= set(order.tolist()) for gold in case["gold"])


def fix_threshold(cases: list[dict], shown: float = 0.75, refused: float = 0.70) -> float:
    """The score at which both bars are met best: gold shown for answerable questions, refusal of the others.

    Where every question is answerable: the score that lets 78 % through."""
    scores = np.array([passage_score(c) for c in cases])
    y = np.array([bool(c["gold"]) for c in cases])
    if y.all():
        return float(np.quantile(scores, 0.22))
    good = np.array([right(c) for c in cases])

    def margin(t: float) -> float:
        return min((good & (scores >= t))[y].mean() - shown, (scores < t)[~y].mean() - refused)

    return float(max(np.quantile(scores, np.linspace(0.05, 0.95, 91)), key=margin))


def measured(cases: list[dict], threshold: float) -> dict:
    scores = np.array([passage_score(c) for c in cases])
    y = np.array([int(bool(c["gold"])) for c in cases])
    good = np.array([right(c) for c in cases])
    given = scores >= threshold
    shown = (good & given)[y == 1]
    out = {
        "questions": len(cases), "answerable": int(y.sum()), "auroc": round(auroc(y, scores), 3),
        "gold in quoted": round(float(shown.mean()), 3),
        "interval": [round(v, 3) for v in interval(lambda i: float(shown[i].mean()), len(shown))],
        "answered": round(float(given[y == 1].mean()), 3),
        "right of answered": round(float(good[(y == 1) & given].mean()), 3),
        "sentence right, top 1/2/3": [
            round(float(np.mean([right(c, k) for c in cases if c["gold"]])), 3) for k in (1, 2, 3)
        ],
    }  # fmt: skip
    if (y == 0).any():
        refused = ~given[y == 0]
        low, high = interval(lambda i: float(refused[i].mean()), len(refused))
        out |= {"refused": round(float(refused.mean()), 3), "refused interval": [round(low, 3), round(high, 3)]}
        causes = [c["cause"] for c in cases if not c["gold"]]
        out["refused by cause"] = {
            k: [round(float(refused[[x == k for x in causes]].mean()), 3), causes.count(k)] for k in sorted(set(causes))
        }
    return out


def curve(cases: list[dict]) -> list[list[float]]:
    """(threshold, gold in quoted evidence, refused), from letting all through to refusing all."""
    scores = np.array([passage_score(c) for c in cases])
    y = np.array([bool(c["gold"]) for c in cases])
    good = np.array([right(c) for c in cases])
    return [
        [round(float(v), 3) for v in (t, (good & (scores >= t))[y].mean(), (scores < t)[~y].mean())]
        for t in np.quantile(scores, np.linspace(0, 0.9, 19))
    ]


def from_scores(file: Path, part: int, out: Path) -> None:
    with gzip.open(file, "rt", encoding="utf-8") as opened:
        every = json.load(opened)["apart"]
    report: dict = {}
    for name in ("squad", "clapnq", "doc2dial"):
        mine = [c for c in every if c["name"] == name]
        threshold = fix_threshold([c for c in mine if c["part"] != part])
        report[name] = {
            "threshold": round(threshold, 2),
            f"part {part}": measured([c for c in mine if c["part"] == part], threshold),
        }
        parts = sorted({c["part"] for c in mine})
        thresholds = {p: fix_threshold([c for c in mine if c["part"] != p]) for p in parts}
        report[name]["thresholds"] = {p: round(t, 2) for p, t in thresholds.items()}
        report[name]["every part"] = {
            p: measured([c for c in mine if c["part"] == p], t) for p, t in thresholds.items()
        }
        if name != "doc2dial":
            report[name]["curve, all parts"] = curve(mine)
            report[name][f"curve, part {part}"] = curve([c for c in mine if c["part"] == part])
    out.write_text(json.dumps(report, indent=1), "utf-8")
    print(json.dumps({n: {k: v for k, v in r.items() if "curve" not in k} for n, r in report.items()}))


def from_onnx(folder: Path, model: Path, out: Path) -> None:
    """Scores of part 0 by the shipped file, in the form of the training run's."""
    from training.onnx_file import predict
    from training.reader import train
    from training.reader.cases import cases

    train.predict = lambda _, rows: predict(model, [(r.ids, r.second) for r in rows])
    chosen = [c for c in cases(folder / "data") if c.part == 0 and c.name != "doc2dial"]
    with gzip.open(out, "wt", encoding="utf-8") as file:
        json.dump({"apart": train.score_cases(None, chosen, folder)}, file)


if __name__ == "__main__":
    if sys.argv[1] == "scores":
        from_scores(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        from_onnx(*(Path(argument) for argument in sys.argv[2:5]))
