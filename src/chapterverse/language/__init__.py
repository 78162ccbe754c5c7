"""One reading of text for everybody: sentences with their places, words, stop words and stems."""

from chapterverse.language.sentences import INLINE_CODE, sentences
from chapterverse.language.words import EMPTY_WORDS, content_words, stem, stems, word_set

__all__ = ["EMPTY_WORDS", "INLINE_CODE", "content_words", "sentences", "stem", "stems", "word_set"]
