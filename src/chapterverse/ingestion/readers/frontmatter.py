"""Reads front matter: YAML between `---` or TOML between `+++`.

Only top-level values are read. YAML is read as a stream of events, so that nested values, anchors, aliases and merge
keys are never built and cost nothing. A page never fails because of its front matter.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from chapterverse.ingestion.limits import nesting_depth
from chapterverse.ingestion.ordering import number_of
from chapterverse.ingestion.readers.cleaning import clean_inline

_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_NUMBERS = ("sidebar_position", "weight", "nav_order")  # of Docusaurus, Hugo, Just the Docs
_MAX_CHARS = 100_000  # longer ones are not front matter, but text after a horizontal rule
_MAX_DEPTH = 50  # of brackets
_MAX_VALUE = 2_000  # characters of one value; a title or a slug has fewer
_MAX_INTEGER = 10**15


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a page."""

    title: str = ""
    number: float | None = None
    draft: bool = False
    values: Mapping[str, str] = field(default_factory=dict)  # of all its keys, as texts


def split(text: str) -> tuple[FrontMatter, str]:
    """The front matter, and the page without it."""
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
        number=next((number for name in _NUMBERS if (number := number_of(found.get(name))) is not None), None),
        draft=found.get("draft") is True,
        values={name: _plain(value) for name, value in found.items()},
    ), text[match.end() :]


def top_level(text: str) -> dict[str, Any] | None:
    """The top-level scalar values of a YAML or JSON mapping; None if it is not a mapping.

    Raises ValueError if the text is not YAML."""
    if len(text) > _MAX_CHARS or nesting_depth(text) > _MAX_DEPTH:  # YAML's scanner takes quadratic time
        raise ValueError("too long, or nested too deeply")
    try:
        return _top_level(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _top_level(events: Iterator[yaml.Event]) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    depth = 0
    key: str | None = None  # the key whose value comes next
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth == 1 and not isinstance(event, yaml.MappingStartEvent):
                return None
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            if depth == 1:
                key = None if key is not None else ""
        elif depth == 0 and isinstance(event, yaml.ScalarEvent):
            return {} if _value(event) is None else None
        elif depth == 1 and isinstance(event, yaml.NodeEvent):  # a scalar, or an alias, which is ignored
            if key is None:
                key = event.value if isinstance(event, yaml.ScalarEvent) else ""
            else:
                if isinstance(event, yaml.ScalarEvent):
                    found[key] = _value(event)
                key = None
    return found


def _value(event: yaml.ScalarEvent) -> Any:
    """The value of a scalar, as in YAML's safe loader."""
    text: str = event.value
    if not event.implicit[0] or event.style or len(text) > _MAX_VALUE:
        return text[:_MAX_VALUE]
    loader = _loader()
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    try:
        return loader.construct_object(yaml.ScalarNode(tag, text))
    except (yaml.YAMLError, ValueError, OverflowError):  # 2024-99-99, 5,000 digits, a merge key
        return text


@cache
def _loader() -> Any:
    return yaml.SafeLoader("")


def _load_yaml(text: str) -> dict[str, Any] | None:
    """The values; empty if the YAML is invalid; None if the text is a paragraph between two rules."""
    try:
        return top_level(text)
    except ValueError:
        return {} if re.match(r"[\w-]+:", text) else None


def _load_toml(text: str) -> dict[str, Any] | None:
    if nesting_depth(text) > _MAX_DEPTH or max(map(len, text.split("\n"))) > _MAX_CHARS // 10:
        return {}
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # ValueError: not TOML, or a number of 5,000 digits
        return {}


def _plain(value: object) -> str:
    """A text or a number as a text; empty for other values."""
    if isinstance(value, str):
        return value[:_MAX_VALUE]
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _MAX_INTEGER:
        return ""
    return str(value)
