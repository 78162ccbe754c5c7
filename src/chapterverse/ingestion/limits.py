"""Limits for hostile files, shared by the readers."""

from typing import Final

from chapterverse.ingestion.document import Unreadable

MAX_NUMBER: Final = 999_999_999  # larger numbers of list items, pages or columns are ignored
MAX_HIDDEN_DEPTH: Final = 500  # hidden elements inside each other in Markdown and MDX


def whole_number(text: str | None, default: int) -> int:
    """A number in a document, or the default if it is invalid or has more than 9 digits. (`int` raises for 5,000.)"""
    digits = (text or "").strip()
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 9:
        return default
    return min(int(digits), MAX_NUMBER)


def nesting_depth(text: str) -> int:
    """The maximum nesting of brackets and braces, including those in strings."""
    depth = deepest = 0
    for character in text:
        if character in "[{(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]})":
            depth = max(depth - 1, 0)
    return deepest


def require_hidden_depth(depth: int) -> None:
    """Raise Unreadable if hidden elements are nested too deeply, because each closing tag searches all open ones."""
    if depth > MAX_HIDDEN_DEPTH:
        raise Unreadable("its hidden elements are nested too deeply")
