"""The prompts: checked when they are loaded, without a number that could leak into an answer."""

import re
from pathlib import Path

import pytest

from chapterverse import prompts
from chapterverse.agent.run import _PARAMETERS
from chapterverse.models import SearchFilters

FILES = sorted(Path(prompts.__file__).parent.glob("*.md"))


def test_the_refusal_is_filled_in() -> None:
    for fill in (prompts.answer_prompt, prompts.selection_prompt):
        assert fill("No {refusal} here.").endswith("No {refusal} here.")
        assert "{" not in fill("No.")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_number_that_could_leak(path: Path) -> None:
    assert not re.search(r"\d", path.read_text("utf-8"))


@pytest.mark.parametrize("word", ["only", "square brackets", "six sentences", "data", "language", "wording", "exactly"])
def test_the_rules_are_in_both(word: str) -> None:
    assert word in prompts.answer_prompt("")
    assert word in prompts.selection_prompt("")


def test_a_selection_knows_of_no_tool() -> None:
    assert "search" not in prompts.selection_prompt("")


def test_the_hash_tells_prompts_apart() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", prompts.PROMPT_HASH)


@pytest.mark.parametrize("text", ["", "no place", "{refusal} {refusal}", "{refusal} {other}"])
def test_a_broken_file_is_refused_when_it_is_loaded(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answer.md").write_text(text, "utf-8")
    monkeypatch.setattr(prompts, "_FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"answer\.md"):
        prompts._read("answer.md", "refusal")


def test_the_tool_offers_every_filter() -> None:
    assert set(_PARAMETERS["properties"]["filters"]["properties"]) == set(SearchFilters.model_fields)
