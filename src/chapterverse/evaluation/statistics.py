"""How sure one can be of a number that was measured on some questions and stands for all.

Pure functions; chance comes from a fixed seed, so the same values always give the same interval.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Rows = NDArray[np.intp]
Interval = tuple[float, float]

_RESAMPLES: Final = 2000
_SEED: Final = 20251115  # the same resamples in every run
_LEAST_GROUPS: Final = 10  # that are worth resampling
_TAILS: Final = (2.5, 97.5)  # percentiles of a 95 % interval
_Z: Final = 1.959963984540054  # the normal distribution's 97.5th percentile
SIGNIFICANT: Final = 0.05


def wilson_interval(successes: int, trials: int) -> Interval:
    """95 % interval of a share. Unlike the plain one it says something even when all, or none, succeeded."""
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"{successes} of {trials} is no share")
    return _wilson(successes / trials, trials)


def _wilson(share: float, trials: int) -> Interval:
    weight = _Z * _Z / trials
    middle = share + weight / 2
    reach = _Z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return max(0.0, (middle - reach) / (1 + weight)), min(1.0, (middle + reach) / (1 + weight))


def interval(values: Sequence[float], groups: Sequence[str] = ()) -> Interval:
    """95 % bootstrap interval of the mean. Of a difference, when the values are paired differences.

    Values of one group (document, conversation) are alike: whole groups are drawn, as new ones would bring them."""
    if not groups:
        means = _resampled_means(values)
    else:
        _, place = np.unique(groups, return_inverse=True)
        sums, counts = np.bincount(place, np.asarray(values, np.float64)), np.bincount(place)
        drawn = _draws(len(counts))
        means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, _TAILS)
    return float(low), float(high)


def share_interval(values: Sequence[float], groups: Sequence[str] = ()) -> Interval:
    """95 % interval of a share of yes and no: Wilson's, or by groups. Resampling few groups, or groups that all say the
    same, shows too little doubt; then each group counts as one answer."""
    trials = len(set(groups)) if groups else len(values)
    if groups and trials >= _LEAST_GROUPS and len(set(values)) > 1:
        return interval(values, groups)
    return _wilson(sum(values) / len(values), trials)


def statistic_interval(statistic: Callable[[Rows], float], count: int, groups: Sequence[str] = ()) -> Interval:
    """95 % bootstrap interval of whatever is computed from some of `count` rows; NaN where a draw allows no value."""
    found = [statistic(rows) for rows in _row_draws(count, groups)]
    low, high = np.nanpercentile(found, _TAILS)
    return float(low), float(high)


def gain_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """95 % interval of the mean difference on the same questions (paired bootstrap)."""
    return interval(_differences(ours, theirs))


def gain_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How often chance alone would give so large a mean difference, two-sided: if both are equal, each question's
    difference could as well have the other sign. Unlike the bootstrap it is not fooled when few questions differ."""
    differences: Values = np.asarray([one for one in _differences(ours, theirs) if one], np.float64)
    if not len(differences):
        return 1.0
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), (_RESAMPLES, len(differences)))
    least = abs(differences.sum()) - 1e-9  # sums of the same numbers in another order differ a little
    # One more: no number of resamples shows that something cannot happen.
    return float(((np.abs(signs @ differences) >= least).sum() + 1) / (_RESAMPLES + 1))


def mcnemar_p(gained: int, lost: int) -> float:
    """How often chance alone would give so uneven a split of the questions that changed sides (exact, two-sided)."""
    changed = gained + lost
    if not changed:
        return 1.0
    tail = sum(math.comb(changed, count) for count in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def quantile_interval(values: Sequence[float], share: float) -> Interval:
    """95 % bootstrap interval of a quantile."""
    low, high = np.percentile(np.quantile(_resampled(values), share, axis=1), _TAILS)
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, raised so that all of them together err in 5 % of cases (Holm)."""
    raised = [0.0] * len(p_values)
    least = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        raised[index] = least
    return raised


def calibration_error(confidences: Sequence[float] | Values, right: Sequence[float] | Values, bins: int = 10) -> float:
    """ECE: how far the share of right answers is from the confidence, averaged over bins of equal width."""
    if not len(confidences):
        return 0.0
    told = np.asarray(confidences, np.float64)
    gaps = np.bincount(bins_of(told, bins), told - np.asarray(right, np.float64))
    return float(np.abs(gaps).sum() / len(told))


def calibration_error_interval(
    confidences: Sequence[float] | Values,
    right: Sequence[float] | Values,
    bins: int = 10,
    groups: Sequence[str] = (),
) -> Interval:
    """95 % bootstrap interval of the ECE. It lies high when there are few answers, and so does the ECE itself."""
    told, kept = np.asarray(confidences, np.float64), np.asarray(right, np.float64)
    return statistic_interval(lambda rows: calibration_error(told[rows], kept[rows], bins), len(told), groups)


def auroc(scores: Sequence[float] | Values, positive: Sequence[bool] | NDArray[np.bool_]) -> float:
    """How often a positive scores higher than a negative; a tie counts half. NaN without one of both."""
    told, wanted = np.asarray(scores, np.float64), np.asarray(positive, np.bool_)
    yes, no = int(wanted.sum()), int((~wanted).sum())
    if not yes or not no:
        return math.nan
    _, place, counts = np.unique(told, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # of equal scores, the middle one
    return float((ranks[wanted].sum() - yes * (yes + 1) / 2) / (yes * no))


def closed_distance(alone: Values, ours: Values, best: Values) -> float:
    """How much of the way from the first mean to the last the middle one goes; NaN where there is no way to go."""
    distance = float(best.mean() - alone.mean())
    return float(ours.mean() - alone.mean()) / distance if distance > 0 else math.nan


def bins_of(confidences: Values, bins: int = 10) -> NDArray[np.intp]:
    """The bin of each confidence: 1.0 belongs to the last."""
    return np.minimum(bins - 1, (confidences * bins).astype(np.intp))


def _differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [mine - other for mine, other in zip(ours, theirs, strict=True)]


def _resampled_means(values: Sequence[float]) -> Values:
    means: Values = _resampled(values).mean(axis=1)
    return means


def _resampled(values: Sequence[float]) -> Values:
    sample: Values = np.asarray(values, np.float64)
    return sample[_draws(len(sample))]


def _row_draws(count: int, groups: Sequence[str]) -> Iterator[Rows]:
    """The rows of each resample: single ones, or those of the groups drawn."""
    if not groups:
        yield from _draws(count).astype(np.intp)
        return
    named = np.asarray(groups)
    rows = [np.flatnonzero(named == name) for name in dict.fromkeys(groups)]
    for drawn in _draws(len(rows)):
        yield np.concatenate([rows[number] for number in drawn])


def _draws(count: int) -> NDArray[np.int64]:
    """Which of so many values each resample has."""
    if not count:
        raise ValueError("no values to resample")
    return np.random.default_rng(_SEED).integers(0, count, (_RESAMPLES, count))
