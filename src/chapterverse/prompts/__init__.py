"""The texts that tell a model how to answer: files, read and checked at import, hashed into the answer's record.

Owns reading them and filling their places. Never holds a prompt of its own.
"""

import hashlib
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


_ANSWER: Final = _read("answer.md", "refusal")
_SELECTION: Final = _read("selection.md", "refusal")
SEARCH_TOOL: Final = _read("search_tool.md")
STANDALONE: Final = _read("standalone.md")

PROMPT_HASH: Final = hashlib.sha256("\x1e".join((_ANSWER, _SELECTION, SEARCH_TOOL, STANDALONE)).encode()).hexdigest()


def answer_prompt(refusal: str) -> str:
    """How to answer from passages of the book."""
    return _ANSWER.replace("{refusal}", refusal)


def selection_prompt(refusal: str) -> str:
    """How to answer from the reader's own selection alone."""
    return _SELECTION.replace("{refusal}", refusal)
