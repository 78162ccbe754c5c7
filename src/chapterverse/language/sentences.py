"""Finds the sentences of a text, with their offsets, in time linear in its length."""

import re
from collections.abc import Iterator

from chapterverse.language.words import word_set

_FENCE = re.compile(r"[ \t]*(`{3,}+(?!.*`)|~{3,})")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\|)")  # headings and table rows: a line is a sentence
_ITEM = re.compile(r"[ \t]*(?:> ?)*(?:[-*+•]|\(?(?P<number>\d{1,3})[.)])[ \t]+")
INLINE_CODE = re.compile(r"(?<!`)(`++)(.{1,2000}?)(?<!`)\1(?!`)", re.DOTALL)
_LINE = re.compile(r"\S(?:[^\n]*\S)?")  # without the white space around it

# A full stop with the brackets, quotes and reference marks that close after it, then white space; 。 needs none.
_STOP = re.compile(
    r"(?:(?<![.!?…])(?P<stop>[.!?…]++)(?P<close>[)\]}\"'”’»*_]*+)(?:[ ]?\[\^?\d{1,4}\])*+(?=\s|$)"
    r"|[。！？｡]+[」』）”’]*)(?=(?P<space>\s*+))"
)
_BEFORE = re.compile(r"[^\W_](?:[\w.&'’-]{0,60}\w)?$")  # the word that a full stop ends
_WORD = re.compile(r"\s*[\"'“‘«(\[*_]*(?P<word>\w*)")  # the word that follows
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S, a.m; Ph.D is listed below

# After these a full stop never ends a sentence. Titles count only with their capital: 30 ms. is not Ms. Lee.
_NEVER = word_set("e.g i.e eg ie cf vs viz approx resp incl excl esp")
_TITLES = word_set("Mr Mrs Ms Dr Prof St Gen Hon Rev")
# A full stop after these ends a sentence only before a word that begins one.
_SELDOM = word_set("inc ltd co corp jr sr al ca ph.d m.sc b.sc dept est ed eds min max avg std dev")
# A full stop after these ends no sentence before a number or a letter that names a thing (Fig. 3, Eq. (2), Ch. IV).
_NUMBERED = word_set("no nos fig figs eq eqs sec secs ch chap vol vols p pp ref refs v ver")
# Words that begin sentences, to tell "written in C. The" from "C. Shannon".
_STARTERS = word_set(
    "a after all also although an and another any are as at because before both but by can consider each every "
    "finally first for from given hence here how however if in instead is it its let like many most no not note now "
    "on once one only or other our see since so some such that the their then there therefore these they this those "
    "though thus to unlike use using we what when where which while who why with without you your"
)
_LOOK_BACK = 32  # characters: no abbreviation is longer


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of a text as spans, in order. They cover every character but white space.

    Blank lines, list items, headings and table rows end a sentence; each line of fenced code is one."""
    return [span for passage in _passages(text) for span in _split(text, *passage)]


def _passages(text: str) -> list[tuple[int, int, int]]:
    """Return spans that no sentence crosses: (start, end, where to look for full stops; `end` for nowhere)."""
    found: list[tuple[int, int, int]] = []
    is_open = in_list = False  # whether the last span may continue, and whether it is a list item
    for left, right, alone in _lines(text):
        item = _ITEM.match(text, left, right)
        goes_on = is_open and not alone and text.count("\n", found[-1][1], left) < 2
        if goes_on and (not item or (not in_list and item["number"] not in (None, "1"))):
            # Also a wrapped line that happens to start with a number.
            found[-1] = found[-1][0], right, found[-1][2]
        else:
            found.append((left, right, right if alone else item.end() if item else left))
            is_open, in_list = not alone, item is not None
    return found


def _lines(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield each line with text, and whether it is a sentence by itself: a line of code, a heading, a row."""
    fence = ""
    for line in _LINE.finditer(text):
        mark = _FENCE.match(text, *line.span())
        yield *line.span(), bool(fence or mark or _ALONE.match(text, *line.span()))
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]


def _split(text: str, start: int, end: int, body: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of one span, split at its full stops."""
    if body < end:
        code = {at for found in INLINE_CODE.finditer(text, body, end) for at in range(*found.span())}
        for stop in _STOP.finditer(text, body, end):
            if stop.start() not in code and stop.end() < end and _ends(text, stop, start, end):
                yield start, stop.end()
                start = stop.end("space")
    if start < end:
        yield start, end


def _ends(text: str, stop: re.Match[str], start: int, end: int) -> bool:
    """Whether a full stop that is followed by something ends its sentence."""
    if stop["stop"] is None:
        return True  # 。 and similar marks always end a sentence
    if stop["stop"][0] in ".…" and (stop.start() == start or text[stop.start() - 1].isspace()):
        return False  # the `.` of "cd .." and of "the . folder"
    following = _WORD.match(text, stop.end(), end)
    assert following is not None
    word = following["word"]
    lower = word[:1].islower()
    if stop["stop"] != ".":
        return not lower
    if lower and stop["close"]:
        return False  # (and so on.) is inside its sentence
    before = _BEFORE.search(text, max(start, stop.start() - _LOOK_BACK), stop.start())
    if before is not None and before.start() == start and len(before[0]) == 1:
        return False  # the label in "A. It does."
    return before is None or _closes(before[0], word)


def _closes(before: str, word: str) -> bool:
    """Whether a full stop between these two words ends a sentence, judged by abbreviations and initials."""
    short = before.lower()
    starter = word[:1].isupper() and word.lower() in _STARTERS
    if short in _NEVER or before in _TITLES:
        return False
    if short in _NUMBERED:
        return not (word[:1].isdigit() or (len(word) <= 2 and word.isupper() and not starter))
    if short == "etc":
        return word[:1].isupper()
    if short in _SELDOM or _DOTTED.fullmatch(before):
        return starter
    if len(before) == 1 and before.isupper():  # an initial; the s of "1.2 m/s. Heron" is not one
        return starter or before == "I" or not word[:1].isalpha()
    return True
