"""Exact checks: what can be compared character by character must stand in what was issued.

Numbers, units of measure, versions, dates, identifiers, flags, paths, URLs, quoted strings and proper names of a
statement must stand in the passages, in their breadcrumbs or in the question; every line of a code block must stand in
the passages' code or inline code. This is cheap and catches what was invented. It cannot catch a number or name that
stands elsewhere in the passages: that is the judge's work.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from chapterverse.evidence.passages import Evidence, IssuedUnit
from chapterverse.language import EMPTY_WORDS, INLINE_CODE, stem, word_set

_URL = re.compile(r"(?:https?|ftp|file|ssh|git)://[^\s<>()\[\]`\"'“”]+|\bwww\.[^\s<>()\[\]`\"'“”]+", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“„]([^\"“”„\n]{2,200})[\"”]")
_LINK = re.compile(r"!?\[([^\]\n]{0,500}+)\]\(([^)\s]{0,1000}+)[^)]{0,200}+\)")
_MARKUP = re.compile(r"\*{1,3}|~~|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|^#{1,6} |<[^>\n]{1,80}>")
# A word with what may hold it together: ROS_DOMAIN_ID, --dry-run, /etc/hosts, v1.29.3, a::b, 3.5, 10,000, foo@1.2
_TOKEN = re.compile(r"(?<![\w])[-./~$@%]{0,2}\w(?:[\w.,:/@%+#’'=~$\-]*[\w+#%°])?%?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME_PARTS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d|\d[A-Za-z]{2}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…•|–—]|[.!?]?[\"“”'’)])\s{0,12}[\"“‘(\[*_`]{0,12}$")
_UNIT_SYMBOL: Final = word_set(
    "% ° °c °f k v a w hz ms s sec min h hr kb mb gb tb pb kib mib gib tib bit bits byte bytes bps kbps mbps gbps mm "
    "cm m km µm kg g mg lb oz l ml n nm pa kpa mpa bar psi j kj wh kwh mah ah mv kv ma kw mw mhz khz ghz rad "
    "deg m/s m/s² rpm fps px pt em usd eur $ € £"
)
_SMALL_NUMBERS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_LARGE_NUMBERS: Final = ("30 thirty", "40 forty", "50 fifty", "60 sixty", "100 hundred", "1000 thousand")
_NUMBER_WORDS: Final = {word: str(value) for value, word in enumerate(_SMALL_NUMBERS.split())} | {
    word: value for value, word in map(str.split, _LARGE_NUMBERS)
}
_SAME_SIGN: Final = str.maketrans("‘’“”„‐‑‒–—−", '\'\'"""------', "`*\\")  # for comparing; markup is left out
# After one of these the first word of a sentence is its subject; without an article it is a name.
_AFTER_SUBJECT: Final = word_set("is was has had can does will must may were are")
_ABBREVIATION = re.compile(r"(?:[a-z]\.)+[a-z]|I['’]\w+|[A-Z]/[A-Z]")  # e.g, I'd, X/Y
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
# A writer's own numbering: "1. …" of a heading, "Option 2", "step 3".
_ENUMERATED = re.compile(
    r"^[*_\s]*\d{1,2}[.)]\s|\b(?:option|step|method|way|part|approach|case) \d{1,2}\b", re.IGNORECASE
)
# Abbreviations that are words by now, and name nothing.
_WORDS_IN_CAPITALS: Final = word_set(
    "api apis url urls uri id ids ok cli ui gui os pc cpu cpus gpu gpus ram json yaml xml html http https "
    "sql pdf csv faq pr"
)
_COUNTED: Final = 10  # a writer may count what the passages list: "three modes"


class Known:
    """What stands in the passages, the breadcrumbs and the question: what a statement may name."""

    def __init__(self, evidence: Evidence) -> None:
        units = evidence.all_units()
        places = [text for passage in evidence.passages for text in (passage.place, passage.lead)]
        texts = [evidence.question, *places, *(text for unit in units for text in (unit.text, unit.head, unit.told))]
        self._text = f" {_plain(' '.join(dict.fromkeys(texts)))} "  # most units are told as they stand
        self._tokens = {form for token in set(_TOKEN.findall(self._text)) for form in _forms(token)}

    @cached_property
    def _parts(self) -> set[str]:
        return {part for token in self._tokens for part in _NAME_PARTS.findall(token)}

    @cached_property
    def _stems(self) -> set[str]:
        return {stem(part) for part in self._parts}

    @cached_property
    def _numbers(self) -> set[str]:
        numbers = {_number(found) for found in set(_NUMBER.findall(self._text))}
        return numbers | {_NUMBER_WORDS[part] for part in self._parts & _NUMBER_WORDS.keys()}

    def has_text(self, text: str) -> bool:
        """Whether a text stands there as it is, but for case, spacing and markup."""
        wanted = _plain(text).strip(" .,;:!?")
        return not wanted or wanted in self._text

    def has_number(self, number: str) -> bool:
        """Whether a number stands there, in digits or as a word; 1.29 stands in 1.29.3."""
        value = _number(number)
        return value in self._numbers or any(known.startswith(f"{value}.") for known in self._numbers)

    def has_word(self, word: str) -> bool:
        """Whether a word stands there in any of its forms, or each of its parts does."""
        small = word.lower()
        if small in self._tokens or stem(small) in self._stems:
            return True
        parts = [part for part in _NAME_PARTS.findall(small) if len(part) > 1]
        return len(parts) > 1 and all(stem(part) in self._stems for part in parts)

    def has_identifier(self, token: str) -> bool:
        """Whether an identifier, flag or path stands there as a whole, or as a part of a longer one."""
        whole, bare, *parts = _forms(token)
        if whole in self._tokens or bare in self._tokens or self.has_text(token):
            return True
        return bool(parts) and all(part in self._tokens or self.has_text(part) for part in parts if part)


def missing(statement: str, known: Known, *, names: bool = True) -> str:
    """The first exact thing of a statement that stands nowhere; empty if all stand. Without `names`, proper names need
    not stand: a statement that the book does not speak of something must be able to name it."""
    checks = (  # a thing, what is left of it in the text, and what of it stands nowhere
        (_LINK, r"\1", lambda found: "" if known.has_text(found[2]) else found[2]),
        (_URL, " ", lambda found: "" if known.has_text(found[0].rstrip(".,;:!?")) else found[0]),
        (INLINE_CODE, " ` ", lambda found: _missing_code(found[2], known) if names else ""),
        (_QUOTED, r"\g<0>", lambda found: _missing_quote(found[1], known) if names else ""),
    )
    text = statement
    for pattern, left, absent in checks:
        if said := next(filter(None, map(absent, pattern.finditer(text))), ""):
            return said
        text = pattern.sub(left, text)
    return _missing_word(_MARKUP.sub("", _ENUMERATED.sub(" ", text)), known, names=names)


def proven_code(code: str, evidence: Evidence) -> str:
    """A code block whose lines stand in the passages' code or inline code, whitespace aside; empty if one does not.

    Comments that the writer added are left out: they are claims that nobody proves."""
    texts = [unit.text for unit in evidence.all_units()]
    runs = [_squeezed(text.replace("\\\n", "\n")) for text in texts]
    whole = _squeezed(code.replace("\\\n", "\n"))
    if len(whole) >= _LONG_LINE and any(whole in run for run in runs):
        return code
    standing = {_squeezed(line) for text in texts for line in text.splitlines()}
    standing |= {_squeezed(found[2]) for text in texts for found in INLINE_CODE.finditer(text)}
    standing |= {line.lstrip("$#>%") for line in standing}
    kept: list[str] = []
    for line in code.splitlines():
        bare = _COMMENT.sub("", line)
        if _line_stands(line, standing, runs):
            kept.append(line)
        elif bare.strip() and _line_stands(bare, standing, runs):
            kept.append(bare.rstrip())
        elif bare.strip():
            return ""
    shown = "\n".join(kept).strip("\n")
    return shown if any(character.isalnum() for character in shown) else ""


def _line_stands(line: str, standing: set[str], runs: Sequence[str]) -> bool:
    wanted = _squeezed(line)
    if not any(character.isalnum() for character in wanted):
        return True
    bare = wanted.lstrip("$#>%").removesuffix("\\")
    return wanted in standing or bare in standing or (len(bare) >= _LONG_LINE and any(bare in run for run in runs))


_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//|--)(?:\s.*)?$")
_LONG_LINE: Final = 12  # characters of a line that may stand inside a longer line of the book


def units_with_code(code: str, units: Sequence[IssuedUnit]) -> list[IssuedUnit]:
    """The units in which the lines of a code block stand, as few as possible."""
    wanted = {_squeezed(line).lstrip("$#>") for line in code.splitlines() if any(map(str.isalnum, line))}
    texts = {unit: _squeezed(unit.text) for unit in units}
    chosen: list[IssuedUnit] = []
    while wanted and units:
        best = max(units, key=lambda unit: (sum(line in texts[unit] for line in wanted), unit.kind == "code"))
        if not (covered := {line for line in wanted if line in texts[best]}):
            break
        chosen.append(best)
        wanted -= covered
    return sorted(chosen, key=lambda unit: unit.ref)


def _missing_code(code: str, known: Known) -> str:
    """The part of inline code that stands nowhere."""
    tokens = [] if known.has_text(code) else [found[0] for found in _TOKEN.finditer(_plain(code))]
    numbers = {token for token in tokens if _NUMBER.fullmatch(token) and known.has_number(token)}
    return next((token for token in tokens if token not in numbers and not known.has_identifier(token)), "")


def _missing_quote(text: str, known: Known) -> str:
    """Quoted words that stand nowhere, neither together nor each."""
    words = [found[0] for found in _TOKEN.finditer(text) if found[0].lower() not in EMPTY_WORDS]
    return "" if known.has_text(text) or all(map(known.has_word, words)) else text


def _missing_word(text: str, known: Known, *, names: bool) -> str:
    words = list(_TOKEN.finditer(text))
    for at, found in enumerate(words):
        token = found[0].rstrip(".,:'’")
        begins = token[:1].isupper() and _SENTENCE_START.search(text[: found.start()][-12:]) is not None
        follows = words[at + 1][0].lower() if at + 1 < len(words) else ""
        after_number = at > 0 and words[at - 1][0][-1].isdigit()
        if not names and not any(character.isdigit() for character in token):
            continue
        if not _stands(token, known, begins=begins and follows not in _AFTER_SUBJECT, after_number=after_number):
            return token
    return ""


def _stands(token: str, known: Known, *, begins: bool, after_number: bool) -> bool:
    small = token.lower().replace("’", "'").removesuffix("'s")
    number = _NUMBER_WORDS.get(small, small.strip("%+-~$"))
    if after_number and small in _UNIT_SYMBOL:
        stands = known.has_word(small) or known.has_text(small)
    elif _NUMBER.fullmatch(number):
        stands = known.has_number(number) or (small in _NUMBER_WORDS and int(number) <= _COUNTED)
    elif _ABBREVIATION.fullmatch(token):
        stands = True
    elif _is_identifier(token):
        stands = known.has_identifier(token) or known.has_word(token)
    elif any(character.isdigit() for character in token):
        named = all(map(known.has_word, _LONG_WORD.findall(token))) or not token[0].isupper()
        stands = known.has_identifier(token) or (named and all(map(known.has_number, _NUMBER.findall(small))))
    elif token[0].isupper() and (token.isupper() or not begins):
        plain = small in EMPTY_WORDS or small in _WORDS_IN_CAPITALS
        stands = plain or known.has_word(small)
    else:
        stands = True
    return stands


def _is_identifier(token: str) -> bool:
    """Whether a token is written as no word of a language is: snake_case, camelCase, --flag, /path, a.b, a::b."""
    inner = token.strip(".,:'’")
    if "_" in inner or "::" in inner or inner.startswith(("--", "/", "./", "~/", "$")):
        return True
    if re.search(r"\w[./@=]\w", inner) and not _NUMBER.fullmatch(inner):
        return "/" not in inner or bool(re.search(r"[._\d@=]|/.*/", inner))
    return _CAMEL.search(inner) is not None and not re.fullmatch(r"\d+(?:st|nd|rd|th|s|x|k)?", inner.lower())


def _forms(token: str) -> Iterator[str]:
    """A token as it may be written elsewhere: without leading marks, without a possessive, before an equals sign."""
    small = token.lower().replace("’", "'").removesuffix("'s")
    yield small
    bare = small.strip(".,:'\"@$~/-")
    yield bare
    for separator in ("=", ":", "("):
        if separator in bare:
            yield from bare.split(separator)


def _plain(text: str) -> str:
    """A text for comparing: small letters, one kind of quote and dash, single spaces, no markup."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().translate(_SAME_SIGN).split())


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _number(text: str) -> str:
    """A number without its separators of thousands and without zeros that say nothing."""
    plain = re.sub(r",(?=\d{3}(?:\D|$))", "", text).rstrip(".,")
    if plain.count(".") > 1 or "," in plain:
        return plain
    whole, _, part = plain.partition(".")
    return ".".join(filter(None, (whole.lstrip("0") or "0", part.rstrip("0"))))
