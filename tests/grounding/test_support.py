import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.grounding import Passage, Rules, nearest
from tests.grounding.hostile import TOPICS, passages

RULES = Rules()


def test_evidence_is_the_sentence_itself() -> None:
    (evidence,) = RULES.judge("The red button cuts the power at once.", passages()).evidence
    assert evidence.quote == "The red button cuts the power at once."
    assert evidence.passage.number == 6


def test_a_pronoun_is_resolved_and_its_sentence_quoted_too() -> None:
    (evidence,) = RULES.judge("Heron's hull is 1.8 m long and weighs 24 kg without the battery.", passages()).evidence
    assert evidence.quote.startswith("Heron is a small survey boat")
    assert evidence.quote.endswith("without the battery.")


def test_two_merged_sentences_rest_on_both() -> None:
    claim = "Heron has two radios, and the red button cuts the power at once."
    assert [one.passage.number for one in RULES.judge(claim, passages()).evidence] == [4, 6]


def test_neighbours_are_quoted_as_one_stretch() -> None:
    claim = "Soft mud returns a weak echo, and the `depth_m` field is empty when no echo arrives."
    (evidence,) = RULES.judge(claim, passages()).evidence
    assert evidence.quote.startswith("Soft mud") and evidence.quote.endswith("no echo arrives.")


def test_a_predicate_does_not_change_its_subject_when_sentences_are_merged() -> None:
    text = "The gyroscope measures the turn. The accelerometer measures gravity."
    assert not RULES.judge("The gyroscope measures the turn and measures gravity.", [Passage(1, text)]).supported


def test_a_table_is_read_cell_by_cell_under_its_head() -> None:
    table = "| term | reacts to | helps with |\n|---|---|---|\n| proportional | the present error | speed |\n"
    issued = [Passage(1, table)]
    assert RULES.judge("The term proportional reacts to the present error.", issued).supported
    assert not RULES.judge("The term proportional helps with the present error.", issued).supported
    assert not RULES.judge("The term proportional reacts to speed.", issued).supported


def test_a_barred_stretch_is_no_evidence() -> None:
    text = "The boat can fly over land. The boat can float on water."
    bar = ((0, len("The boat can fly over land.")),)
    assert RULES.judge("The boat can fly over land.", [Passage(1, text)]).supported
    assert not RULES.judge("The boat can fly over land.", [Passage(1, text, "", bar)]).supported
    assert RULES.judge("The boat can float on water.", [Passage(1, text, "", bar)]).supported


def test_the_first_passage_that_bears_it_out_is_taken() -> None:
    issued = [Passage(number, "Heron has two radios.") for number in (1, 2)]
    assert RULES.judge("Heron has two radios.", issued[::-1]).evidence[0].passage.number == 2


@pytest.mark.parametrize("claim", ["", ".", "HACKED", "the of and", "🚤🚤🚤", "Yes."])
def test_what_says_nothing_is_not_supported(claim: str) -> None:
    assert not RULES.judge(claim, passages()).supported
    assert not RULES.judge(claim, []).supported


@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_is_judged_without_failing(claim: str, text: str) -> None:
    for evidence in RULES.judge(claim, [Passage(1, text)]).evidence:
        assert text[evidence.start : evidence.end] == evidence.quote != ""


_SMALL = "the boat a motor stops turns not if when and but , . : ( ) only it which 3 `x_y` | - can may to from by heron"
_WORDS = st.lists(st.sampled_from(_SMALL.split()), max_size=24).map(" ".join)


@given(_WORDS, _WORDS)
def test_any_row_of_words_is_judged_without_failing(claim: str, text: str) -> None:
    RULES.judge(claim, [Passage(1, text, "Boat › Motor")])


def test_the_nearest_sentence_says_what_was_meant() -> None:
    found = nearest("The battery stores 640 Wh and lasts about four hours at 1.2 m/s.", passages(), ())
    assert found is not None and found.quote.startswith("The battery stores 620 Wh")
    assert nearest("The battery stores 640 Wh and lasts about four hours.", passages(), (found,)) is None
    assert nearest("Dolphins like music and jump over waves at night.", passages(), ()) is None


def test_a_claim_takes_about_a_millisecond() -> None:
    issued = passages()
    claims = [sentence for topic in TOPICS for sentence in (*topic.true, *(lie for _, lie in topic.false))]
    RULES.judge(claims[0], issued)
    begin = time.perf_counter()
    for claim in claims:
        RULES.judge(claim, issued)
    assert (time.perf_counter() - begin) / len(claims) < 0.02, "seconds, with room for a busy machine"


def test_a_condition_of_another_sentence_is_not_borrowed() -> None:
    text = "Treaties are open, unless stated otherwise. Greenland signed a treaty in 1985."
    assert not RULES.judge("Greenland signed a treaty in 1985, unless stated otherwise.", [Passage(1, text)]).supported


def test_yet_does_not_part_a_negation_from_its_verb() -> None:
    text = "The agency does not yet have an online form for children."
    assert not RULES.judge("The agency does yet have an online form for children.", [Passage(1, text)]).supported


def test_so_does_not_part_a_negation_from_its_verb() -> None:
    text = "Directives do not have so called direct effect."
    assert not RULES.judge("Directives do have so called direct effect.", [Passage(1, text)]).supported


def test_a_number_is_not_moved_behind_a_comma() -> None:
    text = "We deny forms received after December 15, 2004, from spouses who remarried before December 16, 2003."
    claim = "We deny forms received after December 15, 2004, from spouses who remarried before December 16, 2004."
    assert not RULES.judge(claim, [Passage(1, text)]).supported
    assert RULES.judge(text, [Passage(1, text)]).supported
