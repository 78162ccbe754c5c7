"""The bench of the verifier: its fit, its edits, and what it counts."""

import random

import numpy as np
from bench.claims import is_talk
from bench.edits import FALSE, INVENTED, TRUE
from bench.signals import fitted
from bench.verification import outcome

from chapterverse.grounding import Passage, Rules

SENTENCE = "The sensor must send 10 readings to Heron when the motor is running."
OTHERS = ("The camera is small and uses 4 lenses.", "Ask Egret before the boat is moved if the wind is strong.")


def test_a_logistic_sum_finds_what_decides() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(400, 3))
    yes = columns[:, 1] + 0.1 * rng.normal(size=400) > 0
    told = fitted(columns[:200], yes[:200])(columns[200:])
    assert ((told > 0) == yes[200:]).mean() > 0.9


def test_every_lie_differs_from_the_sentence() -> None:
    told = {kind: edit(SENTENCE, OTHERS, random.Random(1)) for kind, edit in (FALSE | INVENTED).items()}
    assert sum(one is not None for one in told.values()) >= 10
    assert SENTENCE not in told.values()


def test_true_edits_of_a_plain_sentence() -> None:
    told = {kind: edit(SENTENCE, OTHERS, random.Random(1)) for kind, edit in TRUE.items()}
    assert told["verbatim"] == SENTENCE
    assert told["framed"] == f"According to the documentation, t{SENTENCE[1:]}"


def test_what_becomes_of_a_sentence() -> None:
    passages = [Passage(1, SENTENCE)]
    assert outcome(SENTENCE, passages, Rules()) == "shown"
    assert outcome(SENTENCE.replace("10", "12"), passages, Rules()) == "replaced"
    assert outcome("Elephants enjoy loud music.", passages, Rules()) == "withheld"


def test_lines_that_claim_nothing_are_no_claims() -> None:
    assert is_talk("Here are the steps:") and is_talk("Let me know if you need more.")
    assert not is_talk("The motor stops after ten seconds.")
