"""Detects CSS styles that hide text.

A style, in the spelling of HTML or JSX, hides text if it is not displayed, transparent, tiny, clipped, moved off the
screen, or in the colour of its background.
"""

import re
from typing import Final

WHITE: Final = (255, 255, 255)  # the default background

Colour = tuple[int, int, int]

_CLEAR: Final = 8  # of 255: text that differs from its background by at most this is invisible
_ZERO = r"\s*:\s*[01](?:px|pt|em|rem|%)?\s*(?:!important\s*)?(?:[;,]|$)"
_UNSEEN: Final = re.compile(
    r"(?:^|[;,\s])(?:"
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|content-visibility\s*:\s*hidden"
    r"|opacity\s*:\s*(?:0|0?\.0\d*)(?![\d.])"
    r"|font-size\s*:\s*(?:0(?![.\d])|0?\.0\d*|[012](?:\.\d+)?(?:px|pt)|0?\.[012]\d*(?:px|pt|em|rem))"
    r"|(?:left|top|right|text-indent|margin-left|margin-top)\s*:\s*-\d{4,}"
    r"|clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)"
    r"|transform\s*:\s*scale\(\s*0(?![.\d])"
    r")"
)
_NO_ROOM: Final = re.compile(rf"(?:^|[;,\s])(?:max-)?(?:height|width){_ZERO}")
_CUT: Final = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip)")
_TEXT: Final = re.compile(r"(?<![-\w])color\s*:\s*(rgba?\([^)]*\)|#?\w+)")
_GROUND: Final = re.compile(r"background(?:-color|-image)?\s*:\s*(rgba?\([^)]*\)|#?\w+)")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER: Final = re.compile(r"[\d.]+")


def hides(style: str, behind: Colour | None = WHITE) -> bool:
    """Whether text with this style is invisible; `behind` is the colour of its background, None if unknown."""
    plain = _plain(style)
    if _UNSEEN.search(plain) or (_NO_ROOM.search(plain) and _CUT.search(plain)):
        return True
    written = _TEXT.search(plain)
    if not written:
        return False
    if _is_clear(written[1]):
        return True
    text, ground = _colour(written[1]), ground_of(style, behind)
    return text is not None and ground is not None and _alike(text, ground)


def ground_of(style: str, behind: Colour | None) -> Colour | None:
    """The background of an element with this style: its own, else the one behind it (`behind`); None if unknown."""
    found = _GROUND.search(_plain(style))
    return behind if found is None or _is_clear(found[1]) else _colour(found[1])


def _plain(style: str) -> str:
    """A style in the spelling of CSS: JSX uses camel case and quoted values."""
    return _HUMP.sub("-", re.sub(r"[\"'`{}]", "", style)).lower()


def _is_clear(value: str) -> bool:
    if value.startswith("rgba("):
        parts = _NUMBER.findall(value)
        return len(parts) == 4 and (_amount(parts[3]) or 0) < 0.1
    return value == "transparent" or (value[0] == "#" and len(value) in (5, 9) and not value[-1:].strip("0"))


def _colour(value: str) -> Colour | None:
    if value.startswith("rgb"):
        parts = [min(255, int(min(_amount(part) or 0, 255))) for part in _NUMBER.findall(value)[:3]]
        return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None
    value = {"white": "#ffffff", "black": "#000000", "snow": "#fffafa", "ivory": "#fffff0"}.get(value, value)
    if not re.fullmatch(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", value):
        return None
    digits = value[1:] if len(value) > 5 else "".join(digit * 2 for digit in value[1:])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _amount(value: str) -> float | None:
    """A number in a style; None if it is invalid."""
    try:
        return float(value[:20])
    except ValueError:
        return None


def _alike(first: Colour, second: Colour) -> bool:
    return all(abs(a - b) <= _CLEAR for a, b in zip(first, second, strict=True))
