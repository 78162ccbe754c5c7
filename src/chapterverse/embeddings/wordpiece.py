"""The WordPiece tokenizer of the bundled models.

It gives the same tokens and offsets as the `tokenizers` package with the models' own file
(docs/decisions/0002-local-embeddings.md). Chunking counts tokens with it for every embedding engine: the windows of
remote models are larger, and their tokenizers give about as many tokens for English text.

Characters are normalised (`form`) as in BERT's uncased models in the `tokenizers` package: by Unicode 8, with every
version of Python, so that a text has the same vector everywhere.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

WEIGHTS: Final = Path(__file__).parent / "weights"
WINDOW: Final = 256  # tokens of all-MiniLM-L6-v2, including its two special tokens

_LONGEST_WORD: Final = 100  # characters; a longer word is unknown
_REMEMBERED: Final = 8_192  # runs: all those of a book of a hundred pages, some megabytes
_LONGEST_REMEMBERED: Final = 24  # characters; longer runs are seldom repeated

# Text is split into runs that are tokenized separately: a special token, an ASCII punctuation character, or the text
# between those and white space.
_RUN: Final = re.compile(r"\[(?:PAD|UNK|CLS|SEP|MASK)\]|[!-/:-@\[-`{-~]|[^\t\n\r !-/:-@\[-`{-~]+")
_WORD: Final = re.compile(r"[^ ]+")

Found = TypeVar("Found")


class Piece(NamedTuple):
    """A token of a text."""

    token: int
    start: int  # its first character
    end: int  # the character after its last


@dataclass(frozen=True, slots=True)
class PairTokens:
    """The tokens of two texts: [CLS] first [SEP] second [SEP]."""

    ids: list[int]
    types: list[int]  # 0 up to the first [SEP], 1 after it
    second: slice  # the tokens of the second text
    spans: list[tuple[int, int]]  # start and end of each of those tokens in the second text


class WordPiece:
    """Splits words into the longest pieces in the vocabulary."""

    def __init__(self, pieces: list[str]) -> None:
        self._vocabulary = {piece: token for token, piece in enumerate(pieces)}
        self._longest = max(map(len, pieces))
        self._unknown, self._cls, self._sep = (self._vocabulary[name] for name in ("[UNK]", "[CLS]", "[SEP]"))
        self._ids = _Memory(lambda run: tuple(piece.token for piece in self._pieces(run)))
        self._spans = _Memory(lambda run: tuple((piece.start, piece.end) for piece in self._pieces(run)))

    def count(self, text: str) -> int:
        """The number of tokens, including the two special tokens."""
        return 2 + sum(map(len, map(self._ids.__getitem__, _RUN.findall(text))))

    def encode(self, text: str) -> list[int]:
        """[CLS] text [SEP], cut at `WINDOW` tokens."""
        return [self._cls, *self._tokens(text)[: WINDOW - 2], self._sep]

    def encode_pair(self, first: str, second: str, most_of_first: int, window: int) -> PairTokens:
        """Both texts, cut at `window` tokens: the first at `most_of_first`, the second at the rest."""
        left = self._tokens(first)[:most_of_first]
        right = self._tokens(second)[: window - 3 - len(left)]
        start = len(left) + 2
        spans = (
            (run.start() + begin, run.start() + end)
            for run in _RUN.finditer(second)
            for begin, end in self._spans[run[0]]
        )
        return PairTokens(
            ids=[self._cls, *left, self._sep, *right, self._sep],
            types=[0] * start + [1] * (len(right) + 1),
            second=slice(start, start + len(right)),
            spans=list(islice(spans, len(right))),
        )

    def _tokens(self, text: str) -> list[int]:
        return list(chain.from_iterable(map(self._ids.__getitem__, _RUN.findall(text))))

    def _pieces(self, run: str) -> list[Piece]:
        """The tokens of a run, with offsets from its start."""
        if run[0] == "[" and run[1:]:
            return [Piece(self._vocabulary[run], 0, len(run))]
        forms = run.lower() if run.isascii() and run.isalnum() else [form(character) for character in run]
        origin = [offset for offset, letters in enumerate(forms) for _ in letters]
        return [
            Piece(piece.token, origin[word.start() + piece.start], origin[word.start() + piece.end - 1] + 1)
            for word in _WORD.finditer("".join(forms))
            for piece in self._cut(word[0])
        ]

    def _cut(self, word: str) -> list[Piece]:
        """Split a word into pieces; one unknown token if that is not possible."""
        unknown = [Piece(self._unknown, 0, len(word))]
        if len(word) > _LONGEST_WORD:
            return unknown
        found: list[Piece] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                token = self._vocabulary.get(prefix + word[start:end])
                if token is not None:
                    break
            else:
                return unknown
            found.append(Piece(token, start, end))
            start = end
        return found


class _Memory(dict[str, tuple[Found, ...]], Generic[Found]):
    """A cache of the results for runs."""

    def __init__(self, find: Callable[[str], tuple[Found, ...]]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, run: str) -> tuple[Found, ...]:
        found = self._find(run)
        if len(run) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[run] = found
        return found


@cache
def tokenizer() -> WordPiece:
    """The tokenizer of the bundled models."""
    return WordPiece((WEIGHTS / "vocabulary.txt").read_text("utf-8").removesuffix("\n").split("\n"))


def count_tokens(text: str) -> int:
    """The number of tokens, including the two special tokens."""
    return tokenizer().count(text)


# Marks, punctuation and format characters newer than Unicode 8, up to Unicode 18: the models treat them as letters. A
# range may include older letters, but no older mark.
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
_DROPPED: Final = "\u1734\ufffd\U0001171e"  # two that were marks in Unicode 8, and the replacement character
_PUNCTUATION: Final = "\u166d\U000111c9"  # no longer punctuation


@lru_cache(maxsize=4096)
def form(character: str) -> str:
    """Normalise a character: lower case, without accents, between spaces if it is a word; empty if it is dropped."""
    if "\ud800" <= character <= "\udfff":
        return " ? "  # a lone surrogate
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
    """A letter, or punctuation between spaces. `letter` may be several characters, if its lower case is longer."""
    alone = _ASCII_PUNCTUATION.match(letter) or letter in _PUNCTUATION or unicodedata.category(letter[0])[0] == "P"
    return f" {letter} " if alone else letter
