"""The lines about a page that stand before it: YAML between `---`, TOML between `+++`.

Owns splitting them off and the few facts the book needs. Never fails on a page for the sake of its front matter.
"""

import re
import tomllib
from dataclasses import dataclass
from typing import Any

import yaml

from chapterverse.ingestion.ordering import number_of
from chapterverse.ingestion.readers.cleaning import clean_inline

_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_NUMBERS = ("sidebar_position", "weight", "nav_order")  # of Docusaurus, Hugo, Just the Docs
_MAX_CHARS = 100_000  # more is a page that begins with a rule, not front matter


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a page says of itself before it begins."""

    title: str = ""
    slug: str = ""
    number: float | None = None
    draft: bool = False


def split(text: str) -> tuple[FrontMatter, str]:
    """The front matter and the page without it."""
    text = text.lstrip("\n")
    if (match := _YAML.match(text)) and len(match[1]) < _MAX_CHARS:
        found = _load_yaml(match[1])
    elif (match := _TOML.match(text)) and len(match[1]) < _MAX_CHARS:
        found = _load_toml(match[1])
    else:
        return FrontMatter(), text
    if found is None:
        return FrontMatter(), text
    return FrontMatter(
        title=clean_inline(_plain(found.get("title"))),
        slug=_plain(found.get("slug")) or _plain(found.get("id")),
        number=next((number for name in _NUMBERS if (number := number_of(found.get(name))) is not None), None),
        draft=found.get("draft") is True,
    ), text[match.end() :]


def _load_yaml(text: str) -> dict[str, Any] | None:
    """None when it is a paragraph between two rules; empty when it cannot be understood."""
    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 the safe loader in C
    except (yaml.YAMLError, ValueError):  # a date that is none raises ValueError
        return {} if re.match(r"[\w-]+:", text) else None
    return found if isinstance(found, dict) else ({} if found is None else None)


def _load_toml(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
