"""AsciiDoc inside a block: what a line of text says without its markup, and the cells of a table.

Owns inline macros, formatting marks, attribute references and table syntax. Never knows where on a page it is.
"""

import csv
import re
from collections.abc import Callable, Mapping

_MAX_CHARS = 20_000  # a longer line is no prose and is taken as it is

_CHARACTERS = {"nbsp": " ", "zwsp": "", "sp": " ", "empty": "", "blank": "", "amp": "&", "lt": "<", "gt": ">"}
_CHARACTERS |= {"plus": "+", "asterisk": "*", "tilde": "~", "caret": "^", "vbar": "|", "startsb": "[", "endsb": "]"}
_MARKUP = re.compile(r"[\[{*_`#^~<+\\(]")  # without any of these there is nothing to take away
_REFERENCE = re.compile(r"(?<!\\)\{([\w-]+)\}")
_CODE = re.compile(r"(?<![\w`\"])`{1,2}(?=\S)(\+?)([^`]+?)\1`{1,2}(?![\w`])")
_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\+\+\+([^+]*)\+\+\+|pass:[a-z,]*\[([^\]]*)\]", r"\1\2"),
        (r"\(\(\([^()]*\)\)\)|(?:indexterm|anchor|icon|bibitem):[^\s\[]*\[[^\]]*\]", ""),
        (r"\(\(([^()]+)\)\)", r"\1"),
        (r"<<[^<>,]+,\s*([^<>]+)>>", r"\1"),
        (r"<<#?([^<>,]+)>>", r"\1"),
        (r"\[\[[\w:.-]+(?:,[^\]]*)?\]\]", ""),
        (r"footnote:[\w-]*\[([^\]]*)\]", r" (\1)"),
        (r"(?:stem|latexmath|asciimath):\[([^\]]*)\]", r"$\1$"),
        (r"(?:kbd|btn):\[([^\]]*)\]", r"\1"),
        (r"menu:([^\[\n]{1,60})\[([^\]]*)\]", r"\1 > \2"),
        (r"image:(?!:)[^\s\[]+\[\"?([^\],\"]*)[^\]]*\]", r"\1"),
        (r"(?:link|xref|mailto):[^\s\[]+\[\"?([^\]\"]+?)\^?\"?(?:,\s*(?:window|role|opts|subs)=[^\]]*)?\]", r"\1"),
        (r"(?:xref|mailto|link):([^\s\[]+)\[\s*\]", r"\1"),
        (r"<?\b(?:https?|ftp|irc)://[^\s\[\]<>]+\[\"?([^\]\"]+?)\^?\"?(?:,\s*(?:window|role|opts)=[^\]]*)?\]>?", r"\1"),
        (r"(\b(?:https?|ftp|irc)://[^\s\[\]<>]+)\[\s*\]", r"\1"),
        (r"\"`([^`\n]+)`\"", r"“\1”"),
        (r"'`([^`\n]+)`'", r"‘\1’"),
        (r"(?:\[[^\[\]]*\])?##([^#\n]+)##|(?:\[[^\[\]]*\])?(?<![\w#])#(?=\S)([^#\n]+?)(?<=\S)#(?![\w#])", r"\1\2"),
        (r"\*\*([^*\n]+)\*\*|(?<![\w*\\])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])", r"\1\2"),
        (r"__([^_\n]+)__|(?<![\w_\\])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])", r"\1\2"),
        (r"\^([^\s^]+)\^|~([^\s~]+)~", r"\1\2"),
        (r"(?<!\S)\+(?=\n|$)", ""),
        (r"\\(?=[*_`#{<\[+^~])", ""),
    )
)
_CELL = re.compile(r"(?:(\d+)?(?:\.\d+)?[+*])?[<^>.]*[adehlmsv]?(?<!\\)\|")


def spoken(text: str, attributes: Mapping[str, str], plain: bool = False) -> str:
    """The text without markup; code keeps its backticks unless `plain`."""
    if len(text) > _MAX_CHARS or not _MARKUP.search(text):
        return text

    def known(match: re.Match[str]) -> str:
        name = match[1].lower()
        return attributes.get(name, _CHARACTERS.get(name, match[0]))

    said, place = [], 0
    text = _REFERENCE.sub(known, text)
    for code in _CODE.finditer(text):
        said += [_unformatted(text[place : code.start()]), code[2] if plain else f"`{code[2]}`"]
        place = code.end()
    return "".join(said) + _unformatted(text[place:])


def _unformatted(text: str) -> str:
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text


def table(lines: list[str], style: str, mark: str, say: Callable[[str], str]) -> list[list[str]]:
    """The rows of a table. Without `cols`, its first line of cells says how many columns it has."""
    if mark == "," or "format=csv" in style or "%csv" in style:
        return [[say(cell) for cell in row] for row in csv.reader(lines)]
    if mark == ":":
        return [[say(cell) for cell in line.split(":")] for line in lines if line.strip()]
    if mark == "!":
        lines = [line.replace("!", "|") for line in lines]
    lines = [line for line in lines if not re.match(r"//(?!/)", line)]
    first = next((line for line in lines if line.strip()), "")
    width = _columns(style) or max(len(_CELL.findall(first)), 1)
    cells = [say(cell) for cell in _cells("\n".join(lines))]
    return [cells[place : place + width] for place in range(0, len(cells), width)]


def _columns(style: str) -> int:
    given = re.search(r"cols\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([\w*]+))", style)
    if not given:
        return 0
    columns = [one.strip() for one in re.split(r"[,;]", given[1] or given[2] or given[3] or "")]
    return sum(int(many[1]) if (many := re.match(r"(\d{1,3})\*", one)) else 1 for one in columns)


def _cells(text: str) -> list[str]:
    found: list[str] = []
    marks = list(_CELL.finditer(text))
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        found.append(text[mark.end() : end].replace("\\|", "|").strip())
        if mark[1] and "+" in mark[0]:  # a cell over several columns
            found += [""] * min(int(mark[1][:3]) - 1, 100)
    return found
