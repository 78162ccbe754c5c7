"""The shipped weights are the ones that were measured, and pairs come back in order with places in the second text."""

import hashlib
from collections.abc import Iterator
from typing import get_args

import pytest

from chapterverse.errors import AgentUnavailable
from chapterverse.trained import CrossEncoder, Name, cross_encoder
from chapterverse.trained.cross_encoder import SHA256, WEIGHTS

MOST_BYTES = 12_000_000  # a model that brings its own word table is larger

PASSAGE = "Warsaw was founded around 1300 near the Vistula. Its university opened in 1816. It has many parks."


@pytest.fixture(scope="module")
def reader() -> Iterator[CrossEncoder]:
    model = CrossEncoder("reader", threads=2)
    yield model
    model.close()


@pytest.mark.parametrize("name", get_args(Name))
def test_the_weights_are_those_of_the_model_card(name: Name) -> None:
    weights = (WEIGHTS / f"{name}.onnx").read_bytes()
    assert len(weights) < MOST_BYTES
    assert hashlib.sha256(weights).hexdigest() == SHA256[name]
    assert SHA256[name] in (WEIGHTS / "README.md").read_text("utf-8")


def test_scores_come_in_the_order_of_the_pairs(reader: CrossEncoder) -> None:
    long = f"{PASSAGE} " * 3
    pairs = [("When did the university open?", PASSAGE), ("How do bees find their hive?", long), ("When?", PASSAGE)]
    together = reader.score(pairs)
    alone = [reader.score([pair])[0] for pair in pairs]
    assert [scored.logit for scored in together] == [scored.logit for scored in alone]
    assert together[0].logit > 0 > together[1].logit


def test_a_token_is_found_again_in_the_second_text(reader: CrossEncoder) -> None:
    scored = reader.score([("In which year did the university open?", PASSAGE)])[0]
    start, end = scored.spans[scored.starts.argmax()]
    assert PASSAGE[start:end] == "1816"
    assert len(scored.starts) == len(scored.ends) == len(scored.evidence) == len(scored.spans)


def test_any_text_can_be_read(reader: CrossEncoder) -> None:
    scored = reader.score([("", ""), ("why " * 400, "because " * 400), ("half \ud83d", "\ud83d a pair")])
    assert [len(one.spans) > 0 for one in scored] == [False, True, True]
    assert reader.score([]) == []


def test_the_verifier_gives_a_score_and_marks_nothing() -> None:
    verifier = CrossEncoder("verifier", threads=1)
    true, false = verifier.score([("Its university opened in 1816.", PASSAGE), ("Bees make honey in winter.", PASSAGE)])
    verifier.close()
    assert true.logit > 0 > false.logit
    assert len(true.spans) == len(true.starts) == 0


def test_damaged_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cross_encoder.SHA256, "verifier", "0" * 64)
    with pytest.raises(AgentUnavailable, match=r"verifier\.onnx is damaged"):
        CrossEncoder("verifier").score([("a", "b")])
