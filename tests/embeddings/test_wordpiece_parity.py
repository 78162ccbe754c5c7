"""Our tokenizer gives the same tokens and offsets as the `tokenizers` package with the same vocabulary."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given

from chapterverse.embeddings.wordpiece import WEIGHTS, WINDOW, tokenizer
from tests.embeddings.test_wordpiece import LONG, RECORDED, TEXT, pieces

TEXTS = [text for text, _ in RECORDED["texts"]]


@pytest.fixture(scope="module")
def reference() -> Any:
    """The tokenizer that the models were trained with."""
    from tokenizers import BertWordPieceTokenizer

    made = BertWordPieceTokenizer(str(WEIGHTS / "vocabulary.txt"), lowercase=True)
    made.enable_truncation(WINDOW)
    return made


def readable(text: str) -> str:
    """The package refuses lone surrogates, which we read as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def expected(reference: Any, text: str) -> list[list[int]]:
    read = reference.encode(readable(text))
    return [[token, *span] for token, span in zip(read.ids, read.offsets, strict=True)][1:-1]


@pytest.mark.parametrize("text", TEXTS, ids=lambda value: ascii(value)[:24])
def test_recorded_texts_have_equal_tokens(reference: Any, text: str) -> None:
    assert pieces(text) == expected(reference, text)


@given(TEXT)
def test_any_text_has_equal_tokens(reference: Any, text: str) -> None:
    assert pieces(text) == expected(reference, text)


@given(LONG)
def test_long_text_is_truncated_equally(reference: Any, text: str) -> None:
    assert tokenizer().encode(text) == reference.encode(readable(text)).ids


@pytest.mark.slow
def test_every_assigned_character_has_equal_tokens(reference: Any) -> None:
    assigned = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")]
    for first in range(0, len(assigned), 16):
        text = " ".join(f"x{character}x" for character in assigned[first : first + 16])
        assert pieces(text) == expected(reference, text), ascii(text)
