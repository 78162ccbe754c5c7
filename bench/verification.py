"""What the verifier is worth, on data that it never saw: `python -m bench.verification`.

Owns the tables of the sets, the lies and the times. Thresholds are fixed on one half of the documents and reported on
the other. The product's own are constants: what the fixing half of RAGTruth gives, which is in the result, rounded up.
The other sets were not looked at for it. Prints the figures and writes
`bench/results/verification-COMMIT.json`. Scores are kept in `.cache/bench`: a second run takes a minute.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.claims import DATA, SETS, Claim, ragtruth, sample
from bench.lies import Told, told
from bench.results import save
from bench.scores import KeptScores
from bench.signals import Signals, fitted, signals
from chapterverse.evaluation.statistics import auroc, interval, share_interval, statistic_interval
from chapterverse.grounding import Judge, Passage, Rules, Verdict, Verifier, nearest
from chapterverse.grounding.support import LIKELY_NEAR, NEAR, unframed
from chapterverse.grounding.verifier import Thresholds, window
from chapterverse.grounding.words import tokens
from chapterverse.trained.cross_encoder import CrossEncoder

Figure = dict[str, Any]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_HARD: Final = ("number", "name", "identifier", "negation")
_INVENTED: Final = ("tail", "quality", "legend")
_SURE: Final = (9.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.0, -1.0, -9.0)  # the first: rules alone; the last: no verifier


class _Memory:
    """The rules, asked once about each claim."""

    def __init__(self) -> None:
        self._rules = Rules()
        self._known: dict[tuple[str, tuple[Passage, ...]], Verdict] = {}

    def judge(self, claim: str, passages: Sequence[Passage]) -> Verdict:
        key = (claim, tuple(passages))
        if key not in self._known:
            self._known[key] = self._rules.judge(claim, passages)
        return self._known[key]


def measure() -> dict[str, Any]:
    """Every figure with its 95 % interval, and the tables and curves behind them."""
    load = os.getloadavg()[0]
    trained = CrossEncoder("verifier", threads=1)
    encoder = KeptScores(trained)
    rows = [claim for claim in ragtruth() if not claim.talk]
    rules = _Memory()
    result: dict[str, Any] = {"figures": []}
    result["figures"] += _lies(encoder, result)
    result["figures"] += _product(rows, encoder, rules, result)
    result["figures"] += _other_lies(encoder)
    result["figures"] += _responses(ragtruth(), encoder, result)
    result["figures"] += _sets(rows, encoder, result)
    result["figures"] += _times(trained)
    encoder.close()
    trained.close()
    return result | {"load": [round(load, 1), round(os.getloadavg()[0], 1)]}


def _share(key: str, label: str, values: Sequence[bool], groups: Sequence[str] = (), **bar: Any) -> Figure:
    found = [float(value) for value in values]
    low, high = share_interval(found, groups)
    return {"key": key, "label": label, "value": sum(found) / len(found), "low": low, "high": high,
            "n": len(found), "kind": "share", **bar}  # fmt: skip


def _reached(figure: Figure, bar: str, most: float | None = None, least: float | None = None) -> Figure:
    held = figure["value"] <= most if most is not None else figure["value"] >= (least or 0.0)
    return figure | {"bar": bar, "reached": held}


# ── the hostile model ────────────────────────────────────────────────────────────────────────────────────────────────


def outcome(claim: str, passages: Sequence[Passage], judge: Judge) -> str:
    """What the reader gets for a sentence: itself, the book's sentence in its place, or nothing."""
    verdict = judge.judge(claim, passages)
    if verdict.supported:
        return "shown"
    own = nearest(claim, passages, (), LIKELY_NEAR if verdict.likely else NEAR)
    return "replaced" if own else "withheld"


def _lies(encoder: KeptScores, result: dict[str, Any]) -> Iterator[Figure]:
    rows, rules = list(told()), _Memory()
    judge = Verifier(encoder, rules)
    came = [outcome(row.text, row.passages, judge) for row in rows]
    alone = [outcome(row.text, row.passages, rules) for row in rows]
    result["lies"] = _kinds(rows, came, alone)
    result["doubt"] = _doubt(rows, encoder, rules)
    believing = Verifier(encoder, rules, Thresholds(sure=-np.inf))  # what the word rules alone would let through
    result["without the verifier"] = {
        f"{'true' if true else 'lies'} let through by likeness alone": sum(
            believing.judge(row.text, row.passages).supported and not rules.judge(row.text, row.passages).supported
            for row in rows
            if row.true is true
        )
        for true in (True, False)
    }

    def of(wanted: Callable[[Told], bool], *outcomes: str) -> list[bool]:
        return [one in outcomes for row, one in zip(rows, came, strict=True) if wanted(row)]

    def has(*kinds: str) -> Callable[[Told], bool]:
        return lambda row: not row.true and row.kind in kinds

    def is_true(row: Told) -> bool:
        return row.true

    yield _reached(_share("invented", "hostile model: invented facts shown", of(has(*_INVENTED), "shown")), "0", 0.0)
    label = "hostile model: changed numbers, names, negations shown (0.19 % before holes that these showed were closed)"
    hard = _share("changed", label, of(has(*_HARD), "shown"))
    yield _reached(hard, "≤ 2 %", 0.02)
    others = {row.kind for row in rows if not row.true} - {*_HARD, *_INVENTED}
    label = "hostile model: other lies shown (subject, noun, opposite, quantity, condition, half)"
    yield _share("other-lies", label, of(has(*others), "shown"))
    written = _share("true-written", "hostile model: true sentences shown as written", of(is_true, "shown"))
    yield _reached(written, "≥ 90 %", least=0.9)
    label = "hostile model: true sentences shown as written or as the book's sentence"
    yield _share("true-kept", label, of(is_true, "shown", "replaced"))
    label = "hostile model: light paraphrases shown as written"
    yield _share("paraphrases", label, of(lambda row: row.true and row.kind == "paraphrased", "shown"))


def _kinds(rows: Sequence[Told], came: Sequence[str], alone: Sequence[str]) -> list[dict[str, Any]]:
    """By kind and corpus: how many, and what became of them by the rules alone and with the verifier."""
    table = []
    for kind in dict.fromkeys((row.true, row.kind, row.corpus) for row in rows):
        mine = [at for at, row in enumerate(rows) if (row.true, row.kind, row.corpus) == kind]
        line: dict[str, Any] = {"true": kind[0], "kind": kind[1], "corpus": kind[2], "rows": len(mine)}
        for name, found in (("rules", alone), ("verifier", came)):
            line |= {f"{name} {what}": sum(found[at] == what for at in mine) for what in ("shown", "replaced")}
        table.append(line)
    return table


def _doubt(rows: Sequence[Told], encoder: KeptScores, rules: Judge) -> dict[str, int]:
    """What would be lost and caught if the verifier could doubt, at even odds, what the rules bear out reworded."""
    counts = {"true": 0, "true doubted": 0, "lies": 0, "lies doubted": 0}
    for row in rows:
        evidence = rules.judge(row.text, row.passages).evidence
        said = unframed(row.text)
        if len(evidence) == 1 and said not in evidence[0].passage.text:
            kind = "true" if row.true else "lies"
            score = encoder.score([(said, window(tokens(said), evidence[0].passage))])[0].logit
            counts[kind] += 1
            counts[f"{kind} doubted"] += score < 0
    return counts


# ── RAGTruth, as the product shows it ────────────────────────────────────────────────────────────────────────────────


def _product(rows: Sequence[Claim], encoder: KeptScores, rules: Judge, result: dict[str, Any]) -> Iterator[Figure]:
    """Free paraphrase: what of the true is shown, and what of the unsupported is caught. Test half only."""
    tested = [row for row in rows if not row.fixing]
    passages = [tuple(Passage(at, text) for at, text in enumerate(row.passages, start=1)) for row in tested]
    judges: dict[str, Judge] = {"rules": rules, "verifier": Verifier(encoder, rules)}
    before = encoder.asked
    came = {
        name: [outcome(row.text, shown, judge) for row, shown in zip(tested, passages, strict=True)]
        for name, judge in judges.items()
    }
    result["pairs a sentence of free paraphrase"] = (encoder.asked - before) / len(tested)
    groups = {true: [row.group for row in tested if row.true is true] for true in (True, False)}
    for name, found in came.items():
        for true, what in ((True, "shown"), (True, "replaced"), (True, "withheld"), (False, "shown")):
            values = [one == what for row, one in zip(tested, found, strict=True) if row.true is true]
            told_as = "true" if true else "unsupported"
            label = f"RAGTruth sentences, {told_as}, {what}{' as written' if what == 'shown' else ''}: "
            label += "rules alone" if name == "rules" else "with the verifier"
            yield _share(f"ragtruth-{name}-{told_as}-{what}", label, values, groups[true])
    result["rescue"] = _rescue(tested, passages, encoder, rules)
    fixing = signals([row for row in rows if row.fixing and not row.true], encoder).scores
    result["fixed"] = {"sure": float(np.quantile(fixing, 0.99)), "likely": float(np.quantile(fixing, 0.9))}


def _other_lies(encoder: KeptScores) -> Iterator[Figure]:
    """What people found unsupported in the other sets, shown as written: by the rules alone and with the verifier."""
    rules = _Memory()
    judges: dict[str, Judge] = {"rules alone": rules, "with the verifier": Verifier(encoder, rules)}
    rows = [row for make in SETS for row in sample(list(make()))]
    passages = [tuple(Passage(at, text) for at, text in enumerate(row.passages, start=1)) for row in rows]
    for name, judge in judges.items():
        shown = [judge.judge(row.text, one).supported for row, one in zip(rows, passages, strict=True)]
        for true in (True, False):
            told_as = "true" if true else "unsupported"
            values = [one for row, one in zip(rows, shown, strict=True) if row.true is true]
            groups = [row.group for row in rows if row.true is true]
            yield _share(
                f"others-{name.split()[0]}-{told_as}", f"five other sets, {told_as}, shown: {name}", values, groups
            )


def _rescue(
    rows: Sequence[Claim], passages: Sequence[tuple[Passage, ...]], encoder: KeptScores, rules: Judge
) -> list[dict[str, float]]:
    """The trade-off: the surer the verifier has to be, the less is let through, true or not."""
    judge = Verifier(encoder, rules, Thresholds(sure=-np.inf))  # lets through whatever the word rules leave to it
    least = []  # from which threshold on a sentence is no longer shown
    for row, one in zip(rows, passages, strict=True):
        borne_out = rules.judge(row.text, one).supported
        rescued = not borne_out and judge.judge(row.text, one).supported
        least.append(np.inf if borne_out else encoder.last if rescued else -np.inf)
    shown, true = np.array(least), np.array([row.true for row in rows])
    return [
        {
            "sure": sure,
            "true shown as written": float((shown[true] >= sure).mean()),
            "unsupported caught": float((shown[~true] < sure).mean()),
        }
        for sure in _SURE
    ]


# ── whole responses ──────────────────────────────────────────────────────────────────────────────────────────────────


def _responses(rows: Sequence[Claim], encoder: KeptScores, result: dict[str, Any]) -> Iterator[Figure]:
    """Which responses have an unsupported sentence. Weights and threshold from one half of the documents, tested on the
    other, both ways round."""
    found = signals(rows, encoder)
    true, fixing = np.array([row.true for row in rows]), np.array([row.fixing for row in rows])
    talk = np.array([row.talk for row in rows])
    first = [at for at, row in enumerate(rows) if at == 0 or row.answer != rows[at - 1].answer]
    wrong = np.logical_or.reduceat(~true, first)
    groups, half = [rows[at].group for at in first], fixing[first]
    doubts = {"verifier alone": -found.scores, "with word signals": np.zeros(len(rows))}
    for side in (True, False):
        model = fitted(found.of((fixing == side) & ~talk), ~true[(fixing == side) & ~talk])
        doubts["with word signals"][fixing != side] = model(found.of(fixing != side))
    for name, doubt in doubts.items():
        worst = np.maximum.reduceat(np.where(talk, doubt.min(), doubt), first)
        said = np.zeros(len(first), np.bool_)
        for side in (True, False):
            said[half != side] = worst[half != side] >= _best_f1(wrong[half == side], worst[half == side])

        def score(at: NDArray[np.intp], said: Bools = said) -> float:
            return _f1(wrong[at], said[at])

        low, high = statistic_interval(score, len(first), groups)
        figure = {"key": f"response-{name.split()[0]}", "label": f"RAGTruth QA, response F1: {name}", "kind": "share",
                  "value": _f1(wrong, said), "low": low, "high": high, "n": len(first)}  # fmt: skip
        yield _reached(figure, "≥ 65 %", least=0.65) if name != "verifier alone" else figure
        result.setdefault("responses", {})[name] = {
            "auroc": auroc(worst, wrong),
            "precision": float(wrong[said].mean()),
            "recall": float(said[wrong].mean()),
        }


def _f1(wrong: Bools, said: Bools) -> float:
    return float(2 * (wrong & said).sum() / max(1, wrong.sum() + said.sum()))


def _best_f1(wrong: Bools, doubt: Floats) -> float:
    return float(max(np.quantile(doubt, np.linspace(0.02, 0.98, 97)), key=lambda least: _f1(wrong, doubt >= least)))


# ── the sets, sentence by sentence ───────────────────────────────────────────────────────────────────────────────────


def _sets(ragtruth_rows: Sequence[Claim], encoder: KeptScores, result: dict[str, Any]) -> Iterator[Figure]:
    every = [sample(list(ragtruth_rows)), *(sample(list(make())) for make in SETS)]
    result["sets"] = []
    for rows in every:
        found = signals(rows, encoder)
        line = _line(rows, found)
        result["sets"].append(line)
        label = f"{line['set']}: AUROC of the verifier, evidence of 120 words"
        yield {"key": f"auroc-{line['set']}", "label": label, "value": line["auroc"], "low": line["low"],
               "high": line["high"], "n": len(rows), "kind": "mean"}  # fmt: skip
    result["withheld"] = _curve(every[0], signals(every[0], encoder).scores)


def _line(rows: Sequence[Claim], found: Signals) -> dict[str, Any]:
    """AUROC; balanced accuracy and F1 of the false at the threshold that suits the other half of the documents best."""
    true, fixing = np.array([row.true for row in rows]), np.array([row.fixing for row in rows])
    groups = [row.group for row in rows]
    low, high = statistic_interval(lambda at: auroc(found.scores[at], true[at]), len(rows), groups)
    said, joint = np.zeros(len(rows), np.bool_), np.zeros(len(rows))
    for side in (True, False):
        mine = fixing == side
        levels = np.quantile(found.scores[mine], np.linspace(0.02, 0.98, 97))
        least = max(levels, key=lambda one: _balanced(true[mine], found.scores[mine] >= one))
        said[~mine] = found.scores[~mine] >= least
        joint[~mine] = fitted(found.of(mine), true[mine])(found.of(~mine))
    return {
        "set": rows[0].name,
        "rows": len(rows),
        "true": int(true.sum()),
        "auroc": auroc(found.scores, true),
        "low": low,
        "high": high,
        "auroc words": auroc(found.contained, true),
        "auroc joint": float(np.mean([auroc(joint[fixing == side], true[fixing == side]) for side in (True, False)])),
        "balanced accuracy": _balanced(true, said),
        "f1 of the false": _f1(~true, ~said),
    }


def _balanced(true: Bools, said: Bools) -> float:
    return float((said[true].mean() + (~said[~true]).mean()) / 2)


def _curve(rows: Sequence[Claim], scores: Floats) -> list[dict[str, float]]:
    """The verifier alone on free paraphrase: what is caught, and what it costs. Thresholds from the fixing half."""
    true, fixing = np.array([row.true for row in rows]), np.array([row.fixing for row in rows])
    lines = []
    for aim in (0.8, 0.9, 0.95, 0.98, 0.99):
        least = float(np.quantile(scores[fixing & ~true], aim))
        below = scores[~fixing] < least
        caught, lost = below[~true[~fixing]].mean(), below[true[~fixing]].mean()
        lines.append({"aim": aim, "threshold": least, "caught": float(caught), "true withheld": float(lost)})
    return lines


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _times(encoder: CrossEncoder) -> Iterator[Figure]:
    """Milliseconds of processor time a pair on one thread: a busy machine changes it less than the clock's."""
    encoder.load()
    for size in (128, 150, 256):
        pair = ("the robot stops when commands stop arriving", "word " * (size - 10))  # and three marks between
        spent = []
        for _ in range(30):
            begin = time.process_time()
            encoder.score([pair])
            spent.append((time.process_time() - begin) * 1000)
        low, high = interval(spent)
        label = f"one pair of {size} tokens, one thread, processor time (median; fastest {min(spent):.1f} ms)"
        figure = {"key": f"ms-{size}", "label": label, "value": statistics.median(spent), "low": low, "high": high,
                  "n": len(spent), "kind": "ms"}  # fmt: skip
        yield _reached(figure, "≤ 15 ms", 15.0) if size == 256 else figure


def main() -> None:
    """Print and save."""
    if not DATA.is_dir():
        sys.exit(f"No data at {DATA}.")
    result = measure()
    for figure in result["figures"]:
        unit = 100 if figure["kind"] == "share" else 1
        told_as = [f"{unit * figure[part]:.3g}" for part in ("value", "low", "high")]
        mark = {True: "reached", False: "MISSED"}.get(figure.get("reached"), "")
        value = f"{told_as[0]} [{told_as[1]}, {told_as[2]}]"
        print(f"{figure['label']}: {value} n {figure['n']} {figure.get('bar', '')} {mark}")
    for table in ("sets", "rescue", "withheld", "responses", "fixed", "doubt", "without the verifier"):
        print(table, *(result[table] if isinstance(result[table], list) else [result[table]]), sep="\n  ")
    print(save("verification", result))


if __name__ == "__main__":
    main()
