"""Areas, rates and their intervals, for the tables of the model cards. Pure functions of labels and scores."""

import hashlib
from collections.abc import Callable

import numpy as np


def auroc(y: np.ndarray, scores: np.ndarray) -> float:
    """The chance that a true row scores above a false one; ties count half."""
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    low = np.searchsorted(sorted_scores, scores, "left")
    high = np.searchsorted(sorted_scores, scores, "right")
    ranks = (low + high + 1) / 2
    true, false = int((y == 1).sum()), int((y == 0).sum())
    return float((ranks[y == 1].sum() - true * (true + 1) / 2) / (true * false)) if true and false else float("nan")


def interval(measure: Callable[[np.ndarray], float], size: int, draws: int = 400) -> tuple[float, float]:
    """95 % bootstrap interval of a measure that takes row numbers."""
    rng = np.random.default_rng(0)
    values = [measure(rng.integers(0, size, size)) for _ in range(draws)]
    low, high = np.nanpercentile(values, (2.5, 97.5))
    return float(low), float(high)


def balanced_accuracy(y: np.ndarray, said: np.ndarray) -> float:
    return float((said[y == 1].mean() + (~said[y == 0]).mean()) / 2)


def f1_of_false(y: np.ndarray, said: np.ndarray) -> float:
    """F1 of finding what is not borne out."""
    hit = int((~said & (y == 0)).sum())
    return 2 * hit / max(1, int((~said).sum()) + int((y == 0).sum()))


def half(group: str) -> int:
    """0 to fix a threshold on, 1 to test it on."""
    return int(hashlib.sha256(f"half|{group}".encode()).hexdigest()[:8], 16) % 2
