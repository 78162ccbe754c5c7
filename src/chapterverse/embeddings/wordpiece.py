"""The shipped WordPiece tokenizer: turns text into tokens and counts them.

Owns loading `weights/tokenizer.json`. Chunking counts with it for every embedding engine: the remote models'
windows are larger, and their tokenizers cut English text about as finely.
"""

from functools import cache
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

WEIGHTS: Final = Path(__file__).parent / "weights"
WINDOW: Final = 256  # tokens that all-MiniLM-L6-v2 was trained to read, its two special tokens included


@cache
def tokenizer() -> Tokenizer:
    """The tokenizer, cutting at `WINDOW` tokens."""
    return Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))


@cache
def _untruncated() -> Tokenizer:
    whole = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    whole.no_truncation()
    return whole


def count_tokens(text: str) -> int:
    """How many tokens a model would read, its two special tokens included."""
    return len(_untruncated().encode(text.encode("utf-8", "replace").decode()).ids)
