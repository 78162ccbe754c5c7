"""What no trained judge may overrule."""

import pytest

from chapterverse.grounding.likeness import is_alike
from chapterverse.grounding.statements import statements, vocabulary
from chapterverse.grounding.words import tokens

TEXT = (
    "The depth sensor publishes its readings at 10 Hz on the `/depth` topic of Heron. "
    "Operators should not calibrate the compass near large vehicles. "
    "The planner was tested on Lake Vettern, and the radios were tested on the coast. "
    "Late consumers may ask for older frames. "
    "If the link is lost, the boat returns slowly to its launch point."
)


def alike(claim: str, at: int) -> bool:
    return is_alike(tokens(claim), statements(TEXT)[at], vocabulary(TEXT))


@pytest.mark.parametrize(
    ("at", "claim"),
    [
        (0, "The depth sensor emits its readings at 10 Hz on the `/depth` topic of Heron."),
        (0, "The depth sensor publishes its measurements at 10 Hz on the `/depth` topic of Heron."),
        (1, "Operators should not calibrate the compass near big lorries."),
        (4, "If the link is lost, the boat returns gently to its launch point."),
        (4, "If the link is lost, the boat returns to its launch point."),
    ],
)
def test_plain_words_may_be_exchanged_or_left_out(at: int, claim: str) -> None:
    assert alike(claim, at)


@pytest.mark.parametrize(
    ("at", "claim", "broken"),
    [
        (0, "The depth sensor emits its readings at 20 Hz on the `/depth` topic of Heron.", "number"),
        (0, "The depth sensor emits its readings at 10 Hz on the `/sonar` topic of Heron.", "identifier"),
        (0, "The depth sensor emits its readings at 10 Hz on the `/depth` topic of Egret.", "name"),
        (0, "Sonar sensor publishes its readings at 10 Hz on the `/depth` topic of Heron.", "subject"),
        (0, "The depth sensor publishes its readings at 10 kilometres on the `/depth` topic of Heron.", "unit"),
        (
            0,
            "The depth sensor publishes its frames at 10 Hz on the `/depth` topic of Heron.",
            "word of another sentence",
        ),
        (0, "The depth sensor always emits its readings at 10 Hz on the `/depth` topic of Heron.", "quantity added"),
        (0, "The noisy depth sensor publishes its readings at 10 Hz on the `/depth` topic of Heron.", "a word more"),
        (1, "Operators should calibrate the compass near large lorries.", "negation lost"),
        (1, "No, operators should calibrate the compass near large lorries.", "negation elsewhere"),
        (1, "Operators must not calibrate the compass near large lorries.", "obligation"),
        (2, "The planner was tested on the coast.", "subject of another clause"),
        (3, "Late consumers may ask for newer frames.", "opposite"),
        (4, "The boat returns gently to its launch point.", "condition lost"),
        (4, "If the boat is lost, the link returns gently to its launch point.", "order"),
        (4, "It returns gently to its launch point if the link is lost.", "pronoun"),
    ],
)
def test_what_changes_the_claim_is_not_wording(at: int, claim: str, broken: str) -> None:
    assert not alike(claim, at), broken
