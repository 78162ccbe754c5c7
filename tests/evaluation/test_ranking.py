"""Ranking measures compared with values calculated by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.evaluation.measures import hit, ndcg, reciprocal_rank


def test_ndcg_of_binary_grades() -> None:
    # right documents at ranks 2 and 4 of the first five; three exist
    found = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    grades = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert ndcg(["x", "a", "y", "b", "z", "c"], grades, 5) == pytest.approx(found / ideal)
    assert found / ideal == pytest.approx(0.4982, abs=1e-4)


def test_ndcg_of_graded_documents() -> None:
    # the lesser document first: (1/1 + 3/1.585) / (3/1 + 1/1.585)
    assert ndcg(["less", "more"], {"more": 3.0, "less": 1.0}, 10) == pytest.approx(0.7967, abs=1e-4)
    assert ndcg(["more", "less"], {"more": 3.0, "less": 1.0}, 10) == 1.0


def test_ndcg_is_cut_at_k() -> None:
    grades = {str(number): 1.0 for number in range(20)}
    assert ndcg([str(number) for number in range(5)], grades, 5) == 1.0


def test_ndcg_without_right_documents_is_zero() -> None:
    assert ndcg(["a"], {}, 5) == 0.0
    assert ndcg([], {"a": 1.0}, 5) == 0.0


def test_reciprocal_rank() -> None:
    assert reciprocal_rank(["x", "y", "a", "b"], {"a": 1.0, "b": 1.0}, 10) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x", "y", "a"], {"a": 1.0}, 2) == 0.0
    assert reciprocal_rank(["x", "a"], {"x": 0.0, "a": 1.0}, 2) == 0.5


def test_hit_at_k() -> None:
    assert hit(["x", "a"], {"a": 1.0}, 2) == 1.0
    assert hit(["x", "a"], {"a": 1.0}, 1) == 0.0
    assert hit(["x"], {"x": 0.0}, 1) == 0.0


@given(st.permutations(["a", "b", "c", "d"]), st.dictionaries(st.sampled_from("abcd"), st.floats(0.5, 3), min_size=1))
def test_measures_stay_in_0_to_1_and_the_ideal_order_is_1(ranked: list[str], grades: dict[str, float]) -> None:
    for measure in (ndcg, reciprocal_rank, hit):
        assert 0 <= measure(ranked, grades, 4) <= 1 + 1e-12
    ideal = sorted(grades, key=lambda name: -grades[name])
    assert ndcg(ideal, grades, 4) == pytest.approx(1.0)
    assert reciprocal_rank(ideal, grades, 4) == hit(ideal, grades, 4) == 1.0
