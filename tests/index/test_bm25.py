"""One suite for the word weights of the embedded engine and of a server."""

import subprocess
import sys
from pathlib import Path

import pytest

from chapterverse.index import bm25
from chapterverse.index.bm25 import weights_of

ROOT = Path(__file__).parents[2]
both = pytest.mark.parametrize("parameters", [bm25.EDGE_DEFAULTS, bm25.SERVER_DEFAULTS], ids=["embedded", "server"])


@both
def test_words_match_in_any_form_and_case(parameters: dict[str, object]) -> None:
    weights = weights_of(parameters)
    question = weights.question("Which FERRETS were running?")
    document = weights.document("A ferret runs.")
    assert question is not None
    assert document is not None
    assert set(question.indices) & set(document.indices) == set(document.indices)
    assert len(document.indices) == 2


@both
def test_a_text_without_words_has_no_weights(parameters: dict[str, object]) -> None:
    weights = weights_of(parameters)
    for text in ("", "   ", "?!…", "the of and"):
        assert weights.question(text) is None
        assert weights.document(text) is None


@both
def test_weights_depend_on_the_parameters(parameters: dict[str, object]) -> None:
    text = "otter " * 5 + "and a burrow of many other words"
    plain, steep = weights_of(parameters).document(text), weights_of({**parameters, "k": 3.0}).document(text)
    assert plain is not None
    assert steep is not None
    assert plain.indices == steep.indices
    assert max(steep.values) > max(plain.values)


@both
def test_any_text_can_be_weighed(parameters: dict[str, object]) -> None:
    weights = weights_of(parameters)
    for text in ("naïve façade 日本語 \U0001f600", "a\x00b", "x" * 100_000, "\n\t"):
        weights.document(text)
        weights.question(text)


@pytest.mark.slow
def test_server_does_not_import_the_embedded_engine() -> None:
    """Neither for writing nor for searching."""
    code = "import sys, chapterverse.index.server, chapterverse.index.server_writer as writer\n"
    code += (
        "assert writer.weights_of(writer.SERVER_DEFAULTS).document('a robot')\nassert 'qdrant_edge' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_both_engines_give_the_same_weights() -> None:
    """Ids differ. Weights are equal, except for words that the two stemmers cut differently."""
    own, embedded = weights_of(bm25.SERVER_DEFAULTS), weights_of(bm25.EDGE_DEFAULTS)
    pages = sorted((ROOT / "examples" / "book").rglob("*.md"))
    paragraphs = [text for page in pages for text in page.read_text("utf-8").split("\n\n")]
    same = 0
    for text in paragraphs:
        found = [weights.document(text) for weights in (own, embedded)]
        values = [sorted(one.values) if one else [] for one in found]
        same += values[0] == pytest.approx(values[1], rel=1e-5) if len(values[0]) == len(values[1]) else 0
    assert len(paragraphs) > 500
    assert same >= 0.99 * len(paragraphs)
