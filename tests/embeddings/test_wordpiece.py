"""Tokens equal those of the `tokenizers` package (0.23.3), which are recorded in wordpiece.json."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.embeddings import wordpiece
from chapterverse.embeddings.wordpiece import WEIGHTS, WINDOW, WordPiece, count_tokens, form, tokenizer

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("wordpiece.json").read_text("utf-8"))
DECISION = Path(__file__).parents[2] / "docs/decisions/0002-local-embeddings.md"
VOCABULARY = (WEIGHTS / "vocabulary.txt").read_text("utf-8").splitlines()
CLS, SEP, UNKNOWN = (VOCABULARY.index(name) for name in ("[CLS]", "[SEP]", "[UNK]"))

SPELLED = st.sampled_from(
    ["[SEP]", "[CLS]", "[MASK]", "robots", "Naïve", "机器", "e\u0301", "a\u00adb", " ", "\n", "-"]
)
ODD = st.characters(codec=None)  # surrogates too
TEXT = st.lists(SPELLED | ODD | st.characters(max_codepoint=0x24F), max_size=40).map("".join)
LONG = st.builds(lambda text, times: text * times, TEXT, st.integers(0, 60))


def pieces(text: str) -> list[list[int]]:
    """Token, first character and end of every token that fits."""
    read = tokenizer().encode_pair("", text, 0, WINDOW)
    return [[token, *span] for token, span in zip(read.ids[read.second], read.spans, strict=True)]


def test_vocabulary_has_the_documented_checksum() -> None:
    digest = hashlib.sha256((WEIGHTS / "vocabulary.txt").read_bytes()).hexdigest()
    assert digest in DECISION.read_text("utf-8")
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 30_522


@pytest.mark.parametrize(("text", "expected"), RECORDED["texts"], ids=lambda value: ascii(value)[:24])
def test_recorded_texts_have_the_recorded_tokens(text: str, expected: list[list[int]]) -> None:
    assert pieces(text) == expected
    assert tokenizer().encode(text) == [CLS, *(token for token, _, _ in expected), SEP]
    assert count_tokens(text) == len(expected) + 2


@pytest.mark.parametrize(("block", "digest"), RECORDED["blocks"].items())
def test_recorded_characters_have_the_recorded_tokens(block: str, digest: str) -> None:
    first = int(block, 16)
    found = "".join(repr(pieces(f"x{chr(code)}x")) for code in range(first, first + 256))
    assert hashlib.sha256(found.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("first", "second", "of_first", "of_second"),
    [(0, 0, 0, 0), (0, 300, 0, 253), (300, 0, 64, 0), (64, 300, 64, 189), (65, 10, 64, 10), (5, 249, 5, 248)],
)
def test_pair_is_truncated_to_the_share_of_each_text(first: int, second: int, of_first: int, of_second: int) -> None:
    read = tokenizer().encode_pair("dog " * first, "cat " * second, 64, 256)
    dog, cat = VOCABULARY.index("dog"), VOCABULARY.index("cat")
    assert read.ids == [CLS, *[dog] * of_first, SEP, *[cat] * of_second, SEP]
    assert read.types == [0] * (of_first + 2) + [1] * (of_second + 1)
    assert read.ids[read.second] == [cat] * of_second
    assert read.spans == [(4 * at, 4 * at + 3) for at in range(of_second)]


@given(LONG)
def test_text_is_truncated_at_the_window(text: str) -> None:
    ids = tokenizer().encode(text)
    assert len(ids) == min(count_tokens(text), WINDOW)
    assert (ids[0], ids[-1]) == (CLS, SEP)


@given(LONG, LONG)
def test_pair_is_truncated_at_the_window(first: str, second: str) -> None:
    read = tokenizer().encode_pair(first, second, 64, WINDOW)
    kept_of_first = min(count_tokens(first) - 2, 64)
    assert len(read.ids) == len(read.types) == min(kept_of_first + count_tokens(second) + 1, WINDOW)
    assert len(read.spans) == len(read.ids[read.second]) == sum(read.types) - 1
    alone = tokenizer().encode_pair("", second, 0, WINDOW)
    kept = len(read.spans)
    assert read.ids[read.second] == alone.ids[alone.second][:kept]
    assert read.spans == alone.spans[:kept]


@given(TEXT)
def test_spans_of_tokens_match_the_text(text: str) -> None:
    last = 0
    for token, start, end in pieces(text):
        assert last <= start < end <= len(text) or text[start:end] == text[last - 1 : last]  # a syllable in parts
        last = end
        piece = VOCABULARY[token].removeprefix("##")
        shown = "".join(map(form, text[start:end])).replace(" ", "")
        assert token == UNKNOWN or piece in shown or piece == text[start:end]


@given(TEXT.filter(lambda text: "[" not in text))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert tokenizer().encode("".join(map(form, text))) == tokenizer().encode(text)


@given(LONG, LONG)
def test_token_counts_add_up(first: str, second: str) -> None:
    assert count_tokens(f"{first} {second}") == count_tokens(first) + count_tokens(second) - 2


def test_long_word_is_one_token_and_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "_REMEMBERED", 3)
    small = WordPiece(VOCABULARY)
    text = "one two three four five six " + "x" * 1000
    assert [small.encode(text) for _ in range(2)] == [tokenizer().encode(text)] * 2
    assert small.count(text) == 9
    assert 0 < len(small._ids) <= 3
