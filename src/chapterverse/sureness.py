"""How well the sentences that an answer quotes fit the question, for every language model alike.

Owns the measuring; `confidence` owns what it means. Words alone decide, so that nothing is paid for and nothing can
fail once the answer is written. Never decides whether to answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from chapterverse.extractive import IssuedPassage, candidates, compare, score_by_words, understand
from chapterverse.models import ChunkResult, SourceCitation

_WORDS = re.compile(r"\w+")


def fit_of_sources(question: str, sources: Sequence[SourceCitation], texts: Mapping[int, ChunkResult] | str) -> float:
    """The best score by words of a quoted sentence, 0 to 0.62; 0 when none can be judged.

    All that was read is given, passages or a selection, because a word counts by how rare it is there."""
    quotes = [_plain(source.quote) for source in sources]
    read = candidates(list(_passages(texts)))
    quoted = [candidate for candidate in read if _is_quoted(candidate.text, quotes)]
    return max(map(score_by_words, compare(understand(question), quoted, among=read)), default=0.0)


def _passages(texts: Mapping[int, ChunkResult] | str) -> Iterator[IssuedPassage]:
    if isinstance(texts, str):
        yield IssuedPassage(1, texts, "", "", 1.0)
        return
    for number, chunk in texts.items():
        yield IssuedPassage(number, chunk.chunk_text, chunk.breadcrumb, chunk.source_url, chunk.similarity_score)


def _is_quoted(sentence: str, quotes: Sequence[str]) -> bool:
    words = _plain(sentence)
    return any(words in quote or quote in words for quote in quotes)


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    """The words alone: a quoted row still has its bars."""
    return f" {' '.join(_WORDS.findall(text.lower()))} "
