import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.index.fusion import Branches, Ranked, depth, fuse, pick

IDS = st.sampled_from("abcdefgh")
COSINES = st.floats(-1, 1)
SCORES = st.floats(0, 50)


def order(branches: Branches[str], weight: float = 0.5) -> list[str]:
    return [candidate.id for candidate in fuse(branches, weight)]


def test_rank_is_by_the_weighted_sum_of_both_branches() -> None:
    branches = Branches({"a": 0.9, "b": 0.8, "c": 0.1}, {"b": 10.0, "c": 9.0}, {"b": 0.8, "c": 0.1})
    assert order(branches) == ["b", "a", "c"]
    assert order(branches, 0.9) == ["a", "b", "c"]
    assert order(branches, 0.1) == ["b", "c", "a"]


def test_word_hit_outside_the_dense_branch_has_its_real_cosine() -> None:
    ranked = fuse(Branches({"a": 0.9}, {"z": 5.0}, {"z": 0.2}), 0.45)
    assert [(c.id, c.cosine) for c in ranked] == [("z", 0.2), ("a", 0.9)]


def test_weaker_word_hit_scores_far_above_no_hit() -> None:
    """Of two hits with nearly equal scores, the lower one is closer to the other hit than to no hit."""
    branches = Branches({"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 8.1, "b": 8.0}, {"a": 0.5, "b": 0.5})
    first, second, third = fuse(branches, 0.5)
    assert 10 * (first.score - second.score) < second.score - third.score


def test_fusion_ignores_scale_and_offset_of_each_branch() -> None:
    """Scores ten times as large, or all lower by the same amount, give the same ranks."""
    cosines = {"a": 0.9, "b": 0.5, "c": 0.1}
    words = {"a": 1.0, "b": 4.0, "c": 3.0}
    plain = fuse(Branches(cosines, words, cosines), 0.5)
    larger = fuse(Branches(cosines, {id_: 10 * score for id_, score in words.items()}, cosines), 0.5)
    lower = {id_: cosine - 0.1 for id_, cosine in cosines.items()}
    shifted = fuse(Branches(lower, words, lower), 0.5)
    for other in (larger, shifted):
        assert [c.id for c in other] == [c.id for c in plain]
        assert [c.score for c in other] == pytest.approx([c.score for c in plain])


@pytest.mark.parametrize("weight", [0.0, 0.45, 1.0])
def test_fusion_of_empty_single_and_tied_candidates(weight: float) -> None:
    assert fuse(Branches(), weight) == []
    (only,) = fuse(Branches({"a": -0.5}), weight)
    assert (only.cosine, only.similarity) == (-0.5, 0.0)
    assert order(Branches({"b": 0.3, "a": 0.3, "c": 0.3}), weight) == ["a", "b", "c"]
    assert order(Branches({}, {"b": 2.0, "a": 2.0}, {"a": 0.1, "b": 0.1}), weight) == ["a", "b"]


def test_a_candidate_without_cosine_is_left_out() -> None:
    assert order(Branches({"a": 0.5}, {"a": 1.0, "x": 1.0}, {"a": 0.5})) == ["a"]


@given(
    dense=st.dictionaries(IDS, COSINES),
    sparse=st.dictionaries(IDS, SCORES),
    others=st.dictionaries(IDS, COSINES, min_size=8),
    weight=st.floats(0, 1),
)
def test_fusion_ranks_every_candidate_with_bounded_scores(
    dense: dict[str, float], sparse: dict[str, float], others: dict[str, float], weight: float
) -> None:
    ranked = fuse(Branches(dense, sparse, others), weight)
    assert {candidate.id for candidate in ranked} == dense.keys() | sparse.keys()
    assert all(math.isfinite(candidate.score) for candidate in ranked)
    assert all(0 <= candidate.similarity <= 1 for candidate in ranked)
    assert ranked == sorted(ranked, key=lambda candidate: (-candidate.score, candidate.id))


@given(dense=st.dictionaries(IDS, COSINES, min_size=2), sparse=st.dictionaries(IDS, SCORES), weight=st.floats(0, 1))
def test_a_passage_that_is_better_in_both_branches_ranks_first(
    dense: dict[str, float], sparse: dict[str, float], weight: float
) -> None:
    words = {id_: score for id_, score in sparse.items() if id_ in dense}
    ranked = fuse(Branches(dense, words, dense), weight)
    for one in ranked:
        for other in ranked:
            if dense[one.id] >= dense[other.id] and words.get(one.id, 0.0) >= words.get(other.id, 0.0):
                assert one.score >= other.score - 1e-9


def test_depth_grows_with_the_limit() -> None:
    assert [depth(1), depth(25), depth(50)] == [100, 100, 200]


@given(hashes=st.lists(st.integers(0, 4), max_size=20), limit=st.integers(1, 6), bar=st.floats(0, 1))
def test_pick_takes_the_first_of_each_text_and_fetches_in_parts(hashes: list[int], limit: int, bar: float) -> None:
    ranked = [Ranked(str(number), 1.0 - number / 100, 1.0 - number / 20) for number in range(len(hashes))]
    asked: list[str] = []

    def fetch(ids: list[str]) -> dict[str, dict[str, str]]:
        assert len(ids) <= limit
        asked.extend(ids)
        return {id_: {"content_hash": str(hashes[int(id_)])} for id_ in ids}

    picked = pick(ranked, bar, limit, fetch)
    expected: list[str] = []
    for candidate in ranked:
        earlier = {hashes[int(id_)] for id_ in expected}
        if candidate.similarity >= bar and hashes[int(candidate.id)] not in earlier:
            expected.append(candidate.id)
    assert [candidate.id for candidate, _ in picked] == expected[:limit]
    assert len(asked) == len(set(asked))
