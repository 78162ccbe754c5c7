"""The language model that needs no key: it answers with the book's own sentences.

Owns choosing them and saying them. Never writes a sentence of its own, but for the refusals.
"""

from chapterverse.extractive.lexical import LexicalPicker
from chapterverse.extractive.model import ExtractiveModel
from chapterverse.extractive.picking import Pick, SentencePicker

__all__ = ["ExtractiveModel", "LexicalPicker", "Pick", "SentencePicker"]
