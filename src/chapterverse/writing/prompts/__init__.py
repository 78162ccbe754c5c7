"""The prompts, one file each."""

from pathlib import Path
from typing import Final


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8").strip()


ANSWER: Final = _read("answer.md")
SELECTION: Final = _read("selection.md")
SEARCH_TOOL: Final = _read("search_tool.md")
STANDALONE: Final = _read("standalone.md")
SUBJECT: Final = _read("subject.md")


def filled(prompt: str, refusal: str) -> str:
    """Fill in the refusal, if the prompt has a placeholder for it."""
    return prompt.replace("{refusal}", refusal)
