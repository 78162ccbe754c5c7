"""What the command line shows to people, readable without colour.

Data goes to `out`, the rest to `err`.
"""

import re
from typing import Final

from rich.console import Console
from rich.text import Text

# Control characters but tab and newline: a page must not control the reader's terminal.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """The text without characters that a terminal would obey."""
    return _CONTROL.sub("", text)


def show_error(message: str, hint: str = "") -> None:
    """An error and, after it, what to do."""
    err.print(Text.assemble(("error: ", "bold red"), printable(message)))
    if hint:
        err.print(Text.assemble(("hint: ", "bold"), printable(hint)))


def show_warning(message: str) -> None:
    """Something the reader should know, though it went on."""
    err.print(Text.assemble(("warning: ", "bold yellow"), printable(message)))


def show_note(message: str) -> None:
    """Progress and other messages, to stderr."""
    err.print(Text(printable(message), style="dim"))
