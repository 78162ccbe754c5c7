"""A sentence as a row of tokens, each with the keys under which another sentence may know it.

Owns what counts as the same word: inflections, spellings, number words, units, code to the letter. Never judges
whether one sentence bears out another.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from chapterverse.grounding.lexicon import (
    FREE,
    GUARD_VERBS,
    GUARDS,
    IRREGULAR,
    LINKS,
    NUMBER_WORDS,
    ORDINAL_WORDS,
    PHRASES,
    SYNONYMS,
    UNITS,
)

Kind = Literal["free", "link", "guard", "word", "number", "code", "symbol"]


class Token(NamedTuple):
    """A word, number, name of code or sign: `text[start:end]`."""

    lower: str
    kind: Kind
    keys: tuple[str, ...]  # two tokens are the same when they share one
    start: int
    end: int
    gap: str = ""  # what stands between it and the token before

    @property
    def claims(self) -> bool:
        """Whether the token must be borne out."""
        return self.kind != "free"

    @property
    def content(self) -> bool:
        """Whether the token says something by itself."""
        return self.kind in ("word", "number", "code", "symbol")


_TOKEN = re.compile(
    r"(?P<ticks>`+)(?P<quoted>[^`]+)(?P=ticks)"
    r"|(?P<url>(?:https?|ftp|file|mailto)://?[^\s<>\"')\]]*[^\s<>\"')\].,;:!?*_])"
    r"|(?P<latin>\b(?:e\.g|i\.e)\b\.?)"
    r"|(?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)"
    r"|(?P<code>(?<![\w.])(?:/|\./|~/|@|\$)?[^\W\d]\w*(?:(?:::|[./]|:=|->|\\)\w+|\(\)|(?<=\w)-\w*_\w*)+"
    r"|[^\W\d]\w*_\w*|_\w+|[^\W\d]+\d[\w.]*\w|/\w[\w./-]*\w|\w+@\w[\w.-]*\w|C\+\+|[CF]\#)"
    r"|(?P<number>(?:(?<![\w)])[-+−])?\d+(?:[.,:]\d+)*)(?P<tail>[^\W\d_][\w]*)?"
    r"|(?P<word>[^\W\d_](?:[\w'’\u0300-\u036f]*[\w\u0300-\u036f])?)"
    r"|(?P<symbol>[^\w\s.,;:!?'\"()\[\]{}*_\-–—…“”‘’«»|•`\\\u200b-\u200f\ufeff])"
)
_THOUSANDS = re.compile(r"[-+−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SHOUTED = frozenset({"IT", "US", "WHO", "AM"})  # names, where the same letters in small are free
_PHRASES: dict[str, list[tuple[tuple[str, ...], str]]] = {}  # by first word
for _phrase, _as in PHRASES:
    _PHRASES.setdefault(_phrase.split()[0], []).append((tuple(_phrase.split()), _as))


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order."""
    found = list(_merge(list(_scan(text))))
    last = 0
    for at, (lower, kind, keys, start, end, _) in enumerate(found):
        found[at] = Token(lower, kind, keys, start, end, text[last:start])
        last = end
    return found


def _scan(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if match["quoted"]:
            for part in re.finditer(r"\S+", match["quoted"]):
                at = match.start("quoted")
                yield _code(part[0], at + part.start(), at + part.end())
        elif match["url"] or match["flag"] or match["code"]:
            yield _code(match[0], start, end)
        elif match["latin"]:
            yield _word(match[0].rstrip("."), start, end)
        elif match["number"]:
            yield from _number(match["number"], match["tail"] or "", start, end)
        elif match["word"]:
            yield from _words(match[0], start, end)
        else:
            yield _symbol(match[0], start, end)


def _code(raw: str, start: int, end: int) -> Token:
    exact = "`" + raw.removesuffix("()")
    plain = raw.lower()
    # Plain words set as code are still found by a sentence that does not set them so.
    keys = (exact, *_forms(plain)) if raw.isalpha() and raw.islower() else (exact,)
    return Token(plain, "code", keys, start, end)


def _number(digits: str, tail: str, start: int, end: int) -> Iterator[Token]:
    value = digits.replace("−", "-").lstrip("+")
    if _THOUSANDS.fullmatch(digits):
        value = value.replace(",", "")
    middle = start + len(digits)
    suffix = tail.lower()
    if suffix in ("st", "nd", "rd", "th"):
        yield Token(digits + suffix, "number", (f"#{value}.",), start, end)
    elif not tail:
        yield Token(digits, "number", (f"#{value}",), start, end)
    elif suffix in UNITS:
        yield Token(digits, "number", (f"#{value}",), start, middle)
        yield _word(tail, middle, end)
    else:
        yield _code(digits + tail, start, end)


def _words(raw: str, start: int, end: int) -> Iterator[Token]:
    """A word, or the two words of a contraction."""
    word = raw.replace("’", "'")
    lower = word.lower()
    if lower == "cannot" or lower.endswith("n't"):
        base = {"cannot": "can", "can't": "can", "won't": "will", "shan't": "shall"}.get(lower, lower[:-3])
        yield _word(base, start, end)
        yield Token("not", "guard", ("!not",), start, end)
        return
    bare = re.sub(r"'(?:s|re|ve|ll|d|m)?$", "", word)
    yield _word(bare or word, start, end)


def _word(raw: str, start: int, end: int) -> Token:
    return Token(*_meaning(raw), start, end)


@lru_cache(maxsize=16_384)
def _meaning(raw: str) -> tuple[str, Kind, tuple[str, ...]]:
    """What a word is, wherever it stands: in small letters, its kind and its keys."""
    lower = unicodedata.normalize("NFC", raw).lower()
    if lower in NUMBER_WORDS or lower in ORDINAL_WORDS:
        return lower, "number", ("#" + (NUMBER_WORDS.get(lower) or ORDINAL_WORDS[lower]),)
    if lower in FREE and raw not in _SHOUTED:
        return lower, "free", ()
    same = SYNONYMS.get(lower, lower)
    if same in LINKS:
        return lower, "link", ("+" + same,)
    if same in GUARDS:
        return lower, "guard", ("!may", "!can") if same == "may" else ("!" + same,)  # what may be so, can be so
    forms = _forms(lower)
    for form in forms:
        if form in GUARD_VERBS:
            return lower, "guard", ("!" + form,)
    return lower, "word", (*forms, "`" + raw)


def _symbol(raw: str, start: int, end: int) -> Token:
    if raw == "&":
        return Token("and", "free", (), start, end)
    if raw in "~≈":
        return Token("about", "guard", ("!about",), start, end)
    if raw == "%":
        return Token("percent", "word", ("percent",), start, end)
    return Token(raw, "symbol", ("^" + raw,), start, end)


def _forms(lower: str) -> tuple[str, ...]:
    """What a word may be an inflection of, one of each group of synonyms."""
    bases = [lower]
    if lower in SYNONYMS:
        pass
    elif lower in IRREGULAR:
        bases = [IRREGULAR[lower]]
    elif len(lower) > 3:
        bases = _bases(lower)
    spelled = [*bases, *(base.replace("isation", "ization") for base in bases if "isation" in base)]
    spelled += [base[:-3] + "ize" for base in bases if base.endswith("ise") and len(base) > 6]
    spelled += [base.replace("our", "or") for base in bases if base.endswith("our") and len(base) > 4]
    return tuple(dict.fromkeys(SYNONYMS.get(base, base) for base in spelled))


def _bases(lower: str) -> list[str]:
    if lower.endswith("ies"):
        return [lower[:-3] + "y", lower[:-1]]
    if lower.endswith("ied"):
        return [lower[:-3] + "y"]
    if lower.endswith(("ses", "xes", "zes", "ches", "shes")):
        return [lower[:-2], lower[:-1]]
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is")):
        return [lower[:-1]]
    for suffix in ("ing", "ed"):
        root = lower.removesuffix(suffix)
        if root != lower and len(root) >= 2 and re.search("[aeiouy]", root):
            doubled = [root[:-1]] if len(root) > 2 and root[-1] == root[-2] else []
            return [lower, root, root + "e", *doubled]
    return [lower]


def _merge(found: list[Token]) -> Iterator[Token]:
    """Write phrases as the one word that they stand for."""
    at = 0
    while at < len(found):
        for phrase, single in _PHRASES.get(found[at].lower, ()):
            if tuple(token.lower for token in found[at : at + len(phrase)]) == phrase:
                start, end = found[at].start, found[at + len(phrase) - 1].end
                for word in single.split():
                    yield _word(word, start, end)
                at += len(phrase)
                break
        else:
            yield found[at]
            at += 1
