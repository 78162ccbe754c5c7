"""Lines of a text by its characters.

Owns one count. Lines end at a line feed, a carriage return, or both together; other separators of Unicode do not
count, because editors and browsers show them inside a line.
"""

import re

_END = re.compile(r"\r\n|\r|\n")


def lines_of(text: str, start: int, end: int) -> tuple[int, int]:
    """The first and the last line, counted from 1, that the characters `text[start:end]` touch.

    Offsets are in characters (Unicode code points), end exclusive; an empty stretch is on the line where it stands."""
    if not 0 <= start <= end <= len(text):
        raise ValueError("the stretch does not lie in the text")
    last = max(start, end - 1)
    ends = [match.end() for match in _END.finditer(text)]
    return 1 + sum(at <= start for at in ends), 1 + sum(at <= last for at in ends)
