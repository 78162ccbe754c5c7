"""When to answer without a key, and how sure to be: curves that were fitted, read from one file."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import chapterverse
from chapterverse.answering.confidence import (
    ReaderSigns,
    answers,
    fitted,
    level_of,
    probability,
    reader_confidence,
    threshold,
)
from chapterverse.answering.scope import Book, Selection
from chapterverse.api.chat.seed_names import _WORDS
from chapterverse.evaluation.report import LEVELS
from chapterverse.models import ConfidenceLevel, SearchResult
from chapterverse.writing import Reading

NOTHING = SearchResult(results=[], total_results=0, query="", latency_ms=0.0)


def book(*scores: float, missing: tuple[str, ...] = ()) -> Book:
    return Book(NOTHING, tuple(Reading(score, score) for score in scores), missing)


def test_a_good_passage_is_answered_from_and_a_bad_one_is_not() -> None:
    assert answers(book(6.0, 0.0), "why")
    assert not answers(book(-6.0, -7.0), "why")
    assert not answers(book(), "why")
    assert not answers(Selection("text"), "why")


def test_a_word_that_stands_nowhere_counts_against_an_answer() -> None:
    known, unknown = (ReaderSigns.of(book(0.0, missing=words), "why") for words in ((), ("zebrafish",)))
    assert probability("answerable", unknown) < probability("answerable", known)


def test_the_owner_can_be_stricter() -> None:
    usual, cost = threshold()
    strict, higher_cost = threshold(0.05)
    assert (strict > usual, higher_cost > cost) == (True, True)
    assert threshold(0.0)[0] >= strict
    rates = fitted()["answerable"]["rates"]
    assert rates == sorted(rates)


@pytest.mark.parametrize("scope", [book(9.0), book(-9.0), Selection("text", (Reading(9.0, 9.0),))])
def test_a_verbatim_answer_is_never_called_low(scope: Book | Selection) -> None:
    value = reader_confidence(scope, "why")
    assert 0.6 <= value <= 1.0
    assert level_of(value) in ("medium", "high")


def test_a_clear_lead_raises_the_confidence() -> None:
    signs = ReaderSigns.of(book(2.0, 2.0), "why")
    assert probability("right", replace(signs, lead=3.0)) > probability("right", signs)


def test_the_file_says_what_it_was_fitted_on() -> None:
    assert fitted()["fitted_on"]
    assert fitted()["commit"]


def test_every_level_has_its_word_in_each_list_of_levels() -> None:
    levels = set(get_args(ConfidenceLevel))
    script = (Path(chapterverse.__file__).parent / "web" / "turn.js").read_text("utf-8")
    (shown,) = re.findall(r"const LEVELS = \{(.*?)\n\};", script, re.DOTALL)
    assert set(re.findall(r"^\s*(\w+):", shown, re.MULTILINE)) == set(_WORDS) == levels
    assert set(LEVELS) == levels - {"insufficient"}
