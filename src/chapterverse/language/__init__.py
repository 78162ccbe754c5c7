"""Parses text: sentences with their offsets, words, stop words and stems. Every other module uses this one."""

from chapterverse.language.sentences import INLINE_CODE, sentences
from chapterverse.language.words import EMPTY_WORDS, content_words, stem, stems, word_set

__all__ = ["EMPTY_WORDS", "INLINE_CODE", "content_words", "sentences", "stem", "stems", "word_set"]
