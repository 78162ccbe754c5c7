"""Recognises the options of a command in preformatted text, as a program prints them with `--help`."""

import re
from collections.abc import Sequence
from typing import Final

LEAST: Final = 2  # minimum number of options in a list
PLAIN: Final = frozenset(
    ("", "none", "text", "plaintext", "console", "shell", "sh", "bash")
)  # languages of code blocks that may be a list of options
SHORT_NAME: Final = 4  # columns of "-s, " before "--long"; an option without a short name is indented by them

_OPTION = re.compile(
    r"(?!-\d++(?:[.,]\d++)*+(?: |$)|-(?:[r-][w-][xsStT-]){3})--?[A-Za-z0-9?#@]"
)  # no number, nor the rights of a file
_GAP = re.compile(r" {2,}")  # between "-o, --output FILE" and its explanation


def options_in(text: str) -> Sequence[tuple[str, str]]:
    """The options and their explanations, if the text has nothing else; else empty."""
    options: list[tuple[str, list[str]]] = []
    indent = 0
    for line in text.expandtabs().splitlines():
        body = line.strip()
        depth = len(line) - len(line.lstrip())
        if _OPTION.match(body) and not (options and depth > indent + SHORT_NAME):
            name, *explained = _GAP.split(body, maxsplit=1)
            indent = min(depth, indent) if options else depth
            options.append((name, explained))
        elif body and options and depth > indent:
            options[-1][1].append(body)  # its explanation continues
        elif body:
            return ()
    found = [(name, " ".join(lines)) for name, lines in options]
    return found if len(found) >= LEAST and all(lines for _, lines in found) else ()
