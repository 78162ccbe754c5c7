"""When to answer without a key, and the confidence of answers: curves that were fitted and are read from a file."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import chapterverse
from chapterverse.answering.confidence import (
    KEYLESS,
    MODEL,
    ModelSigns,
    ReaderSigns,
    answers,
    fitted,
    level_of,
    model_confidence,
    probability,
    reader_confidence,
    threshold,
)
from chapterverse.answering.scope import Selection, WholeBook
from chapterverse.api.chat.seed_names import _WORDS
from chapterverse.evaluation.report import LEVELS
from chapterverse.evidence.gate import Counts
from chapterverse.models import ConfidenceLevel, SearchResult
from chapterverse.writing import Reading

NOTHING = SearchResult(results=[], total_results=0, query="", latency_ms=0.0)


def book(*scores: float, missing: tuple[str, ...] = ()) -> WholeBook:
    return WholeBook(NOTHING, tuple(Reading(score, score) for score in scores), missing)


def test_answers_only_if_a_passage_scores_well() -> None:
    assert answers(book(6.0, 0.0), "why nodes")
    assert not answers(book(-6.0, -7.0), "why nodes")
    assert not answers(book(), "why nodes")
    assert not answers(Selection("text"), "why nodes")


def test_question_without_a_word_of_the_book_is_refused_unless_it_is_a_follow_up() -> None:
    scope = book(6.0, 0.0, missing=("hello",))
    assert not answers(scope, "hello")
    assert answers(replace(scope, follow_up=True), "hello")
    assert answers(scope, "hello nodes")


@pytest.mark.parametrize("question", ["a", "??", "1", "\ufffd\ufffd"])
def test_question_without_a_word_is_refused(question: str) -> None:
    assert not answers(book(6.0, 0.0), question)
    assert answers(book(6.0, 0.0), "装")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("k8s?", ()),
        ("404", ()),
        ("What does `else` do?", ()),
        ("How do I use auto-scaling?", ("auto-scaling",)),
        ("如何安装?", ("如何安装",)),
    ],
)
def test_question_is_not_refused_where_the_book_may_have_its_words(question: str, missing: tuple[str, ...]) -> None:
    assert answers(book(6.0, 0.0, missing=missing), question)


def test_word_that_is_not_in_the_book_lowers_the_probability_of_an_answer() -> None:
    known, unknown = (ReaderSigns.of(book(0.0, missing=words), "why") for words in ((), ("zebrafish",)))
    assert probability(fitted()["answerable"], unknown) < probability(fitted()["answerable"], known)


def test_lower_allowed_error_rate_gives_a_higher_threshold() -> None:
    usual, cost = threshold()
    strict, higher_cost = threshold(0.05)
    assert (strict > usual, higher_cost > cost) == (True, True)
    assert threshold(0.0)[0] >= strict
    rates = fitted()["answerable"]["rates"]
    assert rates == sorted(rates)


@pytest.mark.parametrize("scope", [book(9.0), book(-9.0), Selection("text", (Reading(9.0, 9.0),))])
def test_confidence_of_a_verbatim_answer_is_at_least_medium(scope: WholeBook | Selection) -> None:
    value = reader_confidence(scope, "why")
    assert 0.6 <= value <= 1.0
    assert level_of(value) in ("medium", "high")


def test_a_clear_lead_raises_the_confidence() -> None:
    signs = ReaderSigns.of(book(2.0, 2.0), "why")
    assert probability(fitted()["right"], replace(signs, lead=3.0)) > probability(fitted()["right"], signs)


@pytest.mark.parametrize("path", [KEYLESS, MODEL])
def test_fitted_file_names_its_data_and_commit(path: Path) -> None:
    assert fitted(path)["fitted_on"]
    assert re.fullmatch(r"[0-9a-f]{7,}", fitted(path)["commit"])


def test_model_confidence_grows_with_the_share_of_proven_statements() -> None:
    whole = model_confidence(ModelSigns(1.0, 0.8, 0.0))
    half = model_confidence(ModelSigns(0.5, 0.8, 0.0))
    assert (level_of(whole), level_of(half)) == ("high", "low")
    assert model_confidence(ModelSigns(1.0, 0.2, 0.0)) < whole


def test_verbatim_answer_of_a_model_is_low_only_if_it_is_off_topic() -> None:
    quoted = ModelSigns.of("Which port does the server use?", ["The server listens on port 8080."], Counts(1, 1, 3))
    assert level_of(model_confidence(quoted)) == "medium"
    beside = ModelSigns.of("Which port does the server use?", ["Logs are text."], Counts(1, 1, 3))
    assert level_of(model_confidence(beside)) == "low"


def test_every_list_of_levels_has_every_level() -> None:
    levels = set(get_args(ConfidenceLevel))
    script = (Path(chapterverse.__file__).parent / "web" / "turn.js").read_text("utf-8")
    (shown,) = re.findall(r"const LEVELS = \{(.*?)\n\};", script, re.DOTALL)
    assert set(re.findall(r"^\s*(\w+):", shown, re.MULTILINE)) == set(_WORDS) == levels
    assert set(LEVELS) == levels - {"insufficient"}
