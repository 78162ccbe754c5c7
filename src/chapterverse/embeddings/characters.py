"""What a character becomes before words are looked up in the vocabulary: the rules of BERT's uncased models.

The rules are applied as the `tokenizers` package does, with which the models were trained: by Unicode 8, whatever
version the running Python knows, so that a text has the same vector everywhere.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

# Marks, punctuation and format characters that are younger than Unicode 8, up to Unicode 18: letters to the models.
# A range may hold older letters, never an older mark.
_YOUNGER: Final = re.compile(
    "[\u05c8-\u05c9\u061d\u07fd\u0890-\u08e2\u09fd-\u09fe\u0a76\u0afa-\u0aff\u0b53-\u0b55\u0c04-\u0c3c\u0c77\u0c84"
    "\u0d00\u0d3b-\u0d3c\u0d81\u0eba\u0ece\u180f-\u1886\u1abf-\u1af0\u1b4e-\u1b4f\u1b7d-\u1b7f\u1df6-\u1dfb"
    "\u2e43-\u2e63\ua82c\ua8c5\ua8ff\ua9bd\U00010d24-\U00010f89\U00011070-\U00011074\U000110c2-\U000110cd\U000111cf"
    "\U0001123e-\U00011241\U0001133b\U000113bb-\U0001145e\U00011660-\U0001166c\U000116b9\U0001182f-\U00011fff"
    "\U00012ff1-\U0001612f\U00016d6d-\U00016f4f\U00016fe2-\U00016fe4\U0001cf00-\U0001d128\U0001d25b-\U0001d25c"
    "\U0001e000-\U0001e6f5\U0001e944-\U0001e95f]"
)
_IDEOGRAPH: Final = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)
_ASCII_PUNCTUATION: Final = re.compile(r"[!-/:-@\[-`{-~]")
_DROPPED: Final = "\u1734\ufffd\U0001171e"  # two that Unicode 8 had among the marks, and what stands for no character
_PUNCTUATION: Final = "\u166d\U000111c9"  # no longer punctuation


@lru_cache(maxsize=4096)
def form(character: str) -> str:
    """Lower case, without accents; nothing for what is dropped; between spaces what is a word of its own."""
    if "\ud800" <= character <= "\udfff":
        return " ? "  # half a surrogate pair is no text
    if _YOUNGER.match(character):
        return character
    if character in "\t\n\r":
        return " "
    if _is_dropped(character):
        return ""
    if character.isspace():
        return " "
    letters = unicodedata.normalize("NFD", character)
    shown = "".join(_spaced(letter.lower()) for letter in letters if not _is_dropped(letter))
    return f" {shown} " if _IDEOGRAPH.match(character) else shown


def _is_dropped(character: str) -> bool:
    if character in _PUNCTUATION:
        return False
    return character in _DROPPED or unicodedata.category(character) in ("Cc", "Cf", "Co", "Mn")


def _spaced(letter: str) -> str:
    """A letter, or a mark of punctuation between spaces. `letter` may be several where lower case is longer."""
    alone = _ASCII_PUNCTUATION.match(letter) or letter in _PUNCTUATION or unicodedata.category(letter[0])[0] == "P"
    return f" {letter} " if alone else letter
