"""Confidence intervals and significance tests for measures on a sample of questions.

Pure functions with a fixed random seed, so that the same values always give the same interval.
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
_LEAST_GROUPS: Final = 10  # with fewer, groups are not resampled
_TAILS: Final = (2.5, 97.5)  # percentiles of a 95 % interval
_Z: Final = 1.959963984540054  # the normal distribution's 97.5th percentile
SIGNIFICANT: Final = 0.05


def wilson_interval(successes: int, trials: int) -> Interval:
    """Return the 95 % interval of a share. Unlike the normal approximation, it works if all or none succeeded."""
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"{successes} of {trials} is not a share")
    return _wilson(successes / trials, trials)


def _wilson(share: float, trials: int) -> Interval:
    weight = _Z * _Z / trials
    middle = share + weight / 2
    reach = _Z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return max(0.0, (middle - reach) / (1 + weight)), min(1.0, (middle + reach) / (1 + weight))


def interval(values: Sequence[float], groups: Sequence[str] = ()) -> Interval:
    """Return the 95 % bootstrap interval of the mean; `values` may also be paired differences.

    Values of one group (document, conversation) are correlated, so whole groups are drawn."""
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
    """Return the 95 % interval of a share: Wilson's, or a bootstrap over groups. If there are few groups or all values
    are equal, a bootstrap gives an interval that is too narrow; then each group counts as one answer in Wilson's."""
    trials = len(set(groups)) if groups else len(values)
    if groups and trials >= _LEAST_GROUPS and len(set(values)) > 1:
        return interval(values, groups)
    return _wilson(sum(values) / len(values), trials)


def statistic_interval(statistic: Callable[[Rows], float], count: int, groups: Sequence[str] = ()) -> Interval:
    """Return the 95 % bootstrap interval of a statistic of `count` rows. A statistic may be NaN for some draws."""
    found = [statistic(rows) for rows in _row_draws(count, groups)]
    low, high = np.nanpercentile(found, _TAILS)
    return float(low), float(high)


def gain_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return the 95 % interval of the mean difference on the same questions (paired bootstrap)."""
    return interval(_differences(ours, theirs))


def gain_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the two-sided p-value of the mean difference, by random sign flips of each question's difference. Unlike
    the bootstrap, it is valid if only few questions differ."""
    differences: Values = np.asarray(
        [difference for difference in _differences(ours, theirs) if difference], np.float64
    )
    if not len(differences):
        return 1.0
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), (_RESAMPLES, len(differences)))
    least = abs(differences.sum()) - 1e-9  # tolerance for the rounding of sums
    # Plus one: resampling cannot show a probability of 0.
    return float(((np.abs(signs @ differences) >= least).sum() + 1) / (_RESAMPLES + 1))


def mcnemar_p(gained: int, lost: int) -> float:
    """Return the exact, two-sided p-value of McNemar's test."""
    changed = gained + lost
    if not changed:
        return 1.0
    tail = sum(math.comb(changed, count) for count in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def quantile_interval(values: Sequence[float], share: float) -> Interval:
    """Return the 95 % bootstrap interval of a quantile."""
    low, high = np.percentile(np.quantile(_resampled(values), share, axis=1), _TAILS)
    return float(low), float(high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of several tests, so that a limit of 5 % holds for their joint error rate (Holm)."""
    raised = [0.0] * len(p_values)
    least = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        raised[index] = least
    return raised


def calibration_error(confidences: Sequence[float] | Values, right: Sequence[float] | Values, bins: int = 10) -> float:
    """Return the ECE: the difference between confidence and the share of right answers, averaged over bins of equal
    width."""
    if not len(confidences):
        return 0.0
    confidence = np.asarray(confidences, np.float64)
    gaps = np.bincount(bins_of(confidence, bins), confidence - np.asarray(right, np.float64))
    return float(np.abs(gaps).sum() / len(confidence))


def calibration_error_interval(
    confidences: Sequence[float] | Values,
    right: Sequence[float] | Values,
    bins: int = 10,
    groups: Sequence[str] = (),
) -> Interval:
    """Return the 95 % bootstrap interval of the ECE. With few answers, both the ECE and its interval are biased
    upwards."""
    confidence, outcome = np.asarray(confidences, np.float64), np.asarray(right, np.float64)
    return statistic_interval(
        lambda rows: calibration_error(confidence[rows], outcome[rows], bins), len(confidence), groups
    )


def auroc(scores: Sequence[float] | Values, positive: Sequence[bool] | NDArray[np.bool_]) -> float:
    """Return the probability that a positive scores higher than a negative; a tie counts half. NaN if there are no
    positives or no negatives."""
    values, is_positive = np.asarray(scores, np.float64), np.asarray(positive, np.bool_)
    yes, no = int(is_positive.sum()), int((~is_positive).sum())
    if not yes or not no:
        return math.nan
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # the mean rank of equal scores
    return float((ranks[is_positive].sum() - yes * (yes + 1) / 2) / (yes * no))


def closed_distance(alone: Values, ours: Values, best: Values) -> float:
    """Return the share of the distance from the mean of `alone` to that of `best` which the mean of `ours` covers; NaN
    if `best` is not higher."""
    distance = float(best.mean() - alone.mean())
    return float(ours.mean() - alone.mean()) / distance if distance > 0 else math.nan


def bins_of(confidences: Values, bins: int = 10) -> NDArray[np.intp]:
    """Return the bin of each confidence; 1.0 is in the last bin."""
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
    """Yield the rows of each resample: single rows, or the rows of the drawn groups."""
    if not groups:
        yield from _draws(count).astype(np.intp)
        return
    named = np.asarray(groups)
    rows = [np.flatnonzero(named == name) for name in dict.fromkeys(groups)]
    for drawn in _draws(len(rows)):
        yield np.concatenate([rows[number] for number in drawn])


def _draws(count: int) -> NDArray[np.int64]:
    """Return the indices of each resample."""
    if not count:
        raise ValueError("no values to resample")
    return np.random.default_rng(_SEED).integers(0, count, (_RESAMPLES, count))
