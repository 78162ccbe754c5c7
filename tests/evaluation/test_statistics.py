"""Statistics compared with values calculated by hand, and coverage of 95 % intervals by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.evaluation.statistics import (
    auroc,
    bins_of,
    calibration_error,
    calibration_error_interval,
    closed_distance,
    gain_interval,
    gain_p,
    holm,
    interval,
    mcnemar_p,
    quantile_interval,
    share_interval,
    statistic_interval,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n), with z² = 3.8415
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),  # z²/(n + z²)
        (10, 10, 0.7225, 1.0),
        (50, 100, 0.4038, 0.5962),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_wilson_by_hand(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 5)])
def test_wilson_refuses_invalid_counts(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson_interval(successes, trials)


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_contains_the_share_and_is_symmetric(counted: tuple[int, int]) -> None:
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials + 1e-12
    assert successes / trials <= high + 1e-12 <= 1 + 1e-12
    assert (1 - high, 1 - low) == pytest.approx(wilson_interval(trials - successes, trials), abs=1e-12)


@pytest.mark.parametrize(("share", "trials"), [(0.5, 20), (0.9, 40), (0.97, 60), (0.1, 200)])
def test_wilson_covers_the_truth(share: float, trials: int) -> None:
    drawn = np.random.default_rng(1).binomial(trials, share, 3000)
    held = [low <= share <= high for low, high in (wilson_interval(int(count), trials) for count in drawn)]
    assert 0.92 <= np.mean(held) <= 0.985


def test_interval_of_many_coin_throws_equals_the_normal_interval() -> None:
    low, high = interval([0.0] * 500 + [1.0] * 500)
    spread = 1.96 * math.sqrt(0.25 / 1000)  # 0.031
    assert low == pytest.approx(0.5 - spread, abs=0.004)
    assert high == pytest.approx(0.5 + spread, abs=0.004)


def test_pairing_removes_shared_variance() -> None:
    theirs = [number % 2 * 1.0 for number in range(100)]  # the largest possible variance
    low, high = gain_interval([value + 0.1 for value in theirs], theirs)
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.1)


def test_a_gain_needs_the_same_questions() -> None:
    with pytest.raises(ValueError, match="zip"):
        gain_interval([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="no values"):
        interval([])


@pytest.mark.parametrize("trials", [40, 120])
def test_bootstrap_covers_the_truth(trials: int) -> None:
    chance = np.random.default_rng(2)
    samples = [chance.beta(2, 5, trials).tolist() for _ in range(300)]  # skewed, mean 2/7
    held = [low <= 2 / 7 <= high for low, high in map(interval, samples)]
    assert 0.90 <= np.mean(held) <= 0.99


def test_paired_test_has_few_false_positives() -> None:
    chance = np.random.default_rng(3)
    runs = [(chance.normal(0.5, 0.2, 60).tolist(), chance.normal(0.5, 0.2, 60).tolist()) for _ in range(300)]
    assert 0.01 <= np.mean([gain_p(ours, theirs) < 0.05 for ours, theirs in runs]) <= 0.09


def test_paired_test_finds_a_real_gain() -> None:
    chance = np.random.default_rng(4)
    theirs = chance.normal(0.5, 0.2, 60).tolist()
    ours = [value + gain for value, gain in zip(theirs, chance.normal(0.05, 0.05, 60), strict=True)]
    assert gain_p(ours, theirs) < 0.01
    assert gain_p(theirs, theirs) == 1.0


def test_a_paired_test_of_few_differences_agrees_with_mcnemar() -> None:
    ours, theirs = [1.0] * 6 + [0.5] * 34, [0.0] * 6 + [0.5] * 34
    assert gain_p(ours, theirs) == pytest.approx(mcnemar_p(6, 0), abs=0.012)  # 2 / 2⁶, drawn 2,000 times
    assert gain_p(ours[:5] + ours[6:], theirs[:5] + theirs[6:]) > 0.05


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, 1.0),
        (1, 8, 2 * (1 + 9) / 2**9),  # 0.039
        (8, 1, 2 * (1 + 9) / 2**9),
        (0, 5, 2 / 2**5),  # 0.0625: five questions alone cannot be significant
        (0, 6, 2 / 2**6),
        (3, 3, 1.0),
    ],
)
def test_mcnemar_by_hand(gained: int, lost: int, p: float) -> None:
    assert mcnemar_p(gained, lost) == pytest.approx(p)


def test_mcnemar_has_at_most_5_percent_false_positives() -> None:
    changed = np.random.default_rng(5).binomial(20, 0.5, 4000)
    assert np.mean([mcnemar_p(int(count), 20 - int(count)) < 0.05 for count in changed]) <= 0.05


def test_mcnemar_of_thousands_of_questions() -> None:
    assert mcnemar_p(1500, 1500) == pytest.approx(1.0)
    assert mcnemar_p(1000, 1300) < 1e-6


def test_holm_by_hand() -> None:
    # sorted .01 .02 .03 .04: ×4 .04, ×3 .06, ×2 .06, ×1 .04 raised to the one before
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.7, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_calibration_error_by_hand() -> None:
    # bin .9: |1.9 − 1|; bin .6: |1.3 − 2|; over four answers
    assert calibration_error([0.95, 0.95, 0.65, 0.65], [1, 0, 1, 1]) == pytest.approx((0.9 + 0.7) / 4)
    assert calibration_error([1.0, 1.0], [1, 1]) == 0.0
    assert calibration_error([], []) == 0.0


def test_interval_of_the_calibration_error() -> None:
    chance = np.random.default_rng(8)
    kept = (chance.uniform(0, 1, 400) < 0.6).astype(float)  # the forecast is 0.9, so the error is 0.3
    low, high = calibration_error_interval([0.9] * 400, kept)
    assert 0.23 < low < 0.9 - kept.mean() < high < 0.37


def test_a_calibrated_forecast_has_almost_no_calibration_error() -> None:
    chance = np.random.default_rng(6)
    forecast = chance.uniform(0, 1, 20_000)
    kept = (chance.uniform(0, 1, 20_000) < forecast).astype(float)
    assert calibration_error(forecast.tolist(), kept.tolist()) < 0.02


def test_bins_of_values() -> None:
    assert bins_of(np.array([0.0, 0.0999, 0.1, 0.55, 0.999, 1.0])).tolist() == [0, 0, 1, 5, 9, 9]


def test_interval_of_a_quantile() -> None:
    low, high = quantile_interval(list(range(1001)), 0.5)
    assert 440 < low < 500 < high < 560
    with pytest.raises(ValueError, match="no values"):
        quantile_interval([], 0.5)


def test_the_same_values_give_the_same_interval() -> None:
    assert interval([0.1, 0.5, 0.9]) == interval([0.1, 0.5, 0.9])


# ── questions that share a document or a conversation ────────────────────────────────────────────────────────────────


def test_groups_that_agree_within_count_as_one_answer_each() -> None:
    # ten documents of ten questions, each document all right or all wrong: ten answers, not a hundred
    values = [float(number // 10 % 2) for number in range(100)]
    groups = [f"document {number // 10}" for number in range(100)]
    low, high = share_interval(values, groups)
    spread = 1.96 * math.sqrt(0.25 / 10)  # 0.31
    assert (low, high) == pytest.approx((0.5 - spread, 0.5 + spread), abs=0.06)
    alone = share_interval(values)
    assert high - low > 2.5 * (alone[1] - alone[0])


def test_groups_of_one_do_not_change_the_interval() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.2, 0.9, 0.55, 0.6]
    assert interval(values, [str(number) for number in range(8)]) == pytest.approx(interval(values), abs=1e-12)


def test_the_mean_by_groups_is_that_of_the_rows_drawn() -> None:
    values, groups = [0.1, 0.4, 0.35, 0.8, 0.2, 0.9], ["a", "a", "b", "c", "c", "c"]
    rows = np.array(values)
    slow = statistic_interval(lambda drawn: float(rows[drawn].mean()), 6, groups)
    assert interval(values, groups) == pytest.approx(slow, abs=1e-12)


def test_each_group_counts_once_if_all_agree() -> None:
    assert share_interval([1.0] * 60, ["a"] * 30 + ["b"] * 30) == wilson_interval(2, 2)
    assert share_interval([0.0] * 4) == wilson_interval(0, 4)


def test_few_groups_give_a_wide_interval() -> None:
    low, high = share_interval([0.0, 1.0], ["a", "a"])  # one paragraph, one right and one wrong
    assert low < 0.1
    assert high > 0.9
    assert share_interval([1.0, 0.0, 1.0, 0.0], ["a", "a", "b", "b"]) == pytest.approx(wilson_interval(1, 2))


def test_the_interval_by_groups_covers_the_truth_and_the_plain_one_does_not() -> None:
    chance = np.random.default_rng(5)
    groups = [str(number // 8) for number in range(240)]  # 30 conversations of 8 turns
    by_groups: list[bool] = []
    plain: list[bool] = []
    for _ in range(150):
        shares = np.repeat(chance.beta(1, 1, 30), 8)  # turns of one conversation are alike; the mean is one half
        values = (chance.random(240) < shares).astype(float).tolist()
        for held, given_groups in ((by_groups, groups), (plain, [])):
            low, high = share_interval(values, given_groups)
            held.append(low <= 0.5 <= high)
    assert 0.88 <= np.mean(by_groups) <= 0.99
    assert np.mean(plain) < 0.85


@pytest.mark.parametrize(
    ("scores", "positive", "area"),
    [
        ([0.1, 0.4, 0.35, 0.8], [False, False, True, True], 0.75),  # three of the four pairs
        ([1.0, 2.0], [False, True], 1.0),
        ([2.0, 1.0], [False, True], 0.0),
        ([1.0, 1.0, 1.0], [True, False, True], 0.5),
        ([0.0, 1.0, 1.0, 2.0], [False, True, False, True], 3.5 / 4),
    ],
)
def test_auroc_by_hand(scores: list[float], positive: list[bool], area: float) -> None:
    assert auroc(scores, positive) == pytest.approx(area)


def test_auroc_needs_positive_and_negative_cases() -> None:
    assert math.isnan(auroc([0.1, 0.2], [True, True]))
    assert math.isnan(auroc([], []))


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auroc_is_the_share_of_pairs(rows: list[tuple[int, bool]]) -> None:
    high, low = [s for s, yes in rows if yes], [s for s, yes in rows if not yes]
    if high and low:
        pairs = [(a > b) + (a == b) / 2 for a in high for b in low]
        assert auroc([s for s, _ in rows], [yes for _, yes in rows]) == pytest.approx(sum(pairs) / len(pairs))


def test_closed_distance() -> None:
    alone, ours, best = np.array([0.2, 0.4]), np.array([0.5, 0.4]), np.array([0.8, 0.4])
    assert closed_distance(alone, ours, best) == pytest.approx(0.5)
    assert math.isnan(closed_distance(best, ours, best))  # there is no distance


def test_statistic_interval_ignores_draws_without_a_value() -> None:
    values = np.arange(50.0)
    low, high = statistic_interval(lambda rows: float(values[rows].mean()), 50)
    assert (low, high) == pytest.approx(interval(values.tolist()), abs=1e-9)
    low, high = statistic_interval(lambda rows: math.nan if rows[0] % 2 else 1.0, 50)
    assert (low, high) == (1.0, 1.0)
