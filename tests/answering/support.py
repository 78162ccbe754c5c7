"""Checks in a simple way whether the quotes of an answer support its sentences. Shares no code with `evidence`.

The rule: every number, identifier and name of a sentence occurs in its quotes or their headings, and so do four fifths
of its other content words. A sentence with a negation needs a quote with a negation.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"“(\d])|\n+")
_MARKER = re.compile(r"\s*\[(\d+)\]")
_TOKEN = re.compile(r"`[^`]+`|[^\W\d_][\w'’-]*|\d+(?:[.,]\d+)*")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_NUMBERS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split())} | {"twice": "2", "percent": "%"}
_NEGATIONS = re.compile(r"\b(?:not|no|never|without|cannot|nor|neither|none)\b|n['’]t\b")
_SMALL = re.compile(
    r"an?|the|and|or|but|so|if|as|at|by|in|into|on|of|to|for|from|with|than|then|that|this|these|those|there|it|its|is|"
    r"are|was|were|be|been|has|have|had|do|does|did|can|could|may|might|must|should|will|would|they|them|their|he|she|"
    r"his|her|we|our|you|your|what|which|who|when|where|while|all|any|some|such|each|every|only|about|approximately|"
    r"according|documentation|book|seconds|s",
    re.IGNORECASE,
)


class Quotation(Protocol):
    """The fields of a citation that are needed here."""

    @property
    def quote(self) -> str: ...
    @property
    def breadcrumb(self) -> str: ...
    @property
    def page_title(self) -> str: ...


def unsupported(answer: str, sources: Sequence[Quotation]) -> list[str]:
    """Return the sentences of an answer that their quotes do not support, each with the words that are missing."""
    return [
        f"{sentence} ← {missing}"
        for sentence, numbers in _sentences(answer)
        if (missing := _missing(sentence, [sources[number - 1] for number in numbers if number <= len(sources)]))
    ]


def _sentences(answer: str) -> Iterator[tuple[str, list[int]]]:
    """Yield each sentence without its markers, and their numbers. A line of code has the markers after its block."""
    for block in re.split(r"(```\w*\n.*?\n```\s*(?:\[\d+\])*)", answer, flags=re.DOTALL):
        numbers = [int(number) for number in _MARKER.findall(block)]
        if block.startswith("```"):
            yield from ((line, numbers) for line in block.split("\n")[1:] if line.strip("` ") and "[" not in line)
            continue
        parts = _SENTENCE_END.split(block)
        for at, part in enumerate(parts):
            sentence = _MARKER.sub("", part).strip(" \n-*|")
            if any(character.isalnum() for character in sentence) and not sentence.endswith(":"):
                # Sentences that are quoted together have one marker, after the last one.
                marked = next((found for later in parts[at:] if (found := _MARKER.findall(later))), [])
                yield sentence, [int(number) for number in marked]


def _missing(sentence: str, cited: Sequence[Quotation]) -> str:
    if not cited:
        return "no source"
    # The quotes and their headings.
    known = _words(" ".join(f"{source.quote} {source.breadcrumb} {source.page_title}" for source in cited))
    quoted = " ".join(source.quote for source in cited)
    words = [token for token in _TOKEN.findall(sentence) if not _SMALL.fullmatch(token)]
    strict: list[str] = [token for at, token in enumerate(words) if _is_strict(token, first=at == 0)]
    for token in strict:
        if not _words(token) <= known:
            return token
    if _NEGATIONS.search(sentence.lower()) and not _NEGATIONS.search(quoted.lower()):
        return "a negation"
    loose = [token for token in words if token not in strict and not _NEGATIONS.search(token.lower())]
    absent: list[str] = [token for token in loose if not _words(token) <= known]
    return ", ".join(absent) if len(absent) > 0.2 * len(loose) else ""


def _is_strict(token: str, *, first: bool) -> bool:
    """Whether a word must occur in the quotes: numbers, code, and capitalised words inside a sentence."""
    return token[0].isdigit() or token[0] == "`" or "_" in token or (not first and token[0].isupper())


def _words(text: str) -> frozenset[str]:
    return frozenset(_plain(token) for token in _TOKEN.findall(text))


def _plain(token: str) -> str:
    word = token.strip("`").lower().replace("’", "'").removesuffix("'s").rstrip(".,")
    word = _NUMBERS.get(word, word)
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
