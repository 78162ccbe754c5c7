"""Output of the command line for people, readable without colour.

Data goes to `out`, the rest to `err`.
"""

import re
from typing import Final

from rich.console import Console
from rich.text import Text

from chapterverse.conversations.topic import shorten

# Control characters except tab and newline: a page must not control the user's terminal.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """The text without control characters."""
    return _CONTROL.sub("", text)


def one_line(text: str, most: int) -> str:
    """The text in one line, without control characters, cut at the end of a word."""
    return printable(shorten(" ".join(text.split()), most))


def show_error(message: str, hint: str = "") -> None:
    """Print an error and a hint."""
    err.print(Text.assemble(("error: ", "bold red"), printable(message)))
    if hint:
        err.print(Text.assemble(("hint: ", "bold"), printable(hint)))


def show_warning(message: str) -> None:
    """Print a warning."""
    err.print(Text.assemble(("warning: ", "bold yellow"), printable(message)))


def show_note(message: str) -> None:
    """Print progress and other messages to stderr."""
    err.print(Text(printable(message), style="dim"))
