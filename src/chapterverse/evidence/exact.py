"""Exact checks: what can be compared character by character must occur in the issued passages.

Numbers, units of measure, versions, dates, identifiers, flags, paths, URLs, quoted strings and proper names of a
statement must occur in the passages, in their breadcrumbs or in the question; every line of a code block must occur in
the passages' code or inline code. This is cheap and catches what was invented. It cannot catch a number or name that
the passages use for something else; the judge checks that.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final

from chapterverse.evidence.passages import Evidence, IssuedUnit
from chapterverse.evidence.statement import Statement
from chapterverse.language import EMPTY_WORDS, INLINE_CODE, stem, word_set
from chapterverse.units import cells_of, row_text

_URL = re.compile(r"(?:https?|ftp|file|ssh|git)://[^\s<>()\[\]`\"'“”]+|\bwww\.[^\s<>()\[\]`\"'“”]+", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“„]([^\"“”„\n]{2,200})[\"”]")
_LINK = re.compile(r"!?\[([^\]\n]{0,500}+)\]\(([^)\s]{0,1000}+)[^)]{0,200}+\)")
_MARKUP = re.compile(r"\*{1,3}|~~|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|^#{1,6} |<[^>\n]{1,80}>")
# A word with its joining characters: ROS_DOMAIN_ID, --dry-run, /etc/hosts, v1.29.3, a::b, 3.5, 10,000, foo@1.2
_TOKEN = re.compile(r"(?<![\w])[-./~$@%]{0,2}\w(?:[\w.,:/@%+#’'=~$\-]*[\w+#%°])?%?")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
# A number with its sign. The hyphen of "3-5" is not a sign; the digits of "nav2" are not a number, those of "v2" are.
_NUMBER = re.compile(r"(?:(?<![\w.)\]-])-)?(?:(?<![^\W_]|\^)|(?<=\bv))\d+(?:[.,]\d+)*")
_NAME_PARTS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d|\d[A-Za-z]{2}")
# Also after an arrow or an emoji.
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;…•|–—\u2190-\u21ff\u2300-\u2bff\ufe0f\U0001f000-\U0001faff]|[.!?]?[\"“”'’)])\s{0,12}[\"“‘(\[*_`]{0,12}$"
)
_LABEL = re.compile(r"[^\w*:\"“„]{0,12}(?:\[[xX]\] )?\*\*[^*\n\"“„]{1,80}?(?=:\*\*|\*\*:)")  # "**Name**:"
_UNIT_SYMBOL: Final = word_set(
    "% ° °c °f k v a w hz ms s sec min h hr kb mb gb tb pb kib mib gib tib bit bits byte bytes bps kbps mbps gbps mm "
    "cm m km µm kg g mg lb oz l ml n nm pa kpa mpa bar psi j kj wh kwh mah ah mv kv ma kw mw mhz khz ghz rad "
    "deg m/s m/s² rpm fps px pt em usd eur $ € £"
)
_WORDS_OF_NUMBERS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty hundred thousand"
)
_VALUES: Final = map(str, (*range(21), 30, 40, 50, 60, 100, 1000))
_NUMBER_WORDS: Final = dict(zip(_WORDS_OF_NUMBERS.split(), _VALUES, strict=True))
_SAME_SIGN: Final = str.maketrans("‘’“”„‐‑‒–—−", '\'\'"""------')  # for comparing
_MARKS = re.compile(r"`|\\(?![^\W_])")  # the backslash of \n and of C:\temp is no markup
_EMPHASIS = re.compile(r"(\*{1,3}|(?<!\w)_{1,3}|~~)(?=\S)([^\n]{1,300}?)(?<=\S)\1")
_RAISED = re.compile("[²³¹⁰⁴-⁹¼-¾⅐-⅞]")  # NFKC turns 10² into 102
# If one of these follows the first word of a sentence, that word is the subject; without an article it is a name.
_AFTER_SUBJECT: Final = word_set("is was has had can does will must may were are")
_ABBREVIATION = re.compile(r"(?:[a-z]\.)+[a-z]|I['’]\w+|[A-Z]/[A-Z]")  # e.g, I'd, X/Y
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_COMPOUND = re.compile(r"[^\W_]+(?:-[^\W_]+)*")  # base64-encoded, StatefulSets
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
# A writer's own numbering or checkbox: "1. …" of a heading, "Option 2", "step 3", "[x] …".
_ENUMERATED = re.compile(
    r"^[*_\s]*(?:\d{1,2}[.)]|\[[ xX]\])\s|\b(?:option|step|method|way|part|approach|case) \d{1,2}\b", re.IGNORECASE
)
# Abbreviations that are ordinary words by now, not names.
_WORDS_IN_CAPITALS: Final = word_set(
    "api apis url urls uri id ids ok cli ui gui os pc cpu cpus gpu gpus ram json yaml xml html http https "
    "sql pdf csv faq pr"
)
_COUNTED: Final = 10  # a writer may count what the passages list: "three modes"


class Known:
    """The text of the passages, the breadcrumbs and the question: what a statement may name."""

    def __init__(self, evidence: Evidence) -> None:
        units = evidence.all_units()
        places = [text for passage in evidence.passages for text in (passage.place, passage.lead)]
        texts = [
            evidence.question,
            *places,
            *(text for unit in units for text in (unit.text, unit.head, unit.model_text)),
        ]
        self._text = f" {_plain(' '.join(dict.fromkeys(texts)))} "  # most units have the same text for the model
        self._tokens = {form for token in set(_TOKEN.findall(self._text)) for form in _forms(token)}

    @cached_property
    def _parts(self) -> set[str]:
        return {part for token in self._tokens for part in _NAME_PARTS.findall(token)}

    @cached_property
    def _stems(self) -> set[str]:
        return {stem(part) for part in self._parts}

    @cached_property
    def _comparable(self) -> str:
        return f" {comparable(self._text)} "

    @cached_property
    def _numbers(self) -> set[str]:
        numbers = {normal_number(found) for found in set(_NUMBER.findall(self._text))}
        return numbers | {_NUMBER_WORDS[part] for part in self._parts & _NUMBER_WORDS.keys()}

    def has_text(self, text: str) -> bool:
        """Whether a text occurs verbatim, except for case, spacing and markup. It must begin and end where words,
        numbers and flags do: 80 is not found in 8080 or 80.5, nor `--dry` in `--dry-run`."""
        wanted = _plain(text).strip(" ,;:!?").rstrip(".")
        left = r"(?<!\w)(?<!\w-)(?<!\d[.,])" if re.match(r"[\w/$@~-]", wanted) else ""
        right = r"(?!\w|[.-]\w|,\d)" if re.search(r"\w$", wanted) else ""
        return wanted in self._text and re.search(f"{left}{re.escape(wanted)}{right}", self._text) is not None

    def has_words(self, text: str) -> bool:
        """Whether the words and signs of a text occur together, regardless of quotation marks and of punctuation at the
        end of a clause. A single word may have another form."""
        together = self.has_text(text) or f" {comparable(text)} " in self._comparable
        return together or (_PLAIN_WORD.fullmatch(text) is not None and self.has_word(text))

    def has_number(self, number: str) -> bool:
        """Whether a number occurs with its sign, in digits or as a word; 1.29 is found in 1.29.3."""
        value = normal_number(number)
        longer = (known for known in self._numbers if "." in value and known.startswith(f"{value}."))
        return value in self._numbers or any(longer)

    def has_word(self, word: str) -> bool:
        """Whether a word occurs, in any of its forms or as all of its parts, or a sign such as %."""
        small = word.lower()
        if small in self._tokens or stem(small) in self._stems or (not small[0].isalnum() and small in self._text):
            return True
        parts = [part for part in _NAME_PARTS.findall(small) if len(part) > 1 or part.isdigit()]
        return len(parts) > 1 and all(stem(part) in self._stems for part in parts)

    def has_identifier(self, token: str) -> bool:
        """Whether an identifier, flag or path occurs as a whole, or in parts that `=`, `:` or `(` separate. A flag or
        an absolute path must occur with its leading marks."""
        whole, bare, *parts = _forms(token)
        exact = whole.startswith(("-", "/"))
        if whole in self._tokens or (bare in self._tokens and not exact) or self.has_text(token):
            return True
        if exact and parts:
            parts[0] = whole[: whole.index(parts[0])] + parts[0]
        return bool(parts) and all(part in self._tokens or self.has_text(part) for part in parts if part)


def missing_in(statement: Statement, known: Known, *, names: bool = True) -> str:
    """Return the first exact detail of a statement that occurs nowhere; empty if all occur. A heading, the names of a
    row's columns and a bold label before a colon are labels (see `missing`)."""
    label, rest = "", statement.text
    if statement.shape == "heading":
        label, rest = rest, ""
    elif statement.shape == "row" and statement.head:
        label = " | ".join(cells_of(statement.head.partition("\n")[0]))
        rest = f"| {row_text('', statement.row)}"
    elif found := _LABEL.match(rest):
        label, rest = found[0], rest[found.end() :]
    return missing(label, known, names=names, label=True) or missing(rest, known, names=names)


def missing(statement: str, known: Known, *, names: bool = True, label: bool = False) -> str:
    """Return the first exact detail of a statement that occurs nowhere; empty if all occur. Without `names`, proper
    names are not checked: a statement that the book does not mention something must be able to name it. In a label, a
    word with only its first letter in capitals is not taken for a name."""
    checks = (  # the pattern, what replaces it in the text, and the missing part of a match
        (_LINK, r"\1", lambda found: "" if known.has_text(found[2]) else found[2]),
        (_URL, " ", lambda found: "" if known.has_text(found[0].rstrip(".,;:!?")) else found[0]),
        (INLINE_CODE, " ` ", lambda found: _missing_code(found[2], known, names=names)),
        (_QUOTED, r"\g<0>", lambda found: _missing_quote(found[1], known)),
    )
    text = statement
    for pattern, left, absent in checks:
        if said := next(filter(None, map(absent, pattern.finditer(text))), ""):
            return said
        text = pattern.sub(left, text)
    return _missing_word(_MARKUP.sub("", _ENUMERATED.sub(" ", text)), known, names=names, label=label)


def proven_code(code: str, units: Sequence[IssuedUnit]) -> tuple[str, tuple[IssuedUnit, ...]]:
    """Return a code block whose lines all occur in the code or inline code of units, and those units; else nothing.

    Comments that the writer added are left out: they are claims that nothing proves."""
    runs = [(unit, run) for unit in units for run in _code_runs(unit)]

    def standing(lines: Iterable[str]) -> list[IssuedUnit]:
        wanted = "".join(map(_squeezed, lines))
        return [unit for unit, run in runs if _holds(run, wanted)]

    lines = _code_lines(code)
    if whole := standing(lines):
        return code, (whole[0],)
    kept: list[str] = []
    holding: list[list[IssuedUnit]] = []  # for each line
    for line in lines:
        bare = _COMMENT.sub("", line).rstrip()
        if _CLOSING.fullmatch(bare):
            kept += [] if line.strip() and not bare.strip() else [bare]
            continue
        found = {said: standing([said]) for said in (line, bare)}
        if _is_identifier(name := bare.strip()):  # prose may contain it, too
            found[bare] = found[bare] or [unit for unit in units if name in _TOKEN.findall(unit.text)]
        shown = next((said for said in found if found[said]), None)
        if shown is None:
            return "", ()
        kept.append(shown)
        holding.append(found[shown])
    lines_of = Counter(unit for found in holding for unit in set(found))
    chosen = {max(found, key=lambda unit: (lines_of[unit], unit.kind == "code")) for found in holding}
    return "\n".join(kept).strip("\n") if chosen else "", tuple(sorted(chosen, key=lambda unit: unit.ref))


def is_whole_code(code: str, unit: IssuedUnit) -> bool:
    """Whether a code block has all the code of a unit and nothing else."""
    wanted = "".join(map(_squeezed, _code_lines(code)))
    return any("".join(run) == wanted for run in _code_runs(unit))


def _code_runs(unit: IssuedUnit) -> Iterator[list[str]]:
    """Yield the runs of code in a unit, each as lines without white space: a code block with and without its comments;
    in other units, inline code and the lines and table cells that are not prose, because a passage may begin inside a
    code block."""
    lines = [line for line in _code_lines(unit.text) if not _FENCE.match(line)]
    if unit.kind == "code":
        runs = [lines, [_TRAILING_COMMENT.sub("", line) for line in lines]]
    else:
        lines = cells_of(unit.text) if unit.kind == "row" else lines
        code = [line for line in lines if not _is_prose(line)]
        runs = [[found[2]] for found in INLINE_CODE.finditer(unit.text)]
        runs += [[line] for line in code] + ([lines] if code == lines else [])
    yield from ([squeezed for line in run if (squeezed := _squeezed(line))] for run in runs)


def _holds(run: Sequence[str], wanted: str) -> bool:
    """Whether code without white space equals consecutive whole lines of a run, regardless of line breaks."""
    return any(wanted.startswith(line) and wanted in accumulate(run[at:]) for at, line in enumerate(run))


def _is_prose(line: str) -> bool:
    """Whether a line reads as a sentence: it begins with a capital and ends with a stop, or has function words."""
    words = line.split()
    grammar = sum(word.lower() in EMPTY_WORDS for word in words)
    return line.lstrip()[:1].isupper() and len(words) > 1 and (line.rstrip().endswith((".", "!", "?")) or grammar > 1)


def _code_lines(code: str) -> list[str]:
    """Split code into lines; a backslash at the end continues a line."""
    return re.split(r"(?<!\\)\n", code)


def _squeezed(line: str) -> str:
    """Remove white space, the prompt and the marks of continued lines from a line."""
    return "".join(unicodedata.normalize("NFKC", _PROMPT.sub("", line).replace("\\\n", "")).split())


_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//|--)(?:\s.*)?$")
_TRAILING_COMMENT = re.compile(r"(?<=\S)\s{1,80}(?:#|//)\s.*", re.DOTALL)  # "git checkout -- FILE" has none
_CLOSING = re.compile(r"[\s()\[\]{}<>;,.…\"'\\]*")
_PROMPT = re.compile(r"^\s*(?:(?:\$|>>>|>)\s+|\d+ \|)")  # of a shell, or the line's number in a listing
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")


def _missing_code(code: str, known: Known, *, names: bool) -> str:
    """Return the part of inline code that occurs nowhere. A single word is treated as a name."""
    if not names and _PLAIN_WORD.fullmatch(code):
        return ""
    tokens = [] if known.has_text(code) else [found[0] for found in _TOKEN.finditer(_plain(code))]
    numbers = {token for token in tokens if _NUMBER.fullmatch(token) and known.has_number(token)}
    return next((token for token in tokens if token not in numbers and not known.has_identifier(token)), "")


def _missing_quote(text: str, known: Known) -> str:
    """Return quoted words if they do not occur together. Code between them is checked separately."""
    return "" if all(known.has_words(part) for part in text.split("`") if part.strip()) else text


def _missing_word(text: str, known: Known, *, names: bool, label: bool) -> str:
    words = list(_TOKEN.finditer(text))
    for at, found in enumerate(words):
        token = found[0].rstrip(".,:'’")
        begins = token[:1].isupper() and _SENTENCE_START.search(text[: found.start()][-12:]) is not None
        follows = words[at + 1][0].lower() if at + 1 < len(words) else ""
        after_number = at > 0 and words[at - 1][0][-1].isdigit()
        if not names and _PLAIN_WORD.fullmatch(token):
            continue
        begins = (begins and follows not in _AFTER_SUBJECT) or (label and token[1:].islower())
        if not _stands(token, known, begins=begins, after_number=after_number):
            return token
    return ""


def _stands(token: str, known: Known, *, begins: bool, after_number: bool) -> bool:
    small = token.lower().replace("’", "'").removesuffix("'s")
    number = _NUMBER_WORDS.get(small, small.lstrip("+~$"))
    symbol = small if after_number else small.lstrip("+~-0123456789.,")
    if symbol in _UNIT_SYMBOL and (after_number or symbol != small):
        return known.has_word(symbol) and (after_number or known.has_number(small.removesuffix(symbol).lstrip("+~")))
    if _NUMBER.fullmatch(number):
        return known.has_number(number) or (small in _NUMBER_WORDS and int(number) <= _COUNTED)
    if _is_identifier(token) and not _ABBREVIATION.fullmatch(token):
        return known.has_identifier(token) or (_COMPOUND.fullmatch(token) is not None and known.has_word(token))
    if any(character.isdigit() for character in token):
        named = all(map(known.has_word, _LONG_WORD.findall(token))) or not token[0].isupper()
        return known.has_identifier(token) or (named and all(map(known.has_number, _DIGITS.findall(small))))
    is_name = token[0].isupper() and (token.isupper() or not begins) and not _ABBREVIATION.fullmatch(token)
    return not is_name or small in EMPTY_WORDS or small in _WORDS_IN_CAPITALS or known.has_word(small)


def _is_identifier(token: str) -> bool:
    """Whether a token is written unlike any ordinary word: snake_case, camelCase, --flag, /path, a.b, a::b."""
    inner = token.strip(".,:'’")
    if "_" in inner or "::" in inner or inner.startswith(("--", "/", "./", "~/", "$")):
        return True
    if re.search(r"\w[./@=]\w", inner) and not _NUMBER.fullmatch(inner):
        return "/" not in inner or bool(re.search(r"[._\d@=]|/.*/", inner))
    return _CAMEL.search(inner) is not None and not re.fullmatch(r"\d+(?:st|nd|rd|th|s|x|k)?", inner.lower())


def _forms(token: str) -> Iterator[str]:
    """Yield other spellings of a token: without a possessive, without leading marks, split at `=`, `:` or `(`."""
    small = token.lower().replace("’", "'").removesuffix("'s")
    yield small
    bare = small.strip(".,:'\"@$~/-")
    yield bare
    for separator in ("=", ":", "("):
        if separator in bare:
            yield from bare.split(separator)


def _plain(text: str) -> str:
    """Normalize a text for comparing: lower case, one kind of quote and dash, single spaces, no markup."""
    normal = unicodedata.normalize("NFKC", _RAISED.sub(r"^\g<0>", text)).lower().translate(_SAME_SIGN)
    return " ".join(_EMPHASIS.sub(r"\2", _MARKS.sub("", normal)).split())


def comparable(text: str) -> str:
    """Return the words and signs of a text: texts that have the same ones say the same. Case, spacing, markup,
    quotation marks and punctuation at the end of a clause are ignored; a sign such as < or - is not."""
    bare = re.sub(r"\"|(?<!\w)'|'(?!\w)", "", _plain(text))
    return " ".join(re.findall(r"\w+|[^\w\s]", re.sub(r"(?<![.,;:!?])[.,;:!?]++(?=[\s)\]|]|$)", " ", bare)))


def normal_number(text: str) -> str:
    """Normalize a number: no thousands separators, no insignificant zeros."""
    plain = re.sub(r",(?=\d{3}(?:\D|$))", "", text).rstrip(".,")
    decimal = re.fullmatch(r"(-?)(?:0(?=\d))*+(\d++)(?:\.(\d*+))?", plain)  # a version has more dots
    return decimal[1] + f"{decimal[2]}.{decimal[3] or ''}".rstrip("0").rstrip(".") if decimal else plain
