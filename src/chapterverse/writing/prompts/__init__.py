"""The texts that tell a model how to write: one file each."""

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
    """A prompt with the sentence for what the passages do not answer, where it has a place for it."""
    return prompt.replace("{refusal}", refusal)
