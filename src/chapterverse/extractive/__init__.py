"""The language model that needs no key: it answers with the book's own sentences.

Owns choosing them and saying them. Never writes a sentence of its own, but for the refusals.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chapterverse.extractive.candidates import candidates
from chapterverse.extractive.judging import score_by_words
from chapterverse.extractive.matching import Terms, compare
from chapterverse.extractive.picking import Pick, SentencePicker
from chapterverse.extractive.question import understand
from chapterverse.extractive.reader_picker import ReaderPicker
from chapterverse.extractive.reading import Reader
from chapterverse.extractive.words import topic_words
from chapterverse.transcript import IssuedPassage

if TYPE_CHECKING:
    from chapterverse.extractive.model import ExtractiveModel

__all__ = [
    "ExtractiveModel",
    "IssuedPassage",
    "Pick",
    "Reader",
    "ReaderPicker",
    "SentencePicker",
    "Terms",
    "candidates",
    "compare",
    "score_by_words",
    "topic_words",
    "understand",
]


def __getattr__(name: str) -> Any:
    if name != "ExtractiveModel":
        raise AttributeError(name)
    # The Agents SDK takes long to import, and whoever only reads sentences does not need it.
    globals()[name] = import_module("chapterverse.extractive.model").ExtractiveModel
    return globals()[name]
