"""Replies of language model servers that do not count tokens as they should."""

from typing import Any

import pytest

from chapterverse.evidence.chat_model import ModelReply


@pytest.mark.parametrize("usage", [None, [1], "many", {"total_tokens": "n/a"}, {"total_tokens": None}])
def test_invalid_usage_counts_as_no_tokens(usage: Any) -> None:
    reply = ModelReply()
    assert reply.add({"choices": [{"delta": {"content": "Hello"}}], "usage": usage}) == "Hello"
    assert reply.tokens() == 0


def test_the_last_usage_counts() -> None:
    reply = ModelReply()
    for piece in ({"usage": {"total_tokens": 3}}, {"usage": {"total_tokens": 7}}, {"usage": None}):
        reply.add(piece)
    assert reply.tokens() == 7
