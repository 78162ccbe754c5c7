"""Sort keys for the reading order of pages.

A page in the site's navigation is sorted by its position there. For other pages, the order in a folder is: the index
page; pages and folders with a number (set by the author, or at the beginning of the name); other files; other folders.
Within these groups, the order is by number, then by name (9 before 10).
"""

import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Final

_NUMBERED: Final = re.compile(r"(\d{1,6})\s*[-_.]+\s*(?=\D)")  # 01-intro, 1. intro
_INDEXES: Final = {"", "index", "_index", "readme"}
_MOST: Final = 999_999  # maximum number of a page
_STEP: Final = "\x1f"


def order_of(path: str, folders: Sequence[float | None] = (), own: float | None = None) -> str:
    """The sort key of a page by its path and the numbers of its folders and of itself."""
    *above, name = path.lstrip("/").split("/")
    stem = name.rpartition(".")[0] or name
    last = "0" if stem.lower() in _INDEXES else _place(stem, own, "2")
    return _STEP.join([*(_place(folder, number, "3") for folder, number in zip_longest(above, folders)), last])


def order_in_navigation(place: int) -> str:
    """The sort key of a page in the source's navigation. Other pages, except a start page, come after these."""
    return f"0{min(place, _MOST):06d}"


def chapter_of(order: str, number: float | None) -> str:
    """The sort key of a chapter in a file with several chapters."""
    return f"{order}{_STEP}{_place('', number, '2')}"


def number_of(value: object) -> float | None:
    """A number set by an author; None if it cannot be used for sorting."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):  # `isfinite` raises for a huge integer
        return None
    return float(min(max(value, -_MOST), _MOST))


def _place(name: str, number: float | None, unnumbered: str) -> str:
    if number is None and (found := _NUMBERED.match(name)):
        number = float(found[1])
    natural = re.sub(r"\d{1,12}", lambda digits: digits[0].zfill(12), name.casefold())
    return f"{unnumbered}{natural}" if number is None else f"1{number + _MOST:014.4f}{natural}"


def words_of(name: str) -> str:
    """The name of a file in words: `getting_started` becomes "getting started"."""
    return " ".join(re.split(r"[-_\s]+", name)).strip()


def title_of_path(path: str) -> str:
    """`guides/01-getting_started.md` becomes "Getting started"; an index page gets the name of its folder."""
    place = PurePosixPath(path)
    name = place.parent.name if place.stem.lower() in _INDEXES and place.parent.name else place.stem
    numbered = _NUMBERED.match(name)
    words = words_of(name[numbered.end() :] if numbered else name)
    return words[:1].upper() + words[1:] or path or "Untitled"
