"""The prompts of the package."""

import re

import pytest

from chapterverse.conversations.turns import Turn
from chapterverse.models import SearchFilters
from chapterverse.writing import prompts
from chapterverse.writing.agent import _PARAMETERS
from chapterverse.writing.messages import render_history


def test_refusal_is_inserted() -> None:
    for prompt in (prompts.ANSWER, prompts.SELECTION):
        assert "No {refusal} here." in prompts.filled(prompt, "No {refusal} here.")
        assert "{" not in prompts.filled(prompt, "No.")


@pytest.mark.parametrize("word", ["own words", "square brackets", "do not say", "data", "language", "exactly"])
def test_rules_are_in_both_prompts(word: str) -> None:
    assert word in prompts.ANSWER
    assert word.replace("do not", "does not") in prompts.SELECTION or word in prompts.SELECTION


def test_selection_prompt_does_not_mention_search() -> None:
    assert "search" not in prompts.SELECTION


@pytest.mark.parametrize("name", ["ANSWER", "SELECTION", "SEARCH_TOOL", "STANDALONE", "SUBJECT"])
def test_prompt_has_only_known_placeholders(name: str) -> None:
    prompt = getattr(prompts, name)
    assert len(prompt) > 50
    assert re.findall(r"\{\w+\}", prompt) == (["{refusal}"] if name in ("ANSWER", "SELECTION") else [])


def test_tool_has_every_filter_except_book_and_version() -> None:
    offered = set(_PARAMETERS["properties"]["filters"]["properties"])
    assert offered == set(SearchFilters.model_fields) - {"book", "version"}


def test_history_keeps_brackets_in_code_and_drops_markers() -> None:
    said = "Read `arr[1]` or values[0] first [1]. Then stop [2][3].\n\n```\nx[2]\n```\n[4]"
    (_, answer) = render_history([Turn(session_id="", query="How?", response=said)])
    assert answer["content"] == "Read `arr[1]` or values[0] first. Then stop.\n\n```\nx[2]\n```"
