"""The texts that tell a model how to write: files, read and checked at import."""

import re
from pathlib import Path
from typing import Final

_FOLDER = Path(__file__).parent
_PLACE = re.compile(r"\{(\w+)\}")


def _read(name: str, *places: str) -> str:
    """A prompt; a file whose places are not those that the code fills is a programming error."""
    text = (_FOLDER / name).read_text(encoding="utf-8").strip()
    if not text or sorted(_PLACE.findall(text)) != sorted(places):
        raise ValueError(f"{name} must hold text and the places {places}")
    return text


ANSWER: Final = _read("answer.md", "refusal")
SELECTION: Final = _read("selection.md", "refusal")
SEARCH_TOOL: Final = _read("search_tool.md")
STANDALONE: Final = _read("standalone.md")
SUBJECT: Final = _read("subject.md")


def filled(prompt: str, refusal: str) -> str:
    """A prompt with the sentence for what the passages do not answer, where it has a place for it."""
    return prompt.replace("{refusal}", refusal)
